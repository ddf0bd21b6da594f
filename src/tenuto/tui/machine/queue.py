"""Prompts on their way and those sent before: echoed at once, queued, sent, in the history, or back in the editor.

None shows twice, none is lost (R-043).
"""

from __future__ import annotations

from itertools import islice
from typing import Literal

from tenuto.command.outcome import Choice, RowFilter
from tenuto.protocol.event import PromptReturnedEvent, QueueChangedEvent, UserMessageEvent
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import ContentPart, ImagePart, text_of
from tenuto.tui.complete.commands import rank
from tenuto.tui.complete.history import NO_EXTRAS, Extras
from tenuto.tui.machine.change import Change, on, pass_verdict
from tenuto.tui.machine.turn import restart_clock
from tenuto.tui.state.effects import Remember, Submit
from tenuto.tui.state.intents import (
    ActOnQueued,
    FocusQueue,
    HistoryLoaded,
    HistoryNext,
    HistoryPrevious,
    LeaveQueue,
    MoveInQueue,
    SearchHistory,
    SendFailed,
)
from tenuto.tui.state.item import UserItem, is_welcome
from tenuto.tui.state.state import Echo, Picker, QueueRow

TAKEN_BACK = "taken back"
PART = "\n\n"
"""Between texts in the editor that were prompts of their own."""
BEGINNING = 240
"""Characters that are kept of how the conversation began."""

FIRST_ITEMS = 20
"""Items among which the first screen's may be: warnings stand before it."""
ROWS = 1_000
LABEL_CHARACTERS = 200
HERE, EVERYWHERE = "here", "elsewhere"
FILTERS = (RowFilter("this project", (HERE,)), RowFilter("all projects"))


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
        end_welcome(change)
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


def end_welcome(change: Change) -> None:
    """The first prompt is there: what stood on the first screen goes."""
    first = [item for item in islice(change.state.transcript.items.values(), FIRST_ITEMS) if is_welcome(item)]
    for item in first:
        change.remove(item.id)


def show_sent(change: Change, text: str, images: tuple[ImagePart, ...], *, steer: bool) -> None:
    """Show a prompt the moment it is sent: as a message when nothing is before it, else as queued."""
    state = change.state
    if state.running or state.echoes or state.queue:
        state.queue.append(QueueRow(0, text, images, steer))
        change.panel()
        return
    item = UserItem(text=text, images=images)
    end_welcome(change)
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


# --- the keys of the queue ---


@on(FocusQueue)
def focus_queue(change: Change, _intent: FocusQueue) -> None:
    """Give the keyboard to the queue, at its newest prompt."""
    state = change.state
    newest = next((row for row in reversed(state.queue) if row.seq), None)
    if newest is None:
        change.toast("Nothing is queued")
        return
    state.completion = None
    select(change, newest.seq)


@on(LeaveQueue)
def leave_queue(change: Change, _intent: LeaveQueue) -> None:
    """Give the keyboard back to the prompt."""
    select(change, 0)


@on(MoveInQueue)
def move_in_queue(change: Change, intent: MoveInQueue) -> None:
    """Select another prompt; below the last one is the editor."""
    rows = known_rows(change)
    place = _selected_place(change, rows)
    if place is None:
        return
    wanted = max(0, place + intent.delta)
    select(change, rows[wanted].seq if wanted < len(rows) else 0)


@on(ActOnQueued)
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


# --- the history ---


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


@on(HistoryLoaded)
def load_history(change: Change, intent: HistoryLoaded) -> None:
    """The prompts of earlier sessions; what was sent in this run already stays the newest."""
    history = change.state.history
    loaded = frozenset(intent.prompts)
    history.prompts = [*intent.prompts, *(prompt for prompt in history.prompts if prompt not in loaded)]
    history.own = set(intent.own)
    history.extras = {**intent.extras, **history.extras}
    history.index = None


@on(HistoryPrevious)
def show_previous(change: Change, _intent: HistoryPrevious) -> None:
    """Up: the newest queued text when there is nothing in the editor, else the prompt before."""
    state = change.state
    history = state.history
    newest = next((row for row in reversed(state.queue) if row.seq), None)
    if state.draft.empty and history.index is None and newest is not None:
        take_back(change, newest)
        return
    if history.index is None:
        history.draft, history.images = state.draft.text, state.draft.images
        typed = history.draft if history.draft.strip() and "\n" not in history.draft else ""
        begins = any(prompt.startswith(typed) and prompt != typed for prompt in history.prompts)
        history.prefix = typed if begins else ""
    last = len(history.prompts) if history.index is None else history.index
    index = next((place for place in range(last - 1, -1, -1) if _matches(change, place)), None)
    if index is not None:
        show_prompt(change, index)


@on(HistoryNext)
def show_next(change: Change, _intent: HistoryNext) -> None:
    """Down: the prompt after; past the newest, the draft that was there before."""
    history = change.state.history
    if history.index is None:
        return
    following = range(history.index + 1, len(history.prompts))
    index = next((place for place in following if _matches(change, place)), None)
    if index is not None:
        show_prompt(change, index)
    else:
        history.index = None
        change.state.draft.images = history.images
        change.set_draft(history.draft)


def _matches(change: Change, place: int) -> bool:
    history = change.state.history
    prompt = history.prompts[place]
    return prompt.startswith(history.prefix) and prompt != history.prefix


def show_prompt(change: Change, index: int) -> None:
    """Put a prompt of the history into the editor."""
    history = change.state.history
    put_prompt(change, history.prompts[index])
    history.index = index


def keep_left_draft(change: Change) -> None:
    """Going through the history ends with another prompt: the draft that it began at is kept, if it was no search."""
    history = change.state.history
    if history.index is not None and not history.prefix:
        remember_draft(change, history.draft, history.images)


def put_prompt(change: Change, text: str) -> None:
    """Put a prompt that was sent before into the editor, with its images, and long pastes as marks."""
    state = change.state
    extras = state.history.extras.get(text, NO_EXTRAS)
    state.draft.images = extras.images
    change.set_draft(state.pastes.fold_at(text, extras.folds) if extras.folds else state.pastes.fold(text))


@on(SearchHistory)
def search_history(change: Change, _intent: SearchHistory) -> None:
    """Show the prompts sent before, newest first: this project's, all projects' with Tab."""
    history = change.state.history
    prompts = list(dict.fromkeys(reversed(history.prompts)))[:ROWS]
    if not prompts:
        change.toast("There are no earlier prompts yet")
        return
    choices = tuple(_choice(prompt, is_own=prompt in history.own) for prompt in prompts)
    picker = Picker("Earlier prompts", "", choices, filter=change.state.draft.text, filters=FILTERS, in_order=True)
    if not history.own:
        picker.row_filter = len(FILTERS) - 1
    apply_filter(picker)
    change.state.picker = picker
    change.panel()


def _choice(prompt: str, *, is_own: bool) -> Choice:
    return Choice(prompt, " ".join(prompt[:LABEL_CHARACTERS].split()), kind=HERE if is_own else EVERYWHERE)


def remember(change: Change, text: str, extras: Extras = NO_EXTRAS) -> None:
    """Put a whole prompt into the history, at the end, once. One that begins with a space is not written to disk."""
    history = change.state.history
    history.index = None
    if not text.strip():
        return
    if extras != NO_EXTRAS:
        history.extras[text] = extras
    else:
        history.extras.pop(text, None)
    history.own.add(text)
    if history.prompts and history.prompts[-1] == text:
        return
    if text in history.prompts:
        history.prompts.remove(text)
    history.prompts.append(text)
    if not text.startswith(" "):
        change.emit(Remember(text, extras))


def remember_draft(change: Change, shown: str, images: tuple[ImagePart, ...]) -> None:
    """Put a draft into the history as it is in the editor: its pastes will be marks again."""
    pastes = change.state.pastes
    remember(change, pastes.expand(shown), Extras(images, pastes.folds(shown)))
