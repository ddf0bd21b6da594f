"""The search in the transcript (Ctrl+F): it looks through the items' text, and on in the log where that is not enough.

It begins with the match that is nearest to what was being read and goes up from there, as terminals do. Where the way
to the next match leads over entries that are not loaded, the core looks through the log, and only the part that has a
match is loaded.
"""

from __future__ import annotations

from collections.abc import Collection
from itertools import takewhile

from tenuto.protocol.event import EarlierFoundEvent
from tenuto.protocol.operation import FindEarlierOperation, ShowEarlierOperation
from tenuto.text.matching import count_in_prose, count_matches
from tenuto.tui.effects import MatchShown, PlaceKept, PlaceRestored, Submit
from tenuto.tui.machine.approval import note_typing
from tenuto.tui.machine.change import Change, on
from tenuto.tui.machine.intents import AcceptSearch, MoveMatch, OpenSearch, SearchChanged
from tenuto.tui.machine.item import AssistantItem, Item
from tenuto.tui.machine.reading import Hit, Looking, Search
from tenuto.tui.machine.texts import searched_text


def ask_for_part(change: Change, item_id: int, at: int = 0) -> None:
    """Ask, once, for a part of a gap: what begins with the turn of the entry `at`, else its newest end."""
    gap = change.state.gaps.get(item_id)
    if gap is None or gap.asked:
        return
    gap.asked = True
    session_id = change.state.session_id
    change.emit(Submit(ShowEarlierOperation(session_id=session_id, before=gap.before, after=gap.after, at=at)))


UP = -1


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
