"""The editor: what is typed, sending, steering, the keys that belong to it, and what a draft has beside its text."""

from __future__ import annotations

import re

from tenuto.command.outcome import Edit
from tenuto.protocol.entry import Mode
from tenuto.protocol.operation import ChangeModeOperation, EditQueueOperation, RunShellOperation
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.commands import find_target
from tenuto.tui.complete.history import Extras
from tenuto.tui.complete.paste import mark_at
from tenuto.tui.machine.approval import hold_back
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.queue import keep_left_draft, place_in_queue, remember, remember_draft, show_sent
from tenuto.tui.state.effects import Complete, EndWanted, OpenEditor, RunCommand, Submit, SubmitPrompt
from tenuto.tui.state.intents import (
    CycleMode,
    DraftChanged,
    DraftRestored,
    EditDraft,
    ImageAttached,
    ImageDetached,
    ImageRefused,
    PickEffort,
    PickModel,
    SendDraft,
    SendText,
    SteerDraft,
    UnfoldPaste,
)

MODES: tuple[Mode, ...] = ("ask", "edits", "auto", "plan")
COMMAND = re.compile(r"/[A-Za-z?][\w.-]*(?::[\w.-]+)*(?=\s|$)")
"""A line that is a command: a path such as `/usr/bin` is none."""

NOTE = re.compile(r"#[ \t]+\S.*")
"""One line that is to be remembered; several are a text of Markdown."""

WHOLE_CHARACTERS = 20_000
"""Up to so many characters a text to be changed stands in the editor as it is, and not as the mark of a paste."""


@on(DraftChanged)
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
        disarm(change)
        hold_back(change)
        keep_left_draft(change)
        state.history.index = None
        if was_empty:
            state.queue_place = None
        if was_empty or not draft.text:
            change.panel()
    target = find_target(draft.text, draft.cursor, change.state.own_commands)
    if target is None or (moved and not typed):
        state.completion_closed_at = None if target is None else state.completion_closed_at
        if state.completion is not None:
            state.completion = None
            change.panel()
        state.completion_generation += 1
    elif target.start != state.completion_closed_at:
        state.completion_generation += 1
        change.emit(Complete(state.completion_generation, draft.text, draft.cursor))


def disarm(change: Change) -> None:
    """A key that counts twice was pressed, and then something was typed: it counts no more (nothing quits at once)."""
    state = change.state
    state.ladder.disarm()
    if state.hint is not None and state.hint.again:
        state.hint = None
        change.status()


# --- sending ---


@on(SendDraft)
def send_draft(change: Change, _intent: SendDraft) -> None:
    """Enter."""
    draft = change.state.draft
    before = draft.text[: draft.cursor]
    if before.endswith("\\"):
        change.set_draft(f"{before[:-1]}\n{draft.text[draft.cursor :]}", draft.cursor)
        return
    send(change, draft.text, draft.images)


@on(SteerDraft)
def steer_draft(change: Change, _intent: SteerDraft) -> None:
    """Ctrl+S."""
    state = change.state
    if not state.draft.empty:
        send(change, state.draft.text, state.draft.images, steer=True)
        return
    row = next((row for row in state.queue if row.seq and not row.steer), None)
    if row is not None:
        change.emit(Submit(EditQueueOperation(session_id=state.session_id, target=row.seq, action="steer")))


@on(SendText)
def send_text(change: Change, intent: SendText) -> None:
    """A text that was typed somewhere else."""
    send(change, intent.text, intent.images)


def send(change: Change, shown: str, images: tuple[ImagePart, ...], *, steer: bool = False) -> None:
    """Send a command, a shell command or a prompt. Marks of pastes become what was pasted: every byte (R-099).

    What it is follows from what the user sees: a folded paste that begins with `!` is not run.
    """
    text = change.state.pastes.expand(shown)
    line = shown.strip()
    if not line and not images:
        send_waiting_queue(change)
    elif COMMAND.match(line):
        change.emit(RunCommand(text.strip()))
        change.state.ladder.asked_at = change.now
        finish_sending(change, shown)
    elif NOTE.fullmatch(line):
        change.emit(RunCommand(f"/remember {line[1:].strip()}"))
        finish_sending(change, shown)
    elif line.startswith("!"):
        send_shell_command(change, shown, text)
    else:
        before = place_in_queue(change)
        show_sent(change, text, images, steer=steer)
        change.emit(SubmitPrompt(text, steer, images, before))
        if images and not change.state.status.sees_images:
            change.toast(f"{change.state.status.model} cannot see images: it is told that one was there", "warning")
        finish_sending(change, shown, images)


def send_waiting_queue(change: Change) -> None:
    """Enter at an empty editor sends what waits."""
    state = change.state
    if state.waiting and state.queue and not state.running:
        state.waiting = False
        change.emit(SubmitPrompt(""))
        change.panel()


def send_shell_command(change: Change, shown: str, text: str) -> None:
    """Run `!command`, or `!!command` out of the model's sight, beside what runs; one at a time, else it stays."""
    state = change.state
    line = text.strip()
    excluded = line.startswith("!!")
    command = line[2 if excluded else 1 :].strip()
    if not command:
        return
    if state.shell_item:
        change.toast("A command is running: wait for it, or press Esc, and then run the next one", "warning")
        return
    change.emit(Submit(RunShellOperation(session_id=state.session_id, command=command, excluded=excluded)))
    finish_sending(change, shown)


def finish_sending(change: Change, shown: str, images: tuple[ImagePart, ...] = ()) -> None:
    """Empty the editor, if it is the draft that was sent, and remember the text."""
    state = change.state
    change.emit(EndWanted())
    keep_left_draft(change)
    remember_draft(change, shown, images)
    if state.draft.text == shown:
        state.draft.images = ()
        change.set_draft("")
    state.pastes.keep([state.draft.text, state.ladder.stash])


# --- other keys of the editor ---


@on(Edit)
def offer_text(change: Change, intent: Edit) -> None:
    """A command has a text to be changed."""
    put_text(change, intent.text, intent.images)


def put_text(change: Change, text: str, images: tuple[ImagePart, ...] = ()) -> None:
    """Put a text into the editor, to be changed; what was there is one Up away."""
    draft = change.state.draft
    remember_draft(change, draft.text, draft.images)
    draft.images = images or draft.images
    is_huge = len(text) > WHOLE_CHARACTERS
    change.set_draft(change.state.pastes.fold(text) if is_huge else text)


@on(EditDraft)
def edit_draft(change: Change, _intent: EditDraft) -> None:
    """Open the whole draft, pastes and all, in the user's editor."""
    state = change.state
    change.emit(OpenEditor(state.pastes.expand(state.draft.text)))


@on(CycleMode)
def cycle_mode(change: Change, _intent: CycleMode) -> None:
    """Go to the next approval mode; not over a plan, whose answer says how to go on."""
    if change.state.approvals.plan:
        return
    status = change.state.status
    if status.mode is None:
        return
    following = MODES[(MODES.index(status.mode) + 1) % len(MODES)]
    change.emit(Submit(ChangeModeOperation(session_id=change.state.session_id, mode=following)))


@on(PickModel)
def pick_model(change: Change, _intent: PickModel) -> None:
    """Offer the models."""
    change.emit(RunCommand("/model"))


@on(PickEffort)
def pick_effort(change: Change, _intent: PickEffort) -> None:
    """Offer the levels of the present model."""
    change.emit(RunCommand("/effort"))


# --- images, pastes, a draft that comes back ---


@on(ImageAttached)
def attach_image(change: Change, intent: ImageAttached) -> None:
    """An image goes along with the draft."""
    state = change.state
    state.draft.images += (intent.image,)
    state.draft.changed_at = change.now
    change.panel()


@on(ImageDetached)
def detach_image(change: Change, intent: ImageDetached) -> None:
    """It does not, after all."""
    images = list(change.state.draft.images)
    if -len(images) <= intent.index < len(images):
        del images[intent.index]
        change.state.draft.images = tuple(images)
        change.panel()


@on(ImageRefused)
def refuse_image(change: Change, intent: ImageRefused) -> None:
    """Say why there is no image."""
    change.toast(intent.reason, "warning")


@on(UnfoldPaste)
def unfold_paste(change: Change, _intent: UnfoldPaste) -> None:
    """Put a paste into the draft as text; undo folds it again."""
    state = change.state
    draft = state.draft
    mark = mark_at(draft.text, draft.cursor)
    if mark is None:
        return
    start, end = mark
    text = state.pastes.expand(draft.text[start:end])
    if text == draft.text[start:end]:
        return
    if len(text) > WHOLE_CHARACTERS:
        key = state.keys.labels("editor") or "your editor"
        change.toast(f"Too long to expand here; {key} opens it in your editor")
        return
    change.set_draft(f"{draft.text[:start]}{text}{draft.text[end:]}", start + len(text))


@on(DraftRestored)
def restore_draft(change: Change, intent: DraftRestored) -> None:
    """Bring a draft back; when something has been typed, or stashed, meanwhile, it is one Up away."""
    state = change.state
    is_second = bool(state.ladder.stash)
    if intent.stash and is_second:
        remember(change, intent.stash, intent.stash_extras)
    elif intent.stash:
        state.ladder.stash = _shown(change, intent.stash, intent.stash_extras)
        state.ladder.stashed_images = intent.stash_extras.images
    if not intent.text and not intent.extras.images:
        if intent.stash and not is_second:
            key = state.keys.label("escape")
            change.toast(f"The draft that you stashed ({intent.at}) is there: {key} {key} restores it")
        return
    if not state.draft.empty:
        remember(change, intent.text, intent.extras)
        change.toast(f"An unsent draft ({intent.at}) is in the history: press Up")
        return
    state.draft.images = intent.extras.images
    change.set_draft(_shown(change, intent.text, intent.extras))
    change.toast(f"Your unsent draft ({intent.at}) is back")


def _shown(change: Change, text: str, extras: Extras) -> str:
    pastes = change.state.pastes
    if extras.folds:
        return pastes.fold_at(text, extras.folds)
    return pastes.fold(text) if len(text) > WHOLE_CHARACTERS else text
