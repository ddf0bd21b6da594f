"""The `edit` tool: replace a text that is quoted from the file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import DiffView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import replace_surrogates
from tenuto.tool.edits.diff import crlf_offsets, diff_view, newline_near, original_offset, splice_lines
from tenuto.tool.edits.encoding import to_lf
from tenuto.tool.edits.files import (
    FoundFile,
    change_file,
    change_subject,
    check_approved,
    check_unchanged,
    find_text,
    not_encodable,
    place_subject,
    resolve,
    show_path,
    similar_paths,
)
from tenuto.tool.edits.matching import Match, find_exact, find_tolerant, line_of, looks_numbered, nearest_lines
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.base import BuiltinTool, ToolError
from tenuto.tool.run.context import ToolContext

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import EditArguments

_LISTED_PLACES = 10


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is worked out and not yet written."""

    found: FoundFile
    data: bytes
    diff: DiffView
    matches: list[Match]


class EditTool(BuiltinTool):
    """Changes files, one after the other."""

    name = "edit"
    parallel = False

    def place(self, arguments: EditArguments, context: ToolContext) -> ApprovalSubject:
        """Return which file it would change."""
        return place_subject(self.name, resolve(arguments.path, context), context)

    def subject(self, arguments: EditArguments, context: ToolContext) -> ApprovalSubject:
        """Return the change that the call would make. Raises `ToolError` when there is none to make."""

        def plan() -> tuple[bytes, DiffView]:
            change = plan_edit(arguments, context)
            return change.data, change.diff

        return change_subject(self.place(arguments, context), plan, context)

    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolOutput:
        """Write the change. The last step is one call that a cancellation cannot cut in two."""
        change = await asyncio.to_thread(plan_edit, arguments, context)
        path = change.found.path
        check_approved(path, change.data, context)
        use = change_file(path, change.data, "edit", context)
        return ToolOutput(parts=(TextPart(text=_report(change, context)),), ui=(change.diff,), files=(use,))


def _report(change: Change, context: ToolContext) -> str:
    first, count = change.matches[0], len(change.matches)
    where = f"line {line_of(to_lf(change.found.content.text), first.start)}" if count == 1 else f"{count} places"
    text = f"Edited {show_path(change.found.path, context)} at {where} (+{change.diff.added} −{change.diff.removed})."
    if first.tolerance:
        text += (
            f" The quoted text did not match exactly ({first.tolerance}); this is what was changed:\n{change.diff.diff}"
        )
    return text


def plan_edit(arguments: EditArguments, context: ToolContext) -> Change:
    """Work the change out. Raises `ToolError` with what to do instead."""
    path = resolve(arguments.path, context)
    shown = show_path(path, context)
    old, new = to_lf(replace_surrogates(arguments.old_string)), to_lf(replace_surrogates(arguments.new_string))
    if not path.exists():
        raise ToolError(f"{shown} does not exist.{similar_paths(path, context)} To create it use write.")
    if not old:
        raise ToolError("old_string is empty. Quote the text to replace, or use write for a whole file.")
    if old == new:
        raise ToolError("old_string and new_string are the same; nothing to change.")
    found = find_text(path)
    check_unchanged(found, context)
    matches = _choose(found, old, new, arguments, context)
    text = _apply(found, matches)
    if text == found.content.text:
        raise ToolError(f"{shown} already reads like that; nothing was changed.")
    try:
        data = found.content.encode(text)
    except UnicodeEncodeError as error:
        raise ToolError(not_encodable(found.content, error)) from None
    return Change(found=found, data=data, diff=diff_view(str(path), found.content.text, text), matches=matches)


def _choose(found: FoundFile, old: str, new: str, arguments: EditArguments, context: ToolContext) -> list[Match]:
    """Return the places to change: one, or with `replace_all` every exact one."""
    text = to_lf(found.content.text)
    is_known = bool(context.files.digest(str(found.path)))
    matches = find_exact(text, old, new)
    if matches and arguments.replace_all:
        return matches
    # A guess needs a file that the model has seen: otherwise it could be about another text altogether.
    if not matches and is_known:
        matches = find_tolerant(text, old, new)
    if len(matches) == 1:
        return matches
    shown = show_path(found.path, context)
    if matches:
        raise ToolError(_ambiguous(shown, text, matches))
    if not is_known:
        raise ToolError(f"old_string was not found in {shown}, which you have not read. Read it first.")
    raise ToolError(_not_found(shown, text, old))


def _ambiguous(shown: str, text: str, matches: list[Match]) -> str:
    places = ", ".join(str(line_of(text, match.start)) for match in matches[:_LISTED_PLACES])
    more = ", …" if len(matches) > _LISTED_PLACES else ""
    way = f" ({matches[0].tolerance})" if matches[0].tolerance else ""
    return (
        f"old_string matches {len(matches)} places in {shown}{way}: lines {places}{more}. Nothing was changed. "
        "Quote more lines around the one you mean, or set replace_all to change all exact matches."
    )


def _not_found(shown: str, text: str, old: str) -> str:
    if looks_numbered(old):
        return f"old_string was not found in {shown}: quote the lines without the line numbers that read prints."
    near = nearest_lines(text, old)
    hint = f" The most similar lines are:\n{near}" if near else " Nothing similar is there; read the file again."
    return f"old_string was not found in {shown}; nothing was changed.{hint}"


def _apply(found: FoundFile, matches: list[Match]) -> str:
    """Return the whole text with every match replaced; nothing else changes."""
    text = found.content.text
    places = crlf_offsets(text)
    pieces: list[str] = []
    done = 0
    for match in matches:
        start, end = original_offset(places, match.start), original_offset(places, match.end)
        newline = newline_near(text, start, end, found.content.newline)
        pieces += [text[done:start], splice_lines(text[start:end], match.old, match.new, newline, match.reindent)]
        done = end
    return "".join(pieces) + text[done:]
