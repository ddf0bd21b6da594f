"""Textual's terminal driver with three faults taken out. The only place that knows a driver's insides.

- Invalid UTF-8 in the input ended the program; now it is a replacement character.
- A bracketed paste lost escape sequences, and one without its end swallowed all keys (`paste_splitter.py`).
- A terminal that went away made the input thread spin; now it ends the app.

And three habits: it looked for the end ten times a second; a terminal that takes nothing stopped the loop; it stopped
itself alone, and for ever where no shell could continue it.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import selectors
import signal
import termios
import time
from codecs import getincrementaldecoder
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from textual import constants, events
from textual._ansi_sequences import SYNC_END, SYNC_START
from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.message import Message

from tenuto.command.outcome import MouseMode
from tenuto.tui.answers import BACKGROUND_REPORTS, NO_BACKGROUND_REPORTS, AnswerFilter
from tenuto.tui.full.key_sequences import read_wheel, rewrite_keys
from tenuto.tui.job_control import stop_in_background, stop_job
from tenuto.tui.modified_keys import KEYS_TOLD_APART
from tenuto.tui.newline import CLEAN_KEYBOARD, NO_MORE_FLAGS, more_keys, no_more_keys
from tenuto.tui.paste_splitter import Paste, PasteSplitter
from tenuto.tui.terminal import NO_MOUSE_NO_SIZES
from tenuto.tui.typed_ahead import give_back, hear_out, patience
from tenuto.tui.writer import TerminalWriter, open_again

if TYPE_CHECKING:
    from textual.app import App

Attributes = list[int | list[bytes]]
READ_BYTES = 65_536
PASTE_SILENCE = 2.0
"""Seconds without input after which an unfinished paste counts as finished."""
POLL_WAITING = 0.02
"""Seconds between looks at the clock while a lone ESC may become a sequence; else there are none."""
ESCAPE_PATIENCE = constants.ESCAPE_DELAY + POLL_WAITING
"""Seconds without input after which a lone ESC, or `ESC [`, is a key and no beginning of an answer on a slow line."""
NO_REPORTS = f"\x1b[?2004l\x1b[?1004l{NO_BACKGROUND_REPORTS}"
"""Ends marks around pastes, and word of the focus and of the background."""
EMPTIED = "\x1b[0m\x1b[H\x1b[J"
"""Empties the screen that is left: where there is no other one (mosh, consoles), what comes next would stand in it."""
CLOSE_SECONDS = 2.0
"""How long the end waits for a terminal to take what is left."""


_NOT_KEYS = re.compile(
    r"\x1b\][0-9]+;[^\x07\x1b]*(?:\x07|\x1b\\)"  # OSC: a late answer to a question about colours
    r"|\x1b\[\?[0-9;]*c"  # DA1
    r"|\x1b\[<[0-9;]*NaN[0-9;Na]*[Mm]"  # a mouse report of a terminal that lost count
)
_UNENDED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*)?\Z")
ESC = "\x1b"


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
        self._woken, self._wake = os.pipe()
        os.set_blocking(self._woken, False)
        # Through the loop's pipe: after a stop the kernel gives SIGCONT to any thread, and the loop would sleep on.
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTSTP, self._sigtstp_application)
        loop.add_signal_handler(signal.SIGCONT, self._sigcont_application)

    def start_application_mode(self) -> None:
        """Begin; the terminal is to say when its background changes, and what is typed stays text."""
        super().start_application_mode()
        self._raw = self._attributes()
        self.write(f"\x1b[={KEYS_TOLD_APART};1u" + BACKGROUND_REPORTS + more_keys(os.environ))

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
            seconds, self._reader = patience(os.environ), None
        ends = f"{NO_REPORTS}{no_more_keys(os.environ)}{NO_MOUSE_NO_SIZES}{NO_MORE_FLAGS}{CLEAN_KEYBOARD}"
        source = self.fileno if self._input is None else self._input
        return hear_out(source, lambda question: self.write(ends + question), seconds)

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
    """Reads on where another thread did: in the middle of a sequence, maybe."""
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
        """Hand a message to the app, from the reading thread, without a task made for each."""
        self._app.post_message(message)

    def disable_input(self) -> None:
        """Stop reading the terminal. What nobody has read stays there for whoever reads it next."""
        signal.signal(signal.SIGWINCH, signal.SIG_DFL)
        self.exit_event.set()
        with contextlib.suppress(OSError):
            os.write(self._wake, b"x")
        if self._key_thread is not None:
            self._key_thread.join()
        self.exit_event.clear()
        # Not before somebody reads again: a thread that has just begun would take the word to end for an old one.
        with contextlib.suppress(OSError):
            os.read(self._woken, READ_BYTES)

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

    def run_input_thread(self) -> None:
        """Read the terminal until the app ends."""
        self.read_input(self._reader or InputReader())

    def read_input(self, reader: InputReader) -> None:
        """Read the terminal with this reader until the app ends."""
        self._reader = reader
        reader.has_mouse = lambda: self._mouse
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            selector.register(self._woken, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                began, timeout = time.monotonic(), reader.timeout
                ready = [key.fd for key, _ in selector.select(timeout)]
                if self._woken in ready and self.fileno not in ready:
                    continue  # the end is near
                if ready:
                    data = self._read()
                    if data is None:
                        continue
                    if not data:
                        self.send_message(HungUp())
                        return
                    messages = reader.feed(data)
                else:
                    # Not the time it is now: this thread may have been kept waiting while something came.
                    messages = reader.idle(began + (timeout or 0.0))
                for message in messages:
                    self.process_message(message)

    def _read(self) -> bytes | None:
        """Return what is there: nothing when the terminal is gone, `None` when somebody else has read it.

        Stopped before it reads, and continued after the shell has had the terminal, it would wait for a key otherwise.
        """
        try:
            return os.read(self.fileno if self._input is None else self._input, READ_BYTES)
        except BlockingIOError:
            return None
        except OSError:
            return b""


class InputReader:
    """Bytes of the terminal to Textual's messages. `has_mouse` says whether the terminal gives us the mouse."""

    def __init__(self) -> None:
        self._decoder = getincrementaldecoder("utf-8")(errors="replace")
        self._splitter = PasteSplitter()
        self._parser = XTermParser()
        self._heard: list[Message] = []
        self._answers = AnswerFilter(lambda light: self._heard.append(BackgroundHeard(light)))
        self._unended = ""
        self._last_input = time.monotonic()
        self.has_mouse: Callable[[], bool] = lambda: True

    @property
    def timeout(self) -> float | None:
        """Seconds after which `idle` wants to be called; `None` while nothing is waited for."""
        held = self._splitter.holding or self._answers.holding or self._unended
        waiting = held or self._parser._timeout_time is not None  # pyright: ignore[reportPrivateUsage]
        return POLL_WAITING if waiting else PASTE_SILENCE if self._splitter.inside else None

    def feed(self, data: bytes) -> list[Message]:
        """Return the keys, pastes and mouse events that are complete with `data`."""
        self._last_input = time.monotonic()
        return self._parse(self._splitter.feed(self._decoder.decode(data), self._last_input))

    def idle(self, now: float | None = None) -> list[Message]:
        """Nothing came until `now`: return a key that only waited for more, or a paste whose end was lost."""
        silence = (time.monotonic() if now is None else now) - self._last_input
        messages: list[Message] = []
        if silence >= (PASTE_SILENCE if self._splitter.inside else ESCAPE_PATIENCE):
            messages += self._parse(self._splitter.give_up())
            messages += self._keys(self._answers.give_up())
        return messages + (self._end_waiting() if silence >= ESCAPE_PATIENCE else [])

    def _end_waiting(self) -> list[Message]:
        """Return what was waited with: it had its time in the splitter already."""
        unended, self._unended = self._unended, ""
        messages = list(self._parser.feed(unended)) if unended else []
        if self._parser._timeout_time is None:  # pyright: ignore[reportPrivateUsage]
            return messages
        self._parser._timeout_time = 0.0  # pyright: ignore[reportPrivateUsage]
        return [*messages, *self._parser.tick()]

    def _parse(self, parts: list[str]) -> list[Message]:
        messages: list[Message] = []
        for part in parts:
            if isinstance(part, Paste):
                messages.append(events.Paste(str(part)))
            else:
                messages.extend(self._keys(self._answers.feed(part)))
        messages.extend(self._heard)
        self._heard.clear()
        return messages

    def _keys(self, text: str) -> list[Message]:
        """Whole sequences only: what Textual does not know, and gets in pieces, it takes for typed text."""
        text, self._unended = self._unended + text, ""
        if ESC in text and (unended := _UNENDED.search(text)):
            self._unended = unended[0]
            text = text[: unended.start()]
        text = normalise(text if self.has_mouse() else read_wheel(text))
        # To Textual's parser, nothing is the end of all input.
        return list(self._parser.feed(text)) if text else []


def normalise(text: str) -> str:
    """Return input without answers that nobody waits for, and with one way of writing modified keys."""
    return rewrite_keys(_NOT_KEYS.sub("", text)) if "\x1b" in text else text
