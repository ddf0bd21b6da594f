"""Completion of `@path`: the files of the project, as git sees them, else as they lie on the disk.

Listing is the only thing here that touches the disk; it runs in a thread, and its result is searched without.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenuto.tui.complete.fuzzy import rank_folded
from tenuto.tui.complete.target import quote_path
from tenuto.tui.machine.state import CompletionItem

MAX_PATHS = 200_000
MAX_ROWS = 50
GIT_TIMEOUT = 10.0
STALE_AFTER = 5.0
"""Seconds for which a listing is used before it is made anew."""
GIT = ("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null", "-c", "core.untrackedCache=false")
LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"}
    | {".pytest_cache", "target", "dist", "build", ".cache", ".idea", ".gradle", ".next"}
)
"""Directories that a listing without git leaves out."""


@dataclass(frozen=True, slots=True)
class PathList:
    """Paths of a directory, relative to it with `/` between; directories end in one. `folded` is for the search."""

    paths: tuple[str, ...]
    folded: tuple[str, ...]

    def search(self, query: str, limit: int = MAX_ROWS) -> list[str]:
        """Return the paths that fit best; nothing typed yet shows the top level."""
        if not query:
            top = [path for path in self.paths if "/" not in path[:-1]]
            return sorted(top, key=lambda path: (not path.endswith("/"), path.lower()))[:limit]
        wanted = "".join(query.lower().split()).removeprefix("./")
        return [self.paths[place] for place in rank_folded(wanted, self.folded, limit)]


def list_paths(root: Path) -> PathList:
    """Return what lies under `root`: what git tracks or would track, else everything but the usual rubbish."""
    files = _git_files(root)
    return make_path_list(_scan_files(root) if files is None else files)


def make_path_list(files: Iterable[str]) -> PathList:
    """Return the list of the files and of all directories that they lie in."""
    paths: dict[str, None] = {}
    for file in files:
        place = file.find("/")
        while place >= 0:
            paths[file[: place + 1]] = None
            place = file.find("/", place + 1)
        paths[file] = None
        if len(paths) >= MAX_PATHS:
            break
    # A name with a line break or an escape sequence cannot stand in a draft.
    shown = tuple(path for path in paths if path.isprintable())
    return PathList(shown, tuple(path.lower() for path in shown))


def complete_path(paths: PathList, query: str) -> tuple[CompletionItem, ...]:
    """Return the completions for what stands after the `@`. A directory stays open for more to be typed."""
    items: list[CompletionItem] = []
    for path in paths.search(query):
        quoted = quote_path(path)
        insert = quoted.removesuffix('"') if path.endswith("/") else f"{quoted} "
        items.append(CompletionItem(insert=insert, label=path))
    return tuple(items)


class PathIndex:
    """The listing of one directory, made anew when it is old. `clock` is seconds."""

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.root = root
        self._clock = clock
        self._listed: PathList | None = None
        self._listed_at = 0.0

    def paths(self) -> PathList:
        """Return the present listing; reads the disk when there is none or it is old, so call it in a thread."""
        now = self._clock()
        if self._listed is None or now - self._listed_at > STALE_AFTER:
            self._listed = list_paths(self.root)
            self._listed_at = self._clock()
        return self._listed


def _git_files(root: Path) -> Sequence[str] | None:
    """Return the files that git knows or does not ignore, `None` without a repository. Runs no hook and no monitor."""
    environ = {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}
    try:
        done = subprocess.run(
            [*GIT, "ls-files", "-co", "--exclude-standard", "-z"],
            cwd=root,
            env=environ,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=GIT_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    if done.returncode != 0:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def _scan_files(root: Path) -> Iterable[str]:
    """Yield the files under `root`, breadth first, so that a huge tree still shows its top."""
    level = [""]
    while level:
        following: list[str] = []
        for folder in level:
            try:
                entries = sorted(os.scandir(root / folder), key=lambda entry: entry.name)
            except OSError:
                continue
            for entry in entries:
                if entry.name in LEFT_OUT:
                    continue
                if entry.is_dir(follow_symlinks=False):
                    following.append(f"{folder}{entry.name}/")
                else:
                    yield f"{folder}{entry.name}"
        level = following
