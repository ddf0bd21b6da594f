"""The git branch of a directory, read from git's files: no git process, so nothing of the project runs."""

from __future__ import annotations

from pathlib import Path

MAX_BYTES = 4_096
SHORT_HASH = 8


def read_branch(cwd: Path) -> str:
    """Return the branch, a short hash when there is none checked out, empty outside a repository."""
    for folder in (cwd, *cwd.parents):
        head = _git_directory(folder / ".git") / "HEAD"
        text = _read(head)
        if text:
            name = text.removeprefix("ref: refs/heads/")
            return name if name != text else text.removeprefix("ref: ")[:SHORT_HASH]
    return ""


def _git_directory(place: Path) -> Path:
    """Return the directory that `.git` is, or that it names (in a worktree or a submodule it is a file)."""
    text = _read(place)
    return place.parent / text.removeprefix("gitdir: ") if text.startswith("gitdir: ") else place


def _read(path: Path) -> str:
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES).strip()
    except OSError:
        return ""
