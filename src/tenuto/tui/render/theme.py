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


class Palette(NamedTuple):
    """Colours by name, and the styles that are not made as `STYLES` says."""

    colours: Mapping[str, str]
    styles: Mapping[str, str]


COLOUR_MEANINGS: Final[Mapping[str, str]] = {
    "text": "the terminal's own text as the theme expects it; not painted, only judged",
    "page": "the terminal's own background as the theme expects it; not painted, only judged",
    "accent": "what stands out: the prompt, titles, marks",
    "quiet": "remarks, results of tools, thinking",
    "faint": "hints",
    "line": "rules and bars, nothing to be read",
    "red": "errors, what was removed",
    "green": "success, what was added",
    "yellow": "warnings",
    "blue": "links and paths",
    "magenta": "keywords, the shell, compactions",
    "cyan": "code in a text",
    "orange": "numbers in code",
    "added": "the ground of added lines",
    "added_word": "the ground of added words",
    "removed": "the ground of removed lines",
    "removed_word": "the ground of removed words",
    "panel": "the ground of panels",
    "selection": "the ground of selected text",
    "selected": "selected text itself; empty keeps its colours",
}
"""Every name of a palette, for people who make their own."""

_TEXT: Final = {
    "text": "",
    "accent": "accent",
    "dim": "quiet",
    "muted": "quiet",
    "faint": "faint",
    "rule": "line",
    "heading": "bold accent",
    "heading.1": "bold underline accent",
    "heading.2": "bold accent",
    "heading.3": "bold italic",
    "table.head": "bold",
    "link": "underline blue",
    "link.target": "quiet",
    "path": "blue",
    "list.marker": "accent",
    "quote.bar": "line",
}
_CODE: Final = {
    "code": "",
    "code.inline": "cyan",
    "code.keyword": "magenta",
    "code.string": "green",
    "code.number": "orange",
    "code.comment": "italic quiet",
    "code.function": "blue",
    "code.type": "yellow",
    "code.builtin": "cyan",
    "code.decorator": "orange",
}
_TRANSCRIPT: Final = {
    "user.bar": "accent on panel",
    "user.text": "on panel",
    "user.pending": "quiet on panel",
    "user.image": "cyan on panel",
    "thinking": "italic quiet",
    "thinking.title": "quiet",
    "thinking.mark": "quiet",
    "tool.name": "bold",
    "tool.subject": "",
    "tool.writing": "quiet",
    "tool.ready": "quiet",
    "tool.waiting": "bold yellow",
    "tool.running": "accent",
    "tool.done": "green",
    "tool.failed": "quiet",
    "tool.interrupted": "yellow",
    "tool.denied": "yellow",
    "output": "quiet",
    "shell.mark": "bold magenta",
    "shell.command": "bold",
    "notice": "quiet",
    "warning": "yellow",
    "error": "bold red",
    "success": "green",
    "compaction": "magenta",
}
_CONTEXT: Final = {
    "context.system": "blue",
    "context.instructions": "cyan",
    "context.tools": "magenta",
    "context.summary": "accent",
    "context.pins": "yellow",
    "context.user": "green",
    "context.answers": "blue",
    "context.thinking": "quiet",
    "context.calls": "orange",
    "context.results": "red",
    "context.notes": "cyan",
    "context.queued": "yellow",
    "context.free": "quiet",
    "context.reserve": "quiet",
    "context.trigger": "bold red",
    "context.chart": "accent",
}
_CHANGES: Final = {
    "diff.added": "on added",
    "diff.removed": "on removed",
    "diff.context": "",
    "diff.added.sign": "green on added",
    "diff.removed.sign": "red on removed",
    "diff.added.word": "bold on added_word",
    "diff.removed.word": "bold on removed_word",
    "diff.number": "quiet",
    "diff.plus": "green",
    "diff.minus": "red",
}
_AROUND: Final = {
    "todo.pending": "",
    "todo.done": "strike quiet",
    "todo.done.mark": "quiet",
    "todo.active": "bold accent",
    "prompt": "accent",
    "prompt.shell": "magenta",
    "placeholder": "quiet",
    "status": "quiet",
    "status.mode": "accent",
    "meter.low": "green",
    "meter.middle": "yellow",
    "meter.high": "red",
    "panel": "on panel",
    "panel.title": "bold accent",
    "choice.selected": "bold accent",
    "selection": "selected on selection",
    "match": "bold underline yellow",
    "match.current": "bold reverse yellow",
    "block.mark": "reverse accent",
}
STYLES: Final[Mapping[str, str]] = _TEXT | _CODE | _TRANSCRIPT | _CONTEXT | _CHANGES | _AROUND
"""Every style name, and what it is made of unless a palette says otherwise."""


def _colours(values: str) -> dict[str, str]:
    """Read `name=colour` words; a name that is left out has no colour."""
    given = dict(pair.split("=") for pair in values.split())
    return {name: given.get(name, "") for name in COLOUR_MEANINGS}


DARK: Final = Palette(
    _colours(
        """
        text=#d4d7dd page=#16181d accent=#e5a663 quiet=#a3aab6 faint=#868d9b line=#5c6370
        red=#f28779 green=#8fc98b yellow=#e8c46c blue=#79b8ff magenta=#d2a6ff cyan=#74c7d4 orange=#f0a868
        added=#14261a added_word=#1f4029 removed=#2d1719 removed_word=#4f2326
        panel=#20242c selection=#3a4a68 selected=#f2f4f8
        """
    ),
    {},
)
LIGHT: Final = Palette(
    _colours(
        """
        text=#24292f page=#ffffff accent=#9a4a00 quiet=#565e68 faint=#666e78 line=#8c959f
        red=#b3261e green=#14672c yellow=#7a5200 blue=#0759b3 magenta=#7a3eb1 cyan=#0b6377 orange=#8f4700
        added=#e6f6e9 added_word=#c4ebcc removed=#fdebe9 removed_word=#fbd3cf
        panel=#f3f4f6 selection=#bcd4f7 selected=#14181d
        """
    ),
    {},
)
CONTRAST_DARK: Final = Palette(
    _colours(
        """
        text=#ffffff page=#000000 accent=#ffd24a quiet=#d8dbe0 faint=#c0c5ce line=#a0a6b0
        red=#ffb0a8 green=#7dff8a yellow=#ffe14a blue=#a3d3ff magenta=#ecc8ff cyan=#6ff0ff orange=#ffc78a
        added=#001c07 added_word=#00380e removed=#240004 removed_word=#4a0008
        panel=#1a1a1a selection=#ffffff selected=#000000
        """
    ),
    {},
)
CONTRAST_LIGHT: Final = Palette(
    _colours(
        """
        text=#000000 page=#ffffff accent=#6b2f00 quiet=#31363d faint=#3f454d line=#5b636d
        red=#8a0a0a green=#064a1a yellow=#543600 blue=#003c85 magenta=#56148a cyan=#004552 orange=#652f00
        added=#e9fbee added_word=#cdf5d8 removed=#fff0ef removed_word=#ffdfdc
        panel=#f2f2f2 selection=#000000 selected=#ffffff
        """
    ),
    {},
)
# Bright blue: the plain one of xterm, PuTTY and the consoles can hardly be read on black.
ANSI: Final = Palette(
    _colours("accent=6 quiet=dim faint=dim line=dim red=1 green=2 yellow=3 blue=12 magenta=5 cyan=6 orange=3"),
    {
        "diff.added": "green",
        "diff.removed": "red",
        "diff.added.word": "bold underline green",
        "diff.removed.word": "bold underline red",
        "selection": "reverse",
        "user.text": "bold",
    },
)
PALETTES: Final[Mapping[str, Palette]] = {
    "dark": DARK,
    "light": LIGHT,
    "ansi": ANSI,
    "contrast-dark": CONTRAST_DARK,
    "contrast-light": CONTRAST_LIGHT,
}
"""The themes by name. `dark` and `light` name their colours, `ansi` uses the terminal's own sixteen, the other two are
for tired or weak eyes.
"""


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
