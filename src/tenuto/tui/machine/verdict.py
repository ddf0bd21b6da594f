"""Whether a failed call mattered: the model often goes on and recovers; what it left failed at the turn's end did."""

from __future__ import annotations

from tenuto.tui.machine.change import Change
from tenuto.tui.machine.item import ToolItem, UserItem


def pass_verdict(change: Change) -> None:
    """Mark the calls that the turn which is over ended with in failure: no later call of it went well."""
    for item in reversed(change.state.transcript.items.values()):
        if isinstance(item, UserItem) and item.seq:
            return
        if not isinstance(item, ToolItem):
            continue
        if item.state != "failed":
            return
        if not item.unresolved:
            item.unresolved = True
            change.touch(item)
