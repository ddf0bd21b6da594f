"""Reading along with a sub-agent: its transcript is open over the prompt, and grows while it works.

Its events come under the id of its own session. They make items of a state of its own, by the same handlers as the
session's; no effect comes out of them but that the panel has changed.
"""

from __future__ import annotations

from tenuto.protocol.event import ChildEndedEvent, ChildTranscriptEvent, Event
from tenuto.protocol.operation import WatchChildOperation
from tenuto.tui.machine.change import Change, feed, on
from tenuto.tui.machine.turn import close_open_calls, find_call
from tenuto.tui.render.tools import tool_name
from tenuto.tui.state.effects import Effect, PanelChanged, RunCommand, Submit
from tenuto.tui.state.intents import ActOnChild, LeaveChild
from tenuto.tui.state.item import ToolItem
from tenuto.tui.state.state import Reader, UiState


def open_child(change: Change, item: ToolItem) -> None:
    """Open the transcript of the sub-agent that a call runs or ran."""
    state = change.state
    state.reader = Reader(item.child, tool_name(item), working=not item.final)
    change.emit(Submit(WatchChildOperation(session_id=state.session_id, child=item.child)))
    change.panel()


@on(LeaveChild)
def leave_child(change: Change, _intent: LeaveChild) -> None:
    """Close it; the block cursor is where it was."""
    reader, change.state.reader = change.state.reader, None
    if reader is not None:
        stop = WatchChildOperation(session_id=change.state.session_id, child=reader.child, watching=False)
        change.emit(Submit(stop))
        change.panel()


@on(ActOnChild)
def act_on_child(change: Change, intent: ActOnChild) -> None:
    """Read all of it in the pager, or end the sub-agent and stay."""
    reader = change.state.reader
    if reader is None:
        return
    if intent.action == "open":
        change.emit(RunCommand(f"/agents {reader.child}"))
    elif reader.working:
        change.emit(RunCommand(f"/agents end {reader.child}"))


@on(ChildTranscriptEvent)
def show_child(change: Change, event: ChildTranscriptEvent) -> None:
    """What it has said and done by now is there."""
    reader = change.state.reader
    if reader is None or reader.child != event.child:
        return
    shown = UiState(session_id=event.child, replaying=True)
    for earlier in event.events:
        feed(shown, earlier, change.now, change.columns)
    reader.shown, reader.older, reader.working = shown, event.remaining, event.working
    if not event.working:
        close_open_calls(Change(shown, change.now, change.columns))
    change.panel()


@on(ChildEndedEvent)
def end_child(change: Change, event: ChildEndedEvent) -> None:
    """Stop the clock of its block, whose result waits for the other calls; say so where it is read."""
    item = find_call(change, event.call_id)
    if item is not None:
        change.stop_clock(item)
        change.touch(item)
    reader = change.state.reader
    if reader is not None and reader.child == event.child:
        reader.working = False
        if reader.shown is not None:
            close_open_calls(Change(reader.shown, change.now, change.columns))
        change.panel()


def feed_child(state: UiState, event: Event, now: float, columns: int) -> list[Effect]:
    """Take in an event of the sub-agent whose transcript is open; all others of other sessions are left out."""
    reader = state.reader
    if reader is None or reader.shown is None or event.session_id != reader.child:
        return []
    feed(reader.shown, event, now, columns)
    return [PanelChanged()]
