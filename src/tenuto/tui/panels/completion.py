"""The completions of the word at the cursor. Pure."""

from __future__ import annotations

from tenuto.guard.sanitize import sanitize_line
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.panel import NOTHING, Panel, entry_line, first_shown, label_width
from tenuto.tui.render.fit import fit_lines

COMPLETION_ROWS = 8


def completion_panel(state: UiState, width: int, rows: int) -> Panel:
    """Return the completions of the word at the cursor."""
    popup = state.completion
    if popup is None:
        return NOTHING
    room = max(1, min(COMPLETION_ROWS, rows))
    first = first_shown(popup.selected, len(popup.items), room)
    shown = popup.items[first : first + room]
    labels = [sanitize_line(item.label) for item in shown]
    widest = label_width(labels, [item.detail for item in shown], width)
    lines = [
        entry_line(label, item.detail, widest, width, selected=place == popup.selected)
        for place, (label, item) in enumerate(zip(labels, shown, strict=True), first)
    ]
    return Panel(fit_lines(lines, width), {row: first + row for row in range(len(shown))})
