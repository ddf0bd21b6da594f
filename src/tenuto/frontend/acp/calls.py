"""Tool calls as an editor shows them: kind, title, the files that they are about, and what came of them. Pure."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
from acp.schema import (
    ContentToolCallContent,
    FileEditToolCallContent,
    ImageContentBlock,
    TerminalToolCallContent,
    TextContentBlock,
    ToolCallLocation,
    ToolKind,
)

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.message import DiffView, ResultView, TodoView
from tenuto.protocol.part import ContentPart, ImagePart
from tenuto.session.diff_rows import DiffRow, parse_diff
from tenuto.text.call_summary import argument, read_arguments, summarise_call
from tenuto.text.patch import patched_files
from tenuto.tool.edits.encoding import to_lf

CallContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
WIDE_CHARS = 900
"""A diff has only the beginning of a much longer line."""


def _nothing(_name: str) -> None:
    return None


class Around(msgspec.Struct, frozen=True):
    """What an update needs beside its event: where the session works, and what its client understands.

    `key` goes into the ids of messages and compactions: no id is given twice in a session, also after it was resumed.
    `load_image` has an image by its digest, `read_text` a file as it is now by its absolute path, if it is a small
    text.
    """

    cwd: str
    key: str = ""
    compactions: bool = False
    load_image: Callable[[str], bytes | None] = _nothing
    read_text: Callable[[str], str | None] = _nothing


KINDS: dict[str, ToolKind] = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "apply_patch": "edit",
    "bash": "execute",
    "jobs": "execute",
    "grep": "search",
    "glob": "search",
    "recall": "search",
    "mcp_search": "search",
    "fetch": "fetch",
    "web_search": "fetch",
    "todo": "think",
    "plan": "think",
    "compact": "think",
    "skill": "read",
    "agent": "other",
    "mcp_call": "other",
}
"""What a call of each built-in tool is, in the protocol's words; every other tool is "other"."""


def kind_of(name: str) -> ToolKind:
    """Return what a call of this tool is, in the protocol's words."""
    return KINDS.get(name, "other")


def title_of(name: str, arguments: str, summary: str = "") -> str:
    """Return one line: of a command the command itself, of all others the tool and what the call is about."""
    about = sanitize_for_terminal(summary or summarise_call(name, arguments)).replace("\n", " ")
    if name == "bash" and about:
        return about
    return f"{name} {about}".rstrip()


def locations_of(name: str, arguments: str, cwd: str) -> list[ToolCallLocation]:
    """Return the files that a call is about, as far as its arguments say, with the line where it begins to read."""
    values = read_arguments(arguments) or {}
    if name == "apply_patch":
        paths = [path for _, path in patched_files(argument(values, "input", "patch"))]
        return [ToolCallLocation(path=_absolute(path, cwd)) for path in dict.fromkeys(paths)]
    path = argument(values, "path")
    if kind_of(name) not in {"read", "edit"} or not path:
        return []
    offset = values.get("offset")
    line = offset if isinstance(offset, int) and offset > 0 else None
    return [ToolCallLocation(path=_absolute(path, cwd), line=line)]


def result_content(parts: Sequence[ContentPart], views: Sequence[ResultView], around: Around) -> list[CallContent]:
    """Return what a call came to: the changes where it has changed files, else its texts and images."""
    changes = [change for view in views if isinstance(view, DiffView) for change in diff_content(view, around)]
    if changes or any(isinstance(view, TodoView) for view in views):
        return [*changes]
    return [ContentToolCallContent(type="content", content=content_block(part, around)) for part in parts]


def text_content(text: str) -> ContentToolCallContent:
    """Return a text as the content of a call."""
    return ContentToolCallContent(type="content", content=text_block(text))


def text_block(text: str) -> TextContentBlock:
    """Return a text without what a terminal would obey."""
    return TextContentBlock(type="text", text=sanitize_for_terminal(text))


def content_block(part: ContentPart, around: Around) -> TextContentBlock | ImageContentBlock:
    """Return a part of a message; an image that is gone becomes a text."""
    if not isinstance(part, ImagePart):
        return text_block(part.text)
    data = around.load_image(part.sha256)
    if data is None:
        return text_block(f"[{part.name or 'An image'} is not there any more.]")
    return ImageContentBlock(type="image", data=base64.b64encode(data).decode(), mime_type=part.media_type)


def diff_content(view: DiffView, around: Around, *, proposed: bool = False) -> list[FileEditToolCallContent]:
    """Return a change: the whole file before and after where it is small, else the pieces with a few lines around them.

    The log has unified diffs and not whole files. The rest is in the file itself, as long as it still is, or where a
    change is `proposed` still is not, what the diff says.
    """
    path = _absolute(view.path, around.cwd)
    rows = parse_diff(view.diff, marked=0)
    if not (view.created or view.deleted):
        place = _absolute(view.moved_from, around.cwd) if proposed and view.moved_from else path
        text = around.read_text(place)
        sides = None if text is None else whole_sides(rows, view, text, proposed=proposed)
        if sides is not None:
            return [FileEditToolCallContent(type="diff", path=path, old_text=sides[0], new_text=sides[1])]
    pieces: list[list[DiffRow]] = [[]]
    for row in rows:
        if row.kind == "hunk":
            pieces.append([])
        elif row.kind != "note":
            pieces[-1].append(row)
    return [
        FileEditToolCallContent(
            type="diff",
            path=path,
            old_text=None if view.created else _side(rows, "added"),
            new_text=_side(rows, "removed"),
        )
        for rows in pieces
        if rows or view.created
    ]


def whole_sides(rows: Sequence[DiffRow], view: DiffView, text: str, *, proposed: bool) -> tuple[str, str] | None:
    """Return a file before and after a change, one of which is `text`; `None` where it has become another since.

    Line ends are LF, and what a terminal would obey is gone, as in the rows.
    """
    changed = [row for row in rows if row.kind in {"added", "removed", "context"}]
    counts = tuple(sum(row.kind == kind for row in changed) for kind in ("added", "removed"))
    if counts != (view.added, view.removed) or any(len(row.text) > WIDE_CHARS for row in changed):
        return None  # the diff is not all of the change
    lines = [sanitize_for_terminal(line) for line in to_lf(text).split("\n")]
    ends = lines[-1] == ""
    if ends:
        lines.pop()
    other = _other_side(changed, lines, ends=ends, given="old" if proposed else "new")
    if other is None:
        return None
    this = "\n".join(lines) + ("\n" if lines and ends else "")
    return (this, other) if proposed else (other, this)


def _other_side(
    rows: Sequence[DiffRow], lines: Sequence[str], *, ends: bool, given: Literal["old", "new"]
) -> str | None:
    """Return the other side of a change than that of `lines`, `None` where they are not what the rows say.

    `ends`: the last of the lines has an end too.
    """
    other: list[str] = []
    place, ends_there = 0, ends
    for row in rows:
        here, there = (row.old, row.new) if given == "old" else (row.new, row.old)
        gap = here - 1 - place if here else there - 1 - len(other)
        if gap < 0 or place + gap > len(lines):
            return None
        other += lines[place : place + gap]
        place += gap
        if here:
            if place == len(lines) or lines[place] != row.text:
                return None
            place += 1
        if there:
            other.append(row.text)
            ends_there = not row.ending.startswith("no newline")
    if place < len(lines):
        other += lines[place:]
        ends_there = ends
    return "\n".join(other) + ("\n" if other and ends_there else "")


def _side(rows: Sequence[DiffRow], without: str) -> str:
    lines = [row for row in rows if row.kind != without]
    text = "".join(f"{row.text}\n" for row in lines)
    return text[:-1] if lines and lines[-1].ending.startswith("no newline") else text


def diff_locations(views: Sequence[ResultView], cwd: str) -> list[ToolCallLocation]:
    """Return the files that a call has changed, each at the first changed line."""
    return [
        ToolCallLocation(path=_absolute(view.path, cwd), line=_first_line(view))
        for view in views
        if isinstance(view, DiffView)
    ]


def _first_line(view: DiffView) -> int | None:
    changed = (row.new or row.old for row in parse_diff(view.diff, marked=0) if row.kind in {"added", "removed"})
    return next(changed, None)


def _absolute(path: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, os.path.expanduser(path)))  # noqa: PTH111, PTH118 - text, not the disk
