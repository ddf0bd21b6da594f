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
    """Stop the job until it is continued. Where nobody could continue it, the kernel does not stop it."""
    before = signal.signal(number, signal.SIG_DFL)
    try:
        os.kill(0, number)
    finally:
        signal.signal(number, before)


def stop_in_background(descriptor: int = 0) -> None:
    """Stop again while the job is in the background (after `bg`): the terminal is not ours."""
    while not is_in_foreground(descriptor):
        with contextlib.suppress(OSError):
            # Not SIGTSTP: this is what touching the terminal would have led to.
            stop_job(signal.SIGTTOU)
        if not has_shell():
            return
