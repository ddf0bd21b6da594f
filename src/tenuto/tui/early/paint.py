"""The early frame: the rows, glyphs and colours of the app's first one, as bytes. Pure.

Widths are not known here (a table would have to be imported): the terminal counts the cells, and a text that may not
fit is cut by a guess on the safe side.
"""

from __future__ import annotations

from tenuto.tui.early.colours import has_colour, has_light_background, has_many_colours, has_true_colour, is_light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

GLYPH = "❯ "
PLACEHOLDER = "Ask for something · / commands · @ files · ! shell · ? keys"
MODE = "ask"
ENTER = "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J"
LEAVE = "\x1b[0m\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h"
NO_FLAGS = "\x1b[=0;1u"
END_LEFT_BEHIND = f"\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2048l\x1b[?1004l{NO_FLAGS}"
"""Ends what a killed program has left switched on: mouse, sizes, focus, the keyboard (`NO_FLAGS`: of each screen)."""
MIN_COLUMNS, MIN_ROWS = 20, 5

Look = tuple[str, str]
"""The SGR parameters of the rule, and of the glyph and the mode."""

LOOKS: dict[tuple[str, str], Look] = {
    ("dark", "truecolor"): ("38;2;92;99;112", "38;2;229;166;99"),
    ("dark", "256"): ("38;5;241", "38;5;179"),
    ("light", "truecolor"): ("38;2;140;149;159", "38;2;154;74;0"),
    ("light", "256"): ("38;5;246", "38;5;94"),
    ("contrast-dark", "truecolor"): ("38;2;160;166;176", "38;2;255;210;74"),
    ("contrast-dark", "256"): ("38;5;248", "38;5;221"),
    ("contrast-light", "truecolor"): ("38;2;91;99;109", "38;2;107;47;0"),
    ("contrast-light", "256"): ("38;5;241", "38;5;52"),
    ("ansi", ""): ("2", "36"),
    ("mono", ""): ("0", "0"),
}
NAMES = frozenset({"dark", "light", "ansi", "contrast-dark", "contrast-light"})


def choose_look(environ: Mapping[str, str], theme: str = "auto", background: str = "") -> Look:
    """Return the colours of a theme, as `tui/themes.py` chooses it; a theme of the person's own shows with the app.

    `background` is what the terminal said of its own (`#rrggbb`), if it has said anything.
    """
    if not has_colour(environ):
        return LOOKS["mono", ""]
    light = is_light(background) if background else has_light_background(environ)
    kind = "light" if light else "dark"
    name = f"contrast-{kind}" if theme == "contrast" else theme
    if name not in NAMES:
        name = kind if has_many_colours(environ) else "ansi"
    return LOOKS[name, "" if name == "ansi" else "truecolor" if has_true_colour(environ) else "256"]


def paint_frame(columns: int, rows: int, look: Look, text: str, cursor: int) -> str:
    """Return everything, on a screen of so many cells; the screen must be empty."""
    rule, accent = look
    return (
        f"\x1b[{rows - 2};1H\x1b[{rule}m{'─' * columns}\x1b[0m"
        f"\x1b[{rows};1H\x1b[{accent}m{MODE}\x1b[0m"
        f"\x1b[{rows - 1};1H\x1b[{accent}m{GLYPH}\x1b[0m{paint_text(columns - len(GLYPH), text, cursor)}"
    )


def paint_prompt(columns: int, rows: int, text: str, cursor: int) -> str:
    """Return the row of the prompt again, behind its glyph."""
    return f"\x1b[{rows - 1};{len(GLYPH) + 1}H{paint_text(columns - len(GLYPH), text, cursor)}"


def paint_text(room: int, text: str, cursor: int) -> str:
    """Return the text with its cursor as a reversed cell, or the placeholder, in `room` cells."""
    if not text:
        shown = PLACEHOLDER[:room]
        return f"\x1b[2;7m{shown[:1]}\x1b[0;2m{shown[1:]}\x1b[0m\x1b[K"
    before = _tail(_plain(text[:cursor]), room - 2)
    left = room - sum(map(_cells, before))
    at, after = _plain(text[cursor : cursor + 1]) or " ", _plain(text[cursor + 1 :])
    return f"\x1b[0m{before}\x1b[7m{at}\x1b[27m{_head(after, left - _cells(at))}\x1b[K"


_SHOWN = {
    10: "⏎",
    9: " ",
    # Bidi controls stay in the text and off the screen.
    **dict.fromkeys([0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
}


def _plain(text: str) -> str:
    return text.translate(_SHOWN)


def _cells(character: str) -> int:
    return 1 if character < "\x7f" else 2


def _head(text: str, room: int) -> str:
    for index, character in enumerate(text):
        room -= _cells(character)
        if room < 0:
            return text[:index]
    return text


def _tail(text: str, room: int) -> str:
    return _head(text[::-1], room)[::-1]
