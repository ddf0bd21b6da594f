"""Which rows of the transcript are on the screen: pure arithmetic over the heights of items.

The scroll position is an item and a line in it, never a row counted from the beginning. So a wrong estimate above the
screen, an item that grows, or a new width cannot make the text that is being read jump. Rows counted from the
beginning are made for the scrollbar only.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from itertools import accumulate


class Viewport:
    """A window of `rows` rows over items of known or estimated height.

    `measure(index)` returns the true height of an item in rows (0: not to be seen); it is asked only for items at or
    near the screen.
    `follow` keeps the window at the end; any way up ends it, reaching the end resumes it. `unseen` counts the items
    that were added while it was off. `held` suspends it while something on the screen is looked at; `ended` says that
    the last row is on the screen.
    """

    def __init__(self, measure: Callable[[int], int]) -> None:
        self._measure = measure
        self.heights: list[int] = []
        self.rows = 0
        self.index = 0
        self.line = 0
        self.follow = True
        self.held = False
        self.ended = True
        self.unseen = 0
        self._total = 0

    # --- the items ---

    def reset(self, heights: list[int]) -> None:
        """Start over with these (estimated) heights, at the end."""
        self._take(heights)
        self.go_to_end()

    def reset_at(self, heights: list[int], index: int, line: int, unseen: int) -> None:
        """Start over with these heights, at a line of an item; `unseen` items were added since the end was seen."""
        self._take(heights)
        self.index, self.line = index, line
        self.follow, self.unseen = False, unseen
        self.settle()

    def append(self, height: int) -> None:
        """An item was added at the end; `height` may be an estimate."""
        self.heights.append(height)
        self._total += height
        if not self.follow:
            self.unseen += 1

    def remove(self, index: int) -> None:
        """The item at `index` is gone; what is at the top of the window stays there."""
        if index >= len(self.heights) - self.unseen:
            self.unseen -= 1
        self._total -= self.heights.pop(index)
        if index < self.index:
            self.index -= 1
        elif index == self.index:
            self.line = 0
        self.index = max(0, min(self.index, len(self.heights) - 1))

    def estimate_again(self, heights: list[int]) -> None:
        """All heights are estimates again (another width); the window keeps its item, and its place in it."""
        if not self.follow and self.index < len(heights):
            before = self.heights[self.index]
            self._take(heights)
            after = self.height(self.index)
            self.line = min(after - 1, self.line * after // before) if before > 0 and after > 0 else 0
        else:
            self._take(heights)

    def height(self, index: int) -> int:
        """Return the true height of an item, and remember it."""
        height = self._measure(index)
        self._total += height - self.heights[index]
        self.heights[index] = height
        return height

    def _take(self, heights: list[int]) -> None:
        self.heights = heights
        self._total = sum(heights)

    # --- the position ---

    def settle(self) -> None:
        """Bring the position back to what exists: at the end when following, never past it. To be called per frame."""
        if not self.heights:
            self.index = self.line = 0
            return
        if self.follow:
            self.index, self.line = self._tail()
            self.follow, self.ended = not self.held, True
            return
        self.line = max(0, min(self.line, self.height(self.index) - 1))
        self._stop_at_end()

    def visible(self) -> list[tuple[int, int]]:
        """Return (item index, line) of the rows on the screen; fewer than `rows` where there are no more."""
        shown: list[tuple[int, int]] = []
        index, line = self.index, self.line
        while index < len(self.heights) and len(shown) < self.rows:
            last = min(self.height(index), line + self.rows - len(shown))
            shown.extend((index, number) for number in range(line, last))
            index, line = index + 1, 0
        return shown

    def scroll(self, delta: int) -> None:
        """Move by `delta` rows, down when positive."""
        if not self.heights or delta == 0:
            return
        self.settle()
        self._put(self.index, self.line + delta)

    def scroll_page(self, direction: int) -> None:
        """Move by a screenful less two rows, so that the eye keeps its place."""
        self.scroll(direction * max(1, self.rows - 2))

    def go_to_start(self) -> None:
        """Go to the first row."""
        self.index = self.line = 0
        self.follow = False
        self._stop_at_end()

    def go_to_end(self) -> None:
        """Go to the end and follow it, unless it is held."""
        self.follow = True
        self.unseen = 0
        self.settle()

    def go_to_item(self, index: int) -> None:
        """Put the item's first row at the top, as far as the end allows."""
        self.index, self.line, self.follow = index, 0, False
        self._stop_at_end()

    def reveal(self, index: int, line: int) -> None:
        """Bring a line of an item on the screen, a third from the top unless it is there already."""
        self.settle()
        if (index, line) not in self.visible():
            self._put(index, line - self.rows // 3)

    def reveal_item(self, index: int) -> None:
        """Bring all of an item on the screen, or as much of it from its first line on as there is room for."""
        self.settle()
        height = self.height(index)
        shown = [line for place, line in self.visible() if place == index]
        if shown and shown[0] == 0 and shown[-1] == height - 1:
            return
        below = not shown and index > self.index
        if (shown and shown[0] == 0) or below:  # it is cut at the bottom: up with it, as far as its head allows
            self._put(index, -max(0, self.rows - height))
        else:
            self.go_to_item(index)

    def go_to_row(self, row: int) -> None:
        """Go to a row counted from the beginning, by the present estimates (the scrollbar)."""
        if not self.heights:
            return
        ends = list(accumulate(self.heights))
        index = min(bisect_right(ends, max(0, row)), len(ends) - 1)
        start = ends[index] - self.heights[index]
        self.index, self.line, self.follow = index, max(0, row - start), False
        self.settle()

    # --- the scrollbar ---

    def go_to_thumb(self, row: int) -> None:
        """Go to where the scrollbar is held: at that row of the window."""
        last = max(1, self.rows - 1)
        self.go_to_row(max(0, self._total - self.rows) * max(0, min(row, last)) // last)

    def extent(self) -> tuple[int, int]:
        """Return (rows above the window, rows in all), by the present estimates."""
        return sum(self.heights[: self.index]) + self.line, self._total

    def thumb(self) -> tuple[int, int] | None:
        """Return (first row, number of rows) of the scrollbar's thumb, `None` when everything fits."""
        total = self._total
        if total <= self.rows or self.rows < 1:
            return None
        size = max(1, self.rows * self.rows // total)
        if self.follow:
            return self.rows - size, size
        above, _ = self.extent()
        return min(self.rows - size, above * (self.rows - size) // max(1, total - self.rows)), size

    def _tail(self) -> tuple[int, int]:
        """Return the position at which the last row is the last on the screen."""
        left = self.rows
        for index in range(len(self.heights) - 1, -1, -1):
            height = self.height(index)
            if height >= left:
                return index, height - left
            left -= height
        return 0, 0

    def _put(self, index: int, line: int) -> None:
        """Put a line of an item at the top; one before its first is a line of the items before."""
        while line < 0 and index > 0:
            index -= 1
            line += self.height(index)
        self.index, self.line, self.follow = index, max(0, line), False
        self._stop_at_end()

    def _stop_at_end(self) -> None:
        while self.index < len(self.heights) - 1 and self.line >= (height := self.height(self.index)):
            self.line -= height
            self.index += 1
        self.ended = (self.index, self.line) >= (tail := self._tail())
        if self.ended:
            self.index, self.line = tail
            self.follow = not self.held
            self.unseen = 0
