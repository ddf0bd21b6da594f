"""What is left when the leaf moves, and what notes on it are made from."""

from __future__ import annotations

import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from tenuto.compaction.summary.branch import (
    OUTPUT,
    branch_entry,
    common_ancestor,
    digest_branch,
    leave_branch,
    length_for,
    room_for,
)
from tenuto.compaction.summary.view import SessionData
from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry, TodoItem
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionDetails,
    CompactionEntry,
    FileUse,
    HistoryEvent,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.session import Session

RESERVE = 16_384


def user(seq: int, text: str) -> UserMessage:
    return UserMessage(seq=seq, parts=(TextPart(text=text),))


def answer(seq: int, text: str) -> AssistantMessage:
    return AssistantMessage(seq=seq, parts=(TextPart(text=text),))


def step(seq: int, path: str, op: str = "read") -> list[HistoryEvent]:
    call = ToolCallPart(id=f"c{seq}", name=op, arguments=f'{{"path": "{path}"}}')
    use = FileUse(path=path, op=op)  # type: ignore[arg-type]
    return [
        AssistantMessage(seq=seq, parts=(call,)),
        ToolResultMessage(seq=seq + 1, call_id=f"c{seq}", name=op, parts=(TextPart(text="ok"),), files=(use,)),
    ]


moves = st.lists(st.one_of(st.none(), st.integers(1, 30)), min_size=1, max_size=30)


@given(moves, st.integers(0, 30), st.integers(0, 30))
def test_the_ancestor_is_the_deepest_entry_on_both_paths(moves, first, second):
    with tempfile.TemporaryDirectory() as folder:
        session = Session.create(Path(folder), Path(folder), durability="none")
        for move in moves:
            last = session.path()[-1].seq if len(session.path()) else 0
            session.append(user(0, "x") if move is None or not last else BranchEntry(parent=min(move, last)))
        old, new = session.path_to(first), session.path_to(second)
        ancestor = common_ancestor(old, new)
        shared = {entry.seq for entry in old} & {entry.seq for entry in new}
        assert ancestor == max(shared, default=0) == common_ancestor(list(old), list(new))
        left = leave_branch(old, new, 1_000)
        assert [entry.seq for entry in left.left] == [entry.seq for entry in old if entry.seq not in shared]
        session.close()


def test_the_newest_is_read_first_and_a_summary_stands_for_what_does_not_fit():
    path = [
        user(1, "kept"),
        user(2, "first left " * 400),
        CompactionEntry(seq=3, summary="what was said at first", first_kept_index=2),
        user(4, "middle " * 400),
        answer(5, "late"),
        user(6, "the very last"),
    ]
    whole = leave_branch(path, path[:1], 100_000)
    assert [entry.seq for entry in whole.read] == [2, 4, 5, 6], "a summary beside what it stands for says nothing new"
    part = leave_branch(path, path[:1], 300)
    assert [entry.seq for entry in part.read] == [3, 5, 6]
    assert isinstance(part.read[0], BranchSummaryEntry)
    assert part.read[0].summary == "what was said at first"
    assert part.tokens <= 300
    assert leave_branch(path, path[:1], 1).read[-1].seq == 6, "at least one entry"


def test_files_add_up_over_steps_notes_and_compactions():
    path: list[HistoryEvent] = [
        user(1, "kept"),
        *step(2, "/a.py"),
        *step(4, "/b.py", "edit"),
        BranchSummaryEntry(
            seq=6, summary="s", from_seq=3, details={"read_files": ["/c.py"], "modified_files": ["/d.py"]}
        ),
        CompactionEntry(
            seq=7, summary="t", details=CompactionDetails(read_files=("/e.py",), modified_files=("/a.py",))
        ),
        CompactionEntry(seq=8, summary="u", details=CompactionDetails(read_files=("/f.py",))),
    ]
    entry = branch_entry(leave_branch(path, path[:1], 10_000), "notes")
    assert entry.details == {"read_files": ["/c.py", "/e.py", "/f.py"], "modified_files": ["/a.py", "/b.py", "/d.py"]}
    assert "<modified-files>\n/{a,b,d}.py\n</modified-files>" in entry.summary
    assert entry.from_seq == 8
    assert branch_entry(leave_branch(path[:1], [], 100), "notes").details == {}


def test_the_digest_has_the_usual_headings_and_the_todo_list():
    path = [user(1, "kept"), user(2, "mend the parser"), answer(3, "the port is 8443")]
    branch = leave_branch(path, path[:1], 10_000)
    notes = digest_branch(branch, SessionData(todo=(TodoItem(text="write tests", status="pending"),)), 1_000)
    for text in ("## Goal", "mend the parser", "## Next Steps", "write tests", "8443", "without a model"):
        assert text in notes
    assert notes.index("## Goal") < notes.index("## Next Steps")


@given(st.integers(2_000, 2_000_000), st.floats(0.5, 4))
def test_room_and_length_leave_the_reserve_free(window, calibration):
    room = room_for(window, calibration, RESERVE)
    assert room >= 1_000
    if room > 1_000:
        assert room * calibration <= window - min(RESERVE, window // 4) + calibration
    assert 0 < length_for(window) <= OUTPUT
