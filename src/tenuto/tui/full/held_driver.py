"""The driver that takes the terminal over from the early phase (`tui/first_paint`), at one stroke.

Until the app has been laid out with the draft in it, the early phase has the keyboard and the screen: what is drawn
is held back, and the input thread waits. Two readers of one terminal would split the keys between them.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from threading import Event
from typing import TYPE_CHECKING, Any, ClassVar

from tenuto.tui.full.driver import InputReader, TerminalDriver

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver

    from tenuto.tui.first_paint.reader import EarlyReader

ALTERNATE_SCREEN = "\x1b[?1049h"
FULL_FRAME = "\x1b[1;1H"
SYNC_BEGIN, SYNC_END = "\x1b[?2026h", "\x1b[?2026l"
POLL = 0.05
"""Seconds between looks at whether the app ends before it was shown."""


class HeldDriver(TerminalDriver):
    """`early` has the terminal until `let_go`."""

    early: ClassVar[EarlyReader]

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]
        self._held: list[str] | None = []
        self._frame: int | None = None
        self._gate = Event()
        self._rest = b""
        self._missed: Callable[[], None] | None = None

    def start_application_mode(self) -> None:
        """Begin, and remember what the terminal really was like: for the end, and for a suspension."""
        super().start_application_mode()
        self.attrs_before = list(self.early.found)

    def stop_application_mode(self) -> None:
        """End; before anything was drawn, nothing of what is held back is, and the early phase ends with us."""
        self._missed = None
        if self._held is not None:
            self._held = None
            self.early.stop()
        super().stop_application_mode()

    def write(self, data: str) -> None:
        """Draw, or hold it back. Of full frames only the last counts."""
        if self._held is None:
            super().write(data)
        elif data.startswith(FULL_FRAME):
            if self._frame is None:
                self._frame = len(self._held)
            del self._held[self._frame :]
            self._held.append(data)
        elif data != ALTERNATE_SCREEN:
            # The alternate screen is there already; to enter it again would clear it.
            self._held.append(data)

    def let_go(self, rest: bytes) -> None:
        """Draw what was held back in one piece, and read the keyboard: first `rest`, which nobody has understood."""
        if self._held is None:
            return
        held, self._held = self._held, None
        screen = ""
        if self._missed is not None:  # after a stop, nobody knows which screen it is, and whether it echoes
            screen = ALTERNATE_SCREEN
            self.make_raw()
        super().write(f"{SYNC_BEGIN}{screen}{''.join(held)}{SYNC_END}")
        self._rest = rest
        self._gate.set()
        if self._missed is not None:
            asyncio.get_running_loop().call_soon(self._missed)

    def _sigtstp_application(self, *_: object) -> None:
        """Stop; but first take the terminal over: the early phase still has it, and would read what the shell is to."""
        if self._held is None:
            super()._sigtstp_application()
        else:
            self._missed = super()._sigtstp_application

    def _sigcont_application(self, *_: object) -> None:
        """Go on after a stop that nobody announced, with everything anew once there is something to show."""
        if self._held is None:
            super()._sigcont_application()
        else:
            self._missed = self._missed or super()._sigcont_application

    def run_input_thread(self) -> None:
        """Wait for the turn, then read the terminal until the app ends."""
        while not self._gate.wait(POLL):
            if self.exit_event.is_set():
                return
        reader = self._reader or InputReader()
        rest, self._rest = self._rest, b""
        for message in reader.feed(rest) if rest else ():
            self.process_message(message)
        self.read_input(reader)


def driver_class(early: EarlyReader | None = None) -> type[Driver] | None:
    """Return our driver where there are Unix terminals, else let Textual choose."""
    if os.name != "posix":
        return None
    return TerminalDriver if early is None else type("HeldDriver", (HeldDriver,), {"early": early})
