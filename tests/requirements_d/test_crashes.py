"""Whatever happens to a process or its disk, every complete entry is there (R-062 to R-067, T-22, T-23, T-25)."""

from __future__ import annotations

import itertools
import os
import random
import resource
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
import pytest

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.log import LOG_NAME
from tenuto.session.session import Session
from tests.core.harness import reopened
from tests.server import Call, Reply, Request, ScriptedServer
from tests.session.build import log_of, new_session, user

RECORDS = 10_000
LONG = "two " * 3_000
"""More than what is left of a file's last page on a disk that is full."""
WRITER = """
import os, sys
from pathlib import Path
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session

session = Session.open(Path(sys.argv[1]), durability=sys.argv[2])
for number in range(int(sys.argv[3])):
    size = (7, 300, 12, 9_000)[number % 4]
    stored = session.append(UserMessage(parts=(TextPart(text="x" * size),)))
    os.write(1, b"%d\\n" % stored.seq)
"""


def said(session: Session) -> list[str]:
    return [text_of(entry.parts) for entry in session.path() if isinstance(entry, UserMessage)]


def kill_while_writing(directory: Path, moment: float, durability: str) -> int:
    """Have a child write `RECORDS` entries and kill it after so many seconds; return the last seq that it confirmed."""
    command = [sys.executable, "-c", WRITER, str(directory), durability, str(RECORDS)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    assert select.select([child.stdout], [], [], 60)[0], "the child never wrote"
    try:
        out, errors = child.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        child.send_signal(signal.SIGKILL)
        out, errors = child.communicate()
    assert errors == b""
    return int(out.split(b"\n")[-2])


def check_round(home: Path, source: random.Random) -> None:
    """One round of T-22: a new session, killed at a random moment, opened again, and written to again."""
    session = new_session(home)
    session.close()
    confirmed = kill_while_writing(session.directory, source.uniform(0, 0.4), source.choice(["points", "none"]))
    opened = Session.open(session.directory)
    seqs = [entry.seq for entry in opened.path()]
    assert seqs == list(range(1, len(seqs) + 1)), "nothing in the middle is missing (R-062)"
    assert confirmed <= len(seqs) <= confirmed + 1, "at most the last one was not confirmed (R-062)"
    opened.append(user("after the crash"))
    opened.close()
    again = Session.open(session.directory, read_only=True)
    assert said(again)[-1] == "after the crash", "a cut-off line takes no later one with it (R-063)"
    assert [entry.seq for entry in again.path()] == list(range(1, len(seqs) + 2))
    shutil.rmtree(session.directory)


def test_t22_r062_r063_killed_at_random_moments_of_10_000_appends(tmp_path):
    source = random.Random(22)
    for _ in range(4):
        check_round(tmp_path, source)


@pytest.mark.full
def test_t22_r062_r063_200_rounds(tmp_path):
    source = random.Random(2200)
    for _ in range(200):
        check_round(tmp_path, source)


def working(request: Request) -> Reply:
    """Read a file, run a command, then answer."""
    results = sum(1 for item in request.turn if item.kind == "result")
    calls = [Call("write", {"path": "a.txt", "content": "ä\u2028b\n"}), Call("bash", {"command": "printf 'x\\ny'"})]
    return Reply("Let me see.", tool_calls=[calls[results]]) if results < 2 else Reply("That was it: 🎼.")


async def test_r062_a_real_log_opens_when_it_is_cut_at_any_byte(tmp_path):
    async with ScriptedServer(working) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("please 🎼")
            directory = running.session.directory
            whole = list(running.session.entries())
    log = directory / LOG_NAME
    data = log.read_bytes()
    ends = list(itertools.accumulate(len(line) + 1 for line in data.split(b"\n")[:-1]))
    assert len(ends) == len(whole) > 8
    for beside in directory.glob("*"):
        if beside.is_file() and beside.name != LOG_NAME:
            beside.unlink()
    for cut in range(len(data), -1, -1):
        os.truncate(log, cut)
        opened = Session.open(directory, read_only=True)
        complete = sum(1 for end in ends if end - 1 <= cut)
        entries = list(opened.entries())
        assert entries[:complete] == whole[:complete], cut
        assert len(entries) <= complete + 1
        opened.get_llm_history()
        opened.close()


def test_t23_r064_r065_every_kind_of_damage_at_once(tmp_path):
    session = new_session(tmp_path)
    for value in ("one", "a\u2028b\u2029c\u0085d\ve\ff", "three"):
        session.append(user(value))
    session.close()
    log = log_of(session)
    lines = log.read_bytes().split(b"\n")[:-1]
    bad = [b"\0" * 400, b'{"type":"user","seq":9,"par', b"\xff\xfe", b"", b"\r"]
    mixed = [line for pair in itertools.zip_longest(lines, bad) for line in pair if line is not None]
    log.write_bytes(b"\r\n".join(mixed) + b"\n")
    damaged = log.read_bytes()
    opened = Session.open(session.directory)
    assert said(opened) == ["one", "a\u2028b\u2029c\u0085d\ve\ff", "three"]
    assert [damage.reason for damage in opened.damage] == ["NUL bytes", "not valid JSON", "invalid UTF-8"]
    assert [damage.line for damage in opened.damage] == [2, 4, 6]
    assert all(damage.size >= 2 for damage in opened.damage)
    opened.append(user("four"))
    opened.close()
    assert log.read_bytes().startswith(damaged), "the file is only ever appended to"
    assert said(Session.open(session.directory))[-1] == "four"


@contextmanager
def small_disk(place: Path) -> Iterator[None]:
    """Put a file system of 1 MB at `place`; skips where mounting is not possible."""
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place)]
    mounted = shutil.which("mount") and subprocess.run(command, capture_output=True, check=False).returncode == 0
    if not mounted:
        pytest.skip("a file system of 1 MB cannot be mounted here; the file-size limit stands for it")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


def answering(request: Request) -> Reply:
    return Reply(f"Answer {sum(1 for item in request.items if item.kind == 'user')}.")


async def run_out_of_room(tmp_path: Path, filled, freed) -> None:
    """Talk, fill the disk, talk, make room, talk: told in the turn, nothing lost."""
    async with ScriptedServer(answering) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("one")
            filled(running.session)
            count = len(running.of(NoticeEvent))
            assert (await running.ask(LONG)).outcome == "completed", "the turn goes on in memory"
            told = [event.text for event in running.of(NoticeEvent)[count:] if "not being saved" in event.text]
            assert len(told) == 1
            assert running.session.unsaved is not None
            freed()
            assert (await running.ask("three")).outcome == "completed"
            assert running.session.unsaved is None
            assert any("saved again" in event.text for event in running.of(NoticeEvent))
            view, directory = running.session.get_llm_history(), running.session.directory
        opened = Session.open(directory, read_only=True)
        assert opened.damage == ()
        assert said(opened) == ["one", LONG, "three"]
        assert msgspec.json.encode(opened.get_llm_history()) == msgspec.json.encode(view)


async def test_t25_r067_a_1_mb_disk_fills_up_and_has_room_again(tmp_path):
    with small_disk(tmp_path / "home"):
        ballast = tmp_path / "home" / "ballast"

        def fill(session: Session) -> None:
            with pytest.raises(OSError, match="No space"), ballast.open("wb", buffering=0) as file:
                while True:
                    file.write(b"x" * 512)

        await run_out_of_room(tmp_path, fill, ballast.unlink)


async def test_t25_r067_a_file_that_may_not_grow_and_then_may(tmp_path):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill(session: Session) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, ((session.directory / LOG_NAME).stat().st_size + 30, hard))

    def free() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    try:
        await run_out_of_room(tmp_path, fill, free)
    finally:
        free()
