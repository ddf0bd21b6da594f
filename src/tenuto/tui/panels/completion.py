"""The completions of the word at the cursor. Pure."""

from __future__ import annotations

from tenuto.guard.sanitize import sanitize_line
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.panel import NOTHING, PAD, Panel, entry_line, first_shown, label_width
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import plain

COMPLETION_ROWS = 8


def completion_panel(state: UiState, width: int, rows: int) -> Panel:
    """Return the completions of the word at the cursor."""
    popup = state.completion
    if popup is None:
        return NOTHING
    count, room = len(popup.items), max(1, min(COMPLETION_ROWS, rows))
    if count > room > 1:
        room -= 1
    first = first_shown(popup.selected, count, room)
    shown = popup.items[first : first + room]
    labels = [sanitize_line(item.label) for item in shown]
    widest = label_width(labels, [item.detail for item in shown], width)
    lines = [
        entry_line(label, item.detail, widest, width, selected=place == popup.selected)
        for place, (label, item) in enumerate(zip(labels, shown, strict=True), first)
    ]
    if count > room:
        lines.append(plain(f"{PAD * 2}{popup.selected + 1} of {count}", "dim"))
    return Panel(fit_lines(lines, width), {row: first + row for row in range(len(shown))})
