"""What opens around the editor: the completion popup, the picker, the todo list, the help."""

from __future__ import annotations

from tenuto.tui.complete.fuzzy import is_subsequence
from tenuto.tui.complete.target import find_target
from tenuto.tui.effects import ChoicePreviewed, Complete, RunCommand
from tenuto.tui.machine.approval import EMPTY_PAUSE, note_typing
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.history import put_prompt, remember_draft
from tenuto.tui.machine.intent import (
    AcceptCompletion,
    ChoiceOffered,
    CompletionOffered,
    CycleRowFilter,
    FilterChanged,
    HelpFilterChanged,
    MoveCompletion,
    MovePicker,
    PickChoice,
    ScrollPreview,
    ToggleHelp,
    ToggleTodo,
)
from tenuto.tui.machine.picking import apply_filter
from tenuto.tui.machine.prompt import send
from tenuto.tui.machine.shell_word import put_common
from tenuto.tui.machine.state import CompletionItem, CompletionPopup, Picker

TABLE = HandlerTable()
ASKED_SECONDS = 2.0
"""Seconds in which a list is what the user waits for who sent a command; later they have gone on to a prompt."""
FILTER_CHARACTERS = 40
"""More than that typed meanwhile is a prompt."""
PREVIEW_COLUMNS = 40
"""No preview is taken for longer than in a column of so many cells."""


# --- completion ---


@TABLE.on(CompletionOffered)
def offer_completion(change: Change, intent: CompletionOffered) -> None:
    """Show what was found, if the draft is still the one that it was looked for."""
    state = change.state
    if intent.generation != state.completion_generation:
        return
    if intent.at_once and put_common(change, intent):
        return
    found = CompletionPopup(intent.start, intent.end, intent.items, generation=intent.generation)
    popup = found if intent.items else None
    if popup is not None or state.completion is not None:
        state.completion = popup
        change.panel()


@TABLE.on(MoveCompletion)
def move_completion(change: Change, intent: MoveCompletion) -> None:
    """Select another one."""
    popup = change.state.completion
    if popup is not None:
        popup.selected = (popup.selected + intent.delta) % len(popup.items)
        change.panel()


@TABLE.on(AcceptCompletion)
def accept_completion(change: Change, intent: AcceptCompletion) -> None:
    """Put it in. With `send`, a whole command, or one that was typed out already, goes off at once.

    A list that answers an earlier draft counts as far as it fits what was typed since: else Enter sends the draft.
    """
    state = change.state
    popup = state.completion
    if popup is None:
        return
    place = popup.selected if intent.index is None else intent.index
    if not 0 <= place < len(popup.items):
        return
    item = popup.items[place]
    draft = state.draft
    # The word may have grown since the popup was filled.
    target = find_target(draft.text, draft.cursor)
    end = target.end if target is not None and target.start == popup.start else popup.end
    typed = draft.text[popup.start : end]
    is_old = intent.index is None and popup.generation != state.completion_generation
    if is_old and not _still_fits(typed, item):
        if intent.send:
            send(change, draft.text, draft.images)
        return
    typed_out = typed == item.insert.rstrip()
    rest = draft.text[end:]
    insert = item.insert.rstrip() if rest[:1].isspace() else item.insert
    state.completion_generation += 1
    change.set_draft(f"{draft.text[: popup.start]}{insert}{rest}", popup.start + len(insert))
    if intent.send and (item.runs or typed_out):
        send(change, draft.text, draft.images)
    elif not item.insert.endswith(" ") and not draft.text.startswith("!"):
        # A directory: go on with what is in it.
        change.emit(Complete(state.completion_generation, draft.text, draft.cursor))


def _still_fits(typed: str, item: CompletionItem) -> bool:
    """Say whether an item is what the user may mean who has typed on since; what runs at once has to begin so."""
    word, insert = typed.casefold(), item.insert.casefold()
    return insert.startswith(word) if item.runs else is_subsequence(word, insert)


def close_completion(change: Change) -> None:
    """Close the popup; it stays closed for this word."""
    state = change.state
    if state.completion is not None:
        state.completion_closed_at = state.completion.start
        state.completion = None
        state.completion_generation += 1
        change.panel()


# --- picker ---


@TABLE.on(ChoiceOffered)
def open_picker(change: Change, intent: ChoiceOffered) -> None:
    """Show the choices; what was typed while they were looked for is the filter, as it was meant."""
    picker = picker_of(intent)
    state = change.state
    asked, draft = state.ladder.asked_at, state.draft
    if draft.changed_at >= asked >= change.now - ASKED_SECONDS and 0 < len(draft.text) <= FILTER_CHARACTERS:
        picker.filter = draft.text
        apply_filter(picker)
        change.set_draft("")
    show_picker(change, picker)


def picker_of(intent: ChoiceOffered) -> Picker:
    """Return the choices as a list on which the present one is selected."""
    picker = Picker(
        intent.title,
        intent.command,
        intent.choices,
        filters=intent.filters,
        in_order=intent.in_order,
        live=intent.live,
        acts=intent.acts,
    )
    apply_filter(picker)
    present = (row for row, place in enumerate(picker.shown) if picker.choices[place].present)
    picker.selected = next(present, 0)
    return picker


def show_picker(change: Change, picker: Picker) -> None:
    """Open a list."""
    change.state.picker = picker
    change.panel()


def open_held(change: Change) -> None:
    """Open the list that waits, once nothing is typed and nothing else is open: it steals no key."""
    state = change.state
    quiet = state.contexts[0] == "empty" and change.now - state.draft.changed_at >= EMPTY_PAUSE
    if state.held_picker is not None and quiet:
        picker, state.held_picker = state.held_picker, None
        show_picker(change, picker)


@TABLE.on(FilterChanged)
def set_filter(change: Change, intent: FilterChanged) -> None:
    """Show the choices that match."""
    picker = change.state.picker
    if picker is not None and picker.filter != intent.text:
        note_typing(change)
        picker.filter = intent.text
        apply_filter(picker)
        show_selected(change, picker)


@TABLE.on(MovePicker)
def move_picker(change: Change, intent: MovePicker) -> None:
    """Select another row."""
    picker = change.state.picker
    if picker is not None and picker.shown:
        note_typing(change)
        picker.selected = max(0, min(len(picker.shown) - 1, picker.selected + intent.delta))
        picker.scrolled = 0
        show_selected(change, picker)


@TABLE.on(CycleRowFilter)
def cycle_row_filter(change: Change, intent: CycleRowFilter) -> None:
    """Show the rows of the next row filter; the selected row stays selected, or the nearest one before it."""
    picker = change.state.picker
    if picker is None or not picker.filters:
        return
    place = picker.shown[picker.selected] if picker.shown else 0
    picker.row_filter = (picker.row_filter + intent.delta) % len(picker.filters)
    apply_filter(picker)
    picker.selected = max(0, sum(shown <= place for shown in picker.shown) - 1)
    show_selected(change, picker)


@TABLE.on(ScrollPreview)
def scroll_preview(change: Change, intent: ScrollPreview) -> None:
    """Scroll the preview; the panel knows where it ends."""
    picker = change.state.picker
    if picker is not None and picker.current is not None and picker.current.preview:
        lines = picker.current.preview.count("\n") + len(picker.current.preview) // PREVIEW_COLUMNS
        picker.scrolled = max(0, min(lines, picker.scrolled + intent.delta))
        change.panel()


@TABLE.on(PickChoice)
def pick_choice(change: Change, intent: PickChoice) -> None:
    """Take a row: run the command with it, or put it into the editor."""
    state = change.state
    picker = state.picker
    if picker is None:
        return
    place = picker.selected if intent.index is None else intent.index
    if not 0 <= place < len(picker.shown):
        return
    choice = picker.choices[picker.shown[place]]
    if choice.value and choice.value == picker.busy:
        return
    # What is taken goes on showing until the command has done it.
    state.picker = None
    change.panel()
    if picker.command and choice.value:
        change.emit(RunCommand(f"/{picker.command} {choice.value}"))
    elif not picker.command:
        draft = state.draft
        if draft.images or not picker.filter.startswith(draft.text):  # else it was what was looked for
            remember_draft(change, draft.text, draft.images)
        put_prompt(change, choice.value)


def show_selected(change: Change, picker: Picker) -> None:
    """Another row is selected: show it, and in a live picker what it would do."""
    change.panel()
    if picker.live and picker.current is not None:
        change.emit(ChoicePreviewed(picker.command, picker.current.value))


def close_picker(change: Change) -> None:
    """Close it, with nothing taken."""
    picker, change.state.picker = change.state.picker, None
    change.panel()
    if picker is not None and picker.live:
        change.emit(ChoicePreviewed(picker.command, ""))


# --- todo and help ---


@TABLE.on(ToggleTodo)
def toggle_todo(change: Change, intent: ToggleTodo) -> None:
    """Show all of the todo list, then put it away, then show what is open of it again."""
    state = change.state
    if not state.shows_todo:
        state.todo_away, state.todo_open = False, False
        state.todo_open = not state.shows_todo
    elif state.todo_open or intent.has_all:
        state.todo_away, state.todo_open = True, False
    else:
        state.todo_open = True
    change.panel()


@TABLE.on(ToggleHelp)
def toggle_help(change: Change, _intent: ToggleHelp) -> None:
    """Show or hide the keys."""
    change.state.help_open = not change.state.help_open
    change.state.help_filter = ""
    change.panel()


@TABLE.on(HelpFilterChanged)
def filter_help(change: Change, intent: HelpFilterChanged) -> None:
    """Look for something in the help; its own key, which is a character, closes it as long as nothing is looked for."""
    state = change.state
    note_typing(change)
    found = state.keys.find(("empty",), intent.text)
    if not state.help_filter and found is not None and isinstance(found.intent, ToggleHelp):
        toggle_help(change, ToggleHelp())
        return
    state.help_filter = intent.text
    change.panel()
