"""Tab in a `!command`, as in a shell: programs in the place of one, else paths as they lie on the disk.

`find_shell_target` is pure; `complete_shell` reads the disk: call it in a thread.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path

from msgspec import Struct

from tenuto.tui.complete.paths import MAX_ENTRIES, MAX_ROWS
from tenuto.tui.machine.intents import CompletionItem

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
