"""Patterns that are compiled when they are first used.

A one-shot imports a hundred of them and uses ten. Compiling the others took 6 ms of its processor time: a tenth of what
all its imports take (CPython 3.11).
"""

from __future__ import annotations

import re
from typing import AnyStr, Generic, cast


class _LatePattern(Generic[AnyStr]):
    """Stands in for a pattern; what is asked of it is asked of the real one, and then known here."""

    def __init__(self, pattern: AnyStr, flags: re.RegexFlag | int) -> None:
        self.pattern = pattern
        self._flags = flags

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):  # what copying and pickling ask
            raise AttributeError(name)
        found = getattr(re.compile(self.pattern, self._flags), name)  # compiled once: `re` remembers it
        setattr(self, name, found)
        return found


def late(pattern: AnyStr, flags: re.RegexFlag | int = 0) -> re.Pattern[AnyStr]:
    """Return what stands in for a compiled pattern. One that is wrong raises `re.error` at its first use."""
    return cast("re.Pattern[AnyStr]", _LatePattern(pattern, flags))
