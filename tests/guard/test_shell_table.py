"""The table of shell lines (R-083, R-084, T-36): judged, and whatever is judged to only read also executed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from tenuto.guard.examine import examine_line
from tenuto.guard.readers.places import Place
from tests.guard.canary import SECRET, Row, make_workspace, rows, run_line, snapshot, surroundings
from tests.guard.repositories import TRAPS, Trap, add_submodule, git, make_repository

ROWS = rows()
MUST_ASK = [row for row in ROWS if row.verdict == "ask"]
HARMLESS = [row for row in ROWS if row.verdict == "run"]
SHARE_OF_HARMLESS_THAT_MAY_ASK = 0.05
GIT_LINES = (
    "git status",
    "git status --porcelain",
    "git diff",
    "git diff HEAD",
    "git diff --cached",
    "git show HEAD",
    "git show HEAD:a",
    "git log",
    "git log -p",
    "git log --stat",
    "git blame a",
    "git grep one",
    "git ls-files",
    "git describe --always",
    "git describe --always --dirty",
    "git stash list",
    "git branch -vv",
    "git rev-parse HEAD",
    "git cat-file -p HEAD",
    "cd sub && git status",
    "git -C sub diff",
    "git diff --submodule=diff",
    "git log -p --submodule=diff",
    "git show --submodule=diff HEAD~1",
)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    return surroundings(make_workspace(tmp_path_factory.mktemp("canary")))


@pytest.mark.parametrize("row", MUST_ASK, ids=lambda row: row.line)
def test_r083_r084_s5_s12_what_must_be_asked_never_runs_unasked(row: Row, place: Place) -> None:
    facts = examine_line(row.line, place)
    assert not facts.reads, row.why
    assert facts.reason


def test_the_table_is_large_enough() -> None:
    assert len(ROWS) >= 400
    assert len({row.line for row in ROWS}) == len(ROWS)


def test_s17_harmless_lines_run_unasked(place: Place) -> None:
    asked = {row.line: facts.reason for row in HARMLESS if not (facts := examine_line(row.line, place)).reads}
    assert len(asked) <= SHARE_OF_HARMLESS_THAT_MAY_ASK * len(HARMLESS), asked


def test_what_is_judged_to_only_read_only_reads(place: Place) -> None:
    around = Path(place.root).parent
    before = snapshot(around)
    for row in ROWS:
        if examine_line(row.line, place).reads:
            said = run_line(row.line, place)
            assert SECRET.encode() not in said, row.line
            assert snapshot(around) == before, row.line


@pytest.fixture
def kept_environment() -> Iterator[None]:
    before = dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(before)


@pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)
@pytest.mark.usefixtures("kept_environment")
def test_s4_git_of_a_hostile_repository_runs_nothing_unasked(trap: Trap, tmp_path: Path) -> None:
    work, canary = tmp_path / "work", tmp_path / "canary"
    make_repository(work)
    start = trap.build(work, f"touch {canary}; cat") or work
    place = surroundings(start)
    # The user's own filters are the user's
    own = "GIT_CONFIG_GLOBAL" in os.environ and trap.name == "users_own_filter"
    canary.unlink(missing_ok=True)
    for line in GIT_LINES:
        if examine_line(line, place).reads and not own:
            said = run_line(line, place)
            assert not canary.exists(), line
            assert b"PRIVATE KEY" not in said


def test_submodules_that_run_nothing_ask_nothing(tmp_path: Path) -> None:
    """Two in one another, one without a clone, and a repository that was only put there."""
    work = tmp_path / "work"
    make_repository(work)
    add_submodule(work)
    add_submodule(work / "inner", "deep")
    make_repository(work / "plain")
    git(work, "add", "plain")
    add_submodule(work, "absent")
    git(work, "submodule", "deinit", "-q", "-f", "absent")
    for line in ("git status", "git diff", "git log -p -3", "cd src && git status"):
        (work / "src").mkdir(exist_ok=True)
        facts = examine_line(line, surroundings(work))
        assert facts.reads, facts.reason
        run_line(line, surroundings(work))
    git(work / "plain", "config", "core.fsmonitor", "x")
    assert "submodule plain" in examine_line("git status", surroundings(work)).reason


@pytest.mark.parametrize("entry", ["", ".", "bin", "{work}/bin", "{link}"])
def test_s16_a_program_of_the_workspace_or_of_a_relative_path_asks(entry: str, tmp_path: Path) -> None:
    """In front of the others, where it would be what runs; behind them it is never found."""
    work = make_workspace(tmp_path)
    (work / "bin").mkdir()
    (work / "bin" / "ls").write_text("#!/bin/sh\n")
    (work / "bin" / "ls").chmod(0o755)
    (tmp_path / "link").symlink_to(work / "bin")
    place = surroundings(work)
    entry = entry.format(work=work, link=tmp_path / "link")
    usual = place.environ["PATH"]
    for path, reads in ((usual, True), (f"{entry}:{usual}", False), (f"{usual}:{entry}", True)):
        placed = msgspec.structs.replace(place, environ={**place.environ, "PATH": path})
        assert examine_line("ls f", placed).reads is reads, path
