"""Stretches of a long session that are not loaded, and the parts that were loaded from it. Plain data.

An item of the transcript stands in a gap's place, so that what is loaded can have holes: a user goes to the beginning
of a session, or to a match in its middle, and what lies between comes when somebody scrolls there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

GapEnd = Literal["newest", "oldest"]
"""Which entries of a gap: those right before what is below it, or right behind what is above it."""


class Gap(msgspec.Struct):
    """Entries of the session with a seq over `after` and under `before`; `entries` of them are on the path.

    `asked` says that a part of it is on its way.
    """

    after: int
    before: int
    entries: int
    asked: bool = False

    @property
    def text(self) -> str:
        """What its item says."""
        if not self.after:
            return f"{self.entries:,} earlier entries: scroll up, or /recall what was said in them"
        return f"{self.entries:,} entries lie between: they come when you scroll on"


class Part(msgspec.Struct, frozen=True):
    """Entries that were loaded from the log: `entries` of them, from the seq `first` to the seq `last`.

    `ids` are those that their items got, or could have got.
    """

    first: int
    last: int
    entries: int
    ids: range
