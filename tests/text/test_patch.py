"""Patches over several files: what is written reads as the same, and what was cut off reads as nothing (B10)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.text.patch import (
    AddFile,
    DeleteFile,
    Hunk,
    HunkLine,
    Patch,
    PatchError,
    UpdateFile,
    is_whole,
    parse_patch,
    patched_files,
)

PATCH = """\
*** Begin Patch
*** Add File: new.py
+a = 1
+
*** Delete File: old.py
*** Update File: app.py
*** Move to: lib/app.py
@@ class A:
@@     def f(self):
         x = 1
-        y = 2
+        y = 3

@@
-z
*** End of File
*** End Patch
"""

LINE = st.text(st.characters(blacklist_characters="\n\r", blacklist_categories=("Cs",)), max_size=12)
PATH = st.text("abc/._- ü", min_size=1, max_size=8).map(str.strip).filter(bool)
HUNK = st.builds(
    Hunk,
    st.lists(st.builds(HunkLine, st.sampled_from(" -+"), LINE), min_size=1, max_size=5).map(tuple),
    st.lists(LINE.filter(str.strip), max_size=2).map(tuple),
    st.booleans(),
)
SECTION = st.one_of(
    st.builds(AddFile, PATH, st.lists(LINE, max_size=4).map(tuple)),
    st.builds(DeleteFile, PATH),
    st.builds(UpdateFile, PATH, st.lists(HUNK, min_size=1, max_size=3).map(tuple), st.just("") | PATH),
)
PATCHES = st.lists(SECTION, min_size=1, max_size=4).map(tuple)


def print_patch(patch: Patch) -> str:
    lines = ["*** Begin Patch"]
    for section in patch:
        match section:
            case AddFile(path, added):
                lines += [f"*** Add File: {path}", *(f"+{line}" for line in added)]
            case DeleteFile(path):
                lines.append(f"*** Delete File: {path}")
            case UpdateFile(path, hunks, move_to):
                lines += [f"*** Update File: {path}", *([f"*** Move to: {move_to}"] if move_to else [])]
                lines += [line for hunk in hunks for line in print_hunk(hunk)]
    return "\n".join([*lines, "*** End Patch", ""])


def print_hunk(hunk: Hunk) -> list[str]:
    changed = [f"{line.sign}{line.text}" for line in hunk.lines]
    return [*([f"@@ {anchor}" for anchor in hunk.anchors] or ["@@"]), *changed, *["*** End of File"] * hunk.at_end]


def test_b10_every_part_of_the_format_is_read() -> None:
    assert parse_patch(PATCH) == (
        AddFile("new.py", ("a = 1", "")),
        DeleteFile("old.py"),
        UpdateFile(
            "app.py",
            (
                Hunk(
                    (
                        HunkLine(" ", "        x = 1"),
                        HunkLine("-", "        y = 2"),
                        HunkLine("+", "        y = 3"),
                        HunkLine(" ", ""),
                    ),
                    ("class A:", "    def f(self):"),
                ),
                Hunk((HunkLine("-", "z"),), at_end=True),
            ),
            "lib/app.py",
        ),
    )
    assert patched_files(PATCH) == [
        ("Add", "new.py"),
        ("Delete", "old.py"),
        ("Update", "app.py"),
        ("Move", "lib/app.py"),
    ]


@given(PATCHES)
def test_b10_a_printed_patch_reads_as_the_same(patch: Patch) -> None:
    assert parse_patch(print_patch(patch)) == patch
    assert parse_patch(print_patch(patch).replace("\n", "\r\n")) == patch


@given(PATCHES, st.data())
def test_b10_a_patch_that_was_cut_anywhere_is_refused(patch: Patch, data: st.DataObject) -> None:
    text = print_patch(patch).rstrip("\n")
    cut = text[: data.draw(st.integers(0, len(text) - 1))]
    with pytest.raises(PatchError) as error:
        parse_patch(cut)
    assert str(error.value)
    assert is_whole(text)
    assert not is_whole(cut)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "begins with"),
        ("--- a/x\n+++ b/x\n", "begins with"),
        ("*** Begin Patch\n*** End Patch", "changes no file"),
        ("*** Begin Patch\nx.py\n*** End Patch", "line 2 of the patch: a file begins with"),
        ("*** Begin Patch\n*** Add File: \n*** End Patch", "line 2 of the patch: the path is missing"),
        ("*** Begin Patch\n*** Add File: x\nbare\n*** End Patch", "line 3 of the patch: each line of a new file"),
        ("*** Begin Patch\n*** Update File: x\n@@\nbare\n*** End Patch", "line 4 of the patch: each line of a change"),
        ("*** Begin Patch\n*** Update File: x\n*** End Patch", "no change follows"),
        ("*** Begin Patch\n*** Update File: x\n@@ a\n*** End Patch", "a hunk has no lines"),
        ("*** Begin Patch\n*** Delete File: x\n*** End Patch\nmore", "nothing may come behind"),
    ],
)
def test_b10_the_fault_of_a_patch_is_named_with_its_line(text: str, complaint: str) -> None:
    with pytest.raises(PatchError, match=complaint.replace("*", r"\*")):
        parse_patch(text)


@pytest.mark.parametrize("wrap", ["```\n{}```", "```diff\n{}```\n", "apply_patch <<'EOF'\n{}EOF\n", "<<EOF\n{}EOF"])
def test_b10_a_fence_or_here_document_around_it_does_not_count(wrap: str) -> None:
    assert parse_patch(wrap.format(PATCH)) == parse_patch(PATCH)
