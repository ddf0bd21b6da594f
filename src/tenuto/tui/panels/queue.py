"""What is queued, in the order in which it is sent; with the keyboard there, what can be done to it. Pure."""

from __future__ import annotations

from tenuto.guard.sanitize import sanitize_line
from tenuto.protocol.part import ImagePart
from tenuto.tui.bindings import fit_phrases, join_phrases
from tenuto.tui.machine.state import QueueRow, UiState
from tenuto.tui.panels.panel import PAD, POINTER, Panel, first_shown
from tenuto.tui.render.line import Line, Span, plain
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
