"""The block cursor: where it goes, and what each key does on which block."""

from __future__ import annotations

import pytest

from tenuto.command.outcome import Copy
from tenuto.protocol.event import CompactionEndEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import ShowEarlierOperation
from tenuto.tui.state.effects import BlockShown, DraftSet, OpenBlock, RunCommand, Submit, Toast
from tenuto.tui.state.intents import ActOnBlock, Escape, LeaveTranscript, MoveBlock, OpenSearch
from tenuto.tui.state.item import AssistantItem, BlockAction, CompactionItem, ToolItem, UserItem, block_actions
from tests.tui.machine.driving import SESSION, Driver
from tests.tui.machine.test_search import conversation, older


def under(driver: Driver) -> object:
    return driver.state.transcript.get(driver.state.block)


def compacted(driver: Driver, seq: int) -> None:
    entry = CompactionEntry(seq=seq, summary="what was said", first_kept_index=1)
    driver.feed(CompactionEndEvent(session_id=SESSION, entry=entry, reason="manual"))


def test_it_begins_at_the_last_block_and_stops_at_the_ends():
    driver = conversation()
    assert BlockShown() in driver.feed(MoveBlock(-1))
    assert isinstance(under(driver), AssistantItem)
    assert driver.state.contexts[0] == "block"
    driver.feed(MoveBlock(1))
    assert under(driver) is driver.items[-1]
    driver.feed(*[MoveBlock(-1)] * 20)
    assert under(driver) is driver.items[0]
    driver.feed(Escape())
    assert driver.state.block == 0
    assert driver.state.contexts[0] == "empty"


def test_it_begins_where_one_reads():
    driver = conversation()
    tool = next(item for item in driver.items if isinstance(item, ToolItem))
    driver.feed(MoveBlock(-1, at=tool.id))
    assert under(driver) is tool


def test_going_up_at_the_first_block_asks_for_older_ones():
    driver = conversation()
    driver.feed(older(40, "an old question"))
    driver.feed(*[MoveBlock(-1)] * 8)
    effects = driver.feed(MoveBlock(-1), MoveBlock(-1))
    operations = [effect.operation for effect in driver.effects if isinstance(effect, Submit)]
    assert [type(operation) for operation in operations] == [ShowEarlierOperation], effects


@pytest.mark.parametrize(
    ("kind", "actions"),
    [
        (UserItem, ("copy", "edit", "rewind", "open")),
        (AssistantItem, ("copy", "open")),
        (ToolItem, ("fold", "copy", "open")),
    ],
)
def test_what_can_be_done_with_which_block(kind: type, actions: tuple[BlockAction, ...]):
    item = next(item for item in conversation().items if isinstance(item, kind))
    assert block_actions(item) == actions


def test_enter_unfolds_and_folds():
    driver = conversation()
    tool = next(item for item in driver.items if isinstance(item, ToolItem))
    driver.feed(MoveBlock(-1, at=tool.id), ActOnBlock("fold"))
    assert not tool.folded
    driver.feed(ActOnBlock("fold"))
    assert tool.folded


def test_copying_a_command_gives_it_with_its_output():
    driver = conversation()
    tool = next(item for item in driver.items if isinstance(item, ToolItem))
    effects = driver.feed(MoveBlock(-1, at=tool.id), ActOnBlock("copy"))
    assert Copy("$ grep parser\na parser\nb\nparser c") in effects
    assert driver.state.block == tool.id, "the cursor stays"


def test_copying_an_answer_gives_its_markdown():
    driver = conversation()
    effects = driver.feed(MoveBlock(-1, at=driver.items[1].id), ActOnBlock("copy"))
    assert Copy("The parser is in `parse.py`; a Parser class.") in effects


def test_a_message_goes_into_the_editor_and_the_draft_into_the_history():
    driver = conversation()
    driver.type("half a thought")
    effects = driver.feed(MoveBlock(-1, at=driver.items[0].id), ActOnBlock("edit"))
    assert DraftSet("where is the parser?", 20) in effects
    assert driver.state.history.prompts[-1] == "half a thought"
    assert driver.state.block == 0


def test_rewinding_and_opening_are_handed_on():
    driver = conversation()
    assert RunCommand("/rewind 1") in driver.feed(MoveBlock(-1, at=driver.items[0].id), ActOnBlock("rewind"))
    assert OpenBlock(driver.items[1].id) in driver.feed(MoveBlock(-1, at=driver.items[1].id), ActOnBlock("open"))


def test_only_the_newest_compaction_is_undone():
    driver = conversation()
    compacted(driver, 7)
    compacted(driver, 8)
    first, second = (item for item in driver.items if isinstance(item, CompactionItem))
    effects = driver.feed(MoveBlock(-1, at=first.id), ActOnBlock("undo"))
    assert any(isinstance(effect, Toast) for effect in effects)
    assert RunCommand("/compact undo") not in effects
    driver.feed(LeaveTranscript())
    assert RunCommand("/compact undo") in driver.feed(MoveBlock(-1, at=second.id), ActOnBlock("undo"))


def test_the_search_begins_at_the_block():
    driver = conversation()
    driver.feed(MoveBlock(-1, at=driver.items[0].id), OpenSearch())
    assert driver.state.block == 0
    assert driver.state.search is not None
    assert driver.state.search.at == driver.items[0].id
