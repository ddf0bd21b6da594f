"""Diffs."""

from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.message import DiffView
from tenuto.tui.render.diff import diff_lines, diff_summary
from tenuto.tui.render.diff_model import changed_words, parse_diff
from tenuto.tui.render.line import copy_text
from tenuto.tui.render.options import UNICODE

DIFF = "@@ -8,3 +8,4 @@ def f\n same\n-old line here\n+new line here\n+\tadded\n\n@@ -30,1 +31,1 @@\n-x\n+y"


def view(diff, **fields):
    return DiffView(path="a.py", diff=diff, **fields)


def test_numbers_follow_both_files():
    assert [(row.kind, row.old, row.new) for row in parse_diff(DIFF)] == [
        ("context", 8, 8),
        ("removed", 9, 0),
        ("added", 0, 9),
        ("added", 0, 10),
        ("context", 10, 11),
        ("hunk", 0, 0),
        ("removed", 30, 0),
        ("added", 0, 31),
    ]


def test_only_the_words_that_changed_are_marked():
    removed, added = changed_words("return 3.14 * radius", "return math.pi * radius")
    assert ["return 3.14 * radius"[slice(*mark)] for mark in removed] == ["3", "14"]
    assert ["return math.pi * radius"[slice(*mark)] for mark in added] == ["math", "pi"]
    assert changed_words("completely different", "no word the same!") == ((), ())


def test_marks_reach_the_rows():
    styles = {text: style for line in diff_lines(view(DIFF), 60, UNICODE) for text, style in line.spans}
    assert styles["old"] == "diff.removed.word"
    assert styles["new"] == "diff.added.word"
    assert styles[" line here"] == "diff.added"


def test_copying_leaves_numbers_and_signs_out():
    lines = diff_lines(view(DIFF), 60, UNICODE)
    assert copy_text(lines[:4]) == "same\nold line here\nnew line here\n\tadded"


def test_a_long_diff_is_cut_and_says_by_how_much():
    diff = "@@ -1,0 +1,50 @@\n" + "\n".join(f"+line {number}" for number in range(50))
    lines = diff_lines(view(diff), 60, UNICODE, limit=20)
    assert len(lines) == 21
    assert lines[-1].text == "… +30 lines"
    assert len(diff_lines(view(diff), 60, UNICODE)) == 50


def test_summary_counts():
    assert "".join(text for text, _ in diff_summary(view("", added=12, removed=3), UNICODE)) == "+12 −3"


def test_wide_screens_show_both_sides():
    lines = diff_lines(view(DIFF), 150, UNICODE)
    assert "old line here" in lines[1].text
    assert "new line here" in lines[1].text
    assert copy_text(lines[:2]) == "same\nnew line here"
    assert len({line.text.index("│") for line in lines if "│" in line.text}) == 1


@given(
    st.lists(st.tuples(st.sampled_from(["+", "-", " ", "@@ -3 +4 @@", ""]), st.text("ab\t 日\x1b\x9b(", max_size=90))),
    st.sampled_from([20, 60, 150]),
)
def test_no_row_is_wider_and_no_control_byte_is_in_it(pieces, width):
    diff = "\n".join(sign + text for sign, text in pieces)
    for line in diff_lines(view(diff), width, UNICODE):
        assert line.width <= width
        assert not {"\x1b", "\x9b", "\t"} & set(line.text)
