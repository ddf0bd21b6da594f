"""Counters: each lets the real thing happen and says how often it did."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

import pytest

SMALL, LARGE = 1_200, 12_000
"""Entries of the two sessions, or items of the two transcripts."""


class Count:
    """A number that grows while it is counted."""

    def __init__(self) -> None:
        self.number = 0


@contextmanager
def calls_of(module: object, name: str) -> Iterator[Count]:
    """Count the calls of a function, looked up in this module, which are made all the same."""
    count, real = Count(), getattr(module, name)

    def counted(*arguments: object, **named: object) -> object:
        count.number += 1
        return real(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, name, counted)
        yield count


def python_calls(action: Callable[[], object]) -> int:
    """Return how many functions of Python run, generators' steps too, when this is done: work without a clock."""
    count = Count()

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            count.number += 1

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count.number


def bytes_of(directory: Path) -> int:
    """Return how many bytes the files below a folder have."""
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
