"""Reading in the transcript: the search (Ctrl+F), the block cursor, and the older parts of a long session.

The search begins with the match that is nearest to what was being read and goes up from there, as terminals do. Where
the way to the next match leads over entries that are not loaded, the core looks through the log, and only the part that
has a match is loaded. Alt+Up and Alt+Down move over blocks, single keys do something with one. An older part is put
where it belongs when the user goes there; far ones are let go.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import takewhile

from tenuto.command.outcome import Copy, FindText
from tenuto.protocol.event import EarlierEntriesEvent, EarlierFoundEvent
from tenuto.protocol.operation import FindEarlierOperation, ShowEarlierOperation
from tenuto.text.matching import count_in_prose, count_matches
from tenuto.tui.machine.approval import note_typing
from tenuto.tui.machine.change import Change, feed, on, pass_verdict
from tenuto.tui.machine.children import open_child
from tenuto.tui.machine.compaction import mark_blocks
from tenuto.tui.machine.prompt import put_text
from tenuto.tui.machine.turn import close_open_calls
from tenuto.tui.state.effects import (
    BlockShown,
    MatchShown,
    OlderAdded,
    OpenBlock,
    PlaceKept,
    PlaceRestored,
    RunCommand,
    Submit,
)
from tenuto.tui.state.intents import (
    AcceptSearch,
    ActOnBlock,
    LeaveTranscript,
    MoveBlock,
    MoveMatch,
    OpenSearch,
    SearchChanged,
    ShowEarlier,
)
from tenuto.tui.state.item import (
    AssistantItem,
    BlockAction,
    CompactionItem,
    Gap,
    Item,
    NoticeItem,
    Part,
    ToolItem,
    Transcript,
    UserItem,
    block_actions,
    meant_action,
    whole_item,
)
from tenuto.tui.state.search import Hit, Looking, Search
from tenuto.tui.state.state import UiState
from tenuto.tui.state.texts import item_text, searched_text

UP = -1
KEPT_PARTS = 10
"""Loaded parts that stay; with more, the one farthest from the newest is let go, and comes again when needed."""

# --- the search ---


def ask_for_part(change: Change, item_id: int, at: int = 0) -> None:
    """Ask, once, for a part of a gap: what begins with the turn of the entry `at`, else its newest end."""
    gap = change.state.gaps.get(item_id)
    if gap is None or gap.asked:
        return
    gap.asked = True
    session_id = change.state.session_id
    change.emit(Submit(ShowEarlierOperation(session_id=session_id, before=gap.before, after=gap.after, at=at)))


@on(OpenSearch)
def open_search(change: Change, intent: OpenSearch) -> None:
    """Open the field, or go back to it."""
    state = change.state
    if state.search is None:
        state.search = Search(at=state.block or intent.at or next(reversed(state.transcript.items), 0))
        state.block = 0
        change.emit(PlaceKept())
    state.search.typing = True
    _count_what_is_left(change, state.search)
    change.panel()


@on(SearchChanged)
def change_query(change: Change, intent: SearchChanged) -> None:
    """Look for another text: what matched before is nearest, then what is above it."""
    search = change.state.search
    if search is None or search.query == intent.text:
        return
    note_typing(change)
    present = search.current
    narrower = bool(search.query) and search.query in intent.text
    if not narrower:
        search.counts, search.barren = {}, set()
    else:
        search.counts = {item_id: known for item_id, known in search.counts.items() if not known[1]}
    search.query = intent.text
    search.round, search.looking = False, None
    _look(change, search)
    _count_what_is_left(change, search)
    _choose_nearest(change, search, present.id if present is not None else search.at)
    _show(change, search)


@on(FindText)
def find_text(change: Change, intent: FindText) -> None:
    """Open the search with a text and go to its newest match, wherever in the session it is."""
    if change.state.search is not None:
        close_search(change, back=False)
    open_search(change, OpenSearch())
    change_query(change, SearchChanged(intent.text))
    accept_search(change, AcceptSearch())


@on(MoveMatch)
def move_match(change: Change, intent: MoveMatch) -> None:
    """Go to the match above (-1) or below (1), wherever in the session it is."""
    search = change.state.search
    if search is None or not search.query or search.looking is not None:
        return
    note_typing(change)
    _look_again(change, search)
    search.round = False
    _move(change, search, intent.delta)
    _show(change, search)


@on(AcceptSearch)
def accept_search(change: Change, _intent: AcceptSearch) -> None:
    """Stay with the match: keys move between matches from now on. Nothing found: look on in the log."""
    search = change.state.search
    if search is None or search.looking is not None:
        return
    if not search.query:
        close_search(change, back=True)
    elif search.current is not None:
        search.typing = False
        change.panel()
    else:
        _move(change, search, UP)
        _show(change, search)


def close_search(change: Change, *, back: bool) -> None:
    """Close it, and go `back` to where one was; or stay, with the match unfolded to be read."""
    search = change.state.search
    if search is None:
        return
    if back:
        _fold(change, search)
        change.emit(PlaceRestored())
    change.state.search = None
    change.panel()


@on(EarlierFoundEvent)
def take_found(change: Change, event: EarlierFoundEvent) -> None:
    """Have the part with the match loaded, or look on."""
    search = change.state.search
    looking = search.looking if search is not None else None
    gap = change.state.gaps.get(looking.gap) if looking is not None else None
    if search is None or looking is None or event.query != search.query:
        return
    if gap is None:  # somebody scrolled there in the meantime
        _move_on(change, search, looking.delta)
    elif event.upto == looking.before and not looking.goal:
        if event.seq:
            looking.goal = event.seq
            ask_for_part(change, looking.gap, event.seq)
        elif event.before:
            _look_through(change, search, looking, event.after, event.before)
        else:
            search.barren.add(looking.gap)
            _move_on(change, search, looking.delta)


def look_at_part(change: Change, gap_id: int, ids: Collection[int]) -> None:
    """A part has come into the place of a gap: look through its items, and go to the match that it was loaded for."""
    search = change.state.search
    if search is None or not search.query:
        return
    _look_again(change, search)
    looking = search.looking
    if looking is None or looking.gap != gap_id:
        _count_what_is_left(change, search)
        _show(change, search)
        return
    if looking.goal:
        search.barren |= {item_id for item_id, gap in change.state.gaps.items() if looking.is_barren(gap)}
    found = [place for place, hit in enumerate(search.hits) if hit.id in ids]
    if not (found and looking.goal):
        _move_on(change, search, looking.delta)
        return
    search.looking = None
    search.place = found[-1] if looking.delta < 0 else found[0]
    search.ordinal = search.hits[search.place].count - 1 if looking.delta < 0 else 0
    _count_what_is_left(change, search)
    _show(change, search)


def _move(change: Change, search: Search, delta: int) -> None:
    """Go to the next match in that direction, round at the ends; first look through what is not loaded on the way."""
    current = search.current
    if current is not None and 0 <= search.ordinal + delta < current.count:
        search.ordinal += delta
        return
    ids = list(change.state.transcript.items)
    start = current.id if current is not None else search.at
    begin = ids.index(start) if start in change.state.transcript.items else len(ids) - 1
    places = {hit.id: place for place, hit in enumerate(search.hits)}
    for steps in range(0 if current is None else 1, len(ids) + 1):
        at = begin + steps * delta
        item_id = ids[at % len(ids)]
        if item_id in places:
            search.place, search.round = places[item_id], not 0 <= at < len(ids)
            search.ordinal = search.hits[search.place].count - 1 if delta < 0 else 0
            return
        gap = change.state.gaps.get(item_id)
        if gap is not None and item_id not in search.barren:
            search.looking = Looking(item_id, gap.after, gap.before, delta)
            _look_through(change, search, search.looking, gap.after, gap.before)
            return
    change.toast("Nothing matches in this session")


def _move_on(change: Change, search: Search, delta: int) -> None:
    """Go on from the present match, once a gap has been looked through."""
    search.looking = None
    _count_what_is_left(change, search)
    _move(change, search, delta)
    _show(change, search)


def _look_through(change: Change, search: Search, looking: Looking, after: int, before: int) -> None:
    """Have the core look through the entries between two of a gap."""
    operation = FindEarlierOperation(
        session_id=change.state.session_id,
        query=search.query,
        after=after,
        before=before,
        newest=looking.delta < 0,
        upto=looking.before,
    )
    change.emit(Submit(operation))
    change.panel()


def _count_what_is_left(change: Change, search: Search) -> None:
    gaps = change.state.gaps
    search.entries_left = sum([gap.entries for item_id, gap in gaps.items() if item_id not in search.barren])


# --- looking ---


def _look(change: Change, search: Search) -> None:
    """Find the items that match; those whose matches are known at this version cost nothing."""
    search.hits = []
    for item in change.state.transcript.items.values():
        if item.id in change.state.gaps:
            continue
        version, count = search.counts.get(item.id, (-1, 0))
        if version != item.version:
            count = _count(item, search.query)
            search.counts[item.id] = (item.version, count)
        if count:
            search.hits.append(Hit(item.id, count))


def _count(item: Item, query: str) -> int:
    text = searched_text(item)
    return count_in_prose(text, query) if isinstance(item, AssistantItem) else count_matches(text, query)


def _look_again(change: Change, search: Search) -> None:
    """Find what has come in the meantime; the present match stays the present one."""
    present, ordinal = search.current, search.ordinal
    _look(change, search)
    if present is None:
        search.place = search.ordinal = 0
        return
    ids = [hit.id for hit in search.hits]
    if present.id in ids:
        search.place = ids.index(present.id)
        search.ordinal = min(ordinal, search.hits[search.place].count - 1)
    else:
        search.place, search.ordinal = max(0, min(search.place, len(ids) - 1)), 0


def _choose_nearest(change: Change, search: Search, near: int) -> None:
    """Choose the last match up to the item `near`, else the first one after it."""
    items = change.state.transcript.items
    order = {item_id: place for place, item_id in enumerate(items)}
    limit = order.get(near, len(order))
    above = sum(1 for _hit in takewhile(lambda hit: order[hit.id] <= limit, search.hits))
    search.place = max(0, above - 1)
    search.ordinal = search.hits[search.place].count - 1 if above else 0


# --- showing ---


def _show(change: Change, search: Search) -> None:
    """Bring the present match on the screen, its item unfolded as long as it is the one."""
    current = search.current
    if search.unfolded and (current is None or current.id != search.unfolded):
        _fold(change, search)
    item = change.state.transcript.get(current.id) if current is not None else None
    if item is not None and item.folded:
        search.unfolded = item.id
        item.folded = False
        change.touch(item)
    if item is not None:
        change.emit(MatchShown())
    change.panel()


def _fold(change: Change, search: Search) -> None:
    item = change.state.transcript.get(search.unfolded)
    search.unfolded = 0
    if item is not None and not item.folded:
        item.folded = True
        change.touch(item)


# --- the block cursor ---


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
    action = meant_action(item, intent.action)
    if item is not None and action in block_actions(item):
        _act(change, item, action)


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
            change.emit(Copy(item_text(whole_item(change.state.transcript.ordered(), item))))
        case "edit" if isinstance(item, UserItem):
            leave_block(change)
            put_text(change, item.text, item.images)
        case "rewind" if isinstance(item, UserItem):
            leave_block(change)
            change.emit(RunCommand(f"/rewind {item.seq}"))
        case "undo":
            _undo(change, item)
        case "watch" if isinstance(item, ToolItem):
            open_child(change, item)
        case "transcript" if isinstance(item, ToolItem):
            change.emit(RunCommand(f"/agents {item.child}"))
        case "stop" if isinstance(item, ToolItem):
            change.emit(RunCommand(f"/agents end {item.child}"))
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


# --- older parts ---


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
