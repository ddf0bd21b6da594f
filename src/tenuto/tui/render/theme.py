"""Style names and what they look like. Names are meanings; colours stand only here.

A style name is words applied from left to right. A word is a name of the table (`code.keyword` falls back to `code`),
a modifier, a colour of a program's output (`fg=3`, `bg=#102030`), or a link target (`@https://…`).
A colour is `#rrggbb` or the decimal number of one of the terminal's own 256 (`"4"` is its blue).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from tenuto.tui.render.palette import ANSI, CONTRAST, DARK, LIGHT


class Style(NamedTuple):
    """How text is drawn; `None` is the terminal's own colour. `link` is the target of an OSC 8 link, or empty."""

    foreground: str | None = None
    background: str | None = None
    bold: bool = False
    dim: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    reverse: bool = False
    link: str = ""


_MODIFIERS: Final = frozenset({"bold", "dim", "italic", "underline", "strike", "reverse"})


@dataclass(frozen=True, slots=True, eq=False)
class Theme:
    """`foreground` and `background` are what the theme assumes of the screen; `None`: whatever the terminal has."""

    name: str
    foreground: str | None
    background: str | None
    styles: Mapping[str, Style]
    colour: bool = True

    def resolve(self, name: str) -> Style:
        """Return what a style name looks like. Cached; a word that nobody knows changes nothing."""
        return _resolve(self, name)

    def without_colour(self) -> Theme:
        """Return the same theme with attributes only (NO_COLOR)."""
        plain = {
            name: style._replace(foreground=None, background=None, reverse=style.reverse or name == "selection")
            for name, style in self.styles.items()
        }
        for name in ("diff.added.word", "diff.removed.word"):
            plain[name] = plain[name]._replace(underline=True)
        return Theme(f"{self.name}-mono", None, None, plain, colour=False)


@lru_cache(maxsize=4096)
def _resolve(theme: Theme, name: str) -> Style:
    style = Style()
    for word in name.split(" "):
        if word in _MODIFIERS and word != "dim":
            style = style._replace(**{word: True})
        elif word.startswith("@"):
            style = style._replace(link=word[1:])
        elif word.startswith("fg=") and theme.colour:
            style = style._replace(foreground=word[3:])
        elif word.startswith("bg=") and theme.colour:
            style = style._replace(background=word[3:])
        else:
            style = _over(style, _look_up(theme.styles, word))
    return style


def _look_up(styles: Mapping[str, Style], word: str) -> Style:
    while word:
        if word in styles:
            return styles[word]
        word = word.rpartition(".")[0]
    return Style()


def _over(under: Style, upper: Style) -> Style:
    return Style(
        upper.foreground or under.foreground,
        upper.background or under.background,
        under.bold or upper.bold,
        under.dim or upper.dim,
        under.italic or upper.italic,
        under.underline or upper.underline,
        under.strike or upper.strike,
        under.reverse or upper.reverse,
        upper.link or under.link,
    )


def _parse(description: str) -> Style:
    """Read "bold #rrggbb on #rrggbb" or "4 underline"."""
    style = Style()
    on = False
    for word in description.split():
        if word == "on":
            on = True
        elif word in _MODIFIERS:
            style = style._replace(**{word: True})
        elif on:
            style = style._replace(background=word)
        else:
            style = style._replace(foreground=word)
    return style


def _theme(name: str, palette: Mapping[str, str]) -> Theme:
    screen = _parse(palette["screen"])
    styles = {key: _parse(value) for key, value in palette.items() if key != "screen"}
    return Theme(name, screen.foreground, screen.background, styles)


_PALETTES: Final = {"dark": DARK, "light": LIGHT, "ansi": ANSI, "contrast": CONTRAST}
THEME_NAMES: Final = tuple(_PALETTES)


@lru_cache(maxsize=8)
def find_theme(name: str) -> Theme:
    """Return a theme by its name; one that nobody knows gives `ansi`, which suits every terminal."""
    return _theme(name, _PALETTES[name]) if name in _PALETTES else _theme("ansi", ANSI)


def contrast_ratio(first: str, second: str) -> float:
    """Return the WCAG contrast of two `#rrggbb` colours: 1 (none) to 21."""
    light, dark = sorted((_luminance(first), _luminance(second)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def _luminance(colour: str) -> float:
    channels = (int(colour[index : index + 2], 16) / 255 for index in (1, 3, 5))
    linear = [value / 12.92 if value <= 0.03928 else ((value + 0.055) / 1.055) ** 2.4 for value in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
