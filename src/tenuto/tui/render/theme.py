"""Style names and what they look like. Names are meanings; colours stand only here.

A style name is words applied from left to right. A word is a name of the table (`code.keyword` falls back to `code`),
a modifier, a colour of a program's output (`fg=3`, `bg=#102030`), or a link target (`@https://…`).
A colour is `#rrggbb` or the decimal number of one of the terminal's own 256 (`"4"` is its blue).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from msgspec import Struct

from tenuto.tui.render.palette import PALETTES, STYLES, Palette


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


MODIFIERS: Final = frozenset({"bold", "dim", "italic", "underline", "strike", "reverse"})


class Theme(Struct, frozen=True, eq=False):
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
        """Return the same theme with attributes only (NO_COLOR), those that the theme of sixteen colours has as well.

        It tells by them what the others tell by shades; only where contrast is wanted nothing is made dim.
        """
        may_dim = not self.name.startswith("contrast")
        plain = {name: _attributes(style, ansi_style(name), may_dim=may_dim) for name, style in self.styles.items()}
        return Theme(f"{self.name}-mono", None, None, plain, colour=False)


def ansi_style(name: str) -> Style:
    """Return a style of the theme that uses the terminal's own sixteen colours."""
    return find_theme("ansi").styles.get(name, Style())


def _attributes(style: Style, other: Style, *, may_dim: bool) -> Style:
    """Return a style's attributes with those of another, and no colour."""
    both = _over(style, other)._replace(foreground=None, background=None)
    return both if may_dim else both._replace(dim=style.dim)


@lru_cache(maxsize=4096)
def _resolve(theme: Theme, name: str) -> Style:
    style = Style()
    for word in name.split(" "):
        if word in MODIFIERS and word != "dim":
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


def read_style(description: str, colours: Mapping[str, str]) -> Style:
    """Read "bold accent on panel" with these names of colours. A word that nobody knows is taken for a colour."""
    style = Style()
    ground = False
    for word in description.split():
        value = colours.get(word, word)
        if value == "on":
            ground = True
        elif value in MODIFIERS:
            style = style._replace(**{value: True})
        elif value and ground:
            style = style._replace(background=value)
        elif value:
            style = style._replace(foreground=value)
    return style


def build_theme(name: str, palette: Palette) -> Theme:
    """Return the theme that a palette makes."""
    colours = palette.colours
    styles = {key: read_style(text, colours) for key, text in {**STYLES, **palette.styles}.items()}
    return Theme(name, colours["text"] or None, colours["page"] or None, styles)


THEME_NAMES: Final = tuple(PALETTES)


@lru_cache(maxsize=8)
def find_theme(name: str) -> Theme:
    """Return a theme of our own by its name; one that nobody knows gives `ansi`, which suits every terminal."""
    return build_theme(name, PALETTES[name]) if name in PALETTES else build_theme("ansi", PALETTES["ansi"])
