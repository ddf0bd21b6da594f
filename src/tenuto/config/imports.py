"""`@path` in an instruction file: the text of the file that it names stands in its place, or behind its line.

Only a file that is there is an import, so addresses and mentions stay what they are, as does code. A repository can
name anything: what is named has to lie, links resolved, where the naming file's own kind may lie.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from tenuto.config.project import RefusedFileError, is_below, read_text
from tenuto.text.bounding import shorten
from tenuto.text.late import late
from tenuto.text.writable import keep_within

MAX_CHARS = 64_000
"""Characters of one instruction file, and of what it imports together with it."""
MAX_DEPTH = 5
"""Imports of imports go so deep."""
MAX_NAMES = 200
"""So many words with an `@` are looked at for one instruction file: each costs a look at the disk."""
MAX_PROBLEMS = 5
"""So many refused imports of one instruction file are named; the others are counted."""
_SHOWN_CHARS = 120
_TAGS = ("instructions", "imported", "harness-note")
_IMPORT = late(r"(?:^|(?<=[\s(\[{\"']))@(?!@)(?:\"([^\"\n]+)\"|((?:\\ |[^\s\"])+))", re.MULTILINE)
_CLOSING = ".,;:!?)]}'\"…"
_EXPLICIT = ("./", "../", "~/", "/")
_TEXTS = (".md", ".mdc", ".markdown", ".txt", ".rst", ".adoc")
_FENCE = late(r"[ \t>]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}|~{3,})(.*)", re.DOTALL)
_UNSEEN = late(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # controls but tab and newline
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufff9-\ufffb"  # bidi controls, annotations
    "\U000e0000-\U000e007f]"  # letters that no screen shows and a model reads
)


class Scope(msgspec.Struct, frozen=True):
    """Where a file may really lie: `inside` one of these folders, and through no link in those that are `apart`."""

    inside: tuple[Path, ...]
    apart: tuple[Path, ...] = ()


def clean_instructions(text: str) -> str:
    """Return a file's text without what its reader does not see, and unable to end the tags around it."""
    return keep_within(_UNSEEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")), *_TAGS)


def as_attribute(path: str) -> str:
    """Return a path as it stands in a tag: any name of a folder stays in its quotes."""
    return "".join(letter if letter.isprintable() and letter not in '"<>' else "\ufffd" for letter in path)


class _Left(msgspec.Struct):
    """What the imports of one instruction file may still take."""

    chars: int
    names: int = MAX_NAMES
    refused: int = 0


class Importer:
    """Expands the imports of instruction files that are told together; each file is given once.

    `given` are real paths of files that the model has already. Files of the `project` import inside of it only, also
    where a file of the user imports them.
    """

    def __init__(self, project: Scope, given: Iterable[str] = ()) -> None:
        self.problems: list[str] = []
        self._project = project
        self._given = set(given)

    def take(self, path: Path) -> bool:
        """Note that a file is given; return whether it was not before."""
        real = os.path.realpath(path)
        is_new = real not in self._given
        self._given.add(real)
        return is_new

    def expand(self, path: Path, text: str, scope: Scope) -> str:
        """Return the text of the file at `path` with its imports expanded.

        What is not imported stays as it was written. A line that only names a file which is given already is left out.
        """
        left = _Left(MAX_CHARS - len(text))
        expanded = self._expand(path, text, scope, 0, left)
        if left.refused > MAX_PROBLEMS:
            self.problems.append(f"{path} has {left.refused - MAX_PROBLEMS:,} more imports that are refused")
        if left.names < 0:
            self.problems.append(f"{path} has more than {MAX_NAMES} words with an @; only these are looked at")
        return expanded

    def _expand(self, path: Path, text: str, scope: Scope, depth: int, left: _Left) -> str:
        pieces: list[str] = []
        done = 0
        for begin, end, names in _lines_with_names(text):
            blocks = [self._import(name, path, scope, depth, left) for name in names]
            found = [block for block in blocks if block]
            if len(names) == 1 and blocks[0] is not None and text[begin:end].strip() == names[0][0]:
                pieces += [text[done:begin], *found]
            else:
                pieces += [text[done:end], *(f"\n{block}" for block in found)]
            done = end
        return "".join([*pieces, text[done:]])

    def _import(self, name: re.Match[str], importing: Path, scope: Scope, depth: int, left: _Left) -> str | None:
        """Return the block of a named file, empty when it is given already; `None` leaves the name as it is."""
        left.names -= 1
        if left.names < 0:
            return None
        written, path = _locate(name, importing.parent)
        is_explicit = written.startswith(_EXPLICIT)
        if path is None:
            if is_explicit or written.lower().endswith(_TEXTS):
                self._refuse(written, importing, "there is no such file", left)
            return None
        real = os.path.realpath(path)
        if real in self._given:
            return ""
        try:
            text = self._read(real, scope, depth, left)
        except IsADirectoryError as error:
            if is_explicit:
                self._refuse(written, importing, str(error), left)
            return None
        except FileNotFoundError:
            self._refuse(written, importing, "it leads to a file that is not there", left)
            return None
        except RefusedFileError as refused:
            self._refuse(written, importing, str(refused), left)
            return None
        if not text:
            return None
        left.chars -= len(text)
        self._given.add(real)
        is_project = is_below(real, self._project.inside) and not is_below(real, self._project.apart)
        body = self._expand(Path(real), text, self._project if is_project else scope, depth + 1, left)
        return f'<imported path="{as_attribute(real)}">\n{body}\n</imported>'

    def _read(self, real: str, scope: Scope, depth: int, left: _Left) -> str:
        """Raises `FileNotFoundError`, `IsADirectoryError` and `RefusedFileError`."""
        if is_below(real, scope.apart) or ".git" in real.split("/"):
            raise RefusedFileError("it leads to a file that is not the project's")
        if os.path.isdir(real):  # noqa: PTH112 - a resolved name of any bytes
            raise IsADirectoryError("it is a directory")
        if depth >= MAX_DEPTH:
            raise RefusedFileError(f"imports go at most {MAX_DEPTH} deep")
        text = clean_instructions(read_text(Path(real), scope.inside)).strip()
        if len(text) > left.chars:
            raise RefusedFileError(
                f"it has {len(text):,} characters; an instruction file and its imports have at most {MAX_CHARS:,}"
            )
        return text

    def _refuse(self, written: str, importing: Path, reason: str, left: _Left) -> None:
        left.refused += 1
        if left.refused <= MAX_PROBLEMS:
            self.problems.append(f"@{shorten(written, _SHOWN_CHARS)} in {importing} is not imported: {reason}")


def _locate(name: re.Match[str], folder: Path) -> tuple[str, Path | None]:
    """Return what is meant by a word behind an `@`, and where it is; `None` where nothing is."""
    quoted = name[1]
    whole = quoted or name[2].replace("\\ ", " ")
    for written in dict.fromkeys([whole] if quoted else [whole.rstrip(_CLOSING), whole]):
        if not written or _UNSEEN.search(written):
            continue
        path = Path(os.path.expanduser(written) if written.startswith("~/") else written)  # noqa: PTH111
        if os.path.lexists(folder / path):
            return written, folder / path
    return whole if quoted else whole.rstrip(_CLOSING), None


def _lines_with_names(text: str) -> Iterator[tuple[int, int, list[re.Match[str]]]]:
    """Yield begin and end of each line that may import something, and the names in it; what is code has none."""
    if "@" not in text:
        return
    code = find_code(text)
    starts = [start for start, _ in code]
    begin = end = -1
    names: list[re.Match[str]] = []
    for found in _IMPORT.finditer(text):
        place = bisect_right(starts, found.start()) - 1
        if place >= 0 and found.start() < code[place][1]:
            continue
        if found.start() > end:
            if names:
                yield begin, end, names
            begin, end = text.rfind("\n", 0, found.start()) + 1, text.find("\n", found.start())
            end, names = end if end >= 0 else len(text), []
        names.append(found)
    if names:
        yield begin, end, names


def find_code(text: str) -> list[tuple[int, int]]:
    """Return begin and end of fenced code, code spans and comments of a Markdown text, in order and apart."""
    found: list[tuple[int, int]] = []
    fence, fence_at, prose_at, position = "", 0, 0, 0
    for line in text.split("\n"):
        end = position + len(line)
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence) and not mark[2].strip():
                found.append((fence_at, end))
                fence, prose_at = "", end
        elif mark and not (mark[1][0] == "`" and "`" in mark[2]):
            found += _spans(text, prose_at, position)
            fence, fence_at = mark[1], position
        elif not line.strip():
            found += _spans(text, prose_at, position)
            prose_at = position
        position = end + 1
    found += [(fence_at, len(text))] if fence else _spans(text, prose_at, len(text))
    return _joined([*found, *_comments(text)])


def _spans(text: str, start: int, end: int) -> list[tuple[int, int]]:
    """Return the code spans of a paragraph: between two runs of as many back-ticks."""
    runs = [(run.start(), run.end()) for run in re.finditer("`+", text[start:end])]
    closing: dict[int, int] = {}
    partner: dict[int, int] = {}
    for index in range(len(runs) - 1, -1, -1):
        size = runs[index][1] - runs[index][0]
        partner[index] = closing.get(size, -1)
        closing[size] = index
    found: list[tuple[int, int]] = []
    index = 0
    while index < len(runs):
        other = partner[index]
        if other > 0:
            found.append((start + runs[index][0], start + runs[other][1]))
        index = max(index, other) + 1
    return found


def _comments(text: str) -> Iterator[tuple[int, int]]:
    begin = text.find("<!--")
    while begin >= 0 and (end := text.find("-->", begin)) >= 0:
        yield begin, end + 3
        begin = text.find("<!--", end)


def _joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(ranges):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(joined[-1][1], end)
        else:
            joined.append((begin, end))
    return joined
