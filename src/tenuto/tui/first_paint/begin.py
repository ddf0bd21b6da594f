"""Begin the early phase, where there is to be one."""

from __future__ import annotations

import os
import termios

from tenuto.last_acts import add_last_act
from tenuto.tui.first_paint.decide import wanted_theme
from tenuto.tui.first_paint.reader import EarlyReader
from tenuto.tui.first_paint.screen import EarlyScreen

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal as _signal
else:
    import _signal  # `signal` takes 3 ms to import


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
            screen.begin()
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
