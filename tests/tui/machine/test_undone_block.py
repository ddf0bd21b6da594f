"""The block of a compaction that is undone."""

from __future__ import annotations

from tenuto.core.transcript import replay
from tenuto.protocol.entry import UndoEntry
from tenuto.protocol.event import CompactionEndEvent, EarlierEntriesEvent, ReplayFinishedEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.item import CompactionItem
from tests.tui.machine.driving import SESSION, Driver


def test_a_compaction_that_is_undone_says_so_until_that_is_taken_back():
    driver = Driver()
    entry = CompactionEntry(seq=7, summary="what was", first_kept_index=3, reason="manual")
    driver.feed(CompactionEndEvent(session_id=SESSION, reason="manual", entry=entry))

    def block() -> str:
        return "\n".join(line.text for line in render_item(driver.items[0], 80, RenderOptions()))

    assert "/compact undo reverts this" in block()
    driver.feed(*replay(SESSION, [UndoEntry(seq=9, target=7)]))
    assert "undone; /compact redo reverts this" in block()
    assert "/compact undo" not in block()
    driver.feed(*replay(SESSION, [UndoEntry(seq=11, target=9)]))
    assert "/compact undo reverts this" in block()


def undone_marks(later: list[UndoEntry], earlier: list[UndoEntry]) -> list[int]:
    """The older part with the compaction comes when the newer one is there already."""
    driver = Driver(resumed=True)
    driver.feed(EarlierEntriesEvent(session_id=SESSION, remaining=2, before=10))
    driver.feed(*replay(SESSION, later), ReplayFinishedEvent(session_id=SESSION))
    entry = CompactionEntry(seq=7, summary="what was", first_kept_index=3, reason="manual")
    block = CompactionEndEvent(session_id=SESSION, reason="manual", entry=entry)
    events = (block, *replay(SESSION, earlier))
    driver.feed(EarlierEntriesEvent(session_id=SESSION, remaining=0, before=0, events=events))
    return [item.undone_by for item in driver.items if isinstance(item, CompactionItem)]


def test_a_block_that_is_loaded_later_knows_what_became_of_it():
    assert undone_marks([UndoEntry(seq=12, target=7)], []) == [12]
    assert undone_marks([UndoEntry(seq=12, target=9)], [UndoEntry(seq=9, target=7)]) == [0]
    assert undone_marks([], [UndoEntry(seq=9, target=7)]) == [9]
    again = [UndoEntry(seq=12, target=9), UndoEntry(seq=14, target=7)]
    assert undone_marks(again, [UndoEntry(seq=9, target=7)]) == [14]
