"""`apply_patch`: several files at once, all of it or nothing (B10)."""

from __future__ import annotations

import asyncio
import stat
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenuto.core.files_back import plan_restores, restore_planned
from tenuto.protocol.message import ToolResultMessage
from tenuto.tool.run.runner import PreparedCall, run_call
from tests.tool.support import Bench, make_bench

APP = "class A:\n    def f(self):\n        return 1\n\nclass B:\n    def f(self):\n        return 1\n"


def patch(*lines: str) -> str:
    return "\n".join(["*** Begin Patch", *lines, "*** End Patch"])


def update(path: str, *lines: str) -> str:
    return patch(f"*** Update File: {path}", *lines)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


async def apply(bench: Bench, text: str) -> str:
    return await bench.text("apply_patch", input=text)


async def refused(bench: Bench, text: str) -> str:
    before = tree(bench.work)
    error = await bench.error("apply_patch", input=text)
    assert tree(bench.work) == before
    assert error.startswith("The patch was not applied; no file was changed.")
    return error


async def test_b10_files_are_added_changed_moved_and_deleted_by_one_call(bench: Bench) -> None:
    bench.write("app.py", APP)
    bench.write("b.sh", "#!/bin/sh\necho b\n").chmod(0o755)
    old = bench.write("old.py", "x\n")
    text = patch(
        "*** Add File: lib/new.py", "+a = 1", "+",
        "*** Update File: app.py", "@@ class B:", "     def f(self):", "-        return 1", "+        return 2",
        "*** Update File: b.sh", "*** Move to: bin/b", "@@", "-echo b", "+echo c",
        "*** Delete File: old.py",
    )  # fmt: skip
    result = await bench.call("apply_patch", input=text)
    assert tree(bench.work) == {
        "lib/new.py": b"a = 1\n\n",
        "app.py": APP.replace(
            "class B:\n    def f(self):\n        return 1", "class B:\n    def f(self):\n        return 2"
        ).encode(),
        "bin/b": b"#!/bin/sh\necho c\n",
    }
    assert stat.S_IMODE((bench.work / "bin/b").stat().st_mode) == 0o755
    uses = {(str(Path(use.path).relative_to(bench.work)), use.op, bool(use.sha256)) for use in result.files}
    assert uses == {
        ("lib/new.py", "write", True), ("app.py", "edit", True), ("bin/b", "edit", True),
        ("b.sh", "delete", False), ("old.py", "delete", False),
    }  # fmt: skip
    shown = [(view.path, view.created, view.deleted, view.moved_from) for view in result.ui]
    assert shown == [
        ("lib/new.py", True, False, ""),
        ("app.py", False, False, ""),
        ("bin/b", False, False, "b.sh"),
        ("old.py", False, True, ""),
    ]
    text = result.parts[0].text
    assert text == (
        "The patch was applied to 4 files:\nA lib/new.py (+2 −0)\nM app.py (+1 −1)\nM b.sh -> bin/b (+1 −1)\nD old.py"
    )
    assert not old.exists()


async def test_b10_what_was_moved_and_deleted_comes_back(bench: Bench) -> None:
    bench.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    bench.write("old.py", b"\xef\xbb\xbfx\r\n")
    bench.write("keep.py", "a\n")
    before = tree(bench.work)
    text = patch(
        "*** Update File: run.sh", "*** Move to: bin/run", "*** Delete File: old.py", "*** Update File: keep.py",
        "@@", "-a", "+b", "*** Add File: new.py", "+n",
    )  # fmt: skip
    result = await bench.call("apply_patch", input=text)
    store = bench.session.store
    restored = restore_planned(plan_restores([result]), store.load_bytes, store.save_bytes)
    assert {one.outcome for one in restored} == {"restored", "removed"}
    assert tree(bench.work) == before
    assert stat.S_IMODE((bench.work / "run.sh").stat().st_mode) == 0o755


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\n2b\r\nthree\r\n"),
        (b"one\r\ntwo\nthree\r\n", b"one\r\n2\n2b\nthree\r\n"),
        (b"one\ntwo\nthree", b"one\n2\n2b\nthree"),
        (b"\xef\xbb\xbfone\r\ntwo\r\nthree\r\n", b"\xef\xbb\xbfone\r\n2\r\n2b\r\nthree\r\n"),
        (
            b"\xff\xfe" + "one\ntwo\nthree ü\n".encode("utf-16-le"),
            b"\xff\xfe" + "one\n2\n2b\nthree ü\n".encode("utf-16-le"),
        ),
        ("one\ntwo\nthree café\n".encode("latin-1"), "one\n2\n2b\nthree café\n".encode("latin-1")),
    ],
)
async def test_b10_encoding_and_line_ends_stay(bench: Bench, before: bytes, after: bytes) -> None:
    path = bench.write("f.txt", before)
    await apply(bench, update("f.txt", "@@", " one", "-two", "+2", "+2b"))
    if before.count(b"\r\n") == 2 and before.count(b"\n") == 3:  # of both kinds: the place decides
        assert path.read_bytes().replace(b"\r\n", b"\n") == after.replace(b"\r\n", b"\n")
        assert path.read_bytes().startswith(b"one\r\n2\n")
    else:
        assert path.read_bytes() == after


LINES = st.lists(st.sampled_from(["a", "b", "  c", "", "d "]), min_size=1, max_size=8)


@settings(deadline=None)
@given(LINES, LINES, st.booleans(), st.sampled_from(["\n", "\r\n"]), st.data())
def test_b10_a_hunk_over_the_whole_file_makes_it_what_was_asked(
    old: list[str], new: list[str], ends: bool, newline: str, data: st.DataObject
) -> None:
    """The rest of the file never changes, whatever is around it."""
    head, tail = data.draw(LINES), data.draw(LINES)
    lines = ["HEAD", *head, "BEGIN", *old, "END", *tail]
    made = ["HEAD", *head, "BEGIN", *new, "END", *tail]
    text = update("f", "@@", " BEGIN", *(f"-{line}" for line in old), *(f"+{line}" for line in new), " END")

    async def run(root: Path) -> bytes:
        bench = make_bench(root)
        path = bench.write("f", newline.join(lines) + (newline if ends else ""))
        result = await bench.call("apply_patch", input=text)
        assert result.is_error is (old == new)
        await bench.context.close()
        bench.session.close()
        return path.read_bytes()

    with TemporaryDirectory() as root:
        found = asyncio.run(run(Path(root)))
    assert found == (newline.join(made) + (newline if ends else "")).encode()


async def test_b10_one_hunk_without_a_place_leaves_every_file_as_it_was(bench: Bench) -> None:
    bench.write("a.py", "a = 1\n")
    bench.write("b.py", "first = 1\nsecond = 2\nthird = 3\n")
    await bench.text("read", path="b.py")
    error = await refused(
        bench,
        patch(
            "*** Update File: a.py", "@@", "-a = 1", "+a = 2", "*** Add File: c.py", "+c", "*** Update File: b.py",
            "@@", "-first = 1", "+first = 10", "@@", "-secnd = 2", "+second = 20",
        ),
    )  # fmt: skip
    assert "Hunk 2 of 2 for b.py has no place" in error
    assert "2\tsecond = 2" in error


async def test_b10_a_failed_write_takes_back_what_was_written_before(bench: Bench) -> None:
    bench.write("a.py", "a\n")
    bench.write("b.py", "b\n")
    text = patch(
        "*** Update File: a.py",
        "@@",
        "-a",
        "+A",
        "*** Add File: d/new.py",
        "+n",
        "*** Update File: b.py",
        "@@",
        "-b",
        "+B",
    )
    prepared = await bench.prepare("apply_patch", input=text)
    assert isinstance(prepared, PreparedCall)
    real = bench.context.keep_before
    calls: list[bytes] = []

    def keep(data: bytes) -> str:
        calls.append(data)
        if data == b"b\n":  # in the middle of the writing the file becomes something else
            (bench.work / "b.py").unlink()
            (bench.work / "b.py").mkdir()
        return real(data)

    bench.context.keep_before = keep
    result = await run_call(prepared, bench.context, emit=lambda _: None)
    assert result.is_error
    assert not result.files
    assert (bench.work / "a.py").read_bytes() == b"a\n"
    assert not (bench.work / "d/new.py").exists()
    assert b"a\n" in calls


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("@@", "-        return 1", "+        return 2"), "matches 2 places: lines 3, 7"),
        (("@@ class C:", "-        return 1", "+        return 2"), "the line after @@ was not found"),
        (("@@ class B:", "-class A:", "+class Z:"), "its lines stand at line 1, before"),
        (("@@", " class B:", "-        return 7", "+x"), "The most similar lines are"),
        (("@@", "-3\t        return 1", "+x"), "without the line numbers"),
        (("@@", "-class A:", "+class Z:", "*** End of File"), "not found at the end of the file"),
        (("@@", " class A:"), "already reads like that"),
    ],
)
async def test_b10_a_hunk_without_one_place_says_why(bench: Bench, lines: tuple[str, ...], found: str) -> None:
    bench.write("app.py", APP)
    await bench.text("read", path="app.py")
    assert found in await refused(bench, update("app.py", *lines))


async def test_b10_hunks_are_found_as_models_write_them(bench: Bench) -> None:
    path = bench.write("app.py", APP)
    await apply(
        bench,
        update(
            "app.py",
            "@@ -1,3 +1,3 @@ class B:",
            "-class A:",
            "+class Z:",
            "",
            "@@ class B:",
            "@@ def f(self):",
            "-        return 1",
            "+        return 2",
        ),
    )
    assert path.read_text() == APP.replace("class A", "class Z")[:-2] + "2\n"
    await apply(bench, update("app.py", "@@", "+# the end"))
    assert path.read_text().endswith("return 2\n# the end\n")
    await apply(bench, update("app.py", "@@     def f(self):", "+        # first"))
    assert "class Z:\n    def f(self):\n        # first\n" in path.read_text()


async def test_b10_a_loose_find_needs_a_file_that_was_read_and_one_place(bench: Bench) -> None:
    path = bench.write("app.py", "def f():\n    return 1  \n")
    text = update("app.py", "@@", "-return 1", "+return 2", "+# done")
    assert "read it first" in await refused(bench, text)
    await bench.text("read", path="app.py")
    assert "indentation differed" in await apply(bench, text)
    assert path.read_text() == "def f():\n    return 2\n    # done\n"


async def test_b10_a_file_that_changed_since_it_was_read_is_shown_and_kept(bench: Bench) -> None:
    path = bench.write("a.py", "a\nb\n")
    await bench.text("read", path="a.py")
    path.write_text("a\nc\n")
    assert "-b\n+c" in await refused(bench, update("a.py", "@@", "-a", "+A"))
    await apply(bench, update("a.py", "@@", "-a", "+A"))
    assert path.read_text() == "A\nc\n"


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (("*** Update File: no.py", "@@", "-a", "+b"), "no.py does not exist"),
        (("*** Delete File: no.py",), "no.py does not exist"),
        (("*** Add File: a.py", "+x"), "exists and you have not read it"),
        (("*** Update File: a.py", "*** Move to: b.py"), "b.py exists already"),
        (("*** Update File: a.py", "*** Move to: a.py"), "to where it is"),
        (("*** Add File: a.py/x", "+x"), "is a file, so nothing can be put below it"),
        (("*** Delete File: link.py",), "is a link to"),
        (("*** Update File: link.py", "*** Move to: x.py"), "is a link to"),
        (("*** Add File: n.py", "+x", "*** Delete File: n.py"), "leaves all files as they are"),
        (("*** Update File: bin.dat", "@@", "-a", "+b"), "binary"),
        (("*** Delete File: d",), "directory"),
    ],
)
async def test_b10_what_cannot_be_done_is_said_and_nothing_is(bench: Bench, lines: tuple[str, ...], found: str) -> None:
    bench.write("a.py", "a\n")
    bench.write("b.py", "b\n")
    bench.write("bin.dat", bytes(range(256)))
    (bench.work / "d").mkdir()
    (bench.work / "link.py").symlink_to("a.py")
    assert found in await refused(bench, patch(*lines))


async def test_b10_later_sections_see_what_earlier_ones_did(bench: Bench) -> None:
    bench.write("a.py", "one\ntwo\n")
    await apply(
        bench,
        patch(
            "*** Update File: a.py", "@@", "-one", "+1", "*** Update File: a.py", "@@", " 1", "-two", "+2",
            "*** Add File: n.py", "+n", "*** Update File: n.py", "@@", "-n", "+m",
        ),
    )  # fmt: skip
    assert tree(bench.work) == {"a.py": b"1\n2\n", "n.py": b"m\n"}


async def test_b10_the_subject_has_every_real_path_and_the_diff_of_each_file(bench: Bench, tmp_path: Path) -> None:
    bench.write("a.py", "a\n")
    outside = tmp_path / "outside.py"
    outside.write_text("o\n")
    (bench.work / "link.py").symlink_to(outside)
    text = patch(
        "*** Update File: a.py", "*** Move to: .git/hooks/pre-commit", "@@", "-a", "+b",
        "*** Update File: link.py", "@@", "-o", "+p",
    )  # fmt: skip
    prepared = await bench.prepare("apply_patch", input=text)
    assert isinstance(prepared, PreparedCall)
    subject = prepared.subject
    work = bench.context.workspace
    assert subject.paths == (str(work / "a.py"), str(work / ".git/hooks/pre-commit"), str(outside.resolve()))
    assert subject.concerns == (".git/hooks/pre-commit can make other programs run code",)
    assert subject.pattern == ""
    assert [Path(diff.path).name for diff in subject.diffs] == ["pre-commit", "outside.py"]
    assert tree(bench.work)["a.py"] == b"a\n"


async def test_b10_nothing_is_read_before_the_paths_may_be_looked_at(bench: Bench) -> None:
    prepared = await bench.prepare("apply_patch", input=update("../secret", "@@", "-guess", "+x"))
    assert isinstance(prepared, PreparedCall | ToolResultMessage)
    from tenuto.tool.apply_patch import ApplyPatchTool

    tool = ApplyPatchTool()
    (bench.work.parent / "secret").write_text("guess\n")
    place = tool.place(tool.parse({"input": update("../secret", "@@", "-guess", "+x")}), bench.context)
    assert place.paths == (str(bench.work.parent.resolve() / "secret"),)
    assert not place.diffs


async def test_b10_what_was_approved_is_what_is_written(bench: Bench) -> None:
    bench.write("a.py", "a\nz\n")
    prepared = await bench.prepare("apply_patch", input=update("a.py", "@@", "-a", "+b"))
    assert isinstance(prepared, PreparedCall)
    bench.write("a.py", "a\ny\n")
    result = await run_call(prepared, bench.context, emit=lambda _: None)
    assert result.is_error
    assert (bench.work / "a.py").read_text() == "a\ny\n"


async def test_b10_a_cut_patch_changes_nothing(bench: Bench) -> None:
    bench.write("a.py", "a\n")
    text = update("a.py", "@@", "-a", "+b")
    for place in range(len(text)):
        assert ("is cut off" if place >= 15 else "begins with") in await refused(bench, text[:place])


async def test_s7_a_patch_writes_no_mask_in_the_place_of_a_secret(bench: Bench) -> None:
    bench.write("key.txt", "a\nb\n")
    await bench.text("read", path="key.txt")
    assert "That is a mask" in await refused(bench, update("key.txt", "@@", "-b", "+[masked: MY_TOKEN]"))
    assert "That is a mask" in await refused(bench, patch("*** Add File: new.txt", "+[masked: MY_TOKEN]"))
