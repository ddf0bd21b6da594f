"""/diff: what has changed in the work tree since the last commit, in the user's pager; new files count."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tenuto.command.outcome import CommandOutcome, Page, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.git import Git, GitFailedError, GitRefusedError, open_git
from tenuto.guard.sanitize import sanitize_keeping_colour

DIFF = (
    *("-c", "core.quotePath=false", "diff", "--no-ext-diff", "--no-textconv", "--ignore-submodules=all"),
    *("--no-color-moved", "--stat", "--patch", "--color=always"),
)
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What git calls a tree without files: there is nothing else to compare with before the first commit."""
SECONDS = 20.0
MAX_NEW_FILES = 200
MAX_NEW_BYTES = 1_000_000
"""Of so many new files, each of at most this size, the content is shown; of the others the name."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the changes of the project, or of the paths that are named. Raises `UsageError` where git cannot say."""
    cwd = runtime.live.session.cwd
    text = await asyncio.to_thread(look_at_changes, cwd, argument.split())
    return [Page(_write(text)) if text else Say("Nothing has changed since the last commit.")]


def look_at_changes(cwd: Path, paths: Sequence[str]) -> str:
    """Return the changes of what git tracks, then what it would track, coloured; nothing else a terminal obeys."""
    try:
        git = open_git(cwd)
        if git is None:
            raise UsageError(f"{cwd} is in no git repository")
        look = _Look(git, cwd if paths else git.root)
        base = "HEAD" if look.say("rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1)) else EMPTY_TREE
        where = ("--", *(paths or (".",)))
        parts = [look.say(*DIFF, base, *where)]
        new = [name for name in look.say("ls-files", "-o", "--exclude-standard", "-z", *where).split("\0") if name]
        parts += [look.new_file(name) for name in new[:MAX_NEW_FILES]]
        parts += [f"new, not shown: {name}\n" for name in new[MAX_NEW_FILES:]]
    except GitRefusedError as refused:
        raise UsageError(f"git is not run here: {refused}; !!git diff shows the changes all the same") from refused
    except GitFailedError as failed:
        raise UsageError(str(failed)) from failed
    return sanitize_keeping_colour("\n".join(part for part in parts if part))


class _Look:
    """What git says in one directory. Raises `UsageError` where it fails."""

    def __init__(self, git: Git, cwd: Path) -> None:
        self._git = git
        self._cwd = cwd

    def say(self, *words: str, codes: tuple[int, ...] = (0,)) -> str:
        """Return the output of a git command that ends with one of these codes."""
        ran = self._git.run(self._cwd, *words, seconds=SECONDS)
        if ran.returncode not in codes:
            raise UsageError(f"git: {ran.stderr.decode('utf-8', 'replace').strip()}")
        return ran.stdout.decode("utf-8", "replace")

    def new_file(self, name: str) -> str:
        """Return the whole of a file that git does not know yet."""
        path = self._cwd / name
        if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_NEW_BYTES:
            return f"new, not shown: {name}\n"
        return self.say(*DIFF[:-3], DIFF[-1], "--no-index", "--", os.devnull, name, codes=(0, 1))


def _write(text: str) -> str:
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=".diff")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return path
