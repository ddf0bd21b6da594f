"""Where items stand, and which heights hold when others come between them or go."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.full.transcript import ItemOrder
from tenuto.tui.state.item import NoticeItem


def order_of(*ids: int) -> ItemOrder:
    order = ItemOrder()
    for item_id in ids:
        order.append(item_id)
        assert order.measure(NoticeItem(id=item_id))
    return order


def measured(order: ItemOrder) -> list[int]:
    return [item_id for item_id in order.ids if order.is_measured(item_id)]


def test_a_height_is_measured_once_for_each_version():
    order = order_of(1)
    assert not order.measure(NoticeItem(id=1))
    assert order.measure(NoticeItem(id=1, version=1))
    order.forget_heights()
    assert order.measure(NoticeItem(id=1, version=1))


def test_what_stands_behind_another_item_is_measured_again():
    order = order_of(1, 2, 3, 4)
    assert order.replace([1, 2, 9, 3, 4]) == []
    assert measured(order) == [1, 2, 4]
    order = order_of(1, 2, 3, 4)
    assert order.replace([2, 4]) == [1, 3]
    assert measured(order) == []
    order = order_of(1, 2, 3, 4)
    assert order.remove(2) == 1
    assert measured(order) == [1, 4]
    assert order.remove(2) is None


@given(st.lists(st.integers(1, 30), unique=True), st.lists(st.integers(1, 30), unique=True), st.integers(1, 30))
def test_every_item_is_found_where_it_stands(before: list[int], after: list[int], taken: int):
    order = order_of(*before)
    order.replace(after)
    order.remove(taken)
    left = [item_id for item_id in after if item_id != taken]
    assert order.ids == left
    assert [order.place_of(item_id) for item_id in left] == list(range(len(left)))
    assert taken not in order
    assert order.first_place([taken, *left[-1:]]) == (len(left) - 1 if left else None)
