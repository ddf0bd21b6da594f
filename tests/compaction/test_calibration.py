"""What estimates really come to, learned from counts (truth.md T9)."""

from __future__ import annotations

import pytest

from tenuto.compaction.measure.weight import FIXED, Calibration, add, as_notes, as_result, vector_of


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
