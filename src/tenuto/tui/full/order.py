"""Which item stands where in the transcript, and of which the height is known."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise

from tenuto.tui.machine.item import Item


class ItemOrder:
    """Items by id and by place. A measured height holds while the item's version is the same, and what is above it."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._places: dict[int, int] = {}
        self._measured: dict[int, int] = {}

    def __contains__(self, item_id: int) -> bool:
        return item_id in self._places

    def place_of(self, item_id: int) -> int | None:
        """Return where an item stands, `None` when it is not there."""
        return self._places.get(item_id)

    def first_place(self, ids: Iterable[int]) -> int | None:
        """Return the place of the first of these items that is there."""
        return next((self._places[item_id] for item_id in ids if item_id in self._places), None)

    def append(self, item_id: int) -> None:
        """Put an item at the end."""
        self._places[item_id] = len(self.ids)
        self.ids.append(item_id)

    def remove(self, item_id: int) -> int | None:
        """Take an item out; return where it stood, `None` when it was not there."""
        place = self._places.pop(item_id, None)
        if place is None:
            return None
        del self.ids[place]
        for later in range(place, len(self.ids)):
            self._places[self.ids[later]] = later
        for changed in (item_id, *self.ids[place : place + 1]):
            self._measured.pop(changed, None)
        return place

    def replace(self, ids: Sequence[int]) -> list[int]:
        """Take another order; return the items that are not there any more."""
        stood_behind = dict(pairwise([0, *self.ids]))
        for above, item_id in pairwise([0, *ids]):
            if stood_behind.get(above) != item_id:
                self._measured.pop(item_id, None)
        before, self.ids = self.ids, list(ids)
        self._places = {item_id: place for place, item_id in enumerate(self.ids)}
        gone = [item_id for item_id in before if item_id not in self._places]
        for item_id in gone:
            self._measured.pop(item_id, None)
        return gone

    # --- heights ---

    def measure(self, item: Item) -> bool:
        """Say whether an item has to be measured, which counts as done then."""
        if self._measured.get(item.id) == item.version:
            return False
        self._measured[item.id] = item.version
        return True

    def is_measured(self, item_id: int) -> bool:
        """Say whether the height of an item is known, or was for an older version of it."""
        return item_id in self._measured

    def forget_heights(self) -> None:
        """Nothing is measured any more."""
        self._measured.clear()
