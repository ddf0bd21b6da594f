"""The block cursor: Alt+Up and Alt+Down move over the blocks of the transcript, single keys do something with one."""

from __future__ import annotations

from tenuto.command.outcome import Copy
from tenuto.tui.effects import BlockShown, OpenBlock, RunCommand
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.intents import ActOnBlock, LeaveTranscript, MoveBlock
from tenuto.tui.machine.item import AssistantItem, CompactionItem, Item, UserItem
from tenuto.tui.machine.prompt import put_text
from tenuto.tui.machine.reading import BlockAction, block_actions
from tenuto.tui.machine.search import ask_for_part, close_search
from tenuto.tui.machine.texts import item_text


@on(MoveBlock)
def move_block(change: Change, intent: MoveBlock) -> None:
    """Go to the next block in that direction; the first press takes the one that is being read."""
    state = change.state
    close_search(change, back=False)
    ids = [item.id for item in state.transcript.items.values() if _is_seen(item)]
    if not ids:
        return
    if state.block in ids:
        place = ids.index(state.block) + intent.delta
        goal = ids[max(0, min(place, len(ids) - 1))]
    else:
        goal = intent.at if intent.at in ids else ids[-1]
    gap = state.gaps.get(goal)
    if gap is not None:  # what comes next is on its way, and the next press goes there
        ask_for_part(change, goal, at=gap.after + 1 if intent.delta > 0 else 0)
        return
    state.block = goal
    change.emit(BlockShown())
    change.panel()


@on(ActOnBlock)
def act_on_block(change: Change, intent: ActOnBlock) -> None:
    """Do something with the block under the cursor, or with the one that has the present match."""
    item = change.state.transcript.get(change.state.looked_at)
    if item is not None and intent.action in block_actions(item):
        _act(change, item, intent.action)


@on(LeaveTranscript)
def go_on_with_prompt(change: Change, _intent: LeaveTranscript) -> None:
    """Something was typed that is for the prompt."""
    leave_transcript(change)


def leave_transcript(change: Change) -> None:
    """Close the search, put the block cursor away, and stay where one is."""
    close_search(change, back=False)
    leave_block(change)


def leave_block(change: Change) -> None:
    """Put the block cursor away."""
    if change.state.block:
        change.state.block = 0
        change.emit(BlockShown())
        change.panel()


def _is_seen(item: Item) -> bool:
    return not isinstance(item, AssistantItem) or bool(item.text and not item.text.isspace())


def _act(change: Change, item: Item, action: BlockAction) -> None:
    match action:
        case "fold":
            item.folded = not item.folded
            change.touch(item)
            change.emit(BlockShown())
            change.panel()
        case "copy":
            change.emit(Copy(item_text(item)))
        case "edit" if isinstance(item, UserItem):
            leave_block(change)
            put_text(change, item.text, item.images)
        case "rewind" if isinstance(item, UserItem):
            leave_block(change)
            change.emit(RunCommand(f"/rewind {item.seq}"))
        case "undo":
            _undo(change, item)
        case "open":
            change.emit(OpenBlock(item.id))
        case _:
            pass


def _undo(change: Change, item: Item) -> None:
    """Undo a compaction; only the newest one can be."""
    newest = next(
        (each for each in reversed(change.state.transcript.items.values()) if _is_written_compaction(each)), None
    )
    if item is not newest:
        change.toast("Only the newest compaction can be undone; /tree goes back further", "warning")
        return
    leave_block(change)
    change.emit(RunCommand("/compact undo"))


def _is_written_compaction(item: Item) -> bool:
    return isinstance(item, CompactionItem) and "undo" in block_actions(item)
