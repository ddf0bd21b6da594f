"""Which rows of a picker show."""

from __future__ import annotations

from tenuto.tui.complete.fuzzy import rank
from tenuto.tui.machine.state import Picker


def apply_filter(picker: Picker) -> None:
    """Find the rows that match the filter, best first; with none, all in order."""
    kinds = picker.filters[picker.row_filter].kinds if picker.filters else ()
    places = [
        place for place, choice in enumerate(picker.choices) if not kinds or not choice.kind or choice.kind in kinds
    ]
    texts = [f"{picker.choices[place].label} {picker.choices[place].detail}" for place in places]
    if picker.in_order:
        words = picker.filter.lower().split()
        found = [row for row, text in enumerate(texts) if all(word in text.lower() for word in words)]
    elif picker.filter.strip():
        found = rank(picker.filter, texts, limit=len(texts))
    else:
        found = list(range(len(texts)))
    picker.shown = [places[row] for row in found]
    picker.selected = picker.scrolled = 0
