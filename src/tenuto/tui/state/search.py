"""The open search in the transcript: what matches, where it stands, and what of the log is being looked through."""

from __future__ import annotations

import msgspec

from tenuto.tui.state.item import Gap


class Hit(msgspec.Struct, frozen=True):
    """An item that has matches, and how many."""

    id: int
    count: int


class Looking(msgspec.Struct):
    """A search in what is not loaded: in the gap of that item, from `after` to `before`, up (-1) or down (1).

    `goal` is the seq of the entry that was found (0: none so far), whose part is on its way.
    """

    gap: int
    after: int
    before: int
    delta: int
    goal: int = 0

    def is_barren(self, gap: Gap) -> bool:
        """Say whether a gap is what was looked through before the goal was found."""
        if self.delta < 0:
            return gap.before == self.before and gap.after >= self.goal
        return gap.after == self.after and gap.before <= self.goal


class Search(msgspec.Struct):
    """The open search.

    `at` is the item that was being read when it was opened. `typing` says that keys go into the field, else they move
    between matches. `place` is the present hit among `hits`, `ordinal` the present match in it. `counts` remembers for
    each item its version and how many matches it has. `unfolded` is the item that is unfolded for its match only.
    `looking` is where the log is being looked through. `barren` are the gaps that have no match; `entries_left` is how
    many entries are in the others. `round` says that the last move went past an end.
    """

    at: int = 0
    query: str = ""
    typing: bool = True
    hits: list[Hit] = msgspec.field(default_factory=list[Hit])
    place: int = 0
    ordinal: int = 0
    counts: dict[int, tuple[int, int]] = msgspec.field(default_factory=dict[int, tuple[int, int]])
    unfolded: int = 0
    looking: Looking | None = None
    barren: set[int] = msgspec.field(default_factory=set[int])
    entries_left: int = 0
    round: bool = False

    @property
    def current(self) -> Hit | None:
        """The item with the present match, `None` where nothing matches."""
        return self.hits[self.place] if self.place < len(self.hits) else None

    @property
    def total(self) -> int:
        """How many matches there are in what is loaded."""
        return sum([hit.count for hit in self.hits])

    @property
    def number(self) -> int:
        """The number of the present match, from 1; 0 where there is none."""
        if self.current is None:
            return 0
        return sum([hit.count for hit in self.hits[: self.place]]) + self.ordinal + 1
