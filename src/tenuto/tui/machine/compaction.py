"""Compaction: a spinner layer over whatever went on, and one block in the transcript."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tenuto.command.outcome import Choice, Choose
from tenuto.protocol.event import (
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionProposedEvent,
    CompactionStartEvent,
    UndoneEvent,
)
from tenuto.protocol.operation import CompactionReason
from tenuto.text.figures import describe_rung, format_change
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.panel import close_picker, open_held, picker_of
from tenuto.tui.machine.turn import drop_layer, set_label, set_layer
from tenuto.tui.state.effects import Bell
from tenuto.tui.state.item import CompactionItem, Item

LABEL = "Compacting"
BRANCH_LABEL = "Leaving"


@on(CompactionStartEvent)
def start_compaction(change: Change, event: CompactionStartEvent) -> None:
    """Lay `Compacting` over what the spinner shows (DESIGN section 9)."""
    state = change.state
    set_layer(change, "compaction", _label(event.reason))
    item = CompactionItem(reason=event.reason, running=True)
    change.add(item)
    change.start_clock(item)
    state.compaction_item = item.id


@on(CompactionProgressEvent)
def show_progress(change: Change, event: CompactionProgressEvent) -> None:
    """Show the stage and how much summary there is."""
    item = change.state.transcript.get(change.state.compaction_item)
    label = LABEL
    if isinstance(item, CompactionItem):
        item.stage, item.summary_tokens = event.stage, event.summary_tokens
        label = _label(item.reason)
        change.touch(item)
    tokens = f"{event.summary_tokens:,} tokens" if event.summary_tokens else ""
    set_label(change, "compaction", label, ", ".join(part for part in (event.stage, tokens) if part))


def _label(reason: CompactionReason) -> str:
    return BRANCH_LABEL if reason == "branch" else LABEL


@on(CompactionProposedEvent)
def show_proposal(change: Change, event: CompactionProposedEvent) -> None:
    """Show what would be written, and ask, as soon as nothing is typed; the commands do the same at any time."""
    state = change.state
    drop_layer(change, "compaction")
    item = state.transcript.get(state.compaction_item)
    if not isinstance(item, CompactionItem):
        item = CompactionItem()
        change.add(item)
        state.compaction_item = item.id
    item.reason, item.entry, item.proposed, item.running = event.entry.reason, event.entry, True, False
    item.folded = False
    change.stop_clock(item, event.entry.duration)
    change.touch(item)
    state.held_picker = picker_of(Choose(_question(event), "compact", _answers(event)))
    open_held(change)


def _question(event: CompactionProposedEvent) -> str:
    entry = event.entry
    sizes = format_change(entry.tokens_before or 0, entry.tokens_after or 0, rough=entry.rough, arrow="to")
    return f"Compact {sizes} tokens ({describe_rung(event.entry.rung)})?"


def _answers(event: CompactionProposedEvent) -> tuple[Choice, ...]:
    entry = event.entry
    kept = f"from #{entry.first_kept_index} on stays word for word" if entry.first_kept_index else "results only"
    summary = entry.summary
    change = Choice("edit", "Edit the summary", "in the prompt; Enter there accepts it", preview=summary)
    return (
        Choice("accept", "Accept", kept, preview=summary),
        *((change,) if event.summary else ()),
        Choice("drop", "Drop it", "nothing changes", preview=summary),
    )


@on(CompactionEndEvent)
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
    item.aborted, item.needless, item.error = event.aborted, event.needless, event.error or ""
    item.stage, item.summary_tokens = "", 0
    if item.proposed:
        item.proposed, item.folded, state.held_picker = False, state.detail == "folded", None
        if state.picker is not None and state.picker.command == "compact":
            close_picker(change)  # the question is answered
    item.running, item.final = False, True
    if event.error and event.entry is None and not (event.aborted or event.needless):
        change.emit(Bell("compaction"))
    change.stop_clock(item, event.entry.duration if event.entry else None)
    change.settle([item.id])
    change.touch(item)


@on(UndoneEvent)
def mark_undone(change: Change, event: UndoneEvent) -> None:
    """Say on the block of a compaction that it is undone, or that it holds again."""
    state = change.state
    state.undone[event.target] = event.seq
    for item in mark_blocks(state.transcript.items.values(), state.undone):
        change.touch(item)


def mark_blocks(items: Iterable[Item], undone: Mapping[int, int]) -> list[CompactionItem]:
    """Note on each block of a compaction which undo is in effect; return those that changed."""
    changed: list[CompactionItem] = []
    for item in items:
        if isinstance(item, CompactionItem) and item.entry is not None:
            undo = _in_effect(item.entry.seq, undone)
            if item.undone_by != undo:
                item.undone_by = undo
                changed.append(item)
    return changed


def _in_effect(seq: int, undone: Mapping[int, int]) -> int:
    """Return the undo of an entry that holds, 0 when there is none or that was undone itself."""
    chain = [seq]
    while (undo := undone.get(chain[-1], 0)) > chain[-1]:
        chain.append(undo)
    return chain[1] if len(chain) % 2 == 0 else 0
