"""Completion of `@path`, and of programs and paths in a `!command`.

The files of the project are those that git sees, else as they lie on the disk. A listing is made in a thread and
searched without the disk; while it is made an old one answers at once, and before the first one a look near the top of
the tree. What a listing does not have is looked up where it lies: other directories (`~/`, `../`, `/`), and names with
a dot. Tab in a `!command` is as in a shell:
programs in the place of one, else paths as they lie on the disk; `complete_shell` reads the disk: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from msgspec import Struct

from tenuto.guard.git import GitFailedError, GitRefusedError, open_git
from tenuto.text.mention import is_mentionable, write_mention
from tenuto.tui.complete.commands import rank_folded
from tenuto.tui.state.intents import CompletionItem

MAX_PATHS = 200_000
MAX_ROWS = 50
GIT_TIMEOUT = 10.0
STALE_AFTER = 2.0
"""Seconds for which a listing is used before it is read again."""
MAX_ENTRIES = 5_000
"""Entries of one directory that are looked at."""
FIRST_ENTRIES = 1_000
"""Entries of the disk that are read for the first rows, before there is a listing."""
FILES = ("ls-files", "-co", "--exclude-standard", "-z")
LEFT_OUT = frozenset(
    {".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv", "venv", ".tox", ".mypy_cache", ".ruff_cache"}
    | {".pytest_cache", "target", "dist", "build", ".cache", ".idea", ".gradle", ".next"}
)
"""Directories that a listing without git leaves out."""


class PathList(Struct, frozen=True):
    """Paths of a directory, relative to it with `/` between; directories end in one. `folded` is for the search."""

    paths: tuple[str, ...]
    folded: tuple[str, ...]

    def search(self, query: str, limit: int = MAX_ROWS) -> list[str]:
        """Return the paths that fit best; nothing typed yet shows the top level."""
        if not query:
            top = [path for path in self.paths if "/" not in path[:-1] and not path.startswith(".")]
            return sorted(top, key=lambda path: (not path.endswith("/"), path.lower()))[:limit]
        wanted = query.lower().removeprefix("./")
        ranked = [self.paths[place] for place in rank_folded(wanted, self.folded, limit)]
        return list(dict.fromkeys([*self._inside(wanted), *ranked]))[:limit] if wanted.endswith("/") else ranked

    def _inside(self, folder: str) -> list[str]:
        """Return what lies in a directory that is typed out, itself at the end: it is there already."""
        begin = len(folder)
        inside = [
            path
            for path, folded in zip(self.paths, self.folded, strict=True)
            if folded.startswith(folder) and "/" not in path[begin:-1]
        ]
        return sorted(inside, key=lambda path: (len(path) == begin, not path.endswith("/"), path.lower()))


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
    shown = tuple(path for path in paths if is_mentionable(path))
    return PathList(shown, tuple(path.lower() for path in shown))


def completions(paths: Iterable[str]) -> tuple[CompletionItem, ...]:
    """Return paths as completions of what stands after the `@`. A directory stays open for more to be typed."""
    items: list[CompletionItem] = []
    for path in paths:
        quoted = write_mention(path)
        insert = quoted.removesuffix('"') if path.endswith("/") else f"{quoted} "
        items.append(CompletionItem(insert=insert, label=path))
    return tuple(items)


class PathIndex:
    """The listing of one directory, read again when it is old. `clock` is seconds. Call it in a thread: it reads.

    Before the first listing it answers from a look near the top, and is stale.
    """

    def __init__(self, root: Path, clock: Callable[[], float]) -> None:
        self.root = root
        self._clock = clock
        self._listed: PathList | None = None
        self._listed_at = float("-inf")

    @property
    def is_stale(self) -> bool:
        """Whether files may have come and gone since the listing was made."""
        return self._clock() - self._listed_at > STALE_AFTER

    def refresh(self) -> bool:
        """Read the directory again; say whether the listing has changed."""
        before, self._listed = self._listed, list_paths(self.root)
        self._listed_at = self._clock()
        return self._listed != before

    def complete(self, query: str) -> tuple[CompletionItem, ...]:
        """Return the completions for what stands after the `@`, from the listing that there is."""
        if is_elsewhere(query):
            return completions(search_folder(self.root, query))
        listed = self._listed
        if listed is None:
            listed = self._listed = look_first(self.root)
        found = listed.search(query)
        if query.startswith(".") or (not found and "/" in query):
            found = list(dict.fromkeys([*search_folder(self.root, query), *found]))[:MAX_ROWS]
        return completions(found)


def is_elsewhere(query: str) -> bool:
    """Whether a path leads out of the project: such are looked up where they lie."""
    return query.startswith(("~/", "/", "../")) or query in {"~", ".."}


def search_folder(root: Path, query: str) -> list[str]:
    """Return what in the directory that `query` names fits its last part; hidden names only when that has a dot."""
    if query in {"~", ".."}:
        query += "/"
    folder, slash, last = query.rpartition("/")
    try:
        place = root / Path(f"{folder}{slash}").expanduser()
        with os.scandir(place) as entries:
            found = list(islice(entries, MAX_ENTRIES))
    except (OSError, RuntimeError, ValueError):
        return []
    hidden = last.startswith(".")
    names = [f"{entry.name}/" if _is_directory(entry) else entry.name for entry in found]
    names = sorted(name for name in names if name.startswith(".") == hidden and is_mentionable(name))
    if not last:
        names.sort(key=lambda name: (not name.endswith("/"), name.lower()))
    ranked = rank_folded(last.lower(), [name.lower() for name in names], MAX_ROWS)
    return [f"{folder}{slash}{names[place]}" for place in ranked]


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False


def _git_files(root: Path) -> Sequence[str] | None:
    """Return the files that git knows or does not ignore, `None` where it is not asked (`guard/git.py`)."""
    try:
        git = open_git(root)
        done = git.run(root, *FILES, seconds=GIT_TIMEOUT) if git is not None else None
    except (GitRefusedError, GitFailedError):
        return None
    if done is None or done.returncode != 0:
        return None
    return [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]


def look_first(root: Path) -> PathList:
    """Return what a bounded number of entries shows, breadth first: what git would leave out here is left out."""
    from tenuto.tool.search.search import ignore_rules

    is_in_git = any((place / ".git").exists() for place in (root, *root.parents))
    rules = ignore_rules(root) if is_in_git else None
    found: list[str] = []
    waiting, left = deque([""]), FIRST_ENTRIES
    while waiting and left > 0:
        folder = waiting.popleft()
        try:
            with os.scandir(root / folder) as scan:
                entries = sorted(islice(scan, left), key=lambda entry: entry.name)
        except OSError:
            continue
        left -= len(entries)
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            path = f"{folder}{entry.name}"
            if entry.name in LEFT_OUT or (rules is not None and rules.ignore(root / path, is_directory=is_folder)):
                continue
            found.append(f"{path}/" if is_folder else path)
            if is_folder:
                waiting.append(f"{path}/")
    return make_path_list(found)


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


# --- in a !command ---


WORD_LIMIT = 1_000
"""Characters before the cursor that are looked at."""
_SEPARATORS = frozenset(" \t\n;|&<>()=`$")
_COMMAND_BEFORE = re.compile(r"(?:^|[;|&(`\n])\s*\Z")
_DIRECTORIES_ONLY = re.compile(r"(?:^|[;|&(]\s*)(?:cd|pushd|rmdir)\s+\Z")
_TO_ESCAPE = re.compile(r"([\s\\'\"`$&|;<>()*?\[\]{}!#~])")
_ESCAPED = re.compile(r"\\(.)")


class ShellTarget(Struct, frozen=True):
    """The word of the characters `start` to `end` of a draft. `query` is what it means, `quote` what it stands in."""

    query: str
    start: int
    end: int
    quote: str = ""
    is_command: bool = False
    folders_only: bool = False


def find_shell_target(text: str, cursor: int) -> ShellTarget | None:
    """Return the word before the cursor of a `!command`, `None` elsewhere."""
    begin = 2 if text.startswith("!!") else 1
    if not text.startswith("!") or cursor < begin:
        return None
    start, quote = _word_start(text[begin:cursor])
    start += begin
    if cursor - start > WORD_LIMIT:
        return None
    raw = text[start:cursor]
    before = text[begin : start - len(quote)]
    query = raw if quote == "'" else _ESCAPED.sub(r"\1", raw)
    is_command = bool(_COMMAND_BEFORE.search(before)) and "/" not in query and not query.startswith("~")
    return ShellTarget(query, start, cursor, quote, is_command, bool(_DIRECTORIES_ONLY.search(before)))


def _word_start(line: str) -> tuple[int, str]:
    """Return where the last word begins, behind the quote that it stands in, if there is one."""
    start, quote, index = 0, "", 0
    while index < len(line):
        character = line[index]
        if quote:
            quote = "" if character == quote else quote
        elif character == "\\":
            index += 1
        elif character in "\"'":
            start, quote = index + 1, character
        elif character in _SEPARATORS:
            start = index + 1
        index += 1
    return start, quote


def complete_shell(root: Path, target: ShellTarget, environ: Mapping[str, str]) -> tuple[CompletionItem, ...]:
    """Return what fits: programs, or paths below `root`, `~` and `/`. A directory stays open, all else ends."""
    if target.is_command and target.query:
        return tuple(CompletionItem(f"{name} ", name) for name in _programs(target.query, environ.get("PATH", "")))
    return tuple(_path_item(path, target.quote) for path in _paths(root, target))


def _programs(begin: str, path: str) -> list[str]:
    found: set[str] = set()
    for folder in path.split(os.pathsep):
        with contextlib.suppress(OSError), os.scandir(folder or ".") as entries:
            found.update(_fitting(entries, begin))
    return sorted(found)[:MAX_ROWS]


def _fitting(entries: Iterable[os.DirEntry[str]], begin: str) -> Iterable[str]:
    named = (entry for entry in entries if entry.name.startswith(begin) and entry.name.isprintable())
    return (entry.name for entry in named if os.access(entry.path, os.X_OK))


def _paths(root: Path, target: ShellTarget) -> list[str]:
    folder, slash, last = target.query.rpartition("/")
    if target.query in {"~", ".."}:
        folder, slash, last = target.query, "/", ""
    try:
        with os.scandir(root / Path(f"{folder}{slash}").expanduser()) as entries:
            found = [(entry.name, entry.is_dir()) for entry in islice(entries, MAX_ENTRIES)]
    except (OSError, RuntimeError, ValueError):
        return []
    fitting = [
        f"{folder}{slash}{name}{'/' if is_folder else ''}"
        for name, is_folder in found
        if name.startswith(last) and name.isprintable() and (last or not name.startswith("."))
        if is_folder or not target.folders_only
    ]
    return sorted(fitting, key=str.lower)[:MAX_ROWS]


def _path_item(path: str, quote: str) -> CompletionItem:
    name = path.rstrip("/").rpartition("/")[2] + ("/" if path.endswith("/") else "")
    end = "" if path.endswith("/") else f"{quote} "
    if quote:
        return CompletionItem(f"{path}{end}", name)
    home, rest = (path[:1], path[1:]) if path.startswith("~") else ("", path)
    escaped = _TO_ESCAPE.sub(r"\\\1", rest)
    return CompletionItem(f"{home}{escaped}{end}", name)
