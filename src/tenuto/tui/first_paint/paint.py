"""The early frame of each screen: the rows, glyphs and colours of the app's first one, as bytes. Pure.

Widths are not known here (a table would have to be imported): the terminal counts the cells, and a text that may not
fit is cut by a guess on the safe side.
"""

from __future__ import annotations

from tenuto.tui.terminal.colours import has_colour, has_light_background, has_many_colours, has_true_colour, is_light

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenuto.tui.terminal.emulator import Reflow

GLYPH = "❯ "
PLACEHOLDER = "Ask for something · / commands · @ files · ! shell · ? keys"
ENTER = "\x1b[?1049h\x1b[?2004h\x1b[?25l\x1b[?7l\x1b[0m\x1b[2J"
LEAVE = "\x1b[0m\x1b[H\x1b[J\x1b[?2004l\x1b[?7h\x1b[?1049l\x1b[?25h"
NO_FLAGS = "\x1b[=0;1u"
END_LEFT_BEHIND = f"\x1b[?1016l\x1b[?1006l\x1b[?1003l\x1b[?1002l\x1b[?1000l\x1b[?2048l\x1b[?1004l{NO_FLAGS}"
"""Ends what a killed program has left switched on: mouse, sizes, focus, the keyboard (`NO_FLAGS`: of each screen)."""
MIN_COLUMNS, MIN_ROWS = 20, 5

Size = tuple[int, int]
"""Columns and rows."""
Look = tuple[str, str, str]
"""The SGR parameters of the rule, of the glyph and the mode, and of the words where nothing is typed."""

LOOKS: dict[tuple[str, str], Look] = {
    ("dark", "truecolor"): ("38;2;92;99;112", "38;2;229;166;99", "38;2;163;170;182"),
    ("dark", "256"): ("38;5;241", "38;5;179", "38;5;145"),
    ("light", "truecolor"): ("38;2;140;149;159", "38;2;154;74;0", "38;2;86;94;104"),
    ("light", "256"): ("38;5;246", "38;5;94", "38;5;59"),
    ("contrast-dark", "truecolor"): ("38;2;160;166;176", "38;2;255;210;74", "38;2;216;219;224"),
    ("contrast-dark", "256"): ("38;5;248", "38;5;221", "38;5;253"),
    ("contrast-light", "truecolor"): ("38;2;91;99;109", "38;2;107;47;0", "38;2;49;54;61"),
    ("contrast-light", "256"): ("38;5;241", "38;5;52", "38;5;237"),
    ("ansi", ""): ("2", "36", "2"),
    ("mono", ""): ("0", "0", "2"),
}
NAMES = frozenset({"dark", "light", "ansi", "contrast-dark", "contrast-light"})


def choose_look(environ: Mapping[str, str], theme: str = "auto", background: str = "") -> Look:
    """Return the colours of a theme, as `tui/themes.py` chooses it; a theme of the user's own shows with the app.

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


class FullPicture:
    """What is shown of the full screen. The app's first frame takes its place in one stroke (`full/driver.py`).

    `leave` ends what was begun, `hand_over` goes to where the app paints its first frame, and another width is painted
    for if it stays for `settling` seconds. `text` and `cursor` (an offset in characters) are what has been typed.
    """

    leave = LEAVE
    hand_over = ""
    settling = 0.0

    def __init__(self, mode: str) -> None:
        self._mode = mode
        self.transcript: list[str] = []
        """The first rows, painted: the end of a session that is gone on with."""

    def begin(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Take the screen and paint everything on it."""
        return ENTER + self.recolour(size, look, text, cursor)

    def resize(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Paint everything on a screen of another size."""
        return "\x1b[2J" + self.recolour(size, look, text, cursor)

    def recolour(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Paint everything over what is there."""
        (columns, rows), (rule, accent, _) = size, look
        above = "".join([f"\x1b[{number};1H{row}" for number, row in enumerate(self.transcript, 1)])
        return (
            f"{above}\x1b[{rows - 2};1H\x1b[{rule}m{'─' * columns}\x1b[0m"
            f"\x1b[{rows};1H\x1b[{accent}m{self._mode}\x1b[0m"
            f"\x1b[{rows - 1};1H\x1b[{accent}m{GLYPH}\x1b[0m"
            f"{paint_text(columns - len(GLYPH), text, cursor, look)}"
        )

    def show(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Paint the row of the prompt again, behind its glyph."""
        columns, rows = size
        return f"\x1b[{rows - 1};{len(GLYPH) + 1}H{paint_text(columns - len(GLYPH), text, cursor, look)}"


def fit_placeholder(room: int) -> str:
    """Return what of the placeholder fits in `room` cells: its first words and where the keys are, rather than half."""
    phrases = PLACEHOLDER.split(" · ")
    while len(phrases) > 1 and len(" · ".join(phrases)) > room:
        del phrases[-2]
    return " · ".join(phrases)[:room]


def paint_text(room: int, text: str, cursor: int, look: Look) -> str:
    """Return the text with its cursor as a reversed cell, or the placeholder, in `room` cells."""
    if not text:
        shown = fit_placeholder(room)
        return f"\x1b[0;7m{shown[:1]}\x1b[0;{look[2]}m{shown[1:]}\x1b[0m\x1b[K"
    before = end_of(shown_as(text[:cursor]), room - 2)
    left = room - sum(map(cells, before))
    at, after = shown_as(text[cursor : cursor + 1]) or " ", shown_as(text[cursor + 1 :])
    return f"\x1b[0m{before}\x1b[7m{at}\x1b[27m{beginning_of(after, left - cells(at))}\x1b[K"


_SHOWN = {
    10: "⏎",
    9: " ",
    # Bidi controls stay in the text and off the screen.
    **dict.fromkeys([0x61C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A)]),
}


def shown_as(text: str) -> str:
    """Return a text as it is painted on one row."""
    return text.translate(_SHOWN)


def cells(character: str) -> int:
    """Return how many cells a character takes at most."""
    return 1 if character < "\x7f" else 2


def beginning_of(text: str, room: int) -> str:
    """Return as much of a text as surely fits into `room` cells."""
    for index, character in enumerate(text):
        room -= cells(character)
        if room < 0:
            return text[:index]
    return text


def end_of(text: str, room: int) -> str:
    """Return as much of the end of a text as surely fits into `room` cells."""
    return beginning_of(text[::-1], room)[::-1]


# --- the inline screen ---


ERASE_DOWN = "\x1b7\x1b[K\x1b[B\x1b[J\x1b8"
"""Erases from the cursor on, without the one way to do so that tmux takes for "clear": from the first cell of all. It
would put what was there into the scrollback.
"""
XTERM_JS = ("vscode", "hyper", "tabby")
"""Programs whose terminal is xterm.js, as they call themselves."""
TO_FIRST_ROW = "\r\x1b[A"


class InlinePicture:
    """The same of the inline screen: an empty row, the prompt, the mode, below what the terminal has.

    It moves from where the cursor is, which stands in the prompt's row, and knows no other place. The app paints its
    first frame from the empty row on, over this one. The prompt is one row, whatever is typed: no terminal wraps it.
    `environ` tells what the terminal does with rows when it is resized.
    """

    leave = f"\x1b[0m\x1b[?2004l\x1b[?7h{TO_FIRST_ROW}{ERASE_DOWN}\x1b[?25h"
    hand_over = f"\x1b[?25l{TO_FIRST_ROW}"
    settling = 0.3  # where the rows are is known only when the terminal has wrapped them for the last time

    def __init__(self, mode: str, environ: Mapping[str, str]) -> None:
        self._mode = mode
        self._environ = environ
        self._before = GLYPH

    def begin(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Make room below what is there, which stays, but for the keys that the kernel has echoed in this row."""
        return f"\x1b[?2004h\x1b[0m\r{ERASE_DOWN}{self._paint(size, look, text, cursor)}"

    def resize(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Paint everything on a screen of another size, which has moved the cursor if it wraps rows again."""
        from tenuto.tui.render.width import cell_width

        # The row of the cursor is the only one that another width can part.
        up = 1 + (cell_width(self._before) // size[0] if reflow_of(self._environ) == "wraps" else 0)
        return f"\r\x1b[{up}A{ERASE_DOWN}{self._paint(size, look, text, cursor)}"

    def recolour(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Paint everything over what is there."""
        return TO_FIRST_ROW + self._paint(size, look, text, cursor)

    def show(self, size: Size, look: Look, text: str, cursor: int) -> str:
        """Paint the row of the prompt again."""
        room = size[0] - len(GLYPH)
        before = end_of(shown_as(text[:cursor]), room - 1)
        behind = beginning_of(shown_as(text[cursor:]), room - sum(map(cells, before)))
        if not text:
            behind = f"\x1b[{look[2]}m{PLACEHOLDER[:room]}"
        self._before = GLYPH + before
        # The terminal counts the cells: the cursor is put back to where it has come to.
        return f"\r\x1b[?7l\x1b[{look[1]}m{GLYPH}\x1b[0m{before}\x1b7\x1b[K{behind}\x1b[0m\x1b8\x1b[?7h"

    def _paint(self, size: Size, look: Look, text: str, cursor: int) -> str:
        mode = f"\x1b[{look[1]}m{self._mode}\x1b[0m\x1b[K"
        return f"\x1b[K\r\n\x1b[K\r\n{mode}\x1b[A{self.show(size, look, text, cursor)}"


def reflow_of(environ: Mapping[str, str]) -> Reflow:
    """Return what the terminal does with rows at another width. tmux wraps them, whatever it runs in."""
    if environ.get("TMUX"):
        return "wraps"
    term = environ.get("TERM", "")
    if "XTERM_VERSION" in environ or term == "linux" or term.startswith(("screen", "rxvt")):
        return "cuts"
    if environ.get("KONSOLE_VERSION"):
        return "wraps-above"
    return "counts" if environ.get("TERM_PROGRAM", "").lower() in XTERM_JS else "wraps"
