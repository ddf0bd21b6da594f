"""A session opened by its end is the session read whole, whatever happened to log, metadata and index."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tenuto.protocol.entry import BranchEntry, ModelEntry
from tenuto.session.library.meta import META_NAME
from tenuto.session.log import history
from tenuto.session.log.history import INDEX_NAME
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tests.examples import few_examples
from tests.session.build import RandomHistory, log_of, new_session
from tests.session.whole import WholeSession, check_equal

DAMAGE = [
    b"\0" * 50 + b"\n",
    b'{"type":"user","seq":',
    b"\xff\xfe\n",
    b"\n\r\n",
    b'{"type":"later","seq":1}\n',
    b'{"type":"user","seq":3,"parts":[]}\n',
    b'{"type":"user","seq":90000,"parts":[{"ty' + b'{"type":"user","seq":2000,"parts":[]}' * 2 + b"\n",
    b'{"type":"branch","seq":4000,"parent":2}\n',
]
STEPS = st.lists(st.integers(0, 2**20), min_size=20, max_size=40)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    monkeypatch.setattr(history, "BLOCK_ENTRIES", 4)


def killed(session: Session, home: Path, number: int) -> Path:
    """Return a copy of the session's folder as a kill would leave it."""
    directory = home / f"killed-{number}"
    shutil.copytree(session.directory, directory)
    return directory


def break_sidecars(directory: Path, source: random.Random, other: Path) -> None:
    """Do something to metadata and index that must make no difference."""
    for name in (META_NAME, INDEX_NAME):
        path = directory / name
        if not path.exists() or not path.stat().st_size or source.random() < 0.4:
            continue
        data = path.read_bytes()
        at = source.randrange(len(data))
        match source.randrange(6):
            case 0:
                path.unlink()
            case 1:
                path.write_bytes(data[:at])
            case 2:
                path.write_bytes(data[:at] + bytes([data[at] ^ (1 << source.randrange(7))]) + data[at + 1 :])
            case 3:
                path.write_bytes(data + data[at:])
            case 4:
                shutil.copy(other / name, path) if (other / name).exists() else path.write_bytes(b"")
            case _:
                path.write_bytes(data[:at] + data[at + 1 :])


def rounds(steps: list[int], home: Path) -> Iterator[tuple[Session, random.Random]]:
    """Yield a session that grew wildly, was closed or killed and broken, and opened again, many times."""
    foreign = new_session(home)
    for step in steps[:12]:
        foreign.append(RandomHistory(random.Random(step + 1)).next(list(foreign.entries())))
    foreign.close()
    session = new_session(home)
    older = home / "older"
    for number, step in enumerate(steps):
        source = random.Random(step)
        choice = source.randrange(12)
        if choice > 3:
            session.append(RandomHistory(source).next(list(session.entries())))
            continue
        if choice == 0:
            session.save_meta()
            shutil.copytree(session.directory, older, dirs_exist_ok=True)
            continue
        directory = killed(session, home, number)
        session.close()
        if choice == 1:
            directory = session.directory
        log = directory / LOG_NAME
        if choice == 2:
            data = log.read_bytes()
            log.write_bytes(data[: source.randrange(len(data) + 1)])
        if source.random() < 0.3:
            with log.open("ab") as file:
                file.write(source.choice(DAMAGE))
        if source.random() < 0.6:
            break_sidecars(directory, source, older if older.exists() and source.random() < 0.5 else foreign.directory)
        before = log.read_bytes()
        session = Session.open(directory, durability="none")
        assert log.read_bytes().startswith(before), "the log is only ever appended to"
        yield session, source
    session.close()


@settings(suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_a_session_opened_by_its_end_is_the_session_read_whole(steps):
    with tempfile.TemporaryDirectory() as home:
        for session, source in rounds(steps, Path(home)):
            check_equal(session, WholeSession(session.directory))
            reader = Session.open(session.directory, read_only=True)
            check_equal(reader, WholeSession(session.directory))
            stored = session.append(RandomHistory(source).next(list(session.entries())))
            whole = WholeSession(session.directory)
            assert stored.seq == whole.next_seq - 1
            check_equal(session, whole)


@few_examples(suppress_health_check=list(HealthCheck))
@given(STEPS)
@example([0] * 9 + [1, 0, 0, 1263, 0, 310, 11176, 63295, 0, 0, 377])
def test_a_fork_has_the_path_whatever_was_in_memory(steps):
    with tempfile.TemporaryDirectory() as home:
        for session, source in rounds(steps, Path(home)):
            seqs = [entry.seq for entry in session.path()]
            if not seqs:
                continue
            chosen = source.choice(seqs)
            fork = session.fork(Path(home), chosen)
            check_equal(fork, WholeSession(fork.directory))
            # Behind a point inside a step comes the rest of the step, which a branch may have left; calls that nobody
            # answered get a result in the fork, and the model its entry, maybe with the seq of what was queued and
            # stays behind.
            assert fork.state.model == session.state.model
            copied = (entry for entry in fork.path() if not getattr(entry, "interrupted", False))
            taken = [entry for entry in copied if entry.seq <= chosen and not isinstance(entry, ModelEntry)]
            every = [entry.seq for entry in session.entries()]
            original = iter(session.path())
            if len(set(every)) == len(every):  # a seq that stands twice means the first, which may be on another path
                assert all(entry in original for entry in taken), "in the same order, and nothing else"
            fork.close()


@few_examples(suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_branches_and_undos_far_back_are_the_same_from_any_opening(steps):
    with tempfile.TemporaryDirectory() as home:
        for session, source in rounds(steps, Path(home)):
            highest = max((entry.seq for entry in session.entries()), default=0)
            session.append(BranchEntry(parent=source.randrange(highest + 1)))
            check_equal(session, WholeSession(session.directory))
            assert log_of(session).exists()
