"""Searching files: what both ways share, and our own walk for a machine without ripgrep.

The walk honours ignore files and uses Python's regular expressions. File patterns: `*.py` at any depth,
`src/**/*.{ts,tsx}` from the top.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Protocol, TypeVar

import msgspec
from pathspec import GitIgnoreSpec

from tenuto.config.project import RefusedFileError, read_regular
from tenuto.tool.edits.encoding import decode_file
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.patterns import path_matcher

T = TypeVar("T")
SEARCH_SECONDS = 60.0
"""A search that takes longer ends with what it has found."""
_STOP_SECONDS = 3.0
TELL_SECONDS = 1.0
"""Seconds between two times that a search says how far it is."""


class Query(msgspec.Struct, frozen=True, kw_only=True):
    """What to search: `base` is a directory, `only` a file name in it (empty: everything below)."""

    pattern: str
    base: Path
    only: str = ""
    glob: str = ""
    context: int = 0
    ignore_case: bool = False
    literal: bool = False


class Found(msgspec.Struct, frozen=True):
    """A line: path relative to the base, number, text, and for a match the place of its beginning in characters."""

    path: str
    number: int
    text: str
    column: int | None


class Source(Protocol):
    """A way to search. All methods run in a thread and look at `stop` often."""

    def lines(self, query: Query, stop: Stop) -> Iterator[Found | None]:
        """Yield matches with their context in path order; `None` stands for a gap between context blocks."""
        ...

    def counts(self, query: Query, stop: Stop) -> Iterator[tuple[str, int]]:
        """Yield each file with its number of matching lines."""
        ...

    def files(self, base: Path, stop: Stop) -> Iterator[str]:
        """Yield all files that are not ignored, relative to the base."""
        ...


class StoppedError(Exception):
    """Work was ended before its end."""


class Stop:
    """What a search, or other work, and those who wait for it know of each other: when it has to end, how far it is.

    It is ended by a flag, and by killing the program that it waits for. `looked` counts what it has looked at, `whole`
    what there is to look at, 0 where nobody knows, and `counted` says what that is.
    """

    def __init__(self, seconds: float = SEARCH_SECONDS) -> None:
        """Give it so many seconds."""
        self._event = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._deadline = time.monotonic() + seconds
        self.is_late = False
        self.looked = self.whole = 0
        self.counted = "entries"

    def counting(self, items: Iterable[T]) -> Iterator[T]:
        """Yield the items, and count them as looked at."""
        for item in items:
            self.looked += 1
            yield item

    @property
    def reached(self) -> str:
        """How far it is, as `entries: 12,000 of 300,000`."""
        of_all = f" of {self.whole:,}" if self.whole >= self.looked else ""
        return f"{self.counted}: {self.looked:,}{of_all}"

    def hear(self, counted: str, done: int, whole: int) -> None:
        """Take note of how far the work is. Raises `StoppedError` where it has to end."""
        self.counted, self.looked, self.whole = counted, done, whole
        if self._event.is_set():
            raise StoppedError

    def watch(self, process: subprocess.Popen[bytes]) -> None:
        """Kill `process` when stopped."""
        self._process = process
        if self._event.is_set():
            self._kill()

    def set(self) -> None:
        """Stop."""
        self._event.set()
        self._kill()

    def is_due(self) -> bool:
        """Whether the search has to end: stopped, or out of time."""
        if time.monotonic() > self._deadline:
            self.is_late = True
        return self.is_late or self._event.is_set()

    def _kill(self) -> None:
        if self._process is not None:
            with contextlib.suppress(ProcessLookupError):
                self._process.kill()


def _ignore(_: str) -> None:
    """Nobody waits to hear how far a search is."""


async def run_stoppable(
    work: Callable[[Stop], T], tell: Callable[[str], None] = _ignore, *, seconds: float = SEARCH_SECONDS
) -> T:
    """Run `work` in a thread for so many seconds; a cancellation stops it and waits until it is gone.

    Work of more than a moment says each second how far it is (`Stop.reached`).
    """
    stop = Stop(seconds)
    task = asyncio.ensure_future(asyncio.to_thread(work, stop))
    late = asyncio.get_running_loop().call_later(seconds + 1, stop.set)
    try:
        while not (await asyncio.wait({task}, timeout=TELL_SECONDS))[0]:
            if stop.looked:
                tell(stop.reached)
        return task.result()
    except asyncio.CancelledError:
        stop.set()
        task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())  # nobody asks what came of it
        await asyncio.wait({task}, timeout=_STOP_SECONDS)
        raise
    finally:
        late.cancel()


_IGNORE_FILES = (".gitignore", ".ignore")
_LARGEST_FILE = 32_000_000
_SNIFFED = 8_192


class Rules:
    """The ignore files that hold in a directory: its own first, then its parents'."""

    def __init__(self, directory: Path, parent: Rules | None) -> None:
        self._directory = directory
        self._parent = parent
        lines: list[str] = []
        for name in (*_IGNORE_FILES, ".git/info/exclude"):
            try:
                lines += read_regular(directory / name, (directory,)).decode("utf-8", "replace").splitlines()
            except (OSError, RefusedFileError):
                continue
        self._spec = GitIgnoreSpec.from_lines(lines) if lines else None

    def ignore(self, path: Path, *, is_directory: bool) -> bool:
        """Whether a path below is ignored; the nearest file that says anything decides."""
        rules: Rules | None = self
        while rules is not None:
            if rules._spec is not None:
                relative = path.relative_to(rules._directory).as_posix() + ("/" if is_directory else "")
                verdict = rules._spec.check_file(relative).include
                if verdict is not None:
                    return verdict
            rules = rules._parent
        return False


def ignore_rules(base: Path) -> Rules:
    """Return the rules of a directory, with those of its parents up to the top of the work tree."""
    chain = [base]
    while not (chain[-1] / ".git").exists() and chain[-1].parent != chain[-1]:
        chain.append(chain[-1].parent)
    if not (chain[-1] / ".git").exists():
        chain = [base]
    rules: Rules | None = None
    for directory in reversed(chain):
        rules = Rules(directory, rules)
    return rules if rules is not None else Rules(base, None)


class Walker:
    """The way to search that is always there."""

    def files(self, base: Path, stop: Stop) -> Iterator[str]:
        """Yield all files that are not ignored, sorted within each directory. Links to directories are not followed."""
        yield from self._walk(base, base, ignore_rules(base), stop)

    def _walk(self, base: Path, directory: Path, rules: Rules, stop: Stop) -> Iterator[str]:
        try:
            with os.scandir(directory) as scan:
                entries = sorted(scan, key=lambda entry: entry.name)
        except OSError:
            return
        for entry in entries:
            if stop.is_due():
                return
            is_directory = entry.is_dir(follow_symlinks=False)
            path = directory / entry.name
            if entry.name == ".git" or rules.ignore(path, is_directory=is_directory):
                continue
            if is_directory:
                yield from self._walk(base, path, Rules(path, rules), stop)
            elif entry.is_file(follow_symlinks=False):
                yield path.relative_to(base).as_posix()

    def lines(self, query: Query, stop: Stop) -> Iterator[Found | None]:
        """Yield matches with their context in path order."""
        pattern = _compile(query)
        first = True
        for name, lines in self._texts(query, stop):
            hits = {index: found.start() for index, line in enumerate(lines) if (found := pattern.search(line))}
            last = -1
            for index in sorted({place for hit in hits for place in _around(hit, query.context, len(lines))}):
                if query.context and index != last + 1 and not first:
                    yield None
                yield Found(name, index + 1, lines[index], hits.get(index))
                last, first = index, False

    def counts(self, query: Query, stop: Stop) -> Iterator[tuple[str, int]]:
        """Yield each file with its number of matching lines."""
        pattern = _compile(query)
        for name, lines in self._texts(query, stop):
            count = sum(pattern.search(line) is not None for line in lines)
            if count:
                yield name, count

    def _texts(self, query: Query, stop: Stop) -> Iterator[tuple[str, list[str]]]:
        """Yield every text file that the query asks for, as lines."""
        wanted = path_matcher(query.glob) if query.glob else None
        for name in [query.only] if query.only else self.files(query.base, stop):
            if stop.is_due():
                return
            if wanted is None or wanted(name):
                lines = _read_lines(query.base / name)
                if lines is not None:
                    yield name, lines


def _read_lines(path: Path) -> list[str] | None:
    try:
        if path.stat().st_size > _LARGEST_FILE:
            return None
        with path.open("rb") as file:
            start = file.read(_SNIFFED)
            content = decode_file(start + file.read()) if b"\0" not in start or start[:1] in b"\xff\xfe" else None
    except OSError:
        return None
    if content is None:
        return None
    lines = content.text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def _around(hit: int, context: int, total: int) -> range:
    return range(max(hit - context, 0), min(hit + context + 1, total))


def _compile(query: Query) -> re.Pattern[str]:
    """Raises `ToolError` for a pattern that is none."""
    text = re.escape(query.pattern) if query.literal else query.pattern
    try:
        return re.compile(text, re.IGNORECASE if query.ignore_case else 0)
    except re.error as error:
        raise ToolError(f"The search could not be done: not a regular expression: {error}") from None
