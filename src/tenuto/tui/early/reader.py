"""The keyboard of the early phase: a forked child echoes and edits while the program imports its front-end.

The child never waits for an import, and it outlives us: when its pipe closes it puts the terminal back, even after a
`kill -9`. It ends with the answer to `stop`.
"""

from __future__ import annotations

import marshal
import os
import select

from tenuto.tui.early.editor import EarlyEditor
from tenuto.tui.early.screen import EarlyScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
else:
    import _signal  # `signal` takes 3 ms to import

INTERRUPTED = 7
"""The child's exit status after Ctrl+C; it has put the terminal back."""
INTERRUPTED_CODE = 130
READ_BYTES = 65_536
ESCAPE_PATIENCE = 0.025
"""Seconds after which a lone ESC is a key."""


class Handover:
    """What the early phase leaves: a draft, texts to send in order, and bytes that nobody has read as keys yet.

    `background` is the terminal's (`#rrggbb`), if it was asked and has said it; `answered`: it has said all.
    """

    def __init__(
        self,
        text: str = "",
        cursor: int = 0,
        rest: bytes = b"",
        sent: tuple[str, ...] = (),
        *,
        background: str = "",
        answered: bool = False,
    ) -> None:
        self.text = text
        self.cursor = cursor
        self.rest = rest
        self.sent = sent
        self.background = background
        self.answered = answered


class EarlyReader:
    """The parent's side. Either `stop` takes over, or `close` puts the terminal back."""

    def __init__(self, screen: EarlyScreen) -> None:
        self._screen = screen
        self._child = 0
        self._wake = -1
        self._answer = -1
        self._handed_over = False

    @property
    def found(self) -> list[int | list[bytes]]:
        """The terminal's attributes from before (`termios.tcgetattr`)."""
        return self._screen.found  # pyright: ignore[reportReturnType]

    @property
    def asked(self) -> bool:
        """Whether the terminal was asked for its background."""
        return self._screen.asked

    def start(self) -> None:
        """Let the child have the keyboard. Raises OSError when there can be no child; the caller goes on without."""
        stop, self._wake = os.pipe()
        self._answer, answer = os.pipe()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.close(self._wake)
                os.close(self._answer)
                status = _Child(self._screen, stop, answer).run()
            finally:
                os._exit(status)
        self._child = child
        os.close(stop)
        os.close(answer)
        _signal.signal(_signal.SIGCHLD, self._child_ended)
        self._child_ended(0, None)

    def stop(self) -> Handover:
        """End the echo and return what was typed. Nobody reads the keyboard afterwards. Not to be called twice."""
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        self._handed_over = True
        if not self._child:
            return Handover()
        answer = b""
        try:
            os.write(self._wake, b"s")
            while chunk := os.read(self._answer, READ_BYTES):
                answer += chunk
        except OSError:
            pass
        _, status = os.waitpid(self._child, 0)
        self._forget_child(status)
        if not answer:
            return Handover()
        *typed, background, answered = marshal.loads(answer)
        return Handover(*typed, background=background, answered=answered)

    def close(self) -> None:
        """Put the terminal back if it was not handed over. May be called at any time, and twice."""
        if not self._handed_over:
            given = self.stop()
            if self._screen.asked and not given.answered:
                self._screen.drain()
            self.leave()

    def leave(self) -> None:
        """Put the terminal back after `stop`, where no full screen comes after all."""
        self._screen.leave()

    def leave_screen(self) -> None:
        """Leave the early screen after `stop`. The terminal stays raw; what it was like is in `found`."""
        self._screen.leave_screen()

    def _child_ended(self, _number: int, _frame: FrameType | None) -> None:
        try:
            child, status = os.waitpid(self._child, os.WNOHANG) if self._child else (0, 0)
        except ChildProcessError:
            return
        if child:
            self._forget_child(status)

    def _forget_child(self, status: int) -> None:
        self._child = 0
        os.close(self._wake)
        os.close(self._answer)
        if os.waitstatus_to_exitcode(status) == INTERRUPTED:
            os._exit(INTERRUPTED_CODE)


class _Child:
    """The child's side: one loop over the keyboard, the pipe to us, and changes of the screen's size."""

    def __init__(self, screen: EarlyScreen, stop: int, answer: int) -> None:
        self._screen = screen
        self._stop = stop
        self._answer = answer
        self._editor = EarlyEditor(screen.columns)
        self._resized, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        # What ends or stops the program is the parent's to hear; the pipe says when it is gone.
        # SIGTTIN stops it while the terminal is the shell's: of a job that goes on nothing typed is lost.
        for number in ("SIGINT", "SIGTERM", "SIGHUP", "SIGTSTP", "SIGTTOU", "SIGPIPE"):
            _signal.signal(getattr(_signal, number), _signal.SIG_IGN)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        _signal.signal(_signal.SIGWINCH, _do_nothing)
        _signal.set_wakeup_fd(self._wake)

    def run(self) -> int:
        """Return the exit status."""
        try:
            return self._loop()
        except OSError:
            self._leave()
            return 1

    def _loop(self) -> int:
        editor = self._editor
        sources = [0, self._stop, self._resized]
        if 0 in self._wait(sources, 0.0):
            # Typed before the terminal was raw.
            self._read(cooked=True)
        while True:
            if editor.interrupted:
                self._leave()
                return INTERRUPTED
            if editor.frozen and 0 in sources:
                sources.remove(0)
            ready = self._wait(sources, ESCAPE_PATIENCE if editor.waits_for_key else None)
            if self._stop in ready:
                return self._end()
            if self._resized in ready:
                os.read(self._resized, READ_BYTES)
                self._screen.repaint(editor.text, editor.cursor)
                editor.columns = self._screen.columns
            if 0 in ready:
                self._read(cooked=False)
            elif not ready:
                editor.give_up_waiting()

    def _wait(self, sources: list[int], seconds: float | None) -> list[int]:
        return select.select(sources, [], [], seconds)[0]

    def _read(self, *, cooked: bool) -> None:
        data = os.read(0, READ_BYTES)
        if not data:
            raise OSError("the terminal is gone")
        editor, background = self._editor, self._editor.background
        before = editor.text, editor.cursor
        editor.feed(data, cooked=cooked)
        if before != (editor.text, editor.cursor):
            self._screen.show(editor.text, editor.cursor)
        if background != editor.background:
            self._screen.learn(editor.background, editor.text, editor.cursor)

    def _leave(self) -> None:
        if self._screen.asked and not self._editor.answered:
            self._screen.drain()
        self._screen.leave()

    def _end(self) -> int:
        if not os.read(self._stop, 1):
            self._leave()
            return 1
        editor = self._editor
        given = (editor.text, editor.cursor, editor.rest, tuple(editor.sent), editor.background, editor.answered)
        answer = marshal.dumps(given)
        while answer:
            answer = answer[os.write(self._answer, answer) :]
        return 0


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Let the signal wake the loop, by its pipe."""
