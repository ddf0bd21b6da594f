"""Esc, Ctrl+C, Ctrl+D: one key, one meaning at a time, and never a lost text (anchors: tui 4.1).

Esc closes the top context; with none open it interrupts; twice when idle it stashes the draft, twice again brings it
back, and twice with neither goes back to an earlier message. Ctrl+C clears the draft (into the history), else
interrupts, else asks to be pressed again to quit.
"""

from __future__ import annotations

from tenuto.protocol.operation import InterruptOperation, MoveToBackgroundOperation
from tenuto.text.figures import plural
from tenuto.tui.machine.approval import deny_current
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.children import leave_child
from tenuto.tui.machine.panel import close_completion, close_picker, leave_question
from tenuto.tui.machine.queue import leave_queue, remember_draft
from tenuto.tui.machine.reading import close_search, leave_transcript
from tenuto.tui.machine.turn import set_label
from tenuto.tui.state.effects import Quit, RunCommand, StopCommands, Submit
from tenuto.tui.state.intents import (
    Cancel,
    EndOfInput,
    Escape,
    Leave,
    LeaveAsked,
    LeaveChild,
    LeaveQueue,
    MoveToBackground,
)
from tenuto.tui.state.item import ToolItem, UserItem
from tenuto.tui.state.state import UiState

RUNNING = {"compaction": "the compaction", "shell": "the command", "agent": "the turn"}
LEAVE_AGAIN = 10.0
"""Seconds in which a second `/exit` leaves although something runs."""
ESCAPE_AGAIN = 1.0
"""Seconds in which a second Esc counts as a double one."""
QUIT_AGAIN = 2.0
"""Seconds in which a second Ctrl+C or Ctrl+D quits."""
INTERRUPT_PATIENCE = 2.0
"""Seconds in which a task that was asked to stop is not asked again."""


@on(Escape)
def escape(change: Change, _intent: Escape) -> None:
    """Close the top context, else interrupt, else what two of them do."""
    state = change.state
    match state.contexts[0]:
        case "approval" | "feedback":
            deny_current(change)
        case "picker":
            close_picker(change)
        case "row":
            leave_question(change)
        case "help":
            state.help_open = False
            change.panel()
        case "search":
            close_search(change, back=True)
        case "child":
            leave_child(change, LeaveChild())
        case "found" | "block":
            child = running_child(change)
            leave_transcript(change)
            if child:
                ask_to_end(change, child)
        case "queue":
            leave_queue(change, LeaveQueue())
        case "completion":
            close_completion(change)
        case "shell":
            text = state.draft.text[1:]
            change.set_draft(text, max(0, state.draft.cursor - 1))
        case _:
            press_escape(change)


def press_escape(change: Change) -> None:
    """Nothing is open: end what runs, else do what two of them do."""
    state = change.state
    if state.stoppable:
        stop_command(change)
    elif state.ladder.child and change.now - state.ladder.child_at <= ESCAPE_AGAIN:
        change.emit(RunCommand(f"/agents end {state.ladder.child}"))
        state.ladder.child = ""
    elif state.running:
        press_interrupt(change)
    else:
        press_when_idle(change)


def running_child(change: Change) -> str:
    """Return the sub-agent that works in the block under the cursor; empty for none."""
    item = change.state.transcript.get(change.state.block)
    return item.child if isinstance(item, ToolItem) and not item.final else ""


def ask_to_end(change: Change, child: str) -> None:
    """The next Esc, if it comes soon, ends that sub-agent alone; a later one interrupts the turn with all of them."""
    ladder = change.state.ladder
    ladder.child, ladder.child_at = child, change.now
    key = change.state.keys.label("escape")
    change.hint(f"{key} again ends this sub-agent alone", ESCAPE_AGAIN, on_task=True, again=True)


def stop_command(change: Change) -> None:
    """End the command at work; what it would have answered is not asked for any more."""
    state = change.state
    change.notice(f"{state.stoppable} was stopped.", "info", "command")
    state.stoppable = ""
    change.emit(StopCommands())


@on(Cancel)
def cancel(change: Change, _intent: Cancel) -> None:
    """Clear, interrupt, or ask to be pressed again."""
    state = change.state
    context = state.contexts[0]
    if context == "picker":
        close_picker(change)
    elif context == "row":
        leave_question(change)
    elif context == "help":
        state.help_open = False
        change.panel()
    elif context == "queue":
        leave_queue(change, LeaveQueue())
    elif context in {"approval", "feedback"}:
        interrupt(change)
    elif context == "search":
        close_search(change, back=True)
    elif context == "child":
        leave_child(change, LeaveChild())
    elif context in {"found", "block"}:
        leave_transcript(change)
    elif state.draft.begun:
        clear_draft(change)
    elif state.stoppable:
        stop_command(change)
    elif state.running and not interrupting(change):
        interrupt(change)
    else:
        state.ladder.cancel_at = _quit_when_repeated(change, "cancel", state.ladder.cancel_at)


@on(EndOfInput)
def end_input(change: Change, _intent: EndOfInput) -> None:
    """Quit when pressed twice on an empty draft."""
    state = change.state
    if state.contexts[0] != "empty" or state.draft.images:
        return
    state.ladder.end_at = _quit_when_repeated(change, "quit.end", state.ladder.end_at)


def _quit_when_repeated(change: Change, key: str, pressed_at: float) -> float:
    """Quit on the second press of a key, else say that one more does; return the time of this press, in seconds."""
    state = change.state
    if change.now - pressed_at <= QUIT_AGAIN:
        change.emit(Quit())
    else:
        words = f"Press {state.keys.label(key)} again to quit{_what_stops(state)}"
        change.hint(words, QUIT_AGAIN, on_task=state.running, again=True)
    return change.now


@on(LeaveAsked)
def ask_to_leave(change: Change, intent: LeaveAsked) -> None:
    """Leave on the user's word; when something runs, in the background too, on the second one."""
    ladder = change.state.ladder
    stops = _what_stops(change.state)
    if not stops or change.now - ladder.leave_at <= LEAVE_AGAIN:
        leave(change, Leave())
        return
    ladder.leave_at = change.now
    change.hint(f"{intent.word} again to leave{stops}", LEAVE_AGAIN, on_task=change.state.running)


@on(Leave)
def leave(change: Change, _intent: Leave) -> None:
    """Quit now; what is in the editor, or stashed, is in the history next time."""
    state = change.state
    remember_draft(change, state.ladder.stash, state.ladder.stashed_images)
    remember_draft(change, state.draft.text, state.draft.images)
    change.emit(Quit())


def _what_stops(state: UiState) -> str:
    """Return what quitting now would interrupt or end, to be put behind a hint."""
    running = next((f"{words} is interrupted" for kind, words in RUNNING.items() if kind in state.tasks.values()), "")
    jobs = f"{plural(state.status.jobs, 'background job')} {'ends' if state.status.jobs == 1 else 'end'}"
    stops = ", ".join([*([running] if running else []), *([jobs] if state.status.jobs else [])])
    return f": {stops}" if stops else ""


def press_interrupt(change: Change) -> None:
    """Interrupt at the first press, or at the second where the user wants it so."""
    ladder = change.state.ladder
    if interrupting(change):
        return
    if change.state.interrupt_presses > 1 and change.now - ladder.escape_at > ESCAPE_AGAIN:
        ladder.escape_at = change.now
        change.hint(
            f"Press {change.state.keys.label('escape')} again to interrupt", ESCAPE_AGAIN, on_task=True, again=True
        )
        return
    # The press that interrupted does not count towards a double one.
    ladder.escape_at = float("-inf")
    interrupt(change)


def interrupt(change: Change) -> None:
    """Ask the running task to stop."""
    state = change.state
    state.ladder.interrupted_at = change.now
    change.emit(Submit(InterruptOperation(session_id=state.session_id)))
    for kind in state.spinner.layers:
        set_label(change, kind, "Interrupting")


@on(MoveToBackground)
def move_to_background(change: Change, _intent: MoveToBackground) -> None:
    """Ask that the command which runs goes on in the background; its call ends with that."""
    change.emit(Submit(MoveToBackgroundOperation(session_id=change.state.session_id)))


def interrupting(change: Change) -> bool:
    """Say whether the running task has been asked to stop a moment ago."""
    asked = change.state.ladder.interrupted_at
    return asked is not None and change.now - asked < INTERRUPT_PATIENCE


def press_when_idle(change: Change) -> None:
    """Esc Esc: stash the draft, or bring it back, or with no draft at all go back to an earlier message."""
    state = change.state
    ladder = state.ladder
    if state.draft.text.strip():
        act, words = stash_draft, "stash the draft"
    elif ladder.stash:
        act, words = restore_draft, "restore the draft"
    elif any(isinstance(item, UserItem) for item in state.transcript.items.values()):
        act, words = pick_message, "go back to an earlier message"
    else:
        return
    if change.now - ladder.escape_at > ESCAPE_AGAIN:
        ladder.escape_at = change.now
        change.hint(f"{state.keys.label('escape')} again to {words}", ESCAPE_AGAIN, again=True)
        return
    ladder.escape_at = float("-inf")
    act(change)


def stash_draft(change: Change) -> None:
    """Put the draft aside; it is in the history as well."""
    state = change.state
    draft = state.draft
    remember_draft(change, draft.text, draft.images)
    state.ladder.stash, state.ladder.stashed_images = draft.text, draft.images
    draft.images = ()
    change.set_draft("")
    key = state.keys.label("escape")
    change.hint(f"Draft stashed; {key} {key} restores it", QUIT_AGAIN)


def restore_draft(change: Change) -> None:
    """Bring the draft back."""
    ladder = change.state.ladder
    change.state.draft.images = ladder.stashed_images
    change.set_draft(ladder.stash)
    ladder.stash, ladder.stashed_images = "", ()
    change.state.hint = None
    change.status()


def pick_message(change: Change) -> None:
    """Offer the messages to go back to."""
    change.state.hint = None
    change.emit(RunCommand("/rewind"))
    change.status()


def clear_draft(change: Change) -> None:
    """Empty the editor; the text is the newest of the history, one Up away."""
    state = change.state
    remember_draft(change, state.draft.text, state.draft.images)
    state.draft.images = ()
    change.set_draft("")
    state.pastes.keep([state.ladder.stash])
