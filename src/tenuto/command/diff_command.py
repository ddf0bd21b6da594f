"""/diff: what has changed in the work tree since the last commit, in the person's pager; new files count."""

from __future__ import annotations

import asyncio
import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tenuto.command.outcome import CommandOutcome, Page, Say
from tenuto.config.project import project_root
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.guard.repository import configured_programs
from tenuto.guard.sanitize import sanitize_keeping_colour

GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.quotePath=false")
DIFF = ("diff", "--no-ext-diff", "--no-textconv", "--no-color-moved", "--stat", "--patch", "--color=always")
EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
"""What git calls a tree without files: there is nothing else to compare with before the first commit."""
SECONDS = 20.0
MAX_NEW_FILES = 200
MAX_NEW_BYTES = 1_000_000
"""Of so many new files, each of at most this size, the content is shown; of the others the name."""


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the changes of the project, or of the paths that are named. Raises `UsageError` where git cannot say."""
    cwd = runtime.live.session.cwd
    root = project_root(cwd)
    if not (root / ".git").exists():
        raise UsageError(f"{cwd} is in no git repository")
    reason = configured_programs(root / ".git")
    if reason:
        raise UsageError(f"git is not run here: {reason}; !!git diff shows the changes all the same")
    text = await asyncio.to_thread(_changes, cwd if argument else root, argument.split())
    return [Page(_write(text)) if text else Say("Nothing has changed since the last commit.")]


def _changes(cwd: Path, paths: Sequence[str]) -> str:
    """Return the changes of what git tracks, then what it would track, coloured; nothing else a terminal obeys."""
    base = "HEAD" if _git(cwd, "rev-parse", "--verify", "--quiet", "HEAD", codes=(0, 1)) else EMPTY_TREE
    where = ("--", *(paths or (".",)))
    parts = [_git(cwd, *DIFF, base, *where)]
    new = [name for name in _git(cwd, "ls-files", "-o", "--exclude-standard", "-z", *where).split("\0") if name]
    parts += [_new_file(cwd, name) for name in new[:MAX_NEW_FILES]]
    parts += [f"new, not shown: {name}\n" for name in new[MAX_NEW_FILES:]]
    return sanitize_keeping_colour("\n".join(part for part in parts if part))


def _new_file(cwd: Path, name: str) -> str:
    path = cwd / name
    if path.is_symlink() or not path.is_file() or path.stat().st_size > MAX_NEW_BYTES:
        return f"new, not shown: {name}\n"
    return _git(cwd, *DIFF[:-3], DIFF[-1], "--no-index", "--", os.devnull, name, codes=(0, 1))


def _git(cwd: Path, *words: str, codes: tuple[int, ...] = (0,)) -> str:
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "GIT_PAGER": "cat"}
    try:
        ran = subprocess.run(
            [*GIT, *words],
            cwd=cwd,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"git could not be run: {error}") from error
    if ran.returncode not in codes:
        raise UsageError(f"git: {ran.stderr.decode('utf-8', 'replace').strip()}")
    return ran.stdout.decode("utf-8", "replace")


def _write(text: str) -> str:
    handle, path = tempfile.mkstemp(prefix="tenuto-", suffix=".diff")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    return path
