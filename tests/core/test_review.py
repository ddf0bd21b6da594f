"""`/review`: what the agent is asked to look at, and that nothing is changed in that turn, whatever the mode."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tenuto.command.outcome import Say
from tenuto.command.review_command import describe_changes
from tenuto.core.errors import UsageError
from tests.core.harness import agent, one_call_each
from tests.core.test_terms import results, run
from tests.server import Call


def git(work: Path, *words: str) -> str:
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *who, *words], cwd=work, check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    git(place, "init", "-q")
    (place / "a.py").write_text("a = 1\n")
    git(place, "add", ".")
    git(place, "commit", "-qm", "first")
    return place


def test_what_is_reviewed_is_told_by_git(work: Path) -> None:
    assert describe_changes(work, "") == ""
    (work / "a.py").write_text("a = 2\n")
    assert "git diff HEAD" in describe_changes(work, "")
    git(work, "switch", "-qc", "side")
    git(work, "commit", "-qam", "second")
    assert "git diff --no-ext-diff --no-textconv main...side" in describe_changes(work, "side")
    commit = git(work, "rev-parse", "--short", "HEAD")
    assert f"git show --no-ext-diff --no-textconv {commit}" in describe_changes(work, commit)
    assert "git diff --no-ext-diff --no-textconv main..side" in describe_changes(work, "main..side")
    assert describe_changes(work, "the error handling") == "Review this: the error handling"
    assert describe_changes(work, "--output=x") == "Review this: --output=x"


def test_without_a_repository_words_say_what_to_look_at(tmp_path: Path) -> None:
    assert describe_changes(tmp_path, "a.py") == "Review this: a.py"
    with pytest.raises(UsageError, match="no git repository"):
        describe_changes(tmp_path, "")


async def test_a_review_changes_nothing_even_in_mode_auto_and_the_next_turn_may_again(tmp_path: Path, work: Path):
    (work / "a.py").write_text("a = 2\n")
    touch = Call("bash", {"command": "touch made.txt"})
    look = Call("bash", {"command": "git diff HEAD"})
    async with agent(tmp_path, one_call_each(touch, look, None, touch, None)) as running:
        await run(running, "/review")
        refused, looked = results(running)
        assert refused.denied
        assert not looked.is_error
        assert not (work / "made.txt").exists()
        assert "## Verdict" in str(running.server.requests[0].body)
        await running.ask("now do it")
        assert (work / "made.txt").exists()


async def test_nothing_to_review_asks_no_model_and_a_file_of_the_users_goes_before(tmp_path: Path, work: Path):
    async with agent(tmp_path, one_call_each(None)) as running:
        (said,) = await running.runtime.run_command("/review")
        assert isinstance(said, Say)
        assert "Nothing has changed" in said.text
        assert not running.server.requests
        folder = tmp_path / "home" / "commands"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "review.md").write_text("My own review of $ARGUMENTS")
        await run(running, "/review a.py")
        assert "My own review of a.py" in str(running.server.requests[0].body)
