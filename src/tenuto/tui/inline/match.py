"""The search where the transcript is in the scrollback: a list while one types, then each match with its context."""

from __future__ import annotations

from collections.abc import Callable

from tenuto.tui import panels
from tenuto.tui.line_editor import LineEditor
from tenuto.tui.machine.item import Item
from tenuto.tui.machine.state import UiState
from tenuto.tui.marks import Marks, draw_marks, present_match
from tenuto.tui.panels.panel import PAD, first_shown
from tenuto.tui.panels.reading import FIELD_ROWS, search_field, search_keys
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import Line
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.texts import item_name

CONTEXT_ROWS = 9
"""Rows of a block that are shown around a match, its own among them."""


class MatchPanel:
    """Gives the panel of the open search. `whole` renders all of an item on a screen of that width."""

    def __init__(self, whole: Callable[[Item, int], list[Line]]) -> None:
        self._whole = whole
        self._marks = Marks()
        self._known: tuple[object, list[Line]] = (None, [])

    def __call__(self, state: UiState, width: int, rows: int, line: LineEditor) -> panels.Panel:
        """Return the matches as a list, or the present one as it stands in its block, in at most `rows` rows."""
        context = self._context(state, width, max(1, min(CONTEXT_ROWS, rows - FIELD_ROWS - 1)))
        search = state.search
        if search is None or not context:
            return panels.places_panel(state, width, rows, line)
        keys = search_keys(search, state.keys, width, prints="print all")
        return panels.Panel(fit_lines([search_field(search, width, line), *context, keys], width))

    def _context(self, state: UiState, width: int, rows: int) -> list[Line]:
        """Return the name of the block and the rows around the match; nothing while one types, or for no such row."""
        search = state.search
        hit = search.current if search is not None and not search.typing else None
        item = state.transcript.get(hit.id) if hit is not None else None
        if search is None or hit is None or item is None:
            self._known = (None, [])
            self._marks.forget()
            return []
        lines = self._lines_of(item, width)
        found = self._marks.matches(item, lines, search.query)
        present = present_match(found, hit, search.ordinal)
        if present is None:
            return []
        first = max(0, first_shown(found[present][0].row, len(lines), rows))
        shown = lines[first : first + rows]
        marks = self._marks.of_item(item, lines, state, 0)
        return [
            _head(item, width, first, len(shown), len(lines)),
            *(draw_marks(each, marks(number)) for number, each in enumerate(shown, first)),
        ]

    def _lines_of(self, item: Item, width: int) -> list[Line]:
        """Return all rows of the item: the same list for as long as it is the same item."""
        key = (item.id, item.version, width)
        if self._known[0] != key:
            self._known = (key, self._whole(item, width))
        return self._known[1]


def _head(item: Item, width: int, first: int, count: int, total: int) -> Line:
    """Return which block it is, and which of its rows are shown."""
    place = f"  rows {first + 1:,}–{first + count:,} of {total:,}" if count < total else ""
    name = truncate(item_name(item), max(1, width - len(PAD) - cell_width(place)))
    return Line(((PAD, "text"), (name, "bold"), (place, "dim")))
