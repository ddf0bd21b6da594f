"""Whether a failed call mattered: the model often goes on and recovers; what it left failed at the turn's end did."""

from __future__ import annotations

from tenuto.tui.machine.change import Change
from tenuto.tui.machine.item import ToolItem, UserItem


def pass_verdict(change: Change) -> None:
    """Mark the calls that the present turn ends with in failure: after them, nothing of it went well.

    A turn can go on after it settled (an interrupt, Enter): then the verdict of before is taken back.
    """
    unresolved = True
    for item in reversed(change.state.transcript.items.values()):
        if isinstance(item, UserItem) and item.seq:
            return
        if not isinstance(item, ToolItem):
            continue
        unresolved = unresolved and item.state == "failed"
        if item.unresolved != unresolved:
            item.unresolved = unresolved
            change.touch(item)
