"""What the model is told once of the place where it works: git, the top of the tree, the shell, which programs exist.

Nothing here asks a program but git, and git only through its one door (`guard/git.py`), for a moment.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from tenuto.guard.terminal import sanitize_line
from tenuto.text.bounding import shorten
from tenuto.text.estimate import estimate_text

GIT_SECONDS = 0.3
"""What git gets for all of it; where it takes longer, nothing is told of it."""
LOOK_SECONDS = 1.0
"""What all of it gets."""
UNKNOWN = "What is in the working directory could not be found out."
MAX_TOKENS = 200
_ESTIMATED_TOKENS = 170
"""The same as we count: what is told of names is dense, and an estimate may be too low."""
PROGRAMS = ("rg", "python3", "node", "uv", "cargo", "go", "docker", "make")
MAX_NAMES = 20
MAX_COMMITS = 3
_AMOUNTS = ((MAX_NAMES, MAX_COMMITS), (12, MAX_COMMITS), (6, MAX_COMMITS), (6, 1), (0, 1), (0, 0))
"""How many names and commits are told, the most that fits."""
_NAME_CHARS, _SUBJECT_CHARS = 32, 60
_MAX_ENTRIES = 20_000
"""A folder with more is only said to be large."""
_STATUS = ("status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all")
_LOG = (
    "log",
    f"-{MAX_COMMITS}",
    "--format=%s",
    "--encoding=UTF-8",
    "--no-show-signature",
    "--no-color",
    "--no-mailmap",
)


async def find_place(cwd: Path, environ: Mapping[str, str]) -> str:
    """Return `place_text`, found out beside the loop.

    A disk that does not answer is not waited for, and no fault of this ends a turn.
    """
    looking = asyncio.ensure_future(asyncio.to_thread(place_text, cwd, environ))
    done, _ = await asyncio.wait({looking}, timeout=LOOK_SECONDS)
    return looking.result() if done and looking.exception() is None else UNKNOWN


def place_text(cwd: Path, environ: Mapping[str, str]) -> str:
    """Return what there is to tell of a directory: the same for the same state, at most `MAX_TOKENS` tokens.

    Blocks for as long as `GIT_SECONDS` and a listing take. File names and subjects of commits are safe for terminals
    and cannot end the tags around a note.
    """
    return compose(_look_at_git(cwd, environ), _names(cwd), _tool_lines(environ))


class GitState(NamedTuple):
    """What git says: how many tracked files have changed, how many are new, and the newest commits' subjects."""

    changed: int
    new: int
    subjects: tuple[str, ...]


def compose(found: GitState | None, names: Sequence[str] | None, tools: Sequence[str]) -> str:
    """Return the note: as many names and commits as fit. `names` are those of the directory, `None` where unknown."""
    text = ""
    for most_names, most_commits in _AMOUNTS:
        text = "\n".join((*_git_lines(found, most_commits), *_top_lines(names, most_names), *tools))
        if estimate_text(text) <= _ESTIMATED_TOKENS:
            break
    return text.replace("</", "<\\/")


def _look_at_git(cwd: Path, environ: Mapping[str, str]) -> GitState | None:
    """Return what git says, `None` where there is no repository, git may not be run here, or it is slow."""
    if not any(os.path.lexists(folder / ".git") for folder in (cwd, *cwd.parents)):
        return None  # and nothing is imported for it
    from tenuto.guard.git import GitFailedError, GitRefusedError, open_git

    end = time.monotonic() + GIT_SECONDS
    try:
        git = open_git(cwd, environ, seconds=GIT_SECONDS)
        if git is None:
            return None
        status = git.run(git.root, *_STATUS, seconds=max(0.001, end - time.monotonic()))
        log = git.run(git.root, *_LOG, seconds=max(0.001, end - time.monotonic()))
    except (GitRefusedError, GitFailedError):
        return None
    if status.returncode != 0:
        return None
    entries = [entry for entry in status.stdout.split(b"\0") if entry]
    new = sum(entry.startswith(b"?? ") for entry in entries)
    subjects = log.stdout.decode("utf-8", "replace").split("\n")[:MAX_COMMITS] if log.returncode == 0 else []
    return GitState(len(entries) - new, new, tuple(subject for subject in subjects if subject))


def _git_lines(found: GitState | None, most: int) -> list[str]:
    if found is None:
        return []
    counts = ((found.changed, "changed"), (found.new, "untracked"))
    lines = [f"Git status: {', '.join(f'{count:,} {what}' for count, what in counts if count) or 'nothing changed'}"]
    if not found.subjects:
        lines.append("No commits yet")
    elif most:
        said = (shorten(sanitize_line(subject), _SUBJECT_CHARS) for subject in found.subjects[:most])
        quoted = ", ".join(f'"{subject}"' for subject in said)
        lines.append(f"Last commits: {quoted}" if len(found.subjects[:most]) > 1 else f"Last commit: {quoted}")
    return lines


def _names(cwd: Path) -> list[str] | None:
    """Return what lies in a directory: folders first, with a slash, hidden names last. `None`: too much, or no list."""
    try:
        with os.scandir(cwd) as entries:
            found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in islice(entries, _MAX_ENTRIES + 1)]
    except OSError:
        return None
    if len(found) > _MAX_ENTRIES:
        return None
    ordered = sorted(found, key=lambda one: (one[0].startswith("."), not one[1], one[0]))
    return [name + "/" * is_folder for name, is_folder in ordered if name != ".git"]


def _top_lines(names: Sequence[str] | None, count: int) -> list[str]:
    if names is None:
        return []
    if not names:
        return ["The directory is empty."]
    shown = [_shown_name(name) for name in names[:count]]
    if not shown:
        return [f"Here: {len(names):,} names"]
    more = f" and {len(names) - count:,} more" if len(names) > count else ""
    return [f"Here: {', '.join(shown)}{more}"]


def _shown_name(name: str) -> str:
    """Return a name on one line; one that could be taken for several, or for words, in quotes."""
    safe = shorten(sanitize_line(name.removesuffix("/")), _NAME_CHARS) + "/" * name.endswith("/")
    return f'"{safe}"' if any(char in safe for char in ' ,"') or not safe else safe


def _tool_lines(environ: Mapping[str, str]) -> list[str]:
    folders = environ.get("PATH", os.defpath).split(os.pathsep)
    there = [name for name in PROGRAMS if any(_is_program(Path(folder, name)) for folder in folders if folder)]
    missing = [name for name in PROGRAMS if name not in there]
    shell = shorten(sanitize_line(Path(environ.get("SHELL", "")).name), _NAME_CHARS)
    lines = [f"The user's shell: {shell}"] if shell else []
    lines.append(f"Programs: {', '.join(there) or 'none'}" + (f"; not there: {', '.join(missing)}" if missing else ""))
    return lines


def _is_program(path: Path) -> bool:
    """Whether there is a program; `shutil`, which knows too, brings all of compression into every one-shot."""
    return os.access(path, os.X_OK) and path.is_file()
