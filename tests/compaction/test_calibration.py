"""What estimates really come to, learned from counts (truth.md T9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.measure.weight import FIXED, Calibration, Vector, add, as_notes, as_result, vector_of


def test_t9_what_results_and_summaries_have_of_their_own_is_not_put_on_their_characters():
    """truth.md T9: logs that cost more than their characters made the estimate of every summary wrong."""
    calibration = Calibration()
    log = as_result(vector_of((300.0, 300.0, 200.0, 0.0, 0.0)))
    notes = as_notes(vector_of((1_500.0, 100.0, 250.0, 0.0, 0.0)))
    calibration.observe(vector_of((0.0,) * 5, fixed=2_000.0), 2_000)
    for _ in range(40):
        calibration.observe(log, 1_300)
        calibration.observe(add((vector_of((0.0,) * 5, fixed=2_000.0), notes)), 2_000 + 1_850 * 0.9)
    assert calibration.tokens(notes) == pytest.approx(1_850 * 0.9, rel=0.03)
    assert calibration.tokens(log) == pytest.approx(1_300, rel=0.03)
    assert calibration.factor(FIXED) == pytest.approx(1.0, abs=0.03)
    assert calibration.tokens(vector_of((400.0, 0.0, 0.0, 0.0, 0.0))) == pytest.approx(400, rel=0.15)
    elsewhere = calibration.tokens(vector_of((300.0, 300.0, 200.0, 0.0, 0.0)))
    assert elsewhere < 1_050, "the same characters in a question are no log"


def text(*kinds: float, frame: float = 4.0) -> Vector:
    """A text of so many letters, digits and marks, in estimated tokens."""
    return vector_of((*kinds, *(0.0,) * (5 - len(kinds))), frame=frame)


def test_r024_many_short_results_make_no_long_one_of_numbers_cheap():
    """Found in stormy sessions: what stands around short results was put down to digits of less than no tokens.

    The counts are those of such a session; the last result (`seq 1 600`) was counted as 795 and taken for 320.
    """
    calibration = Calibration()
    calibration.observe(add((vector_of((0.0,) * 5, fixed=2_769.0), text(59, 8, 16, frame=16.0))), 2_412)
    for talk, counted in ((2_722, 2_764), (840, 840), (484, 484), (1_761, 1_802), (1_279, 1_324)):
        calibration.observe(text(talk), counted)
    short = (((30, 0, 11), 80), ((30, 0, 11), 85), ((30, 0, 11), 80))
    for kinds, counted in (*short, ((62, 2, 9), 175), ((40, 2, 7), 186), ((116, 2, 29), 276), ((513, 117, 22), 790)):
        calibration.observe(as_result(text(*kinds)), counted)
    assert calibration.tokens(as_result(text(139, 847, 3))) > 0.75 * 795


numbers = st.floats(0, 3_000)
texts = st.builds(text, numbers, numbers, numbers)


@given(
    counts=st.lists(st.tuples(texts, st.booleans(), st.floats(0.2, 5.0), st.integers(0, 200)), max_size=30),
    before=texts,
    more=texts,
)
def test_r024_whatever_was_counted_more_text_is_more(counts, before, more):
    calibration = Calibration()
    for kinds, is_result, factor, around in counts:
        calibration.observe(as_result(kinds) if is_result else kinds, sum(kinds) * factor + around)
    added = calibration.tokens(add((before, more))) - calibration.tokens(before)
    assert 0.25 * sum(more) - 1e-6 <= added <= 4.0 * sum(more) + 1e-6
