from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.message import DiffView, ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.tool.edits.diff import compare_lines, splice_lines
from tenuto.tool.edits.encoding import decode_file, to_lf
from tenuto.tool.edits.matching import find_exact, find_tolerant
from tenuto.tool.run.runner import PreparedCall, run_call
from tests.tool.support import Bench, make_bench

FILES = {
    "lf": b"one\ntwo\nthree\n",
    "crlf": b"one\r\ntwo\r\nthree\r\n",
    "mixed": b"one\r\ntwo\nthree\r\nfour\n",
    "no final newline": b"one\ntwo\nthree",
    "crlf, no final newline": b"one\r\ntwo",
    "bom": b"\xef\xbb\xbfone\r\ntwo\r\n",
    "utf-16-le": b"\xff\xfe" + "one\r\ntwo\r\ndrei ü\r\n".encode("utf-16-le"),
    "utf-16-be": b"\xfe\xff" + "one\ntwo\n".encode("utf-16-be"),
    "gbk": "one 中文字符\r\ntwo 测试\r\n".encode("gbk"),
    "latin-1": "one café\ntwo naïve\n".encode("latin-1"),
    "damaged utf-8": "one äöü äöü äöü äöü\n".encode() + b"two \xff\n",
    "trailing space": b"one  \ntwo\t\nthree\n",
}


@pytest.mark.parametrize("name", FILES)
async def test_r089_an_edit_changes_only_the_asked_bytes(bench: Bench, name: str) -> None:
    before = FILES[name]
    path = bench.write("f.txt", before)
    await bench.text("read", path="f.txt")
    await bench.text("edit", path="f.txt", old_string="two", new_string="2")
    encoding = "utf-16-le" if name == "utf-16-le" else "utf-16-be" if name == "utf-16-be" else "ascii"
    assert path.read_bytes() == before.replace("two".encode(encoding), "2".encode(encoding))


async def test_r089_new_lines_take_the_line_ends_of_their_place(bench: Bench) -> None:
    path = bench.write("f.txt", FILES["mixed"])
    await bench.text("read", path="f.txt")
    await bench.text("edit", path="f.txt", old_string="one\ntwo\nthree\n", new_string="one\n2\n2b\nthree\n")
    assert path.read_bytes() == b"one\r\n2\n2b\r\nthree\r\nfour\n"


async def test_r089_crlf_in_the_quoted_text_is_the_same_as_lf(bench: Bench) -> None:
    path = bench.write("f.txt", b"a\nb\nc\n")
    await bench.text("read", path="f.txt")
    await bench.text("edit", path="f.txt", old_string="a\r\nb", new_string="x\r\ny")
    assert path.read_bytes() == b"x\ny\nc\n"


async def test_a_character_that_the_encoding_lacks_is_refused(bench: Bench) -> None:
    path = bench.write("f.txt", FILES["latin-1"])
    await bench.text("read", path="f.txt")
    assert "cp1252" in await bench.error("edit", path="f.txt", old_string="two", new_string="中")
    assert path.read_bytes() == FILES["latin-1"]


async def test_r090_a_new_time_stamp_alone_is_no_change(bench: Bench) -> None:
    path = bench.write("f.txt", "one\ntwo\n")
    await bench.text("read", path="f.txt")
    os.utime(path, (1, 1))
    await bench.text("edit", path="f.txt", old_string="two", new_string="2")


async def test_r090_changed_content_is_refused_and_the_difference_shown(bench: Bench) -> None:
    path = bench.write("f.txt", "one\ntwo\n")
    await bench.text("read", path="f.txt")
    path.write_text("ONE\ntwo\n")
    result = await bench.call("edit", path="f.txt", old_string="two", new_string="2")
    text = text_of(result.parts)
    assert result.is_error
    assert "-one\n+ONE" in text
    assert path.read_text() == "ONE\ntwo\n"
    assert result.files[0].path == str(path)
    # the difference was shown, so the same call goes through now
    await bench.text("edit", path="f.txt", old_string="two", new_string="2")
    assert path.read_text() == "ONE\n2\n"


async def test_r090_holds_after_a_resume_from_the_hash_alone(bench: Bench) -> None:
    from tenuto.tool.run.context import ToolContext

    path = bench.write("f.txt", "one\n")
    result = await bench.call("read", path="f.txt")
    bench.session.append(result)
    bench.context = ToolContext(session=bench.session)
    path.write_text("other\n")
    assert "Read it again" in await bench.error("edit", path="f.txt", old_string="other", new_string="x")


TOLERANT = {
    "trailing space": ("if x:  \n    go()\t\n", "if x:\n    go()\n", "if y:\n    go()\n", "if y:\n    go()\t\n"),
    "quotes": ("say(“hi”, ‘x’)\n", "say(\"hi\", 'x')", "say(\"hi\", 'y')", "say(“hi”, ‘y’)\n"),
    "dash and no-break space": ("a – b\u00a0c\n", "a - b c", "a - b d", "a – b\u00a0d\n"),
    "less indented": (
        "class A:\n    def f():\n        x\n",
        "def f():\n    x",
        "def f():\n    y",
        "class A:\n    def f():\n        y\n",
    ),
    "more indented": (
        "def f():\n    x\n",
        "    def f():\n        x\n",
        "    def g():\n        x\n",
        "def g():\n    x\n",
    ),
    "tabs": (
        "def f():\n\tif a:\n\t\tx\n",
        "def f():\n    if a:\n        x\n",
        "def f():\n    if a:\n        y\n        z\n",
        "def f():\n\tif a:\n\t\ty\n\t\tz\n",
    ),
    "no line end at the end": ("a\nb ", "a\nb\n", "a\nc\n", "a\nc"),
}


@pytest.mark.parametrize("name", TOLERANT)
async def test_r091_a_tolerant_match_replaces_and_keeps_the_rest(bench: Bench, name: str) -> None:
    before, old, new, after = TOLERANT[name]
    path = bench.write("f.txt", before)
    await bench.text("read", path="f.txt")
    text = await bench.text("edit", path="f.txt", old_string=old, new_string=new)
    assert path.read_text() == after
    assert "did not match exactly" in text


@pytest.mark.parametrize("old", ["return total(a)  ", "return total(a)\t", "return total(a)  \n    # end "])
async def test_r091_blanks_at_line_ends_change_nothing_where_a_text_begins_within_a_line(bench: Bench, old) -> None:
    """Lines that come after it are indented as the model wrote them, as with the same text without the blanks."""
    before = "def f(a):\n        return total(a)\n    # end\n"
    new = "# round\n        return round(total(a))"
    made = []
    for quoted in (old, "\n".join(line.rstrip() for line in old.split("\n"))):
        path = bench.write("f.py", before)
        await bench.text("read", path="f.py")
        await bench.text("edit", path="f.py", old_string=quoted, new_string=new)
        made.append(path.read_text())
    assert made[0] == made[1]
    assert made[0].startswith("def f(a):\n        # round\n        return round(total(a))")


async def test_r091_a_tolerant_match_must_be_unique(bench: Bench) -> None:
    before = "f() \nx\nf()  \n"
    path = bench.write("f.txt", before)
    await bench.text("read", path="f.txt")
    assert "2 places" in await bench.error("edit", path="f.txt", old_string="f()\n", new_string="g()\n")
    assert path.read_text() == before


@given(
    st.lists(st.sampled_from(["a", "  a", "\tb", "b ", "“c”", "", "}"]), min_size=1, max_size=8),
    st.lists(st.sampled_from(["a", " a", "b", "'c'", '"c"', "", "}", "    a"]), min_size=1, max_size=3),
)
def test_r091_a_match_always_covers_text_that_is_there(lines: list[str], quoted: list[str]) -> None:
    text, old = "\n".join(lines), "\n".join(quoted)
    for match in find_tolerant(text, old, "NEW"):
        assert match.end > match.start
        there = text[match.start : match.end]
        assert "".join(there.split()).translate(str.maketrans("“”", '""')) == "".join(match.old.split())
        assert match.old.count("\n") == there.count("\n")


async def test_r091_no_match_names_the_nearest_lines(bench: Bench) -> None:
    bench.write("f.py", "def alpha():\n    return compute(1)\n\ndef beta():\n    pass\n")
    await bench.text("read", path="f.py")
    text = await bench.error("edit", path="f.py", old_string="    return compute(2, 3)", new_string="x")
    assert "2\t    return compute(1)" in text


async def test_an_ambiguous_match_names_the_lines(bench: Bench) -> None:
    path = bench.write("f.py", "x = 1\ny = 2\nx = 1\n")
    await bench.text("read", path="f.py")
    assert "lines 1, 3" in await bench.error("edit", path="f.py", old_string="x = 1", new_string="x = 2")
    await bench.text("edit", path="f.py", old_string="x = 1", new_string="x = 2", replace_all=True)
    assert path.read_text() == "x = 2\ny = 2\nx = 2\n"


async def test_a_file_that_was_not_read_takes_only_exact_edits(bench: Bench) -> None:
    path = bench.write("f.py", "secret  \n")
    assert "Read it first" in await bench.error("edit", path="f.py", old_string="secret\n", new_string="x\n")
    await bench.text("edit", path="f.py", old_string="secret", new_string="x")
    assert path.read_text() == "x  \n"


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"old_string": "", "new_string": "x"}, "empty"),
        ({"old_string": "a", "new_string": "a"}, "same"),
        ({"old_string": "1\ta\n2\tb", "new_string": "x"}, "line numbers"),
    ],
)
async def test_senseless_edits_say_why(bench: Bench, arguments: dict[str, str], part: str) -> None:
    bench.write("f.py", "a\nb\n")
    await bench.text("read", path="f.py")
    assert part in await bench.error("edit", path="f.py", **arguments)


async def test_the_subject_shows_the_change_before_it_is_made(bench: Bench) -> None:
    path = bench.write("f.py", "a\nb\n")
    prepared = await bench.prepare("edit", path="f.py", old_string="b", new_string="c")
    assert isinstance(prepared, PreparedCall)
    assert prepared.subject.diffs == (DiffView(path="f.py", diff="@@ -1,2 +1,2 @@\n a\n-b\n+c", added=1, removed=1),)
    assert path.read_text() == "a\nb\n"
    result = await run_call(prepared, bench.context, emit=lambda _: None)
    assert result.ui == prepared.subject.diffs


async def test_the_diff_of_a_huge_change_is_bounded_and_its_counts_are_exact(bench: Bench) -> None:
    bench.write("f.txt", "old\n" * 50_000)
    await bench.text("read", path="f.txt")
    result = await bench.call("write", path="f.txt", content="new " + "x" * 5_000_000 + "\n" + "new\n" * 60_000)
    (view,) = result.ui
    assert isinstance(view, DiffView)
    assert (view.added, view.removed) == (60_001, 50_000)
    assert len(view.diff) < 100_000
    assert "more lines of this diff" in view.diff


async def test_what_changed_while_the_user_decided_is_not_overwritten(bench: Bench) -> None:
    path = bench.write("f.py", "a\nb\n")
    prepared = await bench.prepare("edit", path="f.py", old_string="a", new_string="c")
    assert isinstance(prepared, PreparedCall)
    path.write_text("x a\nb\n")
    result = await run_call(prepared, bench.context, emit=lambda _: None)
    assert result.is_error
    assert path.read_text() == "x a\nb\n"


async def test_a_link_that_was_turned_while_the_user_decided_is_not_followed(bench: Bench) -> None:
    inside, outside = bench.write("in.txt", "a\n"), bench.work.parent / "out.txt"
    outside.write_text("a\n")
    link = bench.work / "link"
    link.symlink_to(inside)
    prepared = await bench.prepare("edit", path="link", old_string="a", new_string="b")
    assert isinstance(prepared, PreparedCall)
    link.unlink()
    link.symlink_to(outside)
    assert (await run_call(prepared, bench.context, emit=lambda _: None)).is_error
    assert outside.read_text() == "a\n"


async def test_mode_and_links_are_kept(bench: Bench) -> None:
    path = bench.write("run.sh", "echo a\n")
    path.chmod(0o755)
    (bench.work / "link.sh").symlink_to("run.sh")
    await bench.text("edit", path="link.sh", old_string="a", new_string="b")
    assert (bench.work / "link.sh").is_symlink()
    assert path.read_text() == "echo b\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o755
    assert sorted(os.listdir(bench.work)) == ["link.sh", "run.sh"]


async def test_two_names_of_one_file_stay_one_file(bench: Bench) -> None:
    path = bench.write("a.txt", "a\n")
    (bench.work / "b.txt").hardlink_to(path)
    await bench.text("edit", path="a.txt", old_string="a", new_string="b")
    assert (bench.work / "b.txt").read_text() == "b\n"


texts = st.text(st.sampled_from("ab \t\n\r“é中"), max_size=30).map(lambda text: text.replace("\r", "\r\n"))


@given(texts, st.data())
def test_r089_replacing_any_span_leaves_everything_else(text: str, data: st.DataObject) -> None:
    from tenuto.tool.edits.diff import crlf_offsets, original_offset

    plain = to_lf(text)
    start = data.draw(st.integers(0, len(plain)))
    end = data.draw(st.integers(start, len(plain)))
    places = crlf_offsets(text)
    a, b = original_offset(places, start), original_offset(places, end)
    assert to_lf(text[:a]) == plain[:start]
    assert to_lf(text[a:b]) == plain[start:end]
    assert splice_lines(text[a:b], plain[start:end], plain[start:end], "\n") == text[a:b]


@given(st.binary(max_size=200))
def test_r089_what_is_taken_for_text_encodes_to_the_same_bytes(data: bytes) -> None:
    content = decode_file(data)
    assert content is None or content.encode(content.text) == data


def test_exact_matches_do_not_overlap() -> None:
    assert [match.start for match in find_exact("aaaa", "aa", "x")] == [0, 2]


async def test_prepare_refuses_what_cannot_be_done_before_anyone_is_asked(bench: Bench) -> None:
    result = await bench.prepare("edit", path="nope.py", old_string="a", new_string="b")
    assert isinstance(result, ToolResultMessage)
    assert "does not exist" in text_of(result.parts)


# --- several edits in one call (B10) ---


def swap(old: str, new: str, **more: Any) -> dict[str, Any]:
    return {"old_string": old, "new_string": new, **more}


@pytest.mark.parametrize("name", FILES)
async def test_b10_several_edits_change_only_the_asked_bytes(bench: Bench, name: str) -> None:
    path = bench.write("f.txt", FILES[name])
    await bench.text("read", path="f.txt")
    encoding = "utf-16-le" if name == "utf-16-le" else "utf-16-be" if name == "utf-16-be" else "ascii"
    after = FILES[name].replace("one".encode(encoding), "1".encode(encoding))
    await bench.text("edit", path="f.txt", edits=[swap("two", "2"), swap("one", "1")])
    assert path.read_bytes() == after.replace("two".encode(encoding), "2".encode(encoding))


async def test_b10_each_edit_is_made_to_what_the_ones_before_it_leave(bench: Bench) -> None:
    path = bench.write("f.py", "a = 1\nb = 2\nb = 2\n")
    edits = [swap("a = 1", "a = 1\nc = 3"), swap("c = 3\nb", "c = 4\nb"), swap("b = 2", "b = 5", replace_all=True)]
    text = await bench.text("edit", path="f.py", edits=edits)
    assert path.read_text() == "a = 1\nc = 4\nb = 5\nb = 5\n"
    assert text == "Edited f.py with 3 edits (+3 −2). Edit 1: line 1; edit 2: line 2; edit 3: 2 places."


@pytest.mark.parametrize(
    ("failing", "parts"),
    [
        (swap("return compute(9, 9)", "x"), ("most similar lines", "2\t    return compute(1)")),
        (swap("pass", "x"), ("matches 2 places", "lines 5, 6")),
        (swap("", "x"), ("old_string is empty",)),
        (swap("pass", "pass"), ("are the same",)),
        (swap("def alpha", "x"), ("was not found",)),  # the edit before it has renamed it
    ],
)
async def test_b10_one_edit_that_fails_leaves_the_file_and_is_named(
    bench: Bench, failing: dict[str, Any], parts: tuple[str, ...]
) -> None:
    before = "def alpha():\n    return compute(1)\n\ndef beta():\n    pass\n    pass\n"
    path = bench.write("f.py", before)
    await bench.text("read", path="f.py")
    edits = [swap("def alpha", "def gamma"), failing, swap("def beta", "def delta")]
    prepared = await bench.prepare("edit", path="f.py", edits=edits)
    assert isinstance(prepared, ToolResultMessage), "nobody is asked for what cannot be done"
    text = text_of(prepared.parts)
    assert "Edit 2 of 3 failed, so none was made" in text
    assert all(part in text for part in parts), text
    assert path.read_text() == before
    assert sorted(os.listdir(bench.work)) == ["f.py"]


async def test_b10_the_next_edit_finds_the_file_as_a_call_of_its_own_would(bench: Bench) -> None:
    path = bench.write("f.txt", "café\ntwo “2” \n".encode("cp1252"))
    # Without its accent and quotes the file is plain text, which takes any letter; and an exact edit makes it known.
    edits = [swap("café", "cafe"), swap(" “2” \n", " 2 \n"), swap("cafe", "中"), swap("two 2\n", "three\n")]
    await bench.text("edit", path="f.txt", edits=edits)
    assert path.read_text(encoding="utf-8") == "中\nthree\n"


async def test_b10_edits_that_together_change_nothing_say_so(bench: Bench) -> None:
    bench.write("f.py", "a\n")
    assert "leave f.py as it is" in await bench.error("edit", path="f.py", edits=[swap("a", "b"), swap("b", "a")])


async def test_b10_one_approval_shows_one_diff_of_all(bench: Bench) -> None:
    path = bench.write("f.py", "a\nb\nc\n")
    prepared = await bench.prepare("edit", path="f.py", edits=[swap("a", "x"), swap("c", "z")])
    assert isinstance(prepared, PreparedCall)
    assert prepared.subject.summary == "f.py (2 edits)"
    diff = "@@ -1,3 +1,3 @@\n-a\n+x\n b\n-c\n+z"
    assert prepared.subject.diffs == (DiffView(path="f.py", diff=diff, added=2, removed=2),)
    result = await run_call(prepared, bench.context, emit=lambda _: None)
    assert result.ui == prepared.subject.diffs
    assert [use.path for use in result.files] == [str(path)]
    # The file counts as seen: what somebody else changes is noticed.
    path.write_text("x\nb\nZ\n")
    assert "has changed" in await bench.error("edit", path="f.py", edits=[swap("x", "y")])


async def test_b10_edits_far_apart_are_shown_as_the_lines_that_they_change(bench: Bench) -> None:
    lines = [f"line {number}" if number % 3 else "" for number in range(9_000)]
    bench.write("f.txt", "\n".join(lines))
    edits = [swap("line 1\n", "first\n"), swap("line 5000\n", ""), swap("line 8999", "last\nof all")]
    result = await bench.call("edit", path="f.txt", edits=edits)
    (view,) = result.ui
    assert isinstance(view, DiffView)
    assert (view.added, view.removed) == (3, 3)
    assert view.diff.count("@@ -") == 3


@given(
    st.lists(
        st.tuples(st.integers(0, 4_999), st.integers(0, 3), st.lists(st.sampled_from(["", "x", "line 7"]))), max_size=5
    )
)
def test_b10_the_difference_of_large_texts_leads_from_one_to_the_other(
    changes: list[tuple[int, int, list[str]]],
) -> None:
    old = [f"line {number}" if number % 3 else "" for number in range(5_000)]
    new = list(old)
    for place, removed, added in changes:
        new[place : place + removed] = added
    made: list[str] = []
    at = new_at = 0
    for tag, start, stop, new_start, new_stop in compare_lines(old, new):
        assert (start, new_start) == (at, new_at)
        made += old[start:stop] if tag == "equal" else new[new_start:new_stop]
        at, new_at = stop, new_stop
    assert (made, at, new_at) == (new, len(old), len(new))


async def test_b10_a_tolerant_match_among_several_is_shown(bench: Bench) -> None:
    path = bench.write("f.py", "say(“hi”)\nx \ny\n")
    await bench.text("read", path="f.py")
    text = await bench.text("edit", path="f.py", edits=[swap("y\n", "z\n"), swap('say("hi")', 'say("ho")')])
    assert path.read_text() == "say(“ho”)\nx \nz\n"
    assert "did not match exactly (quotes" in text
    assert "+say(“ho”)" in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "old_string and new_string, or edits: required and missing"),
        ({"edits": []}, "old_string and new_string, or edits: required and missing"),
        ({"old_string": "a"}, "- new_string: required and missing"),
        ({"new_string": "a"}, "- old_string: required and missing"),
        ({"old_string": "a", "new_string": "b", "edits": [swap("a", "b")]}, "not both"),
        ({"replace_all": True, "edits": [swap("a", "b")]}, "set it in those that need it"),
        ({"edits": [{"old_string": "a"}]}, "- edits.0.new_string: required and missing"),
        ({"edits": "a to b"}, "- edits: Input should be a valid list"),
    ],
)
async def test_b10_one_form_or_the_other(bench: Bench, arguments: dict[str, Any], message: str) -> None:
    path = bench.write("f.py", "a\n")
    assert message in await bench.error("edit", path="f.py", **arguments)
    assert path.read_text() == "a\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "f.py", "edits": [{"old_str": "a", "new_str": "b"}]},
        {"path": "f.py", "edits": [{"oldText": "a", "newText": "b", "replace_all": None}]},
        {"path": "f.py", "edits": '[{"old_string": "a", "new_string": "b"}]'},
        {"path": "f.py", "old_string": "", "new_string": "", "replace_all": False, "edits": [swap("a", "b")]},
        {"path": "f.py", "old_str": "a", "new_str": "b", "edits": []},
    ],
)
async def test_b10_what_other_harnesses_call_it(bench: Bench, arguments: dict[str, Any]) -> None:
    path = bench.write("f.py", "a\n")
    await bench.text("edit", **arguments)
    assert path.read_text() == "b\n"


small_files = st.builds(
    lambda lines, newline, encoding: newline.join(lines).encode(encoding),
    st.lists(st.sampled_from(["one", "two  ", "  “three”", "café", "", "one"]), min_size=1, max_size=5),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["utf-8", "utf-8-sig", "cp1252", "utf-16"]),
)


@st.composite
def small_edits(draw: st.DrawFn, data: bytes) -> list[dict[str, Any]]:
    """Quote what the edits before leave, mostly: sometimes with other quotes or white space, rarely something else."""
    content = decode_file(data)
    text = to_lf(content.text) if content is not None else ""
    calls: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(2, 4))):
        lines = text.split("\n")
        first = draw(st.integers(0, len(lines) - 1))
        exact = "\n".join(lines[first : first + draw(st.integers(1, 2))])
        change = draw(st.sampled_from(["exact", "exact", "exact", "loose", "word"]))
        old = {"exact": exact, "loose": exact.strip().translate(str.maketrans("“”", '""')), "word": "one"}[change]
        new = draw(st.sampled_from(["one", "1", "", "two\nthree", "中", "plain", "a“b”"]))
        calls.append(swap(old, new, replace_all=draw(st.booleans())))
        text = text.replace(exact, new, 1) if exact else text
    return calls


@given(st.data(), small_files, st.booleans())
def test_b10_a_list_does_what_its_edits_do_one_by_one_or_nothing(
    drawn: st.DataObject, data: bytes, is_read: bool
) -> None:
    calls = drawn.draw(small_edits(data))

    async def work(root: Path) -> None:
        bench = make_bench(root)
        single, several = bench.write("single.txt", data), bench.write("several.txt", data)
        for name in ("single.txt", "several.txt") if is_read else ():
            await bench.call("read", path=name)
        failed = 0
        for number, call in enumerate(calls, 1):
            if (await bench.call("edit", path="single.txt", **call)).is_error:
                failed = number
                break
        result = await bench.call("edit", path="several.txt", edits=calls)
        wanted = data if failed else single.read_bytes()
        assert several.read_bytes() == wanted
        assert result.is_error == (wanted == data), text_of(result.parts)
        if failed:
            assert f"Edit {failed} of {len(calls)} failed" in text_of(result.parts) or _senseless(calls)
        await bench.context.close()
        bench.session.close()

    with TemporaryDirectory() as root:
        asyncio.run(work(Path(root)))


def _senseless(calls: list[dict[str, Any]]) -> bool:
    """Whether one of them is refused before the file is looked at."""
    return any(call["old_string"] in ("", call["new_string"]) for call in calls)
