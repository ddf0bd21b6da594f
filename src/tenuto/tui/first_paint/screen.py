"""The terminal of the early phase: raw, with the early frame on it, and as it was before."""

from __future__ import annotations

import os
import select
import termios
import time

from tenuto.tui.first_paint.paint import (
    END_LEFT_BEHIND,
    MIN_COLUMNS,
    MIN_ROWS,
    NO_FLAGS,
    FullPicture,
    InlinePicture,
    choose_look,
)
from tenuto.tui.terminal.colours import QUERY, has_light_background, is_light, may_ask

Attributes = list[int | list[bytes | int]]
INPUT, LOCAL, CONTROL = 0, 3, 6
DEFAULT_SIZE = 80, 24
GOES_BY_BACKGROUND = ("auto", "contrast")
NEAR, FAR = 0.2, 1.0
"""Seconds to wait for an answer: from a terminal on this machine, and from one at the other end of a line."""
MAX_DRAINED = 256


def picture_of(front_end: str, mode: str, environ: dict[str, str]) -> FullPicture | InlinePicture:
    """Return what is painted for the front-end of this name, `full` or `inline`."""
    return InlinePicture(mode, environ) if front_end == "inline" else FullPicture(mode)


class EarlyScreen:
    """Draws on a descriptor of its own, so that nobody else's redirections touch it. `found` is what to go back to.

    It paints for `front_end`; `theme` is a name, and so is `mode`, empty where it is not known. `asked` says that the
    terminal was asked for its background, and will answer.
    """

    def __init__(self, front_end: str, theme: str, mode: str, environ: dict[str, str]) -> None:
        self.front_end = front_end
        self._mode = mode
        self._picture = picture_of(front_end, mode, environ)
        self._look = choose_look(environ, theme)
        self._theme = theme
        self._environ = environ
        self._background = ""
        self._transcript: tuple[list[str], ...] = ()
        self.asked = theme in GOES_BY_BACKGROUND and may_ask(environ)
        self.found: Attributes = repaired(termios.tcgetattr(0))
        self._raw: Attributes = []
        self._descriptor = os.dup(2)
        self._size = self._find_size()

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows."""
        return self._size

    @property
    def columns(self) -> int:
        """The width in cells."""
        return self._size[0]

    @property
    def has_room(self) -> bool:
        """Whether a frame fits."""
        return self._size[0] >= MIN_COLUMNS and self._size[1] >= MIN_ROWS

    @property
    def settling(self) -> float:
        """Seconds after which another width is painted for, if it stays."""
        return self._picture.settling

    def begin(self, text: str, cursor: int) -> None:
        """Show the first frame, with what was typed before. Raises OSError when the terminal is gone."""
        self.write(self._picture.begin(self._size, self._look, text, cursor) + (QUERY if self.asked else ""))

    def go_on(self, text: str, cursor: int) -> None:
        """Take the terminal again, after `leave`."""
        self.take()
        self._find_size_again()
        self.write(self._picture.begin(self._size, self._look, text, cursor))

    def take(self) -> None:
        """Make the terminal raw. What was typed before stays in its queue (TCSANOW).

        Raises termios.error or OSError when the terminal does not let itself be taken.
        """
        raw = [one.copy() if isinstance(one, list) else one for one in self.found]
        for place, flags in (
            (LOCAL, termios.ECHO | termios.ICANON | termios.IEXTEN | termios.ISIG),
            (INPUT, termios.IXON | termios.IXOFF | termios.ICRNL | termios.INLCR | termios.IGNCR),
        ):
            value = raw[place]
            assert isinstance(value, int)
            raw[place] = value & ~flags
        control = raw[CONTROL]
        assert isinstance(control, list)
        control[termios.VMIN], control[termios.VTIME] = 1, 0
        termios.tcsetattr(0, termios.TCSANOW, raw)  # pyright: ignore[reportArgumentType]
        self._raw = termios.tcgetattr(0)

    def change(self, front_end: str) -> None:
        """Somebody else has turned to this front-end."""
        self.front_end = front_end
        self._picture = picture_of(front_end, self._mode, self._environ)

    def turn_to(self, front_end: str, text: str, cursor: int) -> None:
        """Paint for this front-end from now on."""
        self.write(self._picture.leave)
        self.change(front_end)
        self.write(self._picture.begin(self._size, self._look, text, cursor))

    def show_transcript(self, size: tuple[int, int], dark: list[str], light: list[str], text: str, cursor: int) -> None:
        """Show rows of the transcript that were drawn for this size, on a dark and on a light ground."""
        if size == self._size:
            self._transcript = dark, light
            self._choose_rows()
            self.write(self._picture.recolour(self._size, self._look, text, cursor))

    def _choose_rows(self) -> None:
        """Have the rows of the transcript in the colours for this background; none that were for another size."""
        if isinstance(self._picture, FullPicture) and self._transcript:
            light = is_light(self._background) if self._background else has_light_background(self._environ)
            self._picture.transcript = self._transcript[light]

    def _find_size_again(self) -> None:
        before, self._size = self._size, self._find_size()
        if before != self._size:
            self._transcript = ()
            if isinstance(self._picture, FullPicture):
                self._picture.transcript = []

    def repaint(self, text: str, cursor: int) -> None:
        """The screen has another size."""
        self._find_size_again()
        self.write(self._picture.resize(self._size, self._look, text, cursor))

    def set_background(self, background: str, text: str, cursor: int) -> None:
        """The terminal's background is this (`#rrggbb`): paint over what is there, if that has other colours."""
        look = choose_look(self._environ, self._theme, background)
        self._background = background
        if look != self._look:
            self._look = look
            self._choose_rows()
            self.write(self._picture.recolour(self._size, look, text, cursor))

    def show(self, text: str, cursor: int) -> None:
        """Show what has been typed."""
        self.write(self._picture.show(self._size, self._look, text, cursor))

    def hand_over(self) -> None:
        """Let the front-end paint in this place; that the terminal is gone it finds out by itself."""
        try:
            self.write(self._picture.hand_over)
        except OSError:
            return

    def leave(self) -> None:
        """Put the terminal back as it was, unless somebody else has changed it since. The second time does nothing."""
        try:
            if not self._raw:
                return
            self.write(f"{END_LEFT_BEHIND}{self._picture.leave}{NO_FLAGS}")
            if termios.tcgetattr(0) == self._raw:
                termios.tcsetattr(0, termios.TCSANOW, self.found)  # pyright: ignore[reportArgumentType]
        except (OSError, termios.error):
            pass
        self._raw = []

    def drain(self) -> None:
        """Read what the terminal still has to answer: it would be typed into the shell.

        The deadline is one for all reads: keys that are pressed meanwhile do not extend it.
        """
        data, deadline = b"", time.monotonic() + self.answer_timeout
        try:
            while b"c" not in data.partition(b"\x1b[?")[2] and len(data) < MAX_DRAINED:
                if not select.select([0], [], [], max(0.0, deadline - time.monotonic()))[0]:
                    return
                data += os.read(0, 1) or b"\x1b[?c"
        except OSError:
            pass  # there is no terminal any more, or it is somebody else's already

    @property
    def answer_timeout(self) -> float:
        """Seconds after which a terminal that was asked will not answer any more."""
        return FAR if self._environ.get("SSH_CONNECTION") or self._environ.get("SSH_TTY") else NEAR

    def open_keyboard(self) -> int:
        """Return a descriptor to read the terminal by that never waits for a key, where there can be one.

        Stopped before it reads, and continued after the shell has had the terminal, the child would wait otherwise.
        """
        try:
            keyboard = os.open(os.ttyname(0), os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
        except OSError:  # a container may know its terminal by no name
            return 0
        if os.fstat(keyboard).st_rdev == os.fstat(0).st_rdev:
            return keyboard
        os.close(keyboard)
        return 0

    def write(self, text: str) -> None:
        """Draw. Raises OSError when the terminal is gone."""
        data = text.encode()
        while data:
            data = data[os.write(self._descriptor, data) :]

    def _find_size(self) -> tuple[int, int]:
        """Return columns and rows as Textual will find them."""
        try:
            columns, rows = os.get_terminal_size(1)
        except OSError:
            columns, rows = 0, 0
        given = [self._environ.get(name, "") for name in ("COLUMNS", "LINES")]
        fixed = [int(one) if one.isdecimal() and len(one) < 6 else 0 for one in given]
        return fixed[0] or columns or DEFAULT_SIZE[0], fixed[1] or rows or DEFAULT_SIZE[1]


def repaired(found: Attributes) -> Attributes:
    """Return what to go back to: not to a raw terminal, as one is left whose programs were all killed at once."""
    local, inputs = found[LOCAL], found[INPUT]
    assert isinstance(local, int)
    assert isinstance(inputs, int)
    if local & (termios.ICANON | termios.ECHO | termios.ISIG):
        return found
    sane = list(found)
    sane[LOCAL] = local | termios.ICANON | termios.ECHO | termios.ISIG | termios.IEXTEN
    sane[INPUT] = inputs | termios.ICRNL | termios.IXON
    return sane
