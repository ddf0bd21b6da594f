"""What signals do to the program: an end in order, and an end by force where that takes too long.

The first signal lets the program end in order, and starts two clocks that need neither the event loop nor the main
thread: a thread that does what an end by force owes others (kills commands, gives the terminal back), and behind it a
timer of the kernel. A second signal does the same at once.
"""

from __future__ import annotations

import os
from contextlib import contextmanager, suppress

from tenuto.exit_codes import SIGNAL
from tenuto.last_acts import do_last_acts

TYPE_CHECKING = False
if TYPE_CHECKING:
    import _thread
    import signal as _signal
    from collections.abc import Callable, Generator
    from types import FrameType
    from typing import NoReturn
else:
    import _signal  # `signal` takes 3 ms to import
    import _thread  # `threading` takes locks that the main thread may hold when a signal comes

ORDERLY_SECONDS = 2.2
"""How long an end in order may take before the thread ends the process. With the next one under three."""
FORCED_SECONDS = 0.6
"""How long the thread may take before the kernel ends the process."""
ENDING = (_signal.SIGTERM, _signal.SIGHUP, _signal.SIGQUIT, _signal.SIGINT)

_is_timed = False


def limit_end(number: int) -> None:
    """From now on the process has three seconds to live, whatever its threads do. Called in the main thread.

    `number` is the signal that it ends by; later calls change nothing.
    """
    global _is_timed  # noqa: PLW0603 - of the process there is one
    if _is_timed:
        return
    _is_timed = True
    _signal.signal(_signal.SIGALRM, _signal.SIG_DFL)
    _signal.setitimer(_signal.ITIMER_REAL, ORDERLY_SECONDS + FORCED_SECONDS)
    with suppress(RuntimeError):  # no thread can be started: the kernel's timer is left
        _thread.start_new_thread(_end_later, (number,))


def end_by_force(number: int) -> NoReturn:
    """End the process now, by the signal `number` where this is the main thread, with what it owes others done."""
    do_last_acts()
    _signal.signal(number, _signal.SIG_DFL)
    os.kill(os.getpid(), number)
    os._exit(SIGNAL + number)


@contextmanager
def ended_by_signals(leave: Callable[[int], None]) -> Generator[list[int]]:
    """Let the signals that end a program call `leave` with the first one's number, in the main thread, at any moment.

    Yields the numbers of the signals that came. SIGHUP is never a second one: of a line that breaks both the kernel and
    the shell in between tell, and of a session that ends its manager does, right behind SIGTERM. Behind the end it ends
    nothing: who left because the terminal is gone is told of it later, and is still writing what is to be kept. A
    second SIGQUIT leaves a core where the system keeps them. Who is started by nohup does not hear of SIGHUP at all.
    """
    received: list[int] = []

    def handle(number: int, _frame: FrameType | None) -> None:
        if number != _signal.SIGHUP and any(one != _signal.SIGHUP for one in received):
            _signal.setitimer(_signal.ITIMER_REAL, FORCED_SECONDS)
            end_by_force(number)
        received.append(number)
        limit_end(number)
        if len(received) == 1:
            leave(number)

    is_heard = _signal.getsignal(_signal.SIGHUP) != _signal.SIG_IGN
    numbers = [number for number in ENDING if number != _signal.SIGHUP or is_heard]
    before = [_signal.signal(number, handle) for number in numbers]
    try:
        yield received
    finally:
        for number, handler in zip(numbers, before, strict=True):
            _signal.signal(number, _signal.SIG_IGN if number == _signal.SIGHUP else handler)


def _end_later(number: int) -> None:
    import time

    time.sleep(ORDERLY_SECONDS)
    do_last_acts()
    os._exit(SIGNAL + number)
