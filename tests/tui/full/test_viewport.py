"""The arithmetic of the scroll position."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.full.viewport import Viewport

HEIGHTS = st.lists(st.integers(0, 30), min_size=1, max_size=60)


def make(true_heights: list[int], estimates: list[int] | None = None, rows: int = 10) -> Viewport:
    viewport = Viewport(lambda index: true_heights[index])
    viewport.rows = rows
    viewport.reset(list(estimates or true_heights))
    return viewport


def flat(true_heights: list[int]) -> list[tuple[int, int]]:
    return [(index, line) for index, height in enumerate(true_heights) for line in range(height)]


@given(HEIGHTS, st.integers(1, 40))
def test_following_shows_the_last_rows(heights: list[int], rows: int) -> None:
    viewport = make(heights, rows=rows)
    assert viewport.visible() == flat(heights)[-rows:]


@given(HEIGHTS, st.data())
def test_scrolling_moves_by_exact_rows_whatever_the_estimates_said(heights: list[int], data: st.DataObject) -> None:
    estimates = data.draw(st.lists(st.integers(1, 30), min_size=len(heights), max_size=len(heights)))
    viewport = make(heights, estimates)
    rows = flat(heights)
    top = max(0, len(rows) - 10)
    for delta in data.draw(st.lists(st.integers(-40, 40), max_size=12)):
        viewport.scroll(delta)
        top = max(0, min(top + delta, max(0, len(rows) - 10)))
        assert viewport.visible() == rows[top : top + 10]
        assert viewport.follow == (top == max(0, len(rows) - 10)) or delta == 0


@given(HEIGHTS, st.integers(1, 200), st.data())
def test_the_text_being_read_stays_when_estimates_are_replaced(
    heights: list[int], up: int, data: st.DataObject
) -> None:
    estimates = data.draw(st.lists(st.integers(1, 30), min_size=len(heights), max_size=len(heights)))
    viewport = make(heights, estimates)
    viewport.scroll(-up)
    before = viewport.visible()
    for index in data.draw(st.lists(st.integers(0, len(heights) - 1), max_size=20)):
        viewport.height(index)
        viewport.settle()
        assert viewport.visible() == before


@given(HEIGHTS, st.integers(1, 200), st.lists(st.integers(1, 20), max_size=8))
def test_items_added_below_do_not_move_a_reader(heights: list[int], up: int, added: list[int]) -> None:
    viewport = make(heights)
    viewport.scroll(-up)
    following, before = viewport.follow, viewport.visible()
    for height in added:
        heights.append(height)
        viewport.append(1)
        viewport.settle()
    if following:
        assert viewport.visible() == flat(heights)[-10:]
    else:
        assert viewport.visible()[: len(before)] == before
        assert viewport.unseen == len(added)
        viewport.scroll(10_000)
        assert viewport.follow
        assert viewport.unseen == 0


@given(HEIGHTS, st.integers(1, 200), st.data())
def test_removing_another_item_keeps_the_top_item(heights: list[int], up: int, data: st.DataObject) -> None:
    names = list(range(len(heights)))
    viewport = make(heights)
    viewport.scroll(-up)
    if viewport.follow or len(heights) < 2:
        return
    top = names[viewport.index]
    victim = data.draw(st.integers(0, len(heights) - 1).filter(lambda index: index != viewport.index))
    del heights[victim], names[victim]
    viewport.remove(victim)
    viewport.settle()
    assert viewport.follow or names[viewport.index] == top


def test_a_new_width_keeps_the_item_and_the_place_in_it() -> None:
    heights = [10, 20, 30, 40]
    viewport = make(heights)
    viewport.go_to_item(2)
    viewport.scroll(15)
    heights[:] = [20, 40, 60, 80]
    viewport.estimate_again([1, 1, 1, 1])
    viewport.settle()
    assert viewport.visible()[0] == (2, 30)


def test_the_item_at_the_top_may_shrink() -> None:
    heights = [5, 40, 50]
    viewport = make(heights)
    viewport.go_to_item(1)
    viewport.scroll(30)
    heights[1] = 2
    viewport.settle()
    assert viewport.visible()[0] == (1, 1)


@given(HEIGHTS, st.integers(-10, 2_000))
def test_the_scrollbar_goes_to_the_row_asked_for(heights: list[int], row: int) -> None:
    viewport = make(heights)
    viewport.go_to_row(row)
    rows = flat(heights)
    top = max(0, min(row, len(rows) - 10))
    assert viewport.visible() == rows[top : top + 10]


@given(HEIGHTS, st.integers(0, 500))
def test_the_thumb_lies_on_the_bar(heights: list[int], up: int) -> None:
    viewport = make(heights)
    viewport.scroll(-up)
    thumb = viewport.thumb()
    if sum(heights) <= 10:
        assert thumb is None
    else:
        assert thumb is not None
        first, size = thumb
        assert size >= 1
        assert 0 <= first <= 10 - size


def test_nothing_to_show_is_no_error() -> None:
    viewport = make([])
    viewport.scroll(-3)
    viewport.go_to_row(7)
    viewport.go_to_start()
    assert viewport.visible() == []


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("append"), st.integers(1, 20), st.integers(1, 20)),
        st.tuples(st.just("grow"), st.integers(0, 100), st.integers(1, 30)),
        st.tuples(st.just("prepend"), st.integers(1, 20), st.integers(1, 20)),
        st.tuples(st.just("remove"), st.integers(0, 100), st.integers(0, 0)),
    ),
    max_size=20,
)


@given(HEIGHTS, st.integers(1, 200), st.integers(0, 12), STEPS)
def test_nothing_that_comes_in_moves_the_text_that_is_read(
    heights: list[int], up: int, page: int, steps: list[tuple[str, int, int]]
) -> None:
    """A stream, a resize below, older items above, items that go: the row at the top stays the row at the top."""
    names = list(range(len(heights)))
    viewport = make(heights)
    viewport.scroll(-up)
    viewport.scroll(-page)
    if viewport.follow:
        return
    top, line, added = names[viewport.index], viewport.line, 0
    for number, (what, place, height) in enumerate(steps, 1_000):
        index = place % len(heights)
        if what == "append":
            heights.append(height)
            names.append(number)
            viewport.append(1)
            added += 1
        elif what == "grow" and index != viewport.index:
            heights[index] += height
        elif what == "prepend":
            heights.insert(0, height)
            names.insert(0, number)
            viewport.reset_at([1] * len(heights), viewport.index + 1, viewport.line, viewport.unseen)
        elif what == "remove" and index != viewport.index:
            added -= index >= len(heights) - added
            del heights[index], names[index]
            viewport.remove(index)
        viewport.settle()
        if viewport.follow:
            return  # what went has brought the end on the screen
        assert (names[viewport.index], viewport.line) == (top, line)
        assert viewport.unseen == added
        assert viewport.extent()[1] == sum(viewport.heights)


@given(HEIGHTS, st.lists(st.integers(1, 20), min_size=1, max_size=8))
def test_what_is_looked_at_holds_still_until_it_is_left(heights: list[int], added: list[int]) -> None:
    viewport = make(heights)
    viewport.held = True
    viewport.settle()
    before = viewport.visible()
    for height in added:
        heights.append(height)
        viewport.append(height)
        viewport.settle()
    if len(before) == 10:
        assert viewport.visible() == before
        assert viewport.unseen == len(added)
    viewport.held = False
    viewport.go_to_end()
    assert viewport.follow
    assert viewport.visible() == flat(heights)[-10:]


@given(HEIGHTS, st.integers(0, 200), st.integers(0, 59), st.integers(0, 29))
def test_what_is_revealed_is_on_the_screen(heights: list[int], up: int, index: int, line: int) -> None:
    viewport = make(heights)
    viewport.scroll(-up)
    index %= len(heights)
    if not heights[index]:
        return
    viewport.reveal(index, line % heights[index])
    assert (index, line % heights[index]) in viewport.visible()
    viewport.scroll(-up)
    viewport.reveal_item(index)
    shown = [row for place, row in viewport.visible() if place == index]
    assert shown == list(range(min(heights[index], 10)))
