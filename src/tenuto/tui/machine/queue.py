"""Prompts on their way: echoed at once, queued, sent, or back in the editor. None shows twice, none is lost (R-043)."""

from __future__ import annotations

from typing import Literal

from tenuto.protocol.event import PromptReturnedEvent, QueueChangedEvent, UserMessageEvent
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import ContentPart, ImagePart, text_of
from tenuto.tui.effects import Submit
from tenuto.tui.machine.change import Change, on, pass_verdict
from tenuto.tui.machine.intents import SendFailed
from tenuto.tui.machine.item import UserItem
from tenuto.tui.machine.state import Echo, QueueRow
from tenuto.tui.machine.turn import restart_clock

TAKEN_BACK = "taken back"
PART = "\n\n"
"""Between texts in the editor that were prompts of their own."""
BEGINNING = 240
"""Characters that are kept of how the conversation began."""


@on(UserMessageEvent)
def add_user_message(change: Change, event: UserMessageEvent) -> None:
    """The prompt is in the history: its echo becomes the message, here."""
    pass_verdict(change)
    state = change.state
    text = text_of(event.parts)
    echo = find_echo(change, event.from_queued, text)
    item = state.transcript.get(echo.item_id) if echo else None
    if echo is not None:
        state.echoes.remove(echo)
    if not isinstance(item, UserItem):
        item = UserItem()
        change.add(item)
    item.text, item.images, item.origin = text, images_of(event.parts), event.origin
    item.seq, item.final = event.seq, True
    change.settle([item.id])
    change.touch(item)
    restart_clock(change, "agent")
    if not state.status.began and text.strip():
        state.status.began = text[:BEGINNING]
        change.title()
    if event.from_queued and any(row.seq == event.from_queued for row in state.queue):
        state.queue = [row for row in state.queue if row.seq != event.from_queued]
        change.panel()


@on(QueueChangedEvent)
def set_queue(change: Change, event: QueueChangedEvent) -> None:
    """Show what is queued, except what shows in the transcript already; what waits for Enter always shows here."""
    state = change.state
    known = {row.seq for row in state.queue}
    typed = [row for row in state.queue if row.seq == 0]
    rows: list[QueueRow] = []
    for queued in event.items:
        text = text_of(queued.parts)
        echo = find_echo(change, queued.seq, text) if queued.seq not in known else None
        if echo is not None and not event.waiting:
            echo.seq = queued.seq
            continue
        if echo is not None:
            drop_echo(change, echo)
        elif queued.seq not in known:
            same = next((row for row in typed if row.text == text), None)
            if same is not None:
                typed.remove(same)
        rows.append(QueueRow(queued.seq, text, images_of(queued.parts), queued.steer))
    queued_now = {queued.seq for queued in event.items}
    for echo in [echo for echo in state.echoes if echo.seq and echo.seq not in queued_now]:
        drop_echo(change, echo)
    state.queue = rows + typed
    state.waiting = event.waiting
    change.panel()


@on(PromptReturnedEvent)
def take_prompt_back(change: Change, event: PromptReturnedEvent) -> None:
    """A prompt was not sent: it goes back into the editor, before what was typed later."""
    forget_sent(change, text_of(event.parts))
    put_back(change, text_of(event.parts), images_of(event.parts))
    if event.reason and event.reason != TAKEN_BACK:
        change.toast(event.reason, "warning")


@on(SendFailed)
def take_failed_back(change: Change, intent: SendFailed) -> None:
    """A prompt could not be handed over: it goes back into the editor, and the reason stays on the screen."""
    forget_sent(change, intent.text)
    put_back(change, intent.text, intent.images)
    change.notice(intent.reason, "error")


def show_sent(change: Change, text: str, images: tuple[ImagePart, ...], *, steer: bool) -> None:
    """Show a prompt the moment it is sent: as a message when nothing is before it, else as queued."""
    state = change.state
    if state.running or state.echoes or state.queue:
        state.queue.append(QueueRow(0, text, images, steer))
        change.panel()
        return
    item = UserItem(text=text, images=images)
    change.add(item)
    state.echoes.append(Echo(item.id, text))


def place_in_queue(change: Change) -> int:
    """Return the seq in front of which the draft is queued: one that was taken back gets its place again (0: last)."""
    state = change.state
    place, state.queue_place = state.queue_place, None
    if place is None:
        return 0
    return next((row.seq for row in state.queue if row.seq and row.seq not in place), 0)


def put_back(change: Change, text: str, images: tuple[ImagePart, ...]) -> None:
    """Put a text into the editor, behind those put back before and in front of what was typed; a long one as a mark.

    So all stand there in the order in which they were written, and typing goes on where it was.
    """
    draft = change.state.draft
    shown = change.state.pastes.fold(text)
    is_intact = bool(draft.returned) and draft.text.startswith(draft.returned)
    before = draft.returned if is_intact else ""
    typed = draft.text.removeprefix(before)
    is_changed = bool(before and typed) and not typed.startswith(PART)
    if is_changed:
        before, typed = draft.text, ""  # what was put back is being worked on: it is older all the same
    typed = typed.removeprefix(PART) if typed.strip() else ""
    draft.returned = PART.join(filter(None, (before, shown)))
    joined = PART.join(filter(None, (draft.returned, typed)))
    cursor = draft.cursor if typed or is_changed else len(joined)
    if typed and draft.cursor >= len(before):
        cursor = len(joined) - (len(draft.text) - draft.cursor)
    place = draft.returned_images if is_intact else 0
    draft.images = (*draft.images[:place], *images, *draft.images[place:])
    draft.returned_images = place + len(images)
    change.set_draft(joined, cursor)


def forget_sent(change: Change, text: str) -> None:
    """Take a prompt that comes back off the transcript or the queue."""
    state = change.state
    echo = next((echo for echo in state.echoes if echo.text == text), None)
    if echo is not None:
        drop_echo(change, echo)
        return
    row = next((row for row in state.queue if row.seq == 0 and row.text == text), None)
    if row is not None:
        state.queue.remove(row)
        change.panel()


def take_back(change: Change, row: QueueRow) -> None:
    """Have a prompt back in the editor; sent again, it gets the place that it had."""
    state = change.state
    rows = known_rows(change)
    state.queue_place = frozenset(before.seq for before in rows[: rows.index(row)])
    submit_edit(change, row, "take_back")


def submit_edit(
    change: Change,
    row: QueueRow,
    action: Literal["delete", "take_back", "steer", "unsteer", "move"],
    before: int = 0,
) -> None:
    """Ask the core for it."""
    operation = EditQueueOperation(session_id=change.state.session_id, target=row.seq, action=action, before=before)
    change.emit(Submit(operation))


def known_rows(change: Change) -> list[QueueRow]:
    """Return the rows that are known to be on disk: nothing can be done to the others yet."""
    return [row for row in change.state.queue if row.seq]


def find_echo(change: Change, queued_seq: int, text: str) -> Echo | None:
    """Return the echo of a queued entry: the one bound to it, else one of the same text that is bound to none."""
    echoes = change.state.echoes
    bound = next((echo for echo in echoes if queued_seq and echo.seq == queued_seq), None)
    return bound or next((echo for echo in echoes if not echo.seq and echo.text == text), None)


def drop_echo(change: Change, echo: Echo) -> None:
    """Take an echo off the transcript."""
    change.state.echoes.remove(echo)
    change.remove(echo.item_id)


def images_of(parts: tuple[ContentPart, ...]) -> tuple[ImagePart, ...]:
    """Return the images of a prompt."""
    return tuple(part for part in parts if isinstance(part, ImagePart))
