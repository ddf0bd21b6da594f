"""The prompts that were sent before: Up and Down, Ctrl+R, and what goes into the history."""

from __future__ import annotations

from tenuto.command.outcome import Choice, RowFilter
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.history import NO_EXTRAS, Extras
from tenuto.tui.effects import Remember
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.intent import HistoryLoaded, HistoryNext, HistoryPrevious, SearchHistory
from tenuto.tui.machine.picking import apply_filter
from tenuto.tui.machine.queue import take_back
from tenuto.tui.machine.state import Picker

TABLE = HandlerTable()
ROWS = 1_000
LABEL_CHARACTERS = 200
HERE, EVERYWHERE = "here", "elsewhere"
FILTERS = (RowFilter("this project", (HERE,)), RowFilter("all projects"))


@TABLE.on(HistoryLoaded)
def load_history(change: Change, intent: HistoryLoaded) -> None:
    """The prompts of earlier sessions; what was sent in this run already stays the newest."""
    history = change.state.history
    loaded = frozenset(intent.prompts)
    history.prompts = [*intent.prompts, *(prompt for prompt in history.prompts if prompt not in loaded)]
    history.own = set(intent.own)
    history.extras = {**intent.extras, **history.extras}
    history.index = None


@TABLE.on(HistoryPrevious)
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


@TABLE.on(HistoryNext)
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


@TABLE.on(SearchHistory)
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
