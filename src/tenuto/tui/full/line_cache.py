"""The lines of items, rendered when they are needed and kept while they are likely to be needed again.

One rendered line costs about a kilobyte, so only a few thousand are kept, whatever the length of the session.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tenuto.tui.machine.item import Item
from tenuto.tui.render.line import EMPTY, Line

MAX_LINES = 3_000
LineRenderer = Callable[[Item, int], Sequence[Line]]
"""Renders an item for a screen of so many cells."""


class Entry(NamedTuple):
    """An item's lines, and what they were made from."""

    version: int
    gap: int
    lines: Sequence[Line]


class LineCache:
    """Least recently used items go first; those asked for since the last `trim` stay, however long they are."""

    def __init__(self, render: LineRenderer, max_lines: int = MAX_LINES) -> None:
        self._render = render
        self._max_lines = max_lines
        self._entries: OrderedDict[int, Entry] = OrderedDict()
        self._count = 0
        self._needed: set[int] = set()
        self.width = 0

    def __len__(self) -> int:
        """Return the number of lines kept."""
        return self._count

    def lines(self, item: Item, width: int, gap: int) -> Sequence[Line]:
        """Return the item's lines for `width` cells behind `gap` empty ones; one that is not to be seen has none."""
        if width != self.width:
            self.clear()
            self.width = width
        self._needed.add(item.id)
        entry = self._entries.get(item.id)
        if entry is not None and (entry.version, entry.gap) == (item.version, gap):
            self._entries.move_to_end(item.id)
            return entry.lines
        self.drop(item.id)
        lines = self._render(item, width)
        entry = Entry(item.version, gap, [*(EMPTY,) * gap, *lines] if lines else [])
        self._entries[item.id] = entry
        self._count += len(entry.lines)
        return entry.lines

    def trim(self) -> None:
        """Forget what is too much: to be called after each frame."""
        while self._count > self._max_lines and (oldest := next(iter(self._entries))) not in self._needed:
            self.drop(oldest)
        self._needed.clear()

    def drop(self, item_id: int) -> None:
        """Forget an item's lines."""
        entry = self._entries.pop(item_id, None)
        if entry is not None:
            self._count -= len(entry.lines)

    def clear(self) -> None:
        """Forget everything (another width, detail or theme)."""
        self._entries.clear()
        self._count = 0
