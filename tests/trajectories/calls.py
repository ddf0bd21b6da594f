"""Calls of other agents in one form: what was wanted, what was answered, and what the answer shows of files."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Look:
    """Lines of a file, or a folder; without `count` all that fit."""

    path: str
    first: int = 1
    count: int | None = None


@dataclass(frozen=True)
class Replace:
    path: str
    old: str
    new: str
    everywhere: bool = False


@dataclass(frozen=True)
class Several:
    """Several replacements in one file."""

    path: str
    parts: tuple[Replace, ...]


@dataclass(frozen=True)
class Lines:
    """The lines from `first` to `last` are replaced; with `last` before `first`, text is put in behind `last`."""

    path: str
    first: int
    last: int
    text: str


@dataclass(frozen=True)
class Sed:
    """`sed -i`: what its program does is what sed itself does."""

    path: str
    words: tuple[str, ...]


@dataclass(frozen=True)
class Create:
    path: str
    text: str


@dataclass(frozen=True)
class Patch:
    text: str


@dataclass(frozen=True)
class Search:
    pattern: str
    path: str = "."


@dataclass(frozen=True)
class Find:
    pattern: str
    path: str = "."


@dataclass(frozen=True)
class Shell:
    command: str


@dataclass(frozen=True)
class Other:
    """What has no counterpart, such as handing in the work."""

    name: str


Wanted = Look | Replace | Several | Lines | Sed | Create | Patch | Search | Find | Shell | Other
Edit = (Replace, Several, Lines, Sed, Create, Patch)


@dataclass(frozen=True)
class Shown:
    """Lines of a file by their numbers, as an answer shows them. `total` is the file's number of lines, if it says."""

    path: str
    lines: dict[int, str]
    total: int | None = None


@dataclass(frozen=True)
class Recorded:
    """One call. `refused`: it changed nothing, by its answer."""

    wanted: Wanted
    answer: str
    failed: bool = False
    refused: str = ""
    shown: tuple[Shown, ...] = field(default=())


def named(name: str, arguments: dict[str, Any], answer: str, *, failed: bool) -> Recorded:
    """Return a call of a tool by the names that agents commonly give it."""
    wanted = _wanted(name.lower(), arguments)
    call = Recorded(wanted, answer, failed, "it failed" if failed else "")
    if isinstance(wanted, Look | Replace | Several | Lines) and not failed:
        shown = numbered_lines(wanted.path, answer)
        return replace(call, shown=(shown,) if shown.lines else ())
    return call


def _wanted(name: str, given: dict[str, Any]) -> Wanted:
    def text(*names: str) -> str:
        return next((str(given[one]) for one in names if given.get(one) is not None), "")

    path = text("file_path", "path", "absolute_path", "filename", "filePath")
    if name in ("str_replace_editor", "str_replace_based_edit_tool", "text_editor"):
        name = {"str_replace": "edit", "create": "write"}.get(text("command"), text("command"))
    match name:
        case "read" | "read_file" | "readfile" | "view":
            first, *last = given.get("view_range") or [int(text("offset", "start_line") or 1)]
            count = last[0] - first + 1 if last and last[0] > 0 else given.get("limit")
            return Look(path, max(1, first), count)
        case "ls" | "list_directory":
            return Look(path or ".")
        case "write" | "write_file" | "writefile" | "create_file":
            return Create(path, text("content", "contents", "file_text"))
        case "edit" | "replace" | "str_replace" | "strreplacefile" if "old_string" in given or "old_str" in given:
            old, new = text("old_string", "old_str"), text("new_string", "new_str")
            return Replace(path, old, new, bool(given.get("replace_all"))) if old else Create(path, new)
        case "multiedit":
            parts = [
                Replace(path, e["old_string"], e["new_string"], bool(e.get("replace_all"))) for e in given["edits"]
            ]
            return Several(path, tuple(parts))
        case "insert":
            after = int(text("insert_line") or 0)
            return Lines(path, after + 1, after, text("insert_text", "new_str"))
        case "bash" | "execute_bash" | "run_shell_command" | "shell" | "shell_command" | "exec_command":
            command = given.get("command") or given.get("cmd") or ""
            return shell(command if isinstance(command, str) else shlex.join(command))
        case "grep" | "search_file_content":
            return Search(text("pattern"), path or ".")
        case "glob" | "find":
            return Find(text("pattern"), path or ".")
        case "apply_patch":
            return Patch(text("input", "patch"))
        case _:
            return Other(name)


_NUMBERED = re.compile(r"^ *(\d+)(?:\t|→|:|  )(.*)$")


def numbered_lines(path: str, text: str) -> Shown:
    """Return the longest run of numbered lines in a text, as `cat -n` and editors print them."""
    best: dict[int, str] = {}
    run: dict[int, str] = {}
    for line in text.split("\n"):
        found = _NUMBERED.match(line)
        if found and (not run or int(found[1]) == max(run) + 1):
            run[int(found[1])] = found[2]
        elif found:
            run = {int(found[1]): found[2]}
        else:
            run = {}
        best = run if len(run) > len(best) else best
    return Shown(path, best)


_HEREDOC = re.compile(
    r"cat\s+(?:<<-?\s*(['\"]?)(\w+)\1\s*>\s*(\S+)|>\s*(\S+)\s+<<-?\s*(['\"]?)(\w+)\5)\s*\n", re.DOTALL
)
_PLAIN = re.compile(r"""(?:'[^']*'|"[^"$`\\]*"|\\.|[^\s'"`$;&|<>(){}*?~\\#]|[ \t])+""")
_RANGE = re.compile(r"(\d+)(?:,(\d+))?p")


def shell(command: str) -> Wanted:
    """Return what a plain command is for: reading or changing one file, searching. Everything else is a command."""
    command = command.strip()
    if (found := _HEREDOC.match(command)) is not None:
        text, mark, behind = command[found.end() :].rpartition(f"\n{found[2] or found[6]}")
        text = text if mark else command[found.end() :].removesuffix(found[2] or found[6])
        path, quoted = found[3] or found[4], found[1] or found[5]
        if not behind.strip() and (mark or not text) and (quoted or not re.search(r"[$`\\]", text)):
            return Create(path, f"{text}\n" if mark else "")
    window = re.fullmatch(r"nl -ba (\S+) \| sed -n ['\"](\d+),(\d+)p['\"]", command)
    if window:
        return Look(window[1], int(window[2]), int(window[3]) - int(window[2]) + 1)
    if not _PLAIN.fullmatch(command) or "\n" in command:
        return Shell(command)
    try:
        return _plain(shlex.split(command)) or Shell(command)
    except ValueError:
        return Shell(command)


def _plain(words: list[str]) -> Wanted | None:
    match words:
        case ["cat", path] if not path.startswith("-"):
            return Look(path)
        case ["nl", "-ba", path]:
            return Look(path)
        case ["sed", "-n", span, path] if found := _RANGE.fullmatch(span):
            first = int(found[1])
            return Look(path, first, int(found[2] or first) - first + 1)
        case ["head", "-n", number, path] if number.isdigit():
            return Look(path, 1, int(number))
        case ["sed", "-i", program, path] if "\n" not in program:
            return Sed(path, (program,))
        case ["grep", *flags, pattern, path] if flags and all(re.fullmatch(r"-[rniHE]+", flag) for flag in flags):
            return Search(pattern, path)
        case ["find", path, "-name", pattern]:
            return Find(f"**/{pattern}", path)
        case _:
            return None
