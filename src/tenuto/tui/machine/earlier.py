"""The older part of a long session: it is put before what is shown when the person scrolls up to it."""

from __future__ import annotations

from tenuto.protocol.event import EarlierEntriesEvent
from tenuto.tui.effects import OlderAdded
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.compaction import mark_blocks
from tenuto.tui.machine.intent import ShowEarlier
from tenuto.tui.machine.item import Item, NoticeItem, Transcript
from tenuto.tui.machine.older import ask_for_older
from tenuto.tui.machine.search import look_at_older
from tenuto.tui.machine.state import UiState
from tenuto.tui.machine.turn import close_open_calls
from tenuto.tui.machine.verdict import pass_verdict

TABLE = HandlerTable()


@TABLE.on(ShowEarlier)
def ask_for_earlier(change: Change, _intent: ShowEarlier) -> None:
    """Ask once for what comes before the first item."""
    ask_for_older(change)


@TABLE.on(EarlierEntriesEvent)
def put_earlier(change: Change, event: EarlierEntriesEvent) -> None:
    """Put the older items first, and before them a line that says how much is left."""
    transcript = change.state.transcript
    shown = [item for item in transcript.items.values() if item.id != change.state.earlier_item]
    older = _replayed(change, event)
    change.state.earlier = event.before if event.remaining else 0
    change.state.earlier_item = 0
    change.state.earlier_left = event.remaining
    if event.remaining:
        text = f"{event.remaining:,} earlier entries: scroll up, or /recall what was said in them"
        mark = NoticeItem(text=text, kind="earlier", final=True)
        mark.id = change.state.earlier_item = transcript.next_id
        transcript.next_id += 1
        older.insert(0, mark)
    transcript.items = {item.id: item for item in (*older, *shown)}
    change.emit(OlderAdded())
    look_at_older(change)


def _replayed(change: Change, event: EarlierEntriesEvent) -> list[Item]:
    """Return the items that the events make in a session of their own."""
    from tenuto.tui.machine.step import step  # the table that this handler stands in

    state = change.state
    apart = UiState(session_id=state.session_id, detail=state.detail, replaying=True)
    apart.transcript = Transcript(next_id=state.transcript.next_id)
    for earlier in event.events:
        step(apart, earlier, change.now, change.columns)
    ended = Change(apart, change.now, change.columns)
    close_open_calls(ended)
    pass_verdict(ended)
    state.transcript.next_id = apart.transcript.next_id
    state.undone = apart.undone | state.undone  # what was undone later holds
    older = apart.transcript.ordered()
    mark_blocks(older, state.undone)
    return older
