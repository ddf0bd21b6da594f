"""Stopping with Ctrl+Z and going on with `fg`: the whole job, as the terminal itself would do it.

Only our own process would not do: under a wrapper (a script, `uv run`) the shell would wait for that one.
"""

from __future__ import annotations

import contextlib
import os
import signal

NO_SHELL = "There is no shell to go back to"


def is_in_foreground(descriptor: int = 0) -> bool:
    """Say whether the terminal is ours; writing to it, or changing it, would disturb another job otherwise."""
    try:
        return os.tcgetpgrp(descriptor) == os.getpgrp()
    except OSError:
        return True


def has_shell() -> bool:
    """Say whether somebody could continue us: who leads the session has no shell above."""
    return os.getsid(0) != os.getpid()


def stop_job(number: int = getattr(signal, "SIGTSTP", 0)) -> None:
    """Stop the job until it is continued. Where nobody could continue it, the kernel does not stop it.

    Whoever stops in this way knows when it goes on: SIGCONT is for stops that nobody announced.
    """
    continues = getattr(signal, "SIGCONT", 0)
    before = [(one, signal.signal(one, signal.SIG_DFL)) for one in (number, continues)]
    try:
        os.kill(0, number)
    finally:
        for one, handler in before:
            signal.signal(one, handler)


def stop_in_background(descriptor: int = 0) -> None:
    """Stop again while the job is in the background (after `bg`): the terminal is not ours."""
    while not is_in_foreground(descriptor):
        with contextlib.suppress(OSError):
            # Not SIGTSTP: this is what touching the terminal would have led to.
            stop_job(signal.SIGTTOU)
        if not has_shell():
            return
