"""What stands beside the editor without being asked for: the todo list, the queue, the images of the draft. Pure."""

from __future__ import annotations

from tenuto.guard.sanitize import sanitize_line
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.panel import PAD, Panel, padded
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import Line, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.tools.looks import todo_lines
from tenuto.tui.render.width import truncate

TODO_ROWS = 5
QUEUE_ROWS = 4


def side_panel(state: UiState, width: int, glyphs: Glyphs) -> Panel:
    """Return the todo list while something of it is open, the queued texts, the images of the draft."""
    lines = _todo(state, width, glyphs)
    rows = state.queue if len(state.queue) <= QUEUE_ROWS else state.queue[: QUEUE_ROWS - 1]
    for queued in rows:
        mark = "steer" if queued.steer else "queued"
        text = truncate(sanitize_line(queued.text), width - 14) or "(image)"
        lines.append(Line(((PAD, "text"), (f"{mark:<7} ", "accent"), (text, "dim"))))
    if len(rows) < len(state.queue):
        lines.append(plain(f"{PAD}… +{len(state.queue) - len(rows)} queued", "dim"))
    for number, image in enumerate(state.draft.images, 1):
        size = f" {image.width}×{image.height}" if image.width else ""
        lines.append(plain(f"{PAD}[image {number} {sanitize_line(image.name)}{size}]", "user.image"))
    return Panel(fit_lines(lines, width))


def _todo(state: UiState, width: int, glyphs: Glyphs) -> list[Line]:
    items = state.todo
    open_items = [item for item in items if item.status in ("pending", "in_progress")]
    if not items or not (open_items or state.todo_open):
        return []
    if state.todo_open or len(items) <= TODO_ROWS:
        return [padded(line) for line in todo_lines(items, width - 4, glyphs)]
    room = TODO_ROWS - 1
    first = min(items.index(open_items[0]), len(items) - room)
    shown = [todo_lines([item], width - 4, glyphs)[0] for item in items[first : first + room]]
    done = len(items) - len(open_items)
    return [*map(padded, shown), plain(f"{PAD * 2}{done} of {len(items)} done · Ctrl+T shows all", "faint")]
