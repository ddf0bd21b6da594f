"""Tool calls that run, their results, the todo list, and the user's own shell commands."""

from __future__ import annotations

from tenuto.protocol.event import (
    CallRefusedEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    ShellStartedEvent,
    TodoChangedEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import ToolResultMessage
from tenuto.text.call_summary import summarise_call
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.item import ShellItem, ToolItem, ToolState, append_output
from tenuto.tui.machine.turn import set_label


@on(ToolStartedEvent)
def start_call(change: Change, event: ToolStartedEvent) -> None:
    """The call runs now."""
    item = find_call(change, event.call_id)
    if item is None:
        item = ToolItem(call_id=event.call_id, name=event.name)
        change.add(item)
        change.state.calls[event.call_id] = item.id
    item.name, item.arguments = event.name, event.arguments
    item.summary = summarise_call(event.name, event.arguments) or event.summary
    item.state, item.characters = "running", 0
    change.start_clock(item)
    change.touch(item)
    label_running_calls(change)


@on(ToolOutputEvent)
def add_output(change: Change, event: ToolOutputEvent) -> None:
    """More live output of a running call."""
    item = find_call(change, event.call_id)
    if item is not None:
        append_output(item, event.text)
        change.touch(item)


@on(ToolResultEvent)
def finish_call(change: Change, event: ToolResultEvent) -> None:
    """The call has its result; a result without a call (its answer is not loaded) gets an item of its own."""
    result = event.message
    item = find_call(change, result.call_id)
    if item is None:
        item = ToolItem(call_id=result.call_id, name=result.name, state="running")
        change.add(item)
    item.state = result_state(result, item.state)
    item.result, item.output, item.characters, item.final = result, "", 0, True
    change.stop_clock(item, result.duration)
    change.state.calls.pop(result.call_id, None)
    change.touch(item)
    label_running_calls(change)


@on(CallRefusedEvent)
def note_refusal(_change: Change, _event: CallRefusedEvent) -> None:
    """Nothing: on a screen the user is asked, and what is refused shows as the call's result."""


@on(TodoChangedEvent)
def set_todo(change: Change, event: TodoChangedEvent) -> None:
    """The list is another one."""
    change.state.todo = event.items
    change.state.todo_over = change.state.todo_away = False
    change.panel()


@on(ShellStartedEvent)
def start_shell(change: Change, event: ShellStartedEvent) -> None:
    """A command of the user runs."""
    item = ShellItem(command=event.command, excluded=event.excluded, running=True)
    change.add(item)
    change.start_clock(item)
    change.state.shell_item = item.id


@on(ShellOutputEvent)
def add_shell_output(change: Change, event: ShellOutputEvent) -> None:
    """More of its output."""
    item = change.state.transcript.get(change.state.shell_item)
    if isinstance(item, ShellItem):
        append_output(item, event.text)
        change.touch(item)


@on(ShellFinishedEvent)
def finish_shell(change: Change, event: ShellFinishedEvent) -> None:
    """The command is in the history, here."""
    entry = event.entry
    item = change.state.transcript.get(change.state.shell_item)
    change.state.shell_item = 0
    if not isinstance(item, ShellItem):
        item = ShellItem()
        change.add(item)
    item.command, item.output, item.exit_code = entry.command, entry.output, entry.exit_code
    item.excluded, item.truncated, item.output_path = entry.excluded, entry.truncated, entry.output_path
    item.running, item.interrupted, item.final = False, entry.interrupted, True
    change.stop_clock(item, entry.duration)
    change.settle([item.id])
    change.touch(item)


def find_call(change: Change, call_id: str) -> ToolItem | None:
    """Return the item of an open call, `None` when there is none."""
    item = change.state.transcript.get(change.state.calls.get(call_id, 0))
    return item if isinstance(item, ToolItem) else None


def result_state(result: ToolResultMessage, before: ToolState) -> ToolState:
    """Return how a call ended; `before` is "denied" when the user said no a moment ago."""
    if result.interrupted:
        return "interrupted"
    if result.denied or before == "denied":
        return "denied"
    return "failed" if result.is_error else "done"


def label_running_calls(change: Change) -> None:
    """Let the spinner say which calls run, or that nothing goes on without the user."""
    items = [item for call_id in change.state.calls if (item := find_call(change, call_id)) is not None]
    running = [item.name for item in items if item.state == "running"]
    if len(running) == 1:
        set_label(change, "agent", f"Running {running[0]}")
    elif running:
        set_label(change, "agent", f"Running {len(running)} calls")
    elif any(item.state == "waiting" for item in items):
        set_label(change, "agent", "Waiting for you")
    else:
        set_label(change, "agent", "Working")
