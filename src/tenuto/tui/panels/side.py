"""What stands beside the editor without being asked for: the todo list, the queue. Pure."""

from __future__ import annotations

from tenuto.tui.bindings import join_phrases
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.panel import PAD, Panel, padded
from tenuto.tui.panels.queue import queue_panel
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import Line, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.tools.looks import todo_lines

TODO_ROWS = 5


def side_panel(state: UiState, width: int, glyphs: Glyphs) -> Panel:
    """Return the todo list while something of it is open, the queued texts."""
    lines = _todo(state, width, glyphs)
    queue = queue_panel(state, width)
    choices = {len(lines) + row: seq for row, seq in queue.choices.items()}
    return Panel(fit_lines([*lines, *queue.lines], width), choices)


def _todo(state: UiState, width: int, glyphs: Glyphs) -> list[Line]:
    items = state.todo
    open_items = [item for item in items if item.status in ("pending", "in_progress")]
    finishing = state.running and not state.todo_over  # all of it is done: it goes with the turn
    if not items or not (open_items or state.todo_open or finishing):
        return []
    if state.todo_open or len(items) <= TODO_ROWS:
        return [padded(line) for line in todo_lines(items, width - 4, glyphs)]
    room = TODO_ROWS - 1
    begin = items.index(open_items[0]) if open_items else len(items)
    first = max(0, min(begin, len(items) - room))
    shown = [todo_lines([item], width - 4, glyphs)[0] for item in items[first : first + room]]
    done = len(items) - len(open_items)
    return [
        *map(padded, shown),
        plain(
            f"{PAD * 2}{join_phrases(f'{done} of {len(items)} done', state.keys.phrase('todo', 'shows all'))}", "faint"
        ),
    ]
