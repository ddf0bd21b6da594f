"""The prompts that were sent before: Up and Down, Ctrl+R, and what goes into the history."""

from __future__ import annotations

from tenuto.command.outcome import Choice, RowFilter
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.commands import rank
from tenuto.tui.complete.history import NO_EXTRAS, Extras
from tenuto.tui.effects import Remember
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.intents import (
    ActOnQueued,
    FocusQueue,
    HistoryLoaded,
    HistoryNext,
    HistoryPrevious,
    LeaveQueue,
    MoveInQueue,
    SearchHistory,
)
from tenuto.tui.machine.queue import known_rows, submit_edit, take_back
from tenuto.tui.machine.state import Picker, QueueRow


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


ROWS = 1_000
LABEL_CHARACTERS = 200
HERE, EVERYWHERE = "here", "elsewhere"
FILTERS = (RowFilter("this project", (HERE,)), RowFilter("all projects"))


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
