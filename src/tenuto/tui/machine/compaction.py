"""Compaction: a spinner layer over whatever went on, and one block in the transcript."""

from __future__ import annotations

from tenuto.protocol.event import CompactionEndEvent, CompactionProgressEvent, CompactionStartEvent
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.item import CompactionItem
from tenuto.tui.machine.spin import drop_layer, set_label, set_layer

TABLE = HandlerTable()
LABEL = "Compacting"


@TABLE.on(CompactionStartEvent)
def start_compaction(change: Change, event: CompactionStartEvent) -> None:
    """Lay `Compacting` over what the spinner shows (DESIGN section 9)."""
    state = change.state
    set_layer(change, "compaction", LABEL)
    item = CompactionItem(reason=event.reason, running=True)
    change.add(item)
    change.start_clock(item)
    state.compaction_item = item.id


@TABLE.on(CompactionProgressEvent)
def show_progress(change: Change, event: CompactionProgressEvent) -> None:
    """Show the stage and how much summary there is."""
    item = change.state.transcript.get(change.state.compaction_item)
    if isinstance(item, CompactionItem):
        item.stage, item.summary_tokens = event.stage, event.summary_tokens
        change.touch(item)
    tokens = f"{event.summary_tokens} tokens" if event.summary_tokens else ""
    set_label(change, "compaction", LABEL, ", ".join(part for part in (event.stage, tokens) if part))


@TABLE.on(CompactionEndEvent)
def end_compaction(change: Change, event: CompactionEndEvent) -> None:
    """Show again what the spinner showed before, and what came of the compaction."""
    state = change.state
    drop_layer(change, "compaction")
    item = state.transcript.get(state.compaction_item)
    state.compaction_item = 0
    if not isinstance(item, CompactionItem):
        item = CompactionItem()
        change.add(item)
    item.reason, item.entry = event.reason, event.entry
    item.aborted, item.error = event.aborted, event.error or ""
    item.stage, item.summary_tokens = "", 0
    item.running, item.final = False, True
    change.stop_clock(item, event.entry.duration if event.entry else None)
    change.settle([item.id])
    change.touch(item)
