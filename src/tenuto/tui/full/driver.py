"""Textual's terminal driver with three faults taken out. The only place that knows a driver's insides.

- Invalid UTF-8 in the input ended the program; now it is a replacement character.
- A bracketed paste lost escape sequences, and one without its end swallowed all keys (`terminal/input.py`).
- A terminal that went away made the input thread spin; now it ends the app.

And three habits: it read in a thread, which looked for the end ten times a second; a terminal that takes nothing
stopped the loop; it stopped itself alone, and for ever where no shell could continue it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import signal
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextvars import Context
from functools import partial
from itertools import groupby
from typing import TYPE_CHECKING, Any, ClassVar

from textual import constants, events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tenuto.command.outcome import MouseMode
from tenuto.tui.terminal.input import BACKGROUND_REPORTS, ESC, NO_BACKGROUND_REPORTS, Paste, TerminalInput
from tenuto.tui.terminal.modified_keys import (
    CLEAN_KEYBOARD,
    KEYS_TOLD_APART,
    MODIFIED_KEY,
    NO_MORE_FLAGS,
    more_keys,
    no_more_keys,
    write_plainly,
)
from tenuto.tui.terminal.terminal import (
    NO_MOUSE_NO_SIZES,
    answer_timeout,
    drain_input,
    give_back,
    read_now,
    stop_in_background,
    stop_job,
)
from tenuto.tui.terminal.writer import TerminalWriter, open_again

if TYPE_CHECKING:
    from textual.app import App
    from textual.driver import Driver

    from tenuto.tui.first_paint.reader import EarlyReader


_ALT_SEQUENCE = re.compile(r"\x1b\x1b(?:O|\[([0-9]*)(?:;[0-9]*)?)([A-HP-S~])")
_WHEEL = frozenset(("\x1b[A", "\x1bOA", "\x1b[B", "\x1bOB"))
_NAMELESS = "OPX[\\]^_"
"""Behind an ESC these are no key with Alt for Textual: they begin something else."""


def rewrite_key(sequence: str) -> str:
    """Return the sequence of a key in one way of writing it, what it types, or nothing for what is no key."""
    if sequence == ESC:
        return "\x1b[27u"
    if len(sequence) == 2 and (sequence[1] in "\r\x7f" or (" " <= sequence[1] <= "~" and sequence[1] not in _NAMELESS)):
        return f"\x1b[{ord(sequence[1])};3u"
    return MODIFIED_KEY.sub(write_plainly, _ALT_SEQUENCE.sub(_write_alt, sequence))


def read_wheel(parts: list[str]) -> list[str]:
    """Return input with the wheel as the keys that scroll, for a terminal that has the mouse to itself.

    Most turn the wheel into arrow keys then, three or five at once, which would go through the history of prompts.
    """
    read: list[str] = []
    for part, run in groupby(parts):
        same = list(run)
        read += [f"\x1b[1;2{part[-1]}"] * len(same) if part in _WHEEL and len(same) > 2 else same
    return read


def _write_alt(match: re.Match[str]) -> str:
    return f"\x1b[{match[1] or 1};3{match[2]}"


Attributes = list[int | list[bytes]]
PASTE_SILENCE = 2.0
"""Seconds without input after which an unfinished paste counts as finished."""
POLL_WAITING = 0.02
"""Seconds between looks at the clock while a lone ESC may become a sequence; else there are none."""
ESCAPE_SECONDS = constants.ESCAPE_DELAY + POLL_WAITING
"""Seconds without input after which a lone ESC, or `ESC [`, is a key and no beginning of an answer on a slow line."""
NO_REPORTS = f"\x1b[?2004l\x1b[?1004l{NO_BACKGROUND_REPORTS}"
"""Ends marks around pastes, and word of the focus and of the background."""
EMPTIED = "\x1b[0m\x1b[H\x1b[J"
"""Empties the screen that is left: where there is no other one (mosh, consoles), what comes next would stand in it."""
CLOSE_SECONDS = 2.0
"""How long the end waits for a terminal to take what is left."""


class HungUp(Message):
    """The terminal is gone."""

    bubble = False


class BackgroundHeard(Message):
    """The terminal said what its background is like."""

    bubble = False

    def __init__(self, light: bool) -> None:
        super().__init__()
        self.light = light


class TerminalDriver(LinuxDriver):
    """The driver of `TenutoApp`. `writer` is what it draws with."""

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]
        assert self._file is not None
        self.writer = TerminalWriter(self._file.fileno())
        self._input = open_again(self.fileno, os.O_RDONLY)
        self._frame_parts: list[str] | None = None
        self._suspended = False
        self._raw: Attributes = []
        # Through the loop's pipe: after a stop the kernel gives SIGCONT to any thread, and the loop would sleep on.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._sigtstp_application)
        loop.add_signal_handler(signal.SIGCONT, self._sigcont_application)

    def start_application_mode(self) -> None:
        """Begin; the terminal is to say when its background changes, and what is typed stays text."""
        before = self._key_thread
        super().start_application_mode()
        self._raw = self._attributes()
        self.write(f"\x1b[={KEYS_TOLD_APART};1u" + BACKGROUND_REPORTS + more_keys(os.environ))
        if self._key_thread is not before:  # the terminal is ours
            self._begin_reading()

    def stop_application_mode(self) -> None:
        """End; what a program that was killed has left switched on ends as well, on both screens (T-34)."""
        self.disable_input()
        typed = self._end_reports()
        self.write(EMPTIED)
        super().stop_application_mode()
        self.write(CLEAN_KEYBOARD)
        give_back(self.fileno, typed)

    def _end_reports(self) -> str:
        """End everything that makes the terminal speak; return what a user has typed meanwhile."""
        seconds = 0.0
        if self.attrs_before is not None:  # it goes to somebody else
            seconds, self._reader = answer_timeout(os.environ), None
        ends = f"{NO_REPORTS}{no_more_keys(os.environ)}{NO_MOUSE_NO_SIZES}{NO_MORE_FLAGS}{CLEAN_KEYBOARD}"
        return drain_input(self._source, lambda question: self.write(ends + question), seconds)

    def _attributes(self) -> Attributes:
        try:
            return termios.tcgetattr(self.fileno)
        except termios.error:
            return []

    def make_raw(self) -> None:
        """Keep what the terminal says from being echoed, after somebody else has had it."""
        if self._raw:
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self.fileno, termios.TCSANOW, self._raw)

    drags = True
    """Whether movement with a button held down is asked for."""

    def use_mouse(self, mode: MouseMode) -> None:
        """Take the mouse, its wheel alone, or leave it to the terminal."""
        self._disable_mouse_support()
        self._mouse, self.drags = mode != "off", mode == "full"
        self._enable_mouse_support()

    def _enable_mouse_support(self) -> None:
        if not self._mouse:
            return
        # Motion only while a button is down (1002): hovering means nothing here and would cost bytes and wake-ups.
        self.write("\x1b[?1000h\x1b[?1002h\x1b[?1006h" if self.drags else "\x1b[?1000h\x1b[?1006h")
        self.flush()

    def _disable_mouse_support(self) -> None:
        if not self._mouse:
            return
        self.write("\x1b[?1006l\x1b[?1002l\x1b[?1000l")
        self.flush()

    _input: int | None = None
    """The terminal, to be read without ever waiting for it."""
    _reader: InputReader | None = None
    """Reads on where it did before: in the middle of a sequence, maybe."""
    _waiting: asyncio.TimerHandle | None = None
    """Ends what waits for more."""
    muted = False
    """While another program has the terminal (an editor), nothing is drawn on it; the app itself goes on."""

    def write(self, data: str) -> None:
        """Draw; a frame goes out in one piece with the marks around it."""
        if self.muted:
            return
        if data == SYNC_START:
            self._frame_parts = []
        if self._frame_parts is None:
            self.writer.write(data)
            return
        self._frame_parts.append(data)
        if data == SYNC_END:
            parts, self._frame_parts = self._frame_parts, None
            self.writer.write("".join(parts))

    def close(self) -> None:
        """Wait for what is left to be written, but not for ever."""
        super().close()
        self.writer.close(CLOSE_SECONDS)

    def send_message(self, message: Message) -> None:
        """Hand a message to the app without a task made for each."""
        self._app.post_message(message)

    def disable_input(self) -> None:
        """Stop reading the terminal. What nobody has read stays there for whoever reads it next."""
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        self._stop_reading()

    # --- stopping and going on ---

    def _sigtstp_application(self, *_: object) -> None:
        """Ctrl+Z, or somebody else: give the terminal back, stop, and take it again."""
        if not self._auto_restart:  # an editor has the terminal
            stop_job()
            return
        self.suspend_application_mode()
        self._suspended = True
        stop_job()
        self._go_on()

    def _sigcont_application(self, *_: object) -> None:
        """We go on after a stop that nobody announced: the terminal may have been somebody else's meanwhile."""
        if not self._auto_restart or self._suspended or self._key_thread is None:
            return
        stop_in_background(self.fileno)
        self.make_raw()
        # What is typed meanwhile is ours: nothing is read, and the terminal makes no lines.
        found, self.attrs_before = self.attrs_before, None
        self.suspend_application_mode()
        self._suspended = True
        self._go_on()
        self.attrs_before = found

    def _go_on(self) -> None:
        stop_in_background(self.fileno)
        self._suspended = False
        self._must_signal_resume = True
        self.resume_application_mode()

    def suspend_application_mode(self) -> None:
        """Give the terminal to somebody else for a while."""
        super().suspend_application_mode()
        self.muted = True

    def resume_application_mode(self) -> None:
        """Take it back."""
        self.muted = False
        super().resume_application_mode()

    # --- reading ---

    def run_input_thread(self) -> None:
        """The loop reads: Textual's thread has nothing to do."""

    @property
    def _source(self) -> int:
        return self.fileno if self._input is None else self._input

    def _begin_reading(self) -> None:
        """Read the terminal in the loop from now on: a key that a thread hands over has waited for two to wake up."""
        self._reader = self._reader or InputReader()
        self._reader.has_mouse = lambda: self._mouse
        # In a context of its own: what is prevented while somebody begins to read is not when a key comes.
        self._loop.add_reader(self._source, Context().run, self._take_input)

    def _stop_reading(self) -> None:
        self._loop.remove_reader(self._source)
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _take_input(self, *, waited: bool = False) -> None:
        """Do what has come; nothing, although it was `waited` for, ends what only waited for more."""
        reader, data = self._reader, read_now(self._source)
        if reader is None:
            return
        if data == b"":
            self._stop_reading()
            self.send_message(HungUp())
        elif data:
            self._tell(reader, reader.feed(data))
        elif waited:
            self._tell(reader, reader.idle())

    def _tell(self, reader: InputReader, messages: list[Message]) -> None:
        for message in messages:
            self.process_message(message)
        if self._waiting is not None:
            self._waiting.cancel()
        give_up = partial(self._take_input, waited=True)
        timeout = reader.timeout
        self._waiting = None if timeout is None else self._loop.call_later(timeout, give_up, context=Context())


class InputReader:
    """Bytes of the terminal to Textual's messages. `has_mouse` says whether the terminal gives us the mouse."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._parser = XTermParser()
        self._heard: list[Message] = []
        self._input = TerminalInput(lambda light: self._heard.append(BackgroundHeard(light)))
        self._last_input = time.monotonic()
        self.has_mouse: Callable[[], bool] = lambda: True

    @property
    def timeout(self) -> float | None:
        """Seconds after which `idle` wants to be called; `None` while nothing is waited for."""
        return POLL_WAITING if self._input.holding else PASTE_SILENCE if self._input.inside else None

    def feed(self, data: bytes) -> list[Message]:
        """Return the keys, pastes and mouse events that are complete with `data`."""
        self._last_input = time.monotonic()
        return self._messages(self._input.feed(self._decoder.decode(data)))

    def idle(self, now: float | None = None) -> list[Message]:
        """Nothing came until `now`: return a key that only waited for more, or a paste whose end was lost."""
        silence = (time.monotonic() if now is None else now) - self._last_input
        enough = silence >= (PASTE_SILENCE if self._input.inside else ESCAPE_SECONDS)
        return self._messages(self._input.give_up()) if enough else []

    def _messages(self, parts: list[str]) -> list[Message]:
        messages: list[Message] = []
        for part in parts if self.has_mouse() else read_wheel(parts):
            if isinstance(part, Paste):
                messages.append(events.Paste(str(part)))
            elif part.isalnum():  # what Textual's parser makes of them, after it has tried all else
                messages += [events.Key(character, character) for character in part]
            elif text := rewrite_key(part) if part.startswith(ESC) else part:  # nothing is the end of all input
                messages += self._parser.feed(text)
                unfinished = self._end_unknown()
                messages += unfinished if len(text) == 2 else []
        messages += self._heard
        self._heard.clear()
        return messages

    def _end_unknown(self) -> list[Message]:
        """Let Textual's parser not wait for the rest of what it does not know: it is whole. Return what it makes of it.

        Of an ESC and a character that is a key, as Ctrl+C behind Escape is. Of a sequence, text that nobody typed.
        """
        if self._parser._timeout_time is None:  # pyright: ignore[reportPrivateUsage]
            return []
        self._parser._timeout_time = 0.0  # pyright: ignore[reportPrivateUsage]
        return list(self._parser.tick())


ALTERNATE_SCREEN = "\x1b[?1049h"
FULL_FRAME = "\x1b[1;1H"
SYNC_BEGIN, HELD_SYNC_END = "\x1b[?2026h", "\x1b[?2026l"


class HeldDriver(TerminalDriver):
    """`early` has the terminal until `let_go`."""

    early: ClassVar[EarlyReader]

    def __init__(
        self, app: App[Any], *, debug: bool = False, mouse: bool = True, size: tuple[int, int] | None = None
    ) -> None:
        super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]
        self._held: list[str] | None = []
        self._frame: int | None = None
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
        super().write(f"{SYNC_BEGIN}{screen}{''.join(held)}{HELD_SYNC_END}")
        if self._key_thread is not None:
            self._begin_reading()
        if rest and self._reader is not None:
            self._tell(self._reader, self._reader.feed(rest))
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

    def _begin_reading(self) -> None:
        """Read when it is our turn."""
        if self._held is None:
            super()._begin_reading()


def driver_class(early: EarlyReader | None = None) -> type[Driver] | None:
    """Return our driver where there are Unix terminals, else let Textual choose."""
    if os.name != "posix":
        return None
    return TerminalDriver if early is None else type("HeldDriver", (HeldDriver,), {"early": early})
