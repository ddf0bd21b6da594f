from __future__ import annotations

import pytest

from tenuto.text.matching import did_you_mean, nearest

NAMES = ("ask", "edits", "auto", "plan", "Contrast-Dark")


@pytest.mark.parametrize(
    ("word", "meant"),
    [("atuo", "auto"), ("PLAN", "plan"), ("edit", "edits"), ("contrast-drak", "Contrast-Dark"), ("x", ""), ("", "")],
)
def test_the_nearest_name_is_found_or_none(word: str, meant: str) -> None:
    assert nearest(word, NAMES) == meant


def test_the_question_is_the_end_of_a_line_or_nothing() -> None:
    assert did_you_mean("atuo", NAMES, "/{}") == "; did you mean /auto?"
    assert did_you_mean("qqqq", NAMES) == ""
