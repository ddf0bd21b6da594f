"""The search in the transcript (Ctrl+F): it looks through the items' text, and on in the log where that is not enough.

It begins with the match that is nearest to what was being read and goes up from there, as terminals do. Going up past
the first match asks for older entries; only where there are none does it go round.
"""

from __future__ import annotations

from itertools import takewhile

from tenuto.tui.effects import MatchShown, PlaceKept, PlaceRestored
from tenuto.tui.finding import count_matches
from tenuto.tui.machine.approval import note_typing
from tenuto.tui.machine.change import Change, HandlerTable
from tenuto.tui.machine.intent import AcceptSearch, MoveMatch, OpenSearch, SearchChanged
from tenuto.tui.machine.item import AssistantItem, Item
from tenuto.tui.machine.older import ask_for_older
from tenuto.tui.machine.reading import Hit, Search
from tenuto.tui.texts import searched_text

TABLE = HandlerTable()
PARTS_AT_A_TIME = 10
"""So many older parts of the log are looked through for one key press, while nothing is found."""


@TABLE.on(OpenSearch)
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


@TABLE.on(SearchChanged)
def change_query(change: Change, intent: SearchChanged) -> None:
    """Look for another text: what matched before is nearest, then what is above it."""
    search = change.state.search
    if search is None or search.query == intent.text:
        return
    note_typing(change)
    present = search.current
    narrower = bool(search.query) and search.query in intent.text
    if not narrower:
        search.counts = {}
    else:
        search.counts = {item_id: known for item_id, known in search.counts.items() if not known[1]}
    search.query = intent.text
    search.round, search.parts_left = False, 0
    _look(change, search)
    _choose_nearest(change, search, present.id if present is not None else search.at)
    _show(change, search)


@TABLE.on(MoveMatch)
def move_match(change: Change, intent: MoveMatch) -> None:
    """Go to the match above (-1) or below (1)."""
    search = change.state.search
    if search is None or not search.query:
        return
    note_typing(change)
    _look_again(change, search)
    search.round = False
    if intent.delta < 0 and (search.place, search.ordinal) == (0, 0) and _has_older(change):
        look_further(change, search)
    elif search.current is not None:
        _step(search, intent.delta)
    _show(change, search)


@TABLE.on(AcceptSearch)
def accept_search(change: Change, _intent: AcceptSearch) -> None:
    """Stay with the match: keys move between matches from now on. Nothing found: look on in the log."""
    search = change.state.search
    if search is None:
        return
    if not search.query:
        close_search(change, back=True)
    elif search.current is not None:
        search.typing = False
        change.panel()
    elif _has_older(change):
        look_further(change, search)
    else:
        change.toast("Nothing matches in this session")


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


def look_further(change: Change, search: Search) -> None:
    """Begin to look through what is not loaded."""
    search.parts_left = PARTS_AT_A_TIME
    ask_for_older(change)
    change.panel()


def look_at_older(change: Change) -> None:
    """Older items have come: look through them, and ask for more while nothing is found."""
    search = change.state.search
    if search is None or not search.query:
        return
    present = search.current
    _look_again(change, search)
    _count_what_is_left(change, search)
    if search.parts_left:
        found = search.place > 0 if present is not None else bool(search.hits)
        search.parts_left -= 1
        if found:
            search.parts_left = 0
            search.place = search.place - 1 if present is not None else len(search.hits) - 1
            search.ordinal = search.hits[search.place].count - 1
        elif search.parts_left and _has_older(change):
            ask_for_older(change)
        else:
            search.parts_left = 0
    _show(change, search)


def _has_older(change: Change) -> bool:
    """Say whether there is something that is not loaded; it may be on its way already."""
    return bool(change.state.earlier or change.state.earlier_item)


def _count_what_is_left(change: Change, search: Search) -> None:
    search.entries_left = change.state.earlier_left if _has_older(change) else 0


# --- looking ---


def _look(change: Change, search: Search) -> None:
    """Find the items that match; those whose matches are known at this version cost nothing."""
    search.hits = []
    for item in change.state.transcript.items.values():
        version, count = search.counts.get(item.id, (-1, 0))
        if version != item.version:
            count = _count(item, search.query)
            search.counts[item.id] = (item.version, count)
        if count:
            search.hits.append(Hit(item.id, count))


def _count(item: Item, query: str) -> int:
    text = searched_text(item)
    count = count_matches(text, query)
    words = query.split() if not count and isinstance(item, AssistantItem) else []
    if len(words) > 1 and all(count_matches(text, word) for word in words):
        # What is read as "the tail block" may have been written "the **tail** block".
        count = count_matches(text.replace("**", "").replace("`", ""), query)
    return count


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


def _step(search: Search, delta: int) -> None:
    """Go to the next match in that direction, round at the ends."""
    search.ordinal += delta
    if 0 <= search.ordinal < search.hits[search.place].count:
        return
    search.place += delta
    search.round = not 0 <= search.place < len(search.hits)
    search.place %= len(search.hits)
    search.ordinal = search.hits[search.place].count - 1 if delta < 0 else 0


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
