"""What signals do to a program that is ending."""

from __future__ import annotations

import subprocess
import sys

LEAVING = """
import asyncio, signal, sys
from tenuto.tui.terminal.terminal import leave_on_signals
async def main():
    with leave_on_signals(asyncio.get_running_loop(), lambda: None):
        pass
    signal.raise_signal(signal.SIGHUP)
    print("what was to be kept is written")
asyncio.run(main())
"""


def test_t34_a_hangup_that_is_told_behind_the_end_ends_nothing() -> None:
    """Reading says that the terminal is gone before a login shell does: the session was closing when it was killed."""
    ended = subprocess.run([sys.executable, "-c", LEAVING], capture_output=True, text=True, timeout=30, check=False)
    assert (ended.returncode, ended.stdout) == (0, "what was to be kept is written\n"), ended.stderr
