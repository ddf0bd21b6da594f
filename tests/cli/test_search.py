"""`tenuto search`: any session of the machine, found by what was said in it; real processes on a real home."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from pathlib import Path

import pytest

from tenuto.protocol.entry import ShellEntry, TitleEntry
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.search.index import SEARCH_NAME
from tenuto.session.session import Session
from tests.program import TENUTO
from tests.session.long import write_session

DECIDED = "We decided: the queue is kept in Postgres, never in Redis"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    for at, (name, text) in enumerate((("old", DECIDED), ("new", "what about redis and postgres?"), ("none", "hello"))):
        work = tmp_path / name
        work.mkdir()
        session = Session.create(tmp_path / "home", work, durability="none")
        session.append(UserMessage(parts=(TextPart(text=text),)))
        session.append(TitleEntry(title=f"The {name} one\x1b[31m"))
        if name == "old":
            session.append(ShellEntry(command="echo kept-private", output="kept-private", excluded=True))
        session.close()
        os.utime(session.directory / "events.jsonl", (1_000 + at, 1_000 + at))
    return tmp_path / "home"


def search(home: Path, *words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    environ = {**os.environ, "TENUTO_HOME": str(home), "TZ": "UTC"}
    command = [*TENUTO, "search", *words]
    return subprocess.run(command, env=environ, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_s8_what_was_decided_is_found_with_session_and_entry(home: Path) -> None:
    done = search(home, "postgres", "REDIS")
    assert done.returncode == 0
    rows = done.stdout.splitlines()
    assert [row.split("  ")[1] for row in rows if not row.startswith(" ")] == ["The new one", "The old one"]
    assert f"    {DECIDED}" in rows
    assert "\x1b" not in done.stdout
    found = [json.loads(line) for line in search(home, "never in Redis", "--json").stdout.splitlines()]
    assert [one["lines"] for one in found] == [[{"number": 1, "text": DECIDED}]]
    opened = subprocess.run(
        [*TENUTO, "sessions", "show", found[0]["session"]],
        env={**os.environ, "TENUTO_HOME": str(home)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "The old one" in opened.stdout


def test_s8_a_search_is_narrowed_by_directory_number_and_expression(home: Path, tmp_path: Path) -> None:
    here = search(home, "redis", "--here", cwd=tmp_path / "old").stdout
    assert "The old one" in here
    assert "The new one" not in here
    one = search(home, "redis", "-n", "1").stdout
    assert "The new one" in one
    assert "The old one" not in one
    assert "The old one" in search(home, "--regex", "^we .*redis$").stdout
    assert search(home, "--regex", "(").returncode == 2
    assert search(home, "redis", "-n", "0").returncode == 2
    nothing = search(home, "nothing-like-it")
    assert (nothing.returncode, nothing.stdout) == (1, "")


def test_s8_the_user_finds_what_was_kept_from_the_model(home: Path) -> None:
    assert "kept-private" in search(home, "kept-private").stdout


def test_s8_long_sessions_are_indexed_by_the_first_search(tmp_path: Path) -> None:
    home = tmp_path / "home"
    directory = write_session(home, tmp_path, 2_000, 1_500_000, "openai-chat/test")
    assert "#31 " in search(home, "--regex", "^result 31:").stdout
    index = directory / SEARCH_NAME
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    before = index.stat().st_mtime_ns
    assert "#31 " in search(home, "--regex", "^result 31:").stdout
    assert index.stat().st_mtime_ns == before, "there is nothing more to do"
