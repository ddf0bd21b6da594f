"""The `edit` tool: replace texts that are quoted from the file, one or several in a call."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import DiffView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import replace_surrogates
from tenuto.text.call_summary import several
from tenuto.tool.documents.notebook import parse_notebook
from tenuto.tool.edits.diff import crlf_offsets, diff_view, newline_near, original_offset, splice_lines
from tenuto.tool.edits.encoding import to_lf
from tenuto.tool.edits.files import (
    FoundFile,
    PlannedChange,
    change_subject,
    check_approved,
    check_unchanged,
    find_present,
    find_text,
    make_changes,
    not_encodable,
    place_subject,
    refuse_masks,
    resolve,
    show_path,
    similar_paths,
)
from tenuto.tool.edits.matching import Match, find_exact, find_tolerant, line_of, looks_numbered, nearest_lines
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import EditArguments, ReplacementArguments


_LISTED_PLACES = 10
_BEHIND = " It is made to the text that the edits before it leave."


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One of a call's edits, worked out: the text that it is made to, its places there, and the file behind it."""

    before: str
    matches: list[Match]
    after: str
    data: bytes


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is worked out and not yet written; `data` is the whole file with all edits made."""

    path: Path
    data: bytes
    diff: DiffView
    steps: list[Step]

    @property
    def planned(self) -> PlannedChange:
        """What is to be written."""
        return PlannedChange(path=self.path, data=self.data, op="edit")


class EditTool(BuiltinTool):
    """Changes files, one after the other."""

    name = "edit"
    parallel = False

    def place(self, arguments: EditArguments, context: ToolContext) -> ApprovalSubject:
        """Return which file it would change."""
        subject = place_subject(self.name, [resolve(arguments.path, context)], context)
        return msgspec.structs.replace(subject, summary=f"{subject.summary}{several(len(arguments.replacements))}")

    def subject(self, arguments: EditArguments, context: ToolContext) -> ApprovalSubject:
        """Return the change that the call would make. Raises `ToolError` when there is none to make."""

        def plan() -> tuple[list[PlannedChange], list[DiffView]]:
            change = plan_edit(arguments, context)
            return [change.planned], [change.diff]

        return change_subject(self.place(arguments, context), plan, context)

    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolOutput:
        """Write the change. The last step is one call that a cancellation cannot cut in two."""
        change = await asyncio.to_thread(plan_edit, arguments, context)
        check_approved([change.path], [change.planned], context)
        files = await make_changes([change.planned], context)
        return ToolOutput(parts=(TextPart(text=_report(change, context)),), ui=(change.diff,), files=files)


def _report(change: Change, context: ToolContext) -> str:
    steps = change.steps
    named = [f"edit {number}: {_where(step)}" for number, step in enumerate(steps, 1)]
    made = f" with {len(steps)} edits" if len(steps) > 1 else f" at {_where(steps[0])}"
    text = f"Edited {show_path(change.path, context)}{made} (+{change.diff.added} −{change.diff.removed})."
    if len(steps) > 1:
        text += f" {'; '.join(named).capitalize()}."
    tolerances = dict.fromkeys(step.matches[0].tolerance for step in steps if step.matches[0].tolerance)
    if tolerances:
        text += (
            f" The quoted text did not match exactly ({'; '.join(tolerances)}); this is what was changed:\n"
            f"{change.diff.diff}"
        )
    return text


def _where(step: Step) -> str:
    """Return the line of an edit, counted in the text that it was made to, or how many places it has."""
    count = len(step.matches)
    return f"line {line_of(to_lf(step.before), step.matches[0].start)}" if count == 1 else f"{count} places"


def plan_edit(arguments: EditArguments, context: ToolContext) -> Change:
    """Work the change out: each edit is made to what the ones before it leave. Raises `ToolError` with what to do."""
    path = resolve(arguments.path, context)
    shown = show_path(path, context)
    if not path.exists():
        raise ToolError(f"{shown} does not exist.{similar_paths(path, context)} To create it use write.")
    edits = arguments.replacements
    texts: list[tuple[str, str]] = []
    for number, edit in enumerate(edits, 1):
        with _naming(number, len(edits)):
            texts.append(_texts(edit))
    found = present = find_present(path, context)
    if parse_notebook(path, found.data) is not None:
        raise ToolError(
            f"{shown} is a notebook: what read shows are its cells and not the JSON of the file; nothing was changed. "
            "Change the JSON through bash (python3 with json or nbformat)."
        )
    check_unchanged(found, context)
    is_known = bool(context.files.digest(str(path)))
    steps: list[Step] = []
    for number, (edit, (old, new)) in enumerate(zip(edits, texts, strict=True), 1):
        with _naming(number, len(edits), _BEHIND if steps else ""):
            # Bytes become text again, so that a list does what its edits would do one call after the other.
            present = find_text(path, steps[-1].data) if steps else found
            # A file that an exact edit was made to is known, as it would be to the next call.
            steps.append(
                _make(present, old, new, shown, every=bool(edit.replace_all), is_known=is_known or bool(steps))
            )
    if steps[-1].data == found.data:
        raise ToolError(f"Together the {len(edits)} edits leave {shown} as it is; nothing was changed.")
    refuse_masks(found.content.text, steps[-1].after)
    diff = diff_view(shown, found.content.text, steps[-1].after)
    return Change(path=path, data=steps[-1].data, diff=diff, steps=steps)


@contextmanager
def _naming(number: int, count: int, note: str = "") -> Generator[None]:
    """Say in an error which of several edits it is about, from 1."""
    try:
        yield
    except ToolError as error:
        if count == 1:
            raise
        raise ToolError(
            f"Edit {number} of {count} failed, so none was made.{note} {error}", files=error.files
        ) from None


def _texts(edit: ReplacementArguments) -> tuple[str, str]:
    """Return the quoted and the new text with LF. Raises `ToolError` for what no file could take."""
    old, new = to_lf(replace_surrogates(edit.old_string)), to_lf(replace_surrogates(edit.new_string))
    if not old:
        raise ToolError("old_string is empty. Quote the text to replace, or use write for a whole file.")
    if old == new:
        raise ToolError("old_string and new_string are the same; nothing to change.")
    return old, new


def _make(found: FoundFile, old: str, new: str, shown: str, *, every: bool, is_known: bool) -> Step:
    """Work one edit out."""
    matches = _choose(to_lf(found.content.text), old, new, shown, every=every, is_known=is_known)
    text = _apply(found, matches)
    if text == found.content.text:
        raise ToolError(f"{shown} already reads like that; nothing was changed.")
    try:
        data = found.content.encode(text)
    except UnicodeEncodeError as error:
        raise ToolError(not_encodable(found.content, error)) from None
    return Step(before=found.content.text, matches=matches, after=text, data=data)


def _choose(text: str, old: str, new: str, shown: str, *, every: bool, is_known: bool) -> list[Match]:
    """Return the places to change: one, or with `every` all exact ones."""
    matches = find_exact(text, old, new)
    if matches and every:
        return matches
    # A guess needs a file that the model has seen: otherwise it could be about another text altogether.
    if not matches and is_known:
        matches = find_tolerant(text, old, new)
    if len(matches) == 1:
        return matches
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
