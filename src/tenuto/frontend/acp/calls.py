"""Tool calls as an editor shows them: kind, title, the files that they are about, and what came of them. Pure."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence

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

CallContent = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent
LoadImage = Callable[[str], bytes | None]

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


def result_content(
    parts: Sequence[ContentPart], views: Sequence[ResultView], cwd: str, load_image: LoadImage
) -> list[CallContent]:
    """Return what a call came to: the changes where it has changed files, else its texts and images."""
    changes = [change for view in views if isinstance(view, DiffView) for change in diff_content(view, cwd)]
    if changes or any(isinstance(view, TodoView) for view in views):
        return [*changes]
    return [ContentToolCallContent(type="content", content=content_block(part, load_image)) for part in parts]


def text_content(text: str) -> ContentToolCallContent:
    """Return a text as the content of a call."""
    return ContentToolCallContent(type="content", content=text_block(text))


def text_block(text: str) -> TextContentBlock:
    """Return a text without what a terminal would obey."""
    return TextContentBlock(type="text", text=sanitize_for_terminal(text))


def content_block(part: ContentPart, load_image: LoadImage) -> TextContentBlock | ImageContentBlock:
    """Return a part of a message; an image that is gone becomes a text."""
    if not isinstance(part, ImagePart):
        return text_block(part.text)
    data = load_image(part.sha256)
    if data is None:
        return text_block(f"[{part.name or 'An image'} is not there any more.]")
    return ImageContentBlock(type="image", data=base64.b64encode(data).decode(), mime_type=part.media_type)


def diff_content(view: DiffView, cwd: str) -> list[FileEditToolCallContent]:
    """Return a change, piece by piece: what stood there, and what stands there now, with a few lines around it.

    The log has unified diffs and not whole files, so the texts are those of the pieces.
    """
    path = _absolute(view.path, cwd)
    pieces: list[list[DiffRow]] = [[]]
    for row in parse_diff(view.diff, marked=0):
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
