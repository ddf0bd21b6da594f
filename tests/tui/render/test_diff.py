"""Diffs."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.message import DiffView
from tenuto.session.diff_rows import changed_words, parse_diff
from tenuto.tui.render.diff import diff_lines, diff_summary
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


def test_a_mark_parts_no_character():
    removed, added = changed_words("x = 1  # ⚠️ हिन्दी 👩‍👧 end", "x = 1  # ✔️ हिन्द 👩‍👦 end")
    assert ["x = 1  # ⚠️ हिन्दी 👩‍👧 end"[start:end] for start, end in removed] == ["⚠️", "हिन्दी", "👩‍👧"]
    assert ["x = 1  # ✔️ हिन्द 👩‍👦 end"[start:end] for start, end in added] == ["✔️", "हिन्द", "👩‍👦"]


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
    assert "".join(text for text, _ in diff_summary([view("", added=12, removed=3)], UNICODE)) == "+12 −3"


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


def styles_of(lines, word):
    return {style for line in lines for text, style in line.spans if text.strip() == word}


def test_the_code_keeps_its_colours_on_the_ground_of_the_change():
    diff = '@@ -1,3 +1,3 @@\n """\n-def old(): pass\n+def new(): pass\n """'
    lines = diff_lines(view(diff), 60, UNICODE)
    assert styles_of(lines, "old(): pass") == set(), "inside of a string that began above"
    assert {style for line in lines[1:3] for _, style in line.spans} & {"code.string diff.removed.word"}
    lines = diff_lines(view("@@ -1 +1 @@\n-def old(): pass\n+def new(): pass"), 60, UNICODE)
    assert styles_of(lines, "new") == {"code.function diff.added.word"}
    assert [line.fill for line in lines] == ["diff.removed", "diff.added"]
    unknown = diff_lines(DiffView(path="notes", diff="@@ -1 +1 @@\n-def x\n+def yy zz"), 60, UNICODE)
    assert not any("code." in style for line in unknown for _, style in line.spans)


@pytest.mark.parametrize(("layout", "width", "split"), [
    ("auto", 135, False), ("auto", 136, True), ("split", 60, True), ("split", 59, False), ("unified", 300, False),
])  # fmt: skip
def test_the_layout_follows_the_width_and_the_setting(layout, width, split):
    lines = diff_lines(view(DIFF), width, UNICODE, None, layout)
    assert any("old line here" in line.text and "new line here" in line.text for line in lines) is split


def test_a_line_is_compared_with_the_one_it_became():
    diff = "@@ -1,2 +1,3 @@\n-total = price\n+# a remark about it\n+total = price * 2\n-"
    marks = {row.text: row.marks for row in parse_diff(diff)}
    assert marks["# a remark about it"] == ()
    assert [("total = price * 2")[slice(*mark)] for mark in marks["total = price * 2"]] == [" * 2"]


def test_the_ends_of_lines_are_told():
    diff = "@@ -1,2 +1,2 @@\n-a\r\n+a\n-end\n\\ No newline at end of file\n+end"
    texts = [line.text for line in diff_lines(view(diff), 60, UNICODE)]
    assert texts == ["1 - a ← CR", "1 + a", "2 - end ← no newline at the end", "2 + end"]
    lines = diff_lines(view(diff), 60, UNICODE)
    assert copy_text(lines) == "a\na\nend\nend"


def test_renames_and_binary_files_are_named_and_heads_are_not_taken_for_changes():
    git = (
        "diff --git a/x b/y\nsimilarity index 90%\nrename from x\nrename to y\nBinary files x and y differ\n"
        "--- a/x\n+++ b/y\n@@ -1,2 +1,2 @@ def f\n--- not a head\n+++ neither\n same\n"
        "@@ -9,1 +9,1 @@ def g\n-x\n+y\n--- a/next\n+++ b/next"
    )
    rows = parse_diff(git)
    assert [row.text for row in rows if row.kind == "note"] == [
        "rename from x", "rename to y", "Binary files x and y differ",
    ]  # fmt: skip
    assert [(row.kind, row.text) for row in rows if row.kind in ("added", "removed")] == [
        ("removed", "-- not a head"), ("added", "++ neither"), ("removed", "x"), ("added", "y"),
    ]  # fmt: skip
    assert "… def g" in [line.text.strip() for line in diff_lines(view(git), 60, UNICODE)]


def test_a_very_long_line_is_cut_while_folded_and_whole_otherwise():
    text = "x" * 1_000
    diff = f"@@ -0,0 +1 @@\n+{text}"
    folded = diff_lines(view(diff), 50, UNICODE, limit=20)
    assert len(folded) == 3
    assert folded[-1].text.endswith("…")
    assert copy_text(folded) == text, "copying gives all of it"
    assert sum(line.text.count("x") for line in diff_lines(view(diff), 50, UNICODE)) == 1_000


def test_what_is_left_out_of_a_diff_is_said():
    rows = diff_lines(view("@@ -1 +1 @@\n-a\n+b\n@@ 1,234 more lines of this diff are not shown @@"), 60, UNICODE)
    assert rows[-1].text.strip() == "… 1,234 more lines of this diff are not shown"


def test_a_folded_diff_compares_the_words_of_what_it_shows(monkeypatch: pytest.MonkeyPatch):
    compared: list[str] = []
    monkeypatch.setattr(
        "tenuto.session.diff_rows.changed_words",
        lambda before, after: compared.append(before) or changed_words(before, after),
    )
    lines = [f"-the old line {n} of it\n+the new line {n} of it\n same {n}" for n in range(500)]
    runs = "\n".join([f"-the old line {n}" for n in range(300)] + [f"+the new line {n}" for n in range(300)])
    for diff, most in ((f"@@ -1,1000 +1,1000 @@\n{chr(10).join(lines)}", 8), (f"@@ -1,300 +1,300 @@\n{runs}", 20)):
        whole = diff_lines(view(diff), 100, UNICODE)
        compared.clear()
        folded = diff_lines(view(diff), 100, UNICODE, limit=20)
        assert folded[:-1] == whole[:20]
        assert len(compared) <= most
