"""The editor: sending, steering, the prompt history, the todo panel's and the editor's keys."""

from __future__ import annotations

import re

from tenuto.protocol.entry import Mode
from tenuto.protocol.operation import ChangeModeOperation, EditQueueOperation, RunShellOperation
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.target import find_target
from tenuto.tui.effects import Complete, OpenEditor, Remember, RunCommand, Submit, SubmitPrompt
from tenuto.tui.machine.approval import hold_back
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.intent import (
    CycleMode,
    DraftChanged,
    EditDraft,
    HistoryLoaded,
    HistoryNext,
    HistoryPrevious,
    ImageAttached,
    ImageDetached,
    PickModel,
    SendDraft,
    SendText,
    SteerDraft,
    TextOffered,
)
from tenuto.tui.machine.queue import show_sent

TABLE = HandlerTable()
WHOLE_CHARACTERS = 20_000
"""Up to so many characters a text to be changed stands in the editor as it is, and not as the mark of a paste."""
MODES: tuple[Mode, ...] = ("ask", "edits", "auto", "plan")
COMMAND = re.compile(r"/[A-Za-z?][\w-]*(?=\s|$)")
"""A line that is a command: a path such as `/usr/bin` is none."""


@TABLE.on(DraftChanged)
def change_draft(change: Change, intent: DraftChanged) -> None:
    """A key changed the editor; look for completions of the word at the cursor."""
    state = change.state
    draft = state.draft
    typed = intent.text != draft.text
    moved = intent.cursor != draft.cursor
    if not typed and not moved:
        return
    was_empty = not draft.text
    draft.text, draft.cursor = intent.text, intent.cursor
    if typed:
        draft.changed_at = change.now
        hold_back(change)
        state.history.index = None
        if was_empty or not draft.text:
            change.panel()
    target = find_target(draft.text, draft.cursor)
    if target is None or (moved and not typed):
        state.completion_closed_at = None if target is None else state.completion_closed_at
        if state.completion is not None:
            state.completion = None
            change.panel()
        state.completion_generation += 1
    elif target.start != state.completion_closed_at:
        state.completion_generation += 1
        change.emit(Complete(state.completion_generation, draft.text, draft.cursor))


@TABLE.on(ImageAttached)
def attach_image(change: Change, intent: ImageAttached) -> None:
    """An image goes along with the draft."""
    change.state.draft.images += (intent.image,)
    change.panel()


@TABLE.on(ImageDetached)
def detach_image(change: Change, intent: ImageDetached) -> None:
    """It does not, after all."""
    images = change.state.draft.images
    change.state.draft.images = images[: intent.index] + images[intent.index + 1 :]
    change.panel()


# --- sending ---


@TABLE.on(SendDraft)
def send_draft(change: Change, _intent: SendDraft) -> None:
    """Enter."""
    draft = change.state.draft
    before = draft.text[: draft.cursor]
    if before.endswith("\\"):
        change.set_draft(f"{before[:-1]}\n{draft.text[draft.cursor :]}", draft.cursor)
        return
    send(change, draft.text, draft.images)


@TABLE.on(SteerDraft)
def steer_draft(change: Change, _intent: SteerDraft) -> None:
    """Ctrl+S."""
    state = change.state
    if not state.draft.empty:
        send(change, state.draft.text, state.draft.images, steer=True)
        return
    row = next((row for row in state.queue if row.seq and not row.steer), None)
    if row is not None:
        change.emit(Submit(EditQueueOperation(session_id=state.session_id, target=row.seq, action="steer")))


@TABLE.on(SendText)
def send_text(change: Change, intent: SendText) -> None:
    """A text that was typed somewhere else."""
    send(change, intent.text, intent.images)


def send(change: Change, shown: str, images: tuple[ImagePart, ...], *, steer: bool = False) -> None:
    """Send a command, a shell command or a prompt. Marks of pastes become what was pasted: every byte (R-099).

    What it is follows from what the person sees: a folded paste that begins with `!` is not run.
    """
    text = change.state.pastes.expand(shown)
    line = shown.strip()
    if not line and not images:
        send_waiting_queue(change)
    elif COMMAND.match(line):
        change.emit(RunCommand(text.strip()))
        finish_sending(change, shown, text)
    elif line.startswith("!"):
        send_shell_command(change, shown, text)
    else:
        show_sent(change, text, images, steer=steer)
        change.emit(SubmitPrompt(text, steer, images))
        finish_sending(change, shown, text)


def send_waiting_queue(change: Change) -> None:
    """Enter at an empty editor sends what waits."""
    state = change.state
    if state.waiting and state.queue and not state.running:
        state.waiting = False
        change.emit(SubmitPrompt(""))
        change.panel()


def send_shell_command(change: Change, shown: str, text: str) -> None:
    """Run `!command`, or `!!command` out of the model's sight; one at a time, so a busy session keeps the draft."""
    state = change.state
    line = text.strip()
    excluded = line.startswith("!!")
    command = line[2 if excluded else 1 :].strip()
    if not command:
        return
    if state.running:
        change.toast("Something is running: wait for it, or press Esc, and then run the command", "warning")
        return
    change.emit(Submit(RunShellOperation(session_id=state.session_id, command=command, excluded=excluded)))
    finish_sending(change, shown, text)


def finish_sending(change: Change, shown: str, text: str) -> None:
    """Empty the editor, if it is the draft that was sent, and remember the text."""
    state = change.state
    remember(change, text)
    if state.draft.text == shown:
        state.draft.images = ()
        change.set_draft("")
    state.pastes.keep([state.draft.text, state.ladder.stash])


# --- history ---


@TABLE.on(HistoryLoaded)
def load_history(change: Change, intent: HistoryLoaded) -> None:
    """The prompts of earlier sessions; what was sent in this run already stays the newest."""
    history = change.state.history
    loaded = frozenset(intent.prompts)
    history.prompts = [*intent.prompts, *(prompt for prompt in history.prompts if prompt not in loaded)]
    history.index = None


@TABLE.on(HistoryPrevious)
def show_previous(change: Change, _intent: HistoryPrevious) -> None:
    """Up: the newest queued text when there is nothing in the editor, else the prompt before."""
    state = change.state
    history = state.history
    newest = next((row for row in reversed(state.queue) if row.seq), None)
    if state.draft.empty and history.index is None and newest is not None:
        change.emit(Submit(EditQueueOperation(session_id=state.session_id, target=newest.seq, action="take_back")))
        return
    if history.index is None:
        history.draft = state.draft.text
    index = len(history.prompts) if history.index is None else history.index
    if index > 0:
        show_prompt(change, index - 1)


@TABLE.on(HistoryNext)
def show_next(change: Change, _intent: HistoryNext) -> None:
    """Down: the prompt after; past the newest, the draft that was there before."""
    history = change.state.history
    if history.index is None:
        return
    if history.index + 1 < len(history.prompts):
        show_prompt(change, history.index + 1)
    else:
        history.index = None
        change.set_draft(history.draft)


def show_prompt(change: Change, index: int) -> None:
    """Put a prompt of the history into the editor."""
    history = change.state.history
    change.set_draft(change.state.pastes.fold(history.prompts[index]))
    history.index = index


def remember(change: Change, text: str) -> None:
    """Put a text into the history, at the end, once."""
    history = change.state.history
    history.index = None
    if not text.strip():
        return
    if not history.prompts or history.prompts[-1] != text:
        history.prompts.append(text)
        change.emit(Remember(text))


# --- other keys of the editor ---


@TABLE.on(TextOffered)
def offer_text(change: Change, intent: TextOffered) -> None:
    """Put a text into the editor, to be changed; what was there is one Up away."""
    draft = change.state.draft
    remember(change, change.state.pastes.expand(draft.text))
    draft.images = intent.images or draft.images
    is_huge = len(intent.text) > WHOLE_CHARACTERS
    change.set_draft(change.state.pastes.fold(intent.text) if is_huge else intent.text)


@TABLE.on(EditDraft)
def edit_draft(change: Change, _intent: EditDraft) -> None:
    """Open the whole draft, pastes and all, in the person's editor."""
    state = change.state
    change.emit(OpenEditor(state.pastes.expand(state.draft.text)))


@TABLE.on(CycleMode)
def cycle_mode(change: Change, _intent: CycleMode) -> None:
    """Go to the next approval mode."""
    status = change.state.status
    following = MODES[(MODES.index(status.mode) + 1) % len(MODES)]
    change.emit(Submit(ChangeModeOperation(session_id=change.state.session_id, mode=following)))


@TABLE.on(PickModel)
def pick_model(change: Change, _intent: PickModel) -> None:
    """Offer the models."""
    change.emit(RunCommand("/model"))
