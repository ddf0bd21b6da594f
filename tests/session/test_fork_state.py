"""What holds in a session holds in its copy: what was chosen behind the end of the path, or on another branch."""

from __future__ import annotations

import random
import tempfile
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.entry import (
    ApprovalEntry,
    BranchEntry,
    DirectoryEntry,
    ModeEntry,
    ModelEntry,
    MovedEntry,
)
from tenuto.session.session import Session
from tests.session.build import answer, log_of, new_session, reopen, user

PLACES = ("/one", "/two")
APPROVALS = (
    ApprovalEntry(tool="bash", pattern="rm *"),
    ApprovalEntry(tool="bash", pattern="rm *", effect="deny"),
    ApprovalEntry(tool="bash", pattern="dd *", effect="ask"),
)
CHANGES = (
    *(ModeEntry(mode=mode) for mode in ("ask", "edits", "auto", "plan")),
    *(ModelEntry(model=model, effort=effort) for model in ("a/large", "a/small") for effort in ("", "high")),
    *(MovedEntry(cwd=place) for place in PLACES),
    *(DirectoryEntry(path=place, withdrawn=withdrawn) for place in PLACES for withdrawn in (False, True)),
    *APPROVALS,
    *(msgspec.structs.replace(approval, withdrawn=True) for approval in APPROVALS),
)


def held(session: Session) -> tuple[object, ...]:
    state = session.state
    answers = {(entry.tool, entry.pattern, entry.effect) for entry in state.approvals}
    return state.mode, state.model, state.effort, session.cwd, set(state.directories), answers


def test_a_fork_behind_a_rewind_has_the_mode_and_the_approvals_that_hold_and_no_earlier_ones(tmp_path):
    session = new_session(tmp_path)
    for entry in (ModeEntry(mode="auto"), APPROVALS[0], DirectoryEntry(path="/one"), MovedEntry(cwd="/one")):
        session.append(entry)
    place = session.append(user("one")).seq
    session.append(ModeEntry(mode="ask"))
    session.append(msgspec.structs.replace(APPROVALS[0], withdrawn=True))
    session.append(DirectoryEntry(path="/one", withdrawn=True))
    session.append(MovedEntry(cwd=str(tmp_path)))
    session.append(BranchEntry(parent=place))
    session.append(user("two"))
    for seq in (0, place):
        fork = reopen(session.fork(tmp_path, seq))
        assert (fork.state.mode, fork.state.approvals, fork.state.directories) == ("ask", (), ())
        assert fork.cwd == tmp_path


@given(st.lists(st.integers(0, 2**20), min_size=1, max_size=25))
def test_a_fork_from_anywhere_holds_what_the_session_holds_and_writes_nothing_where_that_is_so(steps):
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        session = new_session(home)
        seqs = [session.append(user("first")).seq]
        for step in steps:
            source = random.Random(step)
            branch = BranchEntry(parent=source.choice(seqs))
            entry = source.choice([*source.sample(CHANGES, 3), user("said"), answer("answered"), branch])
            seqs.append(session.append(entry).seq)
        for seq in (0, random.Random(steps[0]).choice(seqs)):
            fork = session.fork(home, seq)
            assert held(fork) == held(session)
            again = fork.fork(home)
            assert len(log_of(again).read_bytes().splitlines()) == len(log_of(fork).read_bytes().splitlines())
            again.close()
            fork = reopen(fork)
            assert held(fork) == held(session)
            fork.close()
        session.close()
