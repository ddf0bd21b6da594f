"""A patch over several files, as OpenAI's models write it: read, and written again. Pure.

    patch   = "*** Begin Patch" section+ "*** End Patch"
    section = "*** Add File: " path, lines with "+"
            | "*** Delete File: " path
            | "*** Update File: " path ["*** Move to: " path] hunk*
    hunk    = ("@@" [" " line])*, lines with " ", "-" or "+", ["*** End of File"]

The first hunk of a file may do without "@@". An empty line in a hunk is an empty line around the change.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, get_args

from msgspec import Struct

from tenuto.text.late import late

BEGIN, END = "*** Begin Patch", "*** End Patch"
_ADD, _DELETE, _UPDATE, _MOVE = "*** Add File: ", "*** Delete File: ", "*** Update File: ", "*** Move to: "
_HEADERS = (_ADD, _DELETE, _UPDATE)
_AT_END = "*** End of File"
_PATHS = late(r"^\*\*\* (?:(Add|Delete|Update) File|(Move) to): (.*\S)", re.MULTILINE)
_WRAPPING = late(r"```\w*|(?:apply_patch\s*)?<<-?\s*(['\"]?)\w+\1")
_ECHO = 100

Sign = Literal[" ", "-", "+"]


class PatchError(Exception):
    """A text that is no patch; the message says what is wrong, and in which line."""


class HunkLine(Struct, frozen=True):
    """A line around a change, one that goes or one that comes, without its line end."""

    sign: Sign
    text: str


class Hunk(Struct, frozen=True):
    """One place of a file. It comes behind the lines that `anchors` quote, in their order; `at_end` ends the file."""

    lines: tuple[HunkLine, ...]
    anchors: tuple[str, ...] = ()
    at_end: bool = False

    @property
    def old(self) -> list[str]:
        """The lines that have to be there."""
        return [line.text for line in self.lines if line.sign != "+"]

    @property
    def new(self) -> list[str]:
        """The lines that stand in their place."""
        return [line.text for line in self.lines if line.sign != "-"]


class AddFile(Struct, frozen=True):
    """A new file, with its lines."""

    path: str
    lines: tuple[str, ...] = ()


class DeleteFile(Struct, frozen=True):
    """A file that goes."""

    path: str


class UpdateFile(Struct, frozen=True):
    """Changes to a file, from its beginning to its end; `move_to` is its new path (empty: it stays)."""

    path: str
    hunks: tuple[Hunk, ...] = ()
    move_to: str = ""


Section = AddFile | DeleteFile | UpdateFile
Patch = tuple[Section, ...]


def is_whole(text: str) -> bool:
    """Say whether a text ends as a patch ends."""
    return text.rstrip().removesuffix("```").rstrip().endswith(f"\n{END}")


PatchVerb = Literal["Add", "Delete", "Update", "Move"]


def patched_files(text: str) -> list[tuple[PatchVerb, str]]:
    """Return what is done to which path, as far as a patch is there; "Move" has the new path of the file before it."""
    return [(kind or move, path) for kind, move, path in _PATHS.findall(text.replace("\r\n", "\n"))]


def parse_patch(text: str) -> Patch:
    """Return the sections of a patch. Raises `PatchError`."""
    lines = _Lines(text)
    sections: list[Section] = []
    while (line := lines.peek()).rstrip() != END:
        sections.append(_section(line, lines))
    lines.take()
    lines.check_ended()
    if not sections:
        raise PatchError("the patch changes no file")
    return tuple(sections)


class _Lines:
    """The lines of a patch, one after the other. Nothing reads over the one that ends it."""

    def __init__(self, text: str) -> None:
        self._lines = _unwrapped(text.replace("\r\n", "\n").split("\n"))
        self._at = 1
        if not self._lines or self._lines[0].rstrip() != BEGIN:
            raise PatchError(f"a patch begins with the line {BEGIN!r}")
        if END not in map(str.rstrip, self._lines):
            raise PatchError(f"the patch is cut off: {END!r} is missing behind line {len(self._lines)}")

    def peek(self) -> str:
        """Return the next line."""
        return self._lines[self._at]

    def check_ended(self) -> None:
        """Raise `PatchError` where something is left."""
        if self._at < len(self._lines):
            raise self.error(f"nothing may come behind {END!r}, but there is {_quote(self.peek())}")

    def take(self) -> str:
        """Return the next line and go on."""
        self._at += 1
        return self._lines[self._at - 1]

    def error(self, what: str) -> PatchError:
        """Return an error about the next line."""
        return PatchError(f"line {self._at + 1} of the patch: {what}")


def _unwrapped(lines: list[str]) -> list[str]:
    """Return the lines without blank ones around them, and without the fence or here-document of some models."""
    while lines and not lines[0].strip():
        lines = lines[1:]
    while lines and not lines[-1].strip():
        lines = lines[:-1]
    if len(lines) > 2 and _WRAPPING.fullmatch(lines[0].strip()) and lines[-1].strip() != END:
        return _unwrapped(lines[1:-1])
    return lines


def _section(header: str, lines: _Lines) -> Section:
    kind = next((kind for kind in _HEADERS if header.startswith(kind)), "")
    path = header.removeprefix(kind).strip()
    if not kind:
        raise lines.error(f"a file begins with {', '.join(map(repr, _HEADERS))}, not with {_quote(header)}")
    if not path:
        raise lines.error("the path is missing")
    lines.take()
    if kind == _ADD:
        return AddFile(path, tuple(_added(lines)))
    if kind == _DELETE:
        return DeleteFile(path)
    target = ""
    if (line := lines.peek()).startswith(_MOVE):
        target = line.removeprefix(_MOVE).strip()
        if not target:
            raise lines.error("the path is missing")
        lines.take()
    hunks = tuple(_hunks(lines))
    if not hunks and not target:
        raise lines.error(f"{path} is to be updated, but no change follows")
    return UpdateFile(path, hunks, target)


def _added(lines: _Lines) -> Iterator[str]:
    while not (line := lines.peek()).startswith("*** "):
        if not line.startswith("+"):
            raise lines.error(f"each line of a new file begins with '+', not {_quote(line)}")
        yield lines.take()[1:]


def _hunks(lines: _Lines) -> Iterator[Hunk]:
    while not _ends_file(lines.peek()):
        anchors = tuple(_anchors(lines))
        changed = tuple(_changed(lines))
        at_end = lines.peek().rstrip() == _AT_END
        if not changed:
            raise lines.error("a hunk has no lines: quote the lines around the change with ' ' before each")
        if at_end:
            lines.take()
        yield Hunk(changed, anchors, at_end)


def _ends_file(line: str) -> bool:
    return line.startswith("*** ") and line.rstrip() != _AT_END


def _anchors(lines: _Lines) -> Iterator[str]:
    while (line := lines.peek()) == "@@" or line.startswith("@@ "):
        lines.take()
        yield from [line.removeprefix("@@ ")] if line.rstrip() != "@@" else ()


def _changed(lines: _Lines) -> Iterator[HunkLine]:
    while not (line := lines.peek()).startswith(("*** ", "@@")):
        sign = next((sign for sign in get_args(Sign) if line.startswith(sign)), None)
        if sign is None and line:
            raise lines.error(f"each line of a change begins with ' ', '-' or '+', not {_quote(line)}")
        lines.take()
        yield HunkLine(sign or " ", line[1:])


def _quote(line: str) -> str:
    return repr(line if len(line) <= _ECHO else f"{line[:_ECHO]}…")
