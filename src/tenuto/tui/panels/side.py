"""What stands beside the editor without being asked for: the todo list, the queue. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.part import ImagePart
from tenuto.tui.keys.bindings import fit_phrases, join_phrases
from tenuto.tui.machine.state import OPEN_STATES, QueueRow, UiState
from tenuto.tui.panels.panel import PAD, POINTER, Panel, first_shown, padded
from tenuto.tui.render.line import Line, Span, fit_lines, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.status import spans_width
from tenuto.tui.render.tools import todo_lines, todo_row
from tenuto.tui.render.width import cell_width, truncate

QUEUE_ROWS = 4
FOCUSED_ROWS = 8
HINT_COLUMNS = 60
"""A narrower screen shows a text in the place of the key that leads to the queue."""
MARKS = {False: "queued ", True: "steer  "}


def queue_panel(state: UiState, width: int, most_rows: int = FOCUSED_ROWS + 1) -> Panel:
    """Return the queued prompts, in at most so many rows.

    A click on a row takes it into the editor; `choices` has seqs.
    """
    rows = state.queue
    if not rows:
        return Panel()
    focused = "queue" in state.contexts
    most = max(1, min(FOCUSED_ROWS, most_rows - 1) if focused else min(QUEUE_ROWS, most_rows))
    room = len(rows) if len(rows) <= most else max(1, most - 1)
    selected = next((place for place, row in enumerate(rows) if focused and row.seq == state.queue_selected), 0)
    first = first_shown(selected, len(rows), room)
    key = state.keys.label("queue")
    way_there = f"  {key}" if key and not focused and width >= HINT_COLUMNS else ""
    lines: list[Line] = []
    choices: dict[int, int] = {}
    for place, row in enumerate(rows[first : first + room], first):
        if row.seq:
            choices[len(lines)] = row.seq
        lines.append(_row(row, width, selected=focused and place == selected, way_there="" if lines else way_there))
    beyond = [f"{first} before"] if first else []
    beyond += [f"+{len(rows) - first - room} queued"] if len(rows) - first - room else []
    if beyond and most > 1:
        lines.append(plain(f"{PAD}… {', '.join(beyond)}", "dim"))
    if focused and len(lines) < most_rows:
        lines.append(
            plain(f"{PAD}{fit_phrases(_hint(state), state.keys.phrase('escape', 'leaves'), width - 2)}", "faint")
        )
    return Panel(lines, choices)


def _row(row: QueueRow, width: int, *, selected: bool, way_there: str) -> Line:
    chips = "".join(f" {_chip(image)}" for image in row.images)
    first, *more = row.text.strip().split("\n")
    count = f" … +{len(more)} lines" if len(more) > 1 else " … +1 line" if more else ""
    room = max(8, width - cell_width(chips) - cell_width(count) - cell_width(way_there) - 12)
    text = truncate(sanitize_line(first), room)
    style = "choice.selected" if selected else "dim"
    spans: list[Span] = [
        (POINTER if selected else PAD, "accent"),
        (f"{MARKS[row.steer]} ", "accent"),
        (f"{text}{count}", style),
        (chips.lstrip() if not text else chips, "user.image"),
        (way_there, "faint"),
    ]
    return Line(tuple(span for span in spans if span[0]))


def _chip(image: ImagePart) -> str:
    size = f" {image.width}x{image.height}" if image.width else ""
    return f"[image {truncate(sanitize_line(image.name), 20)}{size}]".replace("[image ]", "[image]")


def _hint(state: UiState) -> str:
    keys = state.keys
    moves = " ".join(label for label in (keys.label("queue.move_up"), keys.label("queue.move_down")) if label)
    return join_phrases(
        keys.phrase("queue.edit", "edit"),
        keys.phrase("queue.delete", "delete"),
        keys.phrase("queue.steer", "steer"),
        f"{moves} move" if moves else "",
        keys.phrase("escape", "close"),
    )


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
