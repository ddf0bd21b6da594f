"""The `write` tool: a whole file at once, or more of it at its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import DiffView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import replace_surrogates
from tenuto.tool.documents.notebook import parse_notebook
from tenuto.tool.edits.diff import diff_view, splice_lines
from tenuto.tool.edits.encoding import to_lf, with_newline
from tenuto.tool.edits.files import (
    FoundFile,
    PlannedChange,
    change_subject,
    check_approved,
    check_place,
    check_unchanged,
    find_present,
    make_changes,
    not_encodable,
    place_subject,
    refuse_masks,
    resolve,
    show_path,
)
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import WriteArguments


class WriteTool(BuiltinTool):
    """Creates and replaces files, one after the other."""

    name = "write"
    parallel = False

    def place(self, arguments: WriteArguments, context: ToolContext) -> ApprovalSubject:
        """Return which file it would write."""
        return place_subject(self.name, [resolve(arguments.path, context)], context)

    def subject(self, arguments: WriteArguments, context: ToolContext) -> ApprovalSubject:
        """Return the change that the call would make."""

        def plan() -> tuple[list[PlannedChange], list[DiffView]]:
            change, diff = _plan(arguments, context)
            return [change], [diff]

        return change_subject(self.place(arguments, context), plan, context)

    async def run(self, arguments: WriteArguments, context: ToolContext) -> ToolOutput:
        """Write. The last step is one call that a cancellation cannot cut in two."""
        change, diff = await asyncio.to_thread(_plan, arguments, context)
        check_approved([change.path], [change], context)
        files = await make_changes([change], context)
        data = change.data or b""
        lines = data.count(b"\n") + (0 if data.endswith(b"\n") or not data else 1)
        did = (
            "Created"
            if diff.created
            else f"{'Extended' if arguments.append else 'Replaced'} (+{diff.added} −{diff.removed})"
        )
        text = f"{did} {show_path(change.path, context)}: {lines:,} lines, {len(data):,} bytes."
        return ToolOutput(parts=(TextPart(text=text),), ui=(diff,), files=files)


def _plan(arguments: WriteArguments, context: ToolContext) -> tuple[PlannedChange, DiffView]:
    """Return the change and its diff. Raises `ToolError` when the model does not know what it would overwrite."""
    path = resolve(arguments.path, context)
    text = replace_surrogates(arguments.content)
    check_place(path, context)
    if not path.exists():
        refuse_masks("", text)
        created = PlannedChange(path=path, data=text.encode(), op="write")
        return created, diff_view(show_path(path, context), "", text, created=True)
    if not context.files.digest(str(path)):
        raise ToolError(
            f"{show_path(path, context)} exists and you have not read it; nothing was written. "
            "Read it first, or use edit to change a part of it."
        )
    found = find_present(path, context)
    if parse_notebook(path, found.data) is not None and parse_notebook(path, text.encode()) is None:
        raise ToolError(
            f"{show_path(path, context)} is a notebook, and the content is none; nothing was written. Give the whole "
            "JSON of a notebook, or change it through bash (python3 with json or nbformat)."
        )
    check_unchanged(found, context)
    fitted = _extend(found, text) if arguments.append else _fit(found, text)
    refuse_masks(found.content.text, fitted)
    try:
        data = found.content.encode(fitted)
    except UnicodeEncodeError as error:
        raise ToolError(not_encodable(found.content, error)) from None
    change = PlannedChange(path=path, data=data, op="write")
    return change, diff_view(show_path(path, context), found.content.text, fitted)


def _extend(found: FoundFile, text: str) -> str:
    """Return the file's text with the new text behind it, in the file's own line ends."""
    content = found.content
    return content.text + (with_newline(text, content.newline) if "\n" in content.text else text)


def _fit(found: FoundFile, text: str) -> str:
    """Return the new text with the line ends of the file that it replaces."""
    content = found.content
    text = text.removeprefix("\ufeff") if content.bom else text
    if content.is_mixed:
        return splice_lines(content.text, to_lf(content.text), to_lf(text), content.newline)
    return with_newline(text, content.newline) if "\n" in content.text else text
