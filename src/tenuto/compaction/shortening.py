"""The results of a tail that a compaction keeps: which of them are shortened, and by how much (DESIGN section 5). Pure.

What the model has seen is shortened so that one huge result does not defeat the compaction. What it has not seen yet
it has just asked for: that is bounded by the room that there is and by nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from tenuto.compaction.entries import Item
from tenuto.compaction.images import carry_images
from tenuto.compaction.truncation import MIN_KEEP_TOKENS, truncate_result
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import AssistantMessage, Message, ToolResultMessage

_SLACK = 0.97
"""Of the room: what is shared out, because the size of a shortened text is an estimate."""
_NOTICE_TOKENS = 60


def first_unseen(items: Sequence[Item]) -> int:
    """Return the index behind the last answer: what stands there the model has not been sent yet, or not accepted."""
    for index in range(len(items) - 1, -1, -1):
        if isinstance(items[index].entry, AssistantMessage):
            return index + 1
    return 0


def fair_share(items: Sequence[Item], room: int) -> int:
    """Return the most tokens that each result among the items may have for all items to take `room` together."""
    results = sorted(item.tokens for item in items if isinstance(item.entry, ToolResultMessage))
    left = int(room * _SLACK) - (sum(item.tokens for item in items) - sum(results))
    for index, tokens in enumerate(results):
        share = left // (len(results) - index)
        if tokens > share:
            return max(MIN_KEEP_TOKENS, share - _NOTICE_TOKENS)
        left -= tokens
    return max(MIN_KEEP_TOKENS, *results) if results else MIN_KEEP_TOKENS


class Limits(msgspec.Struct, frozen=True):
    """Tokens over which results are shortened: those that the model has seen, and those from `unseen_from` on."""

    seen: int
    unseen: int
    unseen_from: int


class Shortening:
    """The items with every result over its limit counted as shortened, and the edits that shorten them."""

    def __init__(self, items: Sequence[Item], limits: Limits) -> None:
        self._original = items
        self._limits = limits
        self._edits: dict[int, ViewEdit] = {}
        seen, unseen = items[: limits.unseen_from], items[limits.unseen_from :]
        self.items = [
            *(self._shorten(item, limits.seen) for item in seen),
            *(self._shorten(item, limits.unseen) for item in unseen),
        ]

    def _shorten(self, item: Item, limit: int) -> Item:
        entry = item.entry
        if item.tokens <= limit or not isinstance(entry, ToolResultMessage):
            return item
        found = truncate_result(entry, limit)
        if found is None or found.tokens >= item.tokens:
            return item
        self._edits[entry.seq] = found.edit
        return Item(entry, found.tokens)

    def fitting(self, cut: int, ceiling: int) -> Shortening:
        """Return this, or a stricter one, so that the tail from `cut` fits `ceiling` tokens if shortening can do it.

        What the model has not seen yet stays as it is.
        """
        present = self
        while present._limits.seen > MIN_KEEP_TOKENS and present.tokens_from(cut) > ceiling:
            stricter = msgspec.structs.replace(present._limits, seen=max(MIN_KEEP_TOKENS, present._limits.seen // 2))
            present = Shortening(self._original, stricter)
        return present

    def tokens_from(self, cut: int) -> int:
        """Return the size of the items from `cut` on."""
        return sum(item.tokens for item in self.items[cut:])

    def edits(self, cut: int, view: Mapping[int, Message]) -> tuple[ViewEdit, ...]:
        """Return the edits of results that stand at or after `cut`; images that the view leaves out stay out."""
        kept = ((item.entry, self._edits.get(item.entry.seq)) for item in self.items[cut:])
        return tuple(
            carry_images(edit, entry, view[entry.seq])
            for entry, edit in kept
            if edit is not None and isinstance(entry, ToolResultMessage)
        )
