"""The early frame of the inline screen: an empty row, the prompt, the mode, below what the terminal has. Pure.

It moves from where the cursor is, which stands in the prompt's row, and knows no other place. The app paints its first
frame from the empty row on, over this one. The prompt is one row, whatever is typed: no terminal wraps it.
"""

from __future__ import annotations

from tenuto.tui.first_paint.paint import GLYPH, PLACEHOLDER, beginning_of, cells, end_of, shown_as

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenuto.tui.first_paint.paint import Look, Size
    from tenuto.tui.terminal.emulator import Reflow

ERASE_DOWN = "\x1b7\x1b[K\x1b[B\x1b[J\x1b8"
"""Erases from the cursor on, without the one way to do so that tmux takes for "clear": from the first cell of all. It
would put what was there into the scrollback.
"""
XTERM_JS = ("vscode", "hyper", "tabby")
"""Programs whose terminal is xterm.js, as they call themselves."""
TO_FIRST_ROW = "\r\x1b[A"


class InlinePicture:
    """What is shown of the inline screen. `environ` tells what the terminal does with rows when it is resized."""

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
