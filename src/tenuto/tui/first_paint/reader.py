"""The keyboard of the early phase: a forked child echoes and edits while the program imports its front-end.

The child never waits for an import, and it outlives us: when its pipe closes it puts the terminal back, even after a
`kill -9`. It ends with the answer to `stop`.
"""

from __future__ import annotations

import marshal
import os
import select
import termios

from tenuto import exit_codes
from tenuto.last_acts import add_last_act
from tenuto.tui.first_paint.decide import wanted_theme
from tenuto.tui.first_paint.editor import EarlyEditor
from tenuto.tui.first_paint.screen import EarlyScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
    from types import FrameType
else:
    import _signal  # `signal` takes 3 ms to import

STOP, PAUSE, GO_ON, ROWS = b"s", b"p", b"g", b"r"
FRONT_ENDS = {b"f": "full", b"i": "inline"}
"""Words to the child: to end, to give the terminal back for a while, to take it again, to paint for another one.

`ROWS` is followed by what is to be shown of the transcript, behind its length.
"""
LENGTH_BYTES = 4
MOST_ROWS_BYTES = 60_000
"""What surely goes into the pipe at once: a word that a signal sends must not come in between."""
INTERRUPTED, LEFT = 7, 8
"""The child's exit status after Ctrl+C, and when the terminal went or we did; it has put the terminal back."""
READ_BYTES = 65_536
MAX_READS = 64
"""With a key held down, an answer is not waited for any longer."""
END_SECONDS = 2.8
"""How long the end by a signal may take before the kernel ends the process."""
ESCAPE_SECONDS = 0.025
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
        self._child_left = False
        self._typed = Handover()

    @property
    def found(self) -> list[int | list[bytes]]:
        """The terminal's attributes from before (`termios.tcgetattr`)."""
        return self._screen.found  # pyright: ignore[reportReturnType]

    @property
    def asked(self) -> bool:
        """Whether the terminal was asked for its background."""
        return self._screen.asked

    def start(self) -> None:
        """Show the first frame and let the child have the keyboard. Raises OSError when the terminal is gone.

        What was typed before is read here: a child takes 3 ms to begin, and the frame shows it at once.
        """
        stop, self._wake = os.pipe()
        self._answer, answer = os.pipe()
        editor, keyboard = EarlyEditor(self._screen.columns), self._screen.open_keyboard()
        if 0 in select.select([0], [], [], 0.0)[0] and _is_ours():
            _feed(editor, keyboard, cooked=True)
        self._screen.begin(editor.text, editor.cursor)
        try:
            child = os.fork()
        except OSError:  # nothing echoes then, and what was read is kept
            child = 0
            self._typed = Handover(editor.text, editor.cursor, editor.rest, tuple(editor.sent))
            os.close(self._wake)
            os.close(self._answer)
        else:
            if child == 0:
                status = 1
                try:
                    os.close(self._wake)
                    os.close(self._answer)
                    status = _Child(self._screen, editor, keyboard, stop, answer).run()
                finally:
                    os._exit(status)
        self._child = child
        if keyboard:
            os.close(keyboard)
        os.close(stop)
        os.close(answer)
        _signal.signal(_signal.SIGCHLD, self._child_ended)
        _signal.signal(_signal.SIGTSTP, self._stop_job)
        _signal.signal(_signal.SIGCONT, self._go_on)
        for number in (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT):
            _signal.signal(number, self._end)
        self._child_ended(0, None)

    def turn_to(self, front_end: str) -> None:
        """Paint for this front-end, if it is another one: the settings say something else than a first look at them."""
        if front_end != self._screen.front_end:
            self._screen.change(front_end)
            self._tell(next(word for word, name in FRONT_ENDS.items() if name == front_end))

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the early frame; none where no such frame has room for a transcript."""
        return self._screen.size if self._screen.front_end == "full" and self._child else (0, 0)

    def show_transcript(self, dark: list[str], light: list[str]) -> None:
        """Show these rows above the prompt: the first on a dark ground, the second on a light one."""
        data = marshal.dumps((self._screen.size, dark, light))
        if len(data) <= MOST_ROWS_BYTES:
            self._tell(ROWS + len(data).to_bytes(LENGTH_BYTES) + data)

    def stop(self) -> Handover:
        """End the echo and return what was typed, the first time. Nobody reads the keyboard afterwards."""
        given = self._end_child()
        if not self._child_left:
            self._screen.hand_over()
        return given

    def close(self) -> None:
        """Put the terminal back if it was not handed over. May be called at any time, and twice."""
        if not self._handed_over:
            given = self._end_child()
            if self._child_left:
                return
            if self._screen.asked and not given.answered:
                self._screen.drain()
            self._screen.leave()

    def _end_child(self) -> Handover:
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        for number, handler in ((_signal.SIGTSTP, self._stop_job), (_signal.SIGCONT, self._go_on)):
            if _signal.getsignal(number) == handler:
                _signal.signal(number, _signal.SIG_DFL)
        self._handed_over = True
        if not self._child:
            return self._typed
        self._tell(STOP)
        answer = b""
        try:
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

    def _tell(self, word: bytes) -> None:
        try:
            if self._child:
                os.write(self._wake, word)
        except OSError:
            pass  # it has just ended

    def _stop_job(self, _number: int, _frame: FrameType | None) -> None:
        """Stop with the terminal as it was before; go on with frame and draft (later: `terminal/terminal.py`)."""
        _signal.signal(_signal.SIGTSTP, _signal.SIG_DFL)
        continued = _signal.signal(_signal.SIGCONT, _signal.SIG_DFL)
        self._tell(PAUSE)
        try:
            if self._child:
                os.read(self._answer, 1)
            os.kill(0, _signal.SIGTSTP)
            while os.tcgetpgrp(0) != os.getpgrp() and os.getsid(0) != os.getpid():
                os.kill(0, _signal.SIGTTOU)  # it goes on in the background, where the terminal is not ours
        except OSError:
            pass  # the terminal is gone, and the child ends
        _signal.signal(_signal.SIGTSTP, self._stop_job)
        _signal.signal(_signal.SIGCONT, continued)
        self._tell(GO_ON)

    def _end(self, number: int, _frame: FrameType | None) -> None:
        """End by this signal, with the terminal put back before the shell goes on."""
        _signal.setitimer(_signal.ITIMER_REAL, END_SECONDS)
        self.close()
        _signal.signal(number, _signal.SIG_DFL)
        os.kill(os.getpid(), number)

    def _go_on(self, _number: int, _frame: FrameType | None) -> None:
        """After a stop that nobody announced the terminal may have been the shell's; a front-end sees to it itself."""
        self._tell(GO_ON)

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
        code = os.waitstatus_to_exitcode(status)
        self._child_left = code == LEFT
        if code == INTERRUPTED:
            os._exit(exit_codes.INTERRUPTED)


class _Child:
    """The child's side: one loop over the keyboard, the pipe to us, and changes of the screen's size."""

    def __init__(self, screen: EarlyScreen, editor: EarlyEditor, keyboard: int, stop: int, answer: int) -> None:
        self._screen = screen
        self._editor = editor
        self._keyboard = keyboard
        self._stop = stop
        self._answer = answer
        self._resized, self._wake = os.pipe()
        os.set_blocking(self._wake, False)
        # What ends or stops the program is the parent's to hear; the pipe says what is to be done, and when it is gone.
        # SIGTTIN stops it while the terminal is the shell's: of a job that goes on nothing typed is lost.
        for number in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGTSTP", "SIGTTOU", "SIGPIPE"):
            _signal.signal(getattr(_signal, number), _signal.SIG_IGN)
        _signal.signal(_signal.SIGCHLD, _signal.SIG_DFL)
        _signal.signal(_signal.SIGWINCH, _do_nothing)
        _signal.signal(_signal.SIGCONT, _signal.SIG_DFL)
        _signal.set_wakeup_fd(self._wake)

    def run(self) -> int:
        """Return the exit status."""
        try:
            return self._loop()
        except OSError:
            self._leave()
            return LEFT

    def _loop(self) -> int:
        editor = self._editor
        sources = [0, self._stop, self._resized]
        while True:
            if editor.interrupted:
                self._leave()
                return INTERRUPTED
            if editor.frozen and 0 in sources:
                sources.remove(0)
            ready = self._wait(sources, ESCAPE_SECONDS if editor.waits_for_key else None)
            if self._stop in ready:
                word = os.read(self._stop, 1)
                if word in (STOP, b""):
                    return self._end(word)
                self._obey(word)
            if self._resized in ready:
                self._resize()
            if 0 in ready:
                self._read()
            elif not ready:
                editor.give_up_waiting()

    def _wait(self, sources: list[int], seconds: float | None) -> list[int]:
        return select.select(sources, [], [], seconds)[0]

    def _resize(self) -> None:
        ready = [self._resized]
        while ready == [self._resized]:
            os.read(self._resized, READ_BYTES)
            ready = self._wait([self._stop, self._resized], self._screen.settling)
        self._screen.repaint(self._editor.text, self._editor.cursor)
        self._editor.columns = self._screen.columns

    def _take_again(self) -> None:
        """Take the terminal again, of whatever size it is."""
        self._screen.go_on(self._editor.text, self._editor.cursor)
        self._editor.columns = self._screen.columns

    def _read(self) -> None:
        if not _is_ours():
            os.kill(0, _signal.SIGTTIN)  # what reading would do; but that would wait for a key once we go on
            if 0 not in self._wait([0], 0.0):
                return
        editor, background = self._editor, self._editor.background
        before = editor.text, editor.cursor
        _feed(editor, self._keyboard)
        if before != (editor.text, editor.cursor):
            self._screen.show(editor.text, editor.cursor)
        if background != editor.background:
            self._screen.set_background(editor.background, editor.text, editor.cursor)

    def _leave(self) -> None:
        if self._screen.asked and not self._editor.answered:
            self._screen.drain()
        self._screen.leave()

    def _drain_input(self) -> None:
        """Wait for what the terminal still has to answer: it would be typed into the shell. Keys are kept."""
        for _ in range(MAX_READS):
            due = self._screen.asked and not self._editor.answered
            if not (due and self._wait([0], self._screen.answer_timeout)):
                return
            self._read()

    def _obey(self, word: bytes) -> None:
        editor, screen = self._editor, self._screen
        if word in FRONT_ENDS:
            screen.turn_to(FRONT_ENDS[word], editor.text, editor.cursor)
            return
        if word == ROWS:
            size, dark, light = marshal.loads(self._read_data())
            screen.show_transcript(size, dark, light, editor.text, editor.cursor)
            return
        if word == GO_ON:
            if _is_ours():
                self._take_again()
            return
        self._drain_input()
        self._screen.leave()
        os.write(self._answer, word)
        if os.read(self._stop, 1) != GO_ON:
            raise OSError("the program is gone")
        self._take_again()

    def _read_data(self) -> bytes:
        data = b""
        length = LENGTH_BYTES
        while len(data) < length:
            chunk = os.read(self._stop, length - len(data))
            if not chunk:
                raise OSError("the program is gone")
            data += chunk
            if len(data) == LENGTH_BYTES == length:
                length += int.from_bytes(data)
        return data[LENGTH_BYTES:]

    def _end(self, word: bytes) -> int:
        if not word:
            self._leave()
            return LEFT
        editor = self._editor
        given = (editor.text, editor.cursor, editor.rest, tuple(editor.sent), editor.background, editor.answered)
        answer = marshal.dumps(given)
        while answer:
            answer = answer[os.write(self._answer, answer) :]
        return 0


def _feed(editor: EarlyEditor, keyboard: int, *, cooked: bool = False) -> None:
    """Let the editor have what was typed. Raises OSError when the terminal is gone."""
    try:
        data = os.read(keyboard, READ_BYTES)
    except BlockingIOError:  # the shell has read it
        return
    if not data:
        raise OSError("the terminal is gone")
    editor.feed(data, cooked=cooked)


def _is_ours() -> bool:
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True  # nobody's job is controlled by it


def _do_nothing(_number: int, _frame: FrameType | None) -> None:
    """Let the signal wake the loop, by its pipe."""


def begin_early(front_end: str, mode: str) -> EarlyReader | None:
    """Paint a front-end's first frame and let a child echo; `None`, and nothing changed, where the terminal cannot.

    `mode` is the name of the approval mode, empty where it is not known.
    """
    environ = dict(os.environ)
    screen = None
    try:
        screen = EarlyScreen(front_end, wanted_theme(environ), mode, environ)
        if not screen.has_room:
            return None
        # Until there is a child to put the terminal back, the end or a stop waits, and word of going on after one.
        ends = [_signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGINT]
        waits = [*ends, _signal.SIGTSTP, _signal.SIGCONT]
        _signal.pthread_sigmask(_signal.SIG_BLOCK, waits)
        try:
            screen.take()
            reader = EarlyReader(screen)
            reader.start()
            add_last_act(reader.close)
        finally:
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, waits)
    except (OSError, termios.error):
        if screen is not None:
            screen.leave()
        return None
    return reader
