"""What the user does to queued prompts: change them, delete them, order them, have them heard sooner (R-043).

Each of it is an operation, on disk before anything else happens; the rows that show follow from the answer.
"""

from __future__ import annotations

from tenuto.tui.complete.history import Extras
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.history import remember
from tenuto.tui.machine.intent import ActOnQueued, FocusQueue, LeaveQueue, MoveInQueue
from tenuto.tui.machine.queue import known_rows, submit_edit, take_back
from tenuto.tui.machine.state import QueueRow

TABLE = HandlerTable()


@TABLE.on(FocusQueue)
def focus_queue(change: Change, _intent: FocusQueue) -> None:
    """Give the keyboard to the queue, at its newest prompt."""
    state = change.state
    newest = next((row for row in reversed(state.queue) if row.seq), None)
    if newest is None:
        change.toast("Nothing is queued")
        return
    state.completion = None
    select(change, newest.seq)


@TABLE.on(LeaveQueue)
def leave_queue(change: Change, _intent: LeaveQueue) -> None:
    """Give the keyboard back to the prompt."""
    select(change, 0)


@TABLE.on(MoveInQueue)
def move_in_queue(change: Change, intent: MoveInQueue) -> None:
    """Select another prompt; below the last one is the editor."""
    rows = known_rows(change)
    place = _selected_place(change, rows)
    if place is None:
        return
    wanted = max(0, place + intent.delta)
    select(change, rows[wanted].seq if wanted < len(rows) else 0)


@TABLE.on(ActOnQueued)
def act_on_queued(change: Change, intent: ActOnQueued) -> None:
    """Do it to the selected prompt, or to the one that was clicked."""
    rows = known_rows(change)
    place = next((place for place, row in enumerate(rows) if row.seq == intent.seq), None)
    place = _selected_place(change, rows) if place is None else place
    if place is None:
        return
    row = rows[place]
    match intent.action:
        case "edit":
            take_back(change, row)
            select(change, 0)
        case "delete":
            remember(change, row.text, Extras(row.images))
            submit_edit(change, row, "delete")
            following = [*rows[place + 1 : place + 2], *rows[max(0, place - 1) : place]]
            select(change, following[0].seq if following else 0)
        case "steer":
            submit_edit(change, row, "unsteer" if row.steer else "steer")
        case "up" if place > 0:
            submit_edit(change, row, "move", rows[place - 1].seq)
        case "down" if place + 1 < len(rows):
            submit_edit(change, row, "move", rows[place + 2].seq if place + 2 < len(rows) else 0)
        case _:
            pass


def select(change: Change, seq: int) -> None:
    """Select the prompt of that seq, none for 0."""
    change.state.queue_selected = seq
    change.panel()


def _selected_place(change: Change, rows: list[QueueRow]) -> int | None:
    return next((place for place, row in enumerate(rows) if row.seq == change.state.queue_selected), None)
