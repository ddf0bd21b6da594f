"""The `edit` tool: replace texts that are quoted from the file, one or several in a call."""

from __future__ import annotations

import asyncio
import difflib
import re
from collections.abc import Callable, Generator
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
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import EditArguments, ReplacementArguments


_TYPOGRAPHY = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
    **dict.fromkeys("\u00a0\u2002\u2003\u2007\u2009\u200a\u202f\u3000", " "),
}
_PLAIN = str.maketrans(_TYPOGRAPHY)
_TAB_WIDTHS = (4, 2, 8, 3)
_NUMBERED = re.compile(r"\s*\d+\t")
_NEAR_LINES = 3
_NEAR_RATIO = 0.6
_MAX_COMPARED = 20_000


class Match(msgspec.Struct, frozen=True, kw_only=True):
    """A place: offsets in the LF text, the quoted and the new text fitted to it, and how it was found.

    `old` has as many lines as the place has. `reindent` is applied to changed lines. `tolerance` is empty for exact.
    """

    start: int
    end: int
    old: str
    new: str
    tolerance: str = ""
    reindent: Callable[[str], str] = str


def find_exact(text: str, old: str, new: str) -> list[Match]:
    """Return every place, left to right, without overlaps."""
    return [
        Match(start=place, end=place + len(old), old=old, new=new)
        for place in (found.start() for found in re.finditer(re.escape(old), text))
    ]


def find_tolerant(text: str, old: str, new: str) -> list[Match]:
    """Return the places of the first tolerance that finds any."""
    if not old.strip():
        return []
    for search in (_find_typographic, _find_trailing, _find_indented):
        matches = search(text, old, new)
        if matches:
            return matches
    return []


def _find_typographic(text: str, old: str, new: str) -> list[Match]:
    """Quotes, dashes and spaces of any kind are the same. One character stands for one, so offsets hold."""
    return [
        msgspec.structs.replace(match, old=old, tolerance="quotes, dashes or spaces differed")
        for match in find_exact(text.translate(_PLAIN), old.translate(_PLAIN), new)
    ]


def _find_trailing(text: str, old: str, new: str) -> list[Match]:
    """White space at line ends does not count."""
    return _find_lines(text, old, new, _plain_line, "white space at line ends differed")


def _find_indented(text: str, old: str, new: str) -> list[Match]:
    """All lines are indented differently in the same way; the new lines are indented as the file is."""
    found: list[Match] = []
    for match in _find_lines(text, old, new, lambda line: _plain_line(line).strip(), "indentation differed"):
        there = text[match.start : match.end].split("\n")
        reindent = _reindentation(there, match.old.split("\n"))
        if reindent is not None:
            found.append(msgspec.structs.replace(match, reindent=reindent))
    return found


def _plain_line(line: str) -> str:
    return line.translate(_PLAIN).rstrip()


def _find_lines(text: str, old: str, new: str, normal: Callable[[str], str], tolerance: str) -> list[Match]:
    """Compare whole lines in their normal form."""
    ends_line = old.endswith("\n")
    wanted = [normal(line) for line in old.removesuffix("\n").split("\n")]
    lines = text.split("\n")
    there = [normal(line) for line in lines]
    offset = 0
    found: list[Match] = []
    for index, line in enumerate(lines):
        if there[index] == wanted[0] and there[index : index + len(wanted)] == wanted:
            end = offset + sum(map(len, lines[index : index + len(wanted)])) + len(wanted) - 1
            if ends_line and end < len(text):
                found.append(Match(start=offset, end=end + 1, old=old, new=new, tolerance=tolerance))
            elif ends_line:  # the file ends without a line end, and goes on doing so
                fitted = new.removesuffix("\n")
                found.append(Match(start=offset, end=end, old=old[:-1], new=fitted, tolerance=tolerance))
            else:
                found.append(Match(start=offset, end=end, old=old, new=new, tolerance=tolerance))
        offset += len(line) + 1
    return [match for match in found if match.end > match.start]


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip(" \t"))]


def _reindentation(there: list[str], quoted: list[str]) -> Callable[[str], str] | None:
    """Return what turns the quoted indentation into the file's, if one rule does so for every line."""
    pairs = [(_indent(a), _indent(b)) for a, b in zip(there, quoted, strict=True) if a.strip()]
    if not pairs:
        return None
    rules: list[Callable[[str], str]] = []
    first_there, first_quoted = pairs[0]
    if first_there.endswith(first_quoted):
        prefix = first_there[: len(first_there) - len(first_quoted)]
        rules.append(lambda indent: prefix + indent)
    if first_quoted.endswith(first_there):
        surplus = first_quoted[: len(first_quoted) - len(first_there)]
        rules.append(lambda indent: indent.removeprefix(surplus))
    for width in _TAB_WIDTHS:
        rules.append(lambda indent, width=width: _with_tabs(indent, width))
        rules.append(lambda indent, width=width: indent.replace("\t", " " * width))
    for rule in rules:
        if all(rule(quoted_indent) == its_indent for its_indent, quoted_indent in pairs):
            return lambda line: rule(_indent(line)) + line.lstrip(" \t") if line.strip() else line
    return None


def _with_tabs(indent: str, width: int) -> str:
    columns = len(indent.expandtabs(width))
    return "\t" * (columns // width) + " " * (columns % width)


def line_of(text: str, offset: int) -> int:
    """Return the number of the line, from 1, that an offset lies in."""
    return text.count("\n", 0, offset) + 1


def looks_numbered(old: str) -> bool:
    """Whether every line begins with a line number, as `read` prints it."""
    return all(_NUMBERED.match(line) for line in old.split("\n") if line)


def nearest_lines(text: str, old: str) -> str:
    """Return the lines of the file that look most like the quoted text, numbered; empty when none does."""
    wanted = max((line.strip() for line in old.split("\n")), key=len, default="")
    if not wanted:
        return ""
    lines = text.split("\n")
    matcher = difflib.SequenceMatcher(None, "", wanted, autojunk=False)
    best, best_ratio = -1, _NEAR_RATIO
    for index, line in enumerate(lines[:_MAX_COMPARED]):
        matcher.set_seq1(line.strip()[:500])
        if matcher.real_quick_ratio() <= best_ratio or matcher.quick_ratio() <= best_ratio:
            continue
        ratio = matcher.ratio()
        if ratio > best_ratio:
            best, best_ratio = index, ratio
    if best < 0:
        return ""
    start, stop = max(best - _NEAR_LINES, 0), min(best + _NEAR_LINES + 1, len(lines))
    return "\n".join(f"{number + 1}\t{lines[number][:300]}" for number in range(start, stop))


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


class EditTool(BuiltinTool):
    """Changes files, one after the other."""

    name = "edit"
    parallel = False

    def place(self, arguments: EditArguments, context: ToolContext) -> ApprovalSubject:
        """Return which file it would change."""
        subject = place_subject(self.name, resolve(arguments.path, context), context)
        return msgspec.structs.replace(subject, summary=f"{subject.summary}{several(len(arguments.replacements))}")

    def subject(self, arguments: EditArguments, context: ToolContext) -> ApprovalSubject:
        """Return the change that the call would make. Raises `ToolError` when there is none to make."""

        def plan() -> tuple[bytes, DiffView]:
            change = plan_edit(arguments, context)
            return change.data, change.diff

        return change_subject(self.place(arguments, context), plan, context)

    async def run(self, arguments: EditArguments, context: ToolContext) -> ToolOutput:
        """Write the change. The last step is one call that a cancellation cannot cut in two."""
        change = await asyncio.to_thread(plan_edit, arguments, context)
        check_approved(change.path, change.data, context)
        use = change_file(change.path, change.data, "edit", context)
        return ToolOutput(parts=(TextPart(text=_report(change, context)),), ui=(change.diff,), files=(use,))


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
    found = present = find_text(path)
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
    diff = diff_view(str(path), found.content.text, steps[-1].after)
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
