"""What stands beside the editor without being asked for: the todo list, the queue. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.protocol.entry import TodoItem
from tenuto.tui.bindings import fit_phrases, join_phrases
from tenuto.tui.machine.state import OPEN_STATES, UiState
from tenuto.tui.panels.panel import PAD, Panel, padded
from tenuto.tui.panels.queue import queue_panel
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import Line, Span, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.tools.looks import todo_lines, todo_row
from tenuto.tui.status import spans_width

TODO_ROWS = 5
LARGE_SCREEN = 100
"""Rows for whoever does not say how many there are."""


def side_panel(
    state: UiState, width: int, glyphs: Glyphs, rows: int = LARGE_SCREEN, todo: Sequence[TodoItem] | None = None
) -> Panel:
    """Return the todo list while something of it is open, the queued texts, in at most `rows` rows.

    `todo` is what of the list is to show, `None` for all of it.
    """
    if rows < 1:
        return Panel()
    items = state.todo if todo is None else todo
    shown = items if state.shows_todo else ()
    queue = queue_panel(state, width, max(1, rows - 1) if shown else rows)
    todo_rows = rows - len(queue.lines)
    whole = [padded(line) for line in todo_lines(shown, width - 4, glyphs)]
    fits = len(whole) <= todo_rows
    if fits and (state.todo_open or len(shown) <= TODO_ROWS):
        lines, has_all = whole, bool(whole)
    else:
        lines = _todo_head(state, shown, width, glyphs, todo_rows)
        room, most = (_room_for_items(len(shown), todo_rows, is_open=one) for one in (state.todo_open, True))
        has_all = not fits and room == most
    choices = {len(lines) + row: seq for row, seq in queue.choices.items()}
    return Panel(fit_lines([*lines, *queue.lines], width), choices, has_all=has_all)


def _room_for_items(count: int, rows: int, *, is_open: bool) -> int:
    """Return how many items of a list that does not show as a whole show in `rows` rows."""
    return max(1, min(count, rows - 1 if is_open else min(rows, TODO_ROWS) - 1))


def _todo_head(state: UiState, items: Sequence[TodoItem], width: int, glyphs: Glyphs, rows: int) -> list[Line]:
    """Return from what is open on as much of the list as there is room for, and how much of it is done."""
    if rows < 1 or not items:
        return []
    finished = sum(item.status == "done" for item in items)
    done = f"{finished} of {len(items)} done"
    room = _room_for_items(len(items), rows, is_open=state.todo_open)
    begin = next((place for place, item in enumerate(items) if item.status in OPEN_STATES), len(items))
    first = max(0, min(begin, len(items) - room))
    remark: tuple[Span, ...] = ((f"  {done}", "faint"),) if rows == 1 else ()
    shown = [todo_row(item, width - 4 - spans_width(remark), glyphs) for item in items[first : first + room]]
    if rows == 1:
        return [padded(Line((*shown[0].spans, *remark)))]
    more = state.keys.phrase("todo", "hide" if state.todo_open else "show all")
    return [*map(padded, shown), plain(f"{PAD * 2}{fit_phrases(join_phrases(done, more), done, width - 4)}", "faint")]
