"""The block of a compaction that is undone."""

from __future__ import annotations

from tenuto.core.replay import replay
from tenuto.protocol.entry import UndoEntry
from tenuto.protocol.event import CompactionEndEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import RenderOptions
from tests.tui.machine.driving import SESSION, Driver


def test_a_compaction_that_is_undone_says_so_until_that_is_taken_back():
    driver = Driver()
    entry = CompactionEntry(seq=7, summary="what was", first_kept_index=3, reason="manual")
    driver.feed(CompactionEndEvent(session_id=SESSION, reason="manual", entry=entry))

    def block() -> str:
        return "\n".join(line.text for line in render_item(driver.items[0], 80, RenderOptions()))

    assert "/compact undo takes it back" in block()
    driver.feed(*replay(SESSION, [UndoEntry(seq=9, target=7)]))
    assert "undone; /compact redo makes it hold again" in block()
    assert "/compact undo" not in block()
    driver.feed(*replay(SESSION, [UndoEntry(seq=11, target=9)]))
    assert "/compact undo takes it back" in block()
