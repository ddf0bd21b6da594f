"""A packed list is a list, whatever is done to it, and takes little room."""

from __future__ import annotations

import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.text import packed
from tenuto.text.packed import Packed
from tenuto.tui.render.line import EMPTY, Line

TEXTS = st.sampled_from(["", "a", "漢字 🎵", "\ud800", "some more words"])
LINES = st.builds(lambda text, soft: Line(((text, "text"),), soft=soft), TEXTS, st.booleans())
STEPS = st.one_of(
    st.tuples(st.just("extend"), st.lists(LINES, max_size=30)),
    st.tuples(st.just("cut"), st.integers(0, 120)),
    st.tuples(st.just("pack"), st.integers(0, 120)),
    st.tuples(st.just("copy"), st.lists(LINES, max_size=2)),
)


@settings(deadline=None)
@given(st.lists(STEPS, max_size=30), st.integers(-5, 100), st.integers(-5, 100))
def test_it_is_the_same_list_whatever_is_done_to_it(steps, begin, end):
    original = packed.PART, packed.LOOSE
    packed.PART, packed.LOOSE = 8, 4
    try:
        values, plain = Packed(Line), list[Line]()
        for name, argument in steps:
            before = values
            if name == "extend":
                values.extend(argument)
                plain.extend(argument)
            elif name == "cut":
                values.cut(argument)
                del plain[argument:]
            elif name == "pack":
                values.pack(argument)
            else:
                values, plain = values.copy(argument), [*argument, *plain]
                before.cut(0)
            assert len(values) == len(plain)
            assert values == plain
        assert [*values] == plain
        assert values[begin:end] == plain[begin:end]
        assert [values[place] for place in range(-len(plain), len(plain))] == [*plain, *plain]
    finally:
        packed.PART, packed.LOOSE = original


def test_a_long_one_keeps_few_objects():
    values = Packed(Line)
    for number in range(40):
        values.extend(Line(((f"row {number * 1000 + row} of many", "text"),)) for row in range(1_000))
        values.pack(len(values))
    loose = [part for part in values._parts if isinstance(part, list)]
    packs = [part for part in values._parts if not isinstance(part, list)]
    assert not loose
    assert len(values._end) < packed.PART + packed.LOOSE
    assert sum(sys.getsizeof(part.data) for part in packs) < 40_000 * 20
    assert values[12_345] == Line((("row 12345 of many", "text"),))


def test_a_copy_costs_its_end_and_shares_the_rest():
    values = Packed(Line, [EMPTY] * 10_000)
    values.pack(len(values))
    copy = values.copy([EMPTY])
    assert [one is other for one, other in zip(copy._parts[1:], values._parts, strict=True)] == [True] * 17
    values.cut(0)
    assert len(copy) == 10_001
