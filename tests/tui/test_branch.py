from __future__ import annotations

import subprocess

from tenuto.tui.branch import read_branch


def git(cwd, *arguments):
    command = ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *arguments]
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout.strip()


def test_branch_worktree_and_detached_head(tmp_path):
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    git(project, "init", "-q", "-b", "feature/x")
    git(project, "commit", "-q", "--allow-empty", "-m", "c")
    assert read_branch(project / "src") == "feature/x"
    git(project, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    assert read_branch(tmp_path / "tree") == "other"
    commit = git(project, "rev-parse", "HEAD")
    git(project, "checkout", "-q", "--detach")
    assert read_branch(project) == commit[:8]


def test_outside_a_repository_there_is_none(tmp_path):
    assert read_branch(tmp_path) == ""
    assert read_branch(tmp_path / "gone") == ""
