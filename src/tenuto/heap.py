"""The pace of the garbage collector, for what goes on after its start; `cli/main.py` has that of imports."""

from __future__ import annotations

import gc

WHILE_RUNNING = (5_000, 80, 50)
"""It takes little at a time (a millisecond: with four times as much a key waited for ten), and old objects seldom."""


def settle() -> None:
    """Take what the start made out of the collector's sight, and let it run from now on.

    It counts objects, not bytes: a run that went on at the pace of imports kept 100 MB of requests in 500 steps.
    """
    gc.freeze()
    gc.set_threshold(*WHILE_RUNNING)
    gc.enable()
