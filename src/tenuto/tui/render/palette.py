"""The colours of the themes that come with Tenuto, and what each style is made of.

A style is described in words: modifiers, a colour, and behind `on` the colour of the ground it stands on. A colour is
a name of the palette, `#rrggbb`, or the number of one of the terminal's own 256. `theme.py` reads the descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


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
