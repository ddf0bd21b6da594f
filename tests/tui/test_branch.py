from __future__ import annotations

import subprocess

import pytest

from tenuto.config.project import read_branch
from tenuto.guard.git import GitRefusedError
from tenuto.tui.editor_services import SHORT_HASH, BranchWatch, is_dirty


def git(cwd, *arguments):
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def test_branch_worktree_and_detached_head(tmp_path):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    git(project, "init", "-q", "-b", "feature/x")
    git(project, "commit", "-q", "--allow-empty", "-m", "c")
    assert read_branch(project / "src", SHORT_HASH) == "feature/x"
    git(project, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    assert read_branch(tmp_path / "tree", SHORT_HASH) == "other"
    commit = git(project, "rev-parse", "HEAD")
    git(project, "checkout", "-q", "--detach")
    assert read_branch(project, SHORT_HASH) == commit[:8]


def test_outside_a_repository_there_is_none(tmp_path):
    assert read_branch(tmp_path, SHORT_HASH) == ""
    assert read_branch(tmp_path / "gone", SHORT_HASH) == ""


def test_a_change_to_a_tracked_file_is_seen_and_nothing_of_the_project_runs(tmp_path):
    git(tmp_path, "init", "-q", "-b", "main")
    (tmp_path / "a").write_text("one\n")
    assert not is_dirty(tmp_path), "nothing is tracked yet"
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "c")
    assert not is_dirty(tmp_path)
    (tmp_path / "a").write_text("two\n")
    (tmp_path / "sub").mkdir()
    assert is_dirty(tmp_path / "sub")
    git(tmp_path, "config", "core.fsmonitor", f"touch {tmp_path}/hit")
    git(tmp_path, "config", "filter.x.clean", f"touch {tmp_path}/hit; cat")
    (tmp_path / ".gitattributes").write_text("a filter=x\n")
    with pytest.raises(GitRefusedError):
        is_dirty(tmp_path)
    assert not (tmp_path / "hit").exists()
    with pytest.raises(GitRefusedError):
        is_dirty(tmp_path / "gone" / "away")


async def test_looks_lie_two_seconds_apart_and_more_where_looking_is_slow(tmp_path):
    now = [0.0]
    watch = BranchWatch(lambda: now[0])
    assert watch.due
    assert await watch.look(tmp_path) == ("", False)
    now[0] = 1.9
    assert not watch.due
    now[0] = 2.0
    assert watch.due
