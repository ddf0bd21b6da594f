"""The older parts of a long session: each is put where it belongs when the user goes there; far ones are let go."""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.protocol.event import EarlierEntriesEvent
from tenuto.tui.effects import OlderAdded
from tenuto.tui.machine.change import Change, feed, on, pass_verdict
from tenuto.tui.machine.compaction import mark_blocks
from tenuto.tui.machine.intents import ShowEarlier
from tenuto.tui.machine.item import Gap, Item, NoticeItem, Part, Transcript
from tenuto.tui.machine.search import ask_for_part, look_at_part
from tenuto.tui.machine.state import UiState
from tenuto.tui.machine.turn import close_open_calls

KEPT_PARTS = 10
"""Loaded parts that stay; with more, the one farthest from the newest is let go, and comes again when needed."""


@on(ShowEarlier)
def ask_for_earlier(change: Change, intent: ShowEarlier) -> None:
    """Ask once for the part of a gap that is next to what is being read."""
    state = change.state
    gap_id = intent.gap or next(iter(state.gaps), 0)
    gap = state.gaps.get(gap_id)
    if gap is not None:
        ask_for_part(change, gap_id, at=gap.after + 1 if intent.end == "oldest" else 0)


@on(EarlierEntriesEvent)
def put_earlier(change: Change, event: EarlierEntriesEvent) -> None:
    """Put a part into its gap, and lines that say how much is missing before and behind it."""
    state = change.state
    gap_id = _gap_of(state, event)
    if event.upto and not gap_id:
        return  # the gap is gone in the meantime
    gap = state.gaps.pop(gap_id, Gap(0, event.before, 0))
    first_id = state.transcript.next_id
    part = _replayed(change, event)
    if part and event.last:
        ids = range(first_id, state.transcript.next_id)
        state.parts.append(Part(event.before, event.last, event.count, ids))
    before = _gap_items(change, Gap(gap.after, event.before, event.remaining))
    behind = _gap_items(change, Gap(event.last, gap.before, event.later))
    _put_in_place(change, gap_id, [*before, *part, *behind])
    if part and event.last:
        _let_go(change)
    others = (item for item in state.transcript.items.values() if item.id < first_id)
    for item in mark_blocks(others, state.undone):
        change.touch(item)
    change.emit(OlderAdded())
    look_at_part(change, gap_id, [item.id for item in part])


def _gap_of(state: UiState, event: EarlierEntriesEvent) -> int:
    """Return the id of the gap that was asked about, 0 where there is none."""
    if not event.upto:
        return next(iter(state.gaps), 0)
    return next((item_id for item_id, gap in state.gaps.items() if gap.before == event.upto), 0)


def _gap_items(change: Change, gap: Gap) -> list[Item]:
    """Return the item that stands for a gap, in a list; none where nothing is missing."""
    if not gap.entries:
        return []
    transcript = change.state.transcript
    item = NoticeItem(id=transcript.next_id, text=gap.text, kind="earlier", final=True)
    transcript.next_id += 1
    change.state.gaps[item.id] = gap
    return [item]


def _put_in_place(change: Change, item_id: int, items: Iterable[Item]) -> None:
    """Put the items where the one with this id stands; without it, before all others."""
    transcript = change.state.transcript
    put = {item.id: item for item in items}
    if item_id not in transcript.items:
        transcript.items = put | transcript.items
        return
    kept: dict[int, Item] = {}
    for item in transcript.items.values():
        if item.id == item_id:
            kept |= put
        else:
            kept[item.id] = item
    transcript.items = kept


def _let_go(change: Change) -> None:
    """Put gaps again in the place of parts that are far from the newest one, while there are too many."""
    state = change.state
    newest = state.parts[-1]
    while len(state.parts) > KEPT_PARTS:
        ordered = sorted(state.parts, key=lambda part: part.first)
        place = ordered.index(newest)
        far = ordered[-1] if place < len(ordered) - 1 - place else ordered[0]
        state.parts.remove(far)
        _close_part(change, far)


def _close_part(change: Change, part: Part) -> None:
    """Put a gap in the place of a part, one with the gaps that are next to it."""
    state = change.state
    ids = list(state.transcript.items)
    places = [place for place, item_id in enumerate(ids) if item_id in part.ids]
    if not places:
        return
    around = {*ids[max(0, places[0] - 1) : places[0]], *ids[places[-1] + 1 : places[-1] + 2]}
    merged = {item_id: gap for item_id in around if (gap := state.gaps.get(item_id)) is not None and not gap.asked}
    for item_id in merged:
        del state.gaps[item_id]
    gap = Gap(
        min([part.first - 1, *(gap.after for gap in merged.values())]),
        max([part.last + 1, *(gap.before for gap in merged.values())]),
        part.entries + sum([gap.entries for gap in merged.values()]),
    )
    _put_in_place(change, ids[places[0]], _gap_items(change, gap))
    items = state.transcript.items
    state.transcript.items = {
        item_id: item for item_id, item in items.items() if item_id not in merged and item_id not in part.ids
    }


def _replayed(change: Change, event: EarlierEntriesEvent) -> list[Item]:
    """Return the items that the events make in a session of their own."""
    state = change.state
    apart = UiState(session_id=state.session_id, detail=state.detail, replaying=True)
    apart.transcript = Transcript(next_id=state.transcript.next_id)
    for earlier in event.events:
        feed(apart, earlier, change.now, change.columns)
    ended = Change(apart, change.now, change.columns)
    close_open_calls(ended)
    pass_verdict(ended)
    state.transcript.next_id = apart.transcript.next_id
    state.undone = apart.undone | state.undone  # what was undone later holds
    older = apart.transcript.ordered()
    mark_blocks(older, state.undone)
    return older
