"""What only time changes: seconds that count up, hints that go away, a panel that waited for a pause in typing."""

from __future__ import annotations

from tenuto.tui.machine.approval import open_if_due
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.intents import Tick
from tenuto.tui.machine.item import AssistantItem, CompactionItem, ShellItem, ThinkingItem, ToolItem
from tenuto.tui.machine.panel import open_held
from tenuto.tui.machine.turn import newest_streamed


@on(Tick)
def pass_time(change: Change, _intent: Tick) -> None:
    """Bring everything that depends on the time up to now."""
    state = change.state
    for item_id in state.timed:
        item = state.transcript.items[item_id]
        if isinstance(item, ThinkingItem | ToolItem | ShellItem | CompactionItem):
            seconds = change.now - item.started
            if seconds // state.second_step != item.seconds // state.second_step:
                item.seconds = seconds
                change.touch(item)
    if state.hint is not None and change.now >= state.hint.until:
        state.hint = None
        change.status()
    if change.now // state.second_step != state.last_tick // state.second_step:
        if state.spinner.top or state.retry:
            change.status()
        show_pausing(change)
    state.last_tick = change.now
    open_if_due(change)
    open_held(change)


def show_pausing(change: Change) -> None:
    """Show all of an answer that has not grown since the last look, once."""
    item = newest_streamed(change)
    length = len(item.text) if isinstance(item, AssistantItem) else 0
    if isinstance(item, AssistantItem) and length == change.state.streamed_length and not item.pausing:
        item.pausing = True
        change.touch(item)
    change.state.streamed_length = length
