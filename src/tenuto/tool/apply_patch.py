"""The `apply_patch` tool: add, delete, change and move files by one patch, all of it or nothing."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import DiffView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import replace_surrogates
from tenuto.text.figures import plural
from tenuto.text.patch import AddFile, DeleteFile, Patch, PatchError, Section, UpdateFile, parse_patch
from tenuto.tool.documents.notebook import parse_notebook
from tenuto.tool.edits.diff import diff_view, splice_lines
from tenuto.tool.edits.encoding import TextFile, decode_file, to_lf
from tenuto.tool.edits.files import (
    PlannedChange,
    change_subject,
    check_approved,
    check_place,
    check_unchanged,
    find_text,
    make_changes,
    not_encodable,
    place_subject,
    present_bytes,
    refuse_masks,
    resolve,
    show_path,
    similar_paths,
)
from tenuto.tool.edits.hunks import place_hunks, with_hunks
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import MAX_KEPT_FILE, BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import PatchArguments

NOTHING_DONE = "The patch was not applied; no file was changed."


class ApplyPatchTool(BuiltinTool):
    """Changes several files at once."""

    name = "apply_patch"
    parallel = False

    def place(self, arguments: PatchArguments, context: ToolContext) -> ApprovalSubject:
        """Return which files it would change."""
        return place_subject(self.name, paths_of(_parse(arguments), context), context)

    def subject(self, arguments: PatchArguments, context: ToolContext) -> ApprovalSubject:
        """Return the changes that the call would make. Raises `ToolError` when there are none to make."""

        def plan() -> tuple[list[PlannedChange], list[DiffView]]:
            planned = plan_patch(_parse(arguments), context)
            return planned.changes, planned.diffs

        return change_subject(self.place(arguments, context), plan, context)

    async def run(self, arguments: PatchArguments, context: ToolContext) -> ToolOutput:
        """Write all of it. The last step is one call that a cancellation cannot cut in two."""
        patch = _parse(arguments)
        planned = await asyncio.to_thread(plan_patch, patch, context)
        check_approved(paths_of(patch, context), planned.changes, context)
        files = await make_changes(planned.changes, context)
        text = _report(planned)
        return ToolOutput(parts=(TextPart(text=text),), ui=tuple(planned.diffs), files=files)


def _parse(arguments: PatchArguments) -> Patch:
    try:
        return parse_patch(replace_surrogates(arguments.input))
    except PatchError as error:
        raise ToolError(f"{NOTHING_DONE} {str(error)[:1].upper()}{str(error)[1:]}.") from None


def paths_of(patch: Patch, context: ToolContext) -> list[Path]:
    """Return the real paths that a patch is about, each once. Nothing is read. Raises `ToolError`."""
    names: list[str] = []
    for section in patch:
        names += [section.path]
        names += [section.move_to] if isinstance(section, UpdateFile) and section.move_to else []
    return list(dict.fromkeys(resolve(name, context) for name in names))


class PlannedPatch(msgspec.Struct, frozen=True):
    """A patch that is worked out and not yet applied: what is written, as diffs, and how hunks were found loosely."""

    changes: list[PlannedChange]
    diffs: list[DiffView]
    tolerances: dict[str, None]


def plan_patch(patch: Patch, context: ToolContext) -> PlannedPatch:
    """Work a patch out; each section is made to what those before it leave. Raises `ToolError` with what to do."""
    files = _Files(context)
    try:
        for section in patch:
            files.take(section)
        return files.plan()
    except ToolError as error:
        raise ToolError(f"{NOTHING_DONE} {error}", files=error.files) from None


class _Files:
    """The files of one patch: what they are on disk, and what they are to be. `None`: there is none."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._disk: dict[Path, bytes | None] = {}
        self._now: dict[Path, bytes | None] = {}
        self._came_from: dict[Path, Path] = {}
        """Where the content of a moved file was on disk."""
        self._tolerances: dict[str, None] = {}

    def take(self, section: Section) -> None:
        """Work one section out."""
        path = resolve(section.path, self._context)
        match section:
            case AddFile():
                self._look(path, is_new=True)
                self._now[path] = self._added(path, "".join(f"{line}\n" for line in section.lines))
            case DeleteFile():
                self._look(path)
                self._delete(section.path, path)
            case UpdateFile():
                self._look(path)
                self._update(section, path)

    def plan(self) -> PlannedPatch:
        """Return what is to be written: first what comes, then what goes."""
        changed = [path for path, data in self._now.items() if data != self._disk[path]]
        if not changed:
            raise ToolError("It leaves all files as they are.")
        changes = [self._change(path) for path in changed]
        changes.sort(key=lambda change: change.data is None)
        sources = {source for path, source in self._came_from.items() if path in changed}
        diffs = [self._diff(path) for path in changed if not (self._now[path] is None and path in sources)]
        return PlannedPatch(changes, diffs, self._tolerances)

    def _shown(self, path: Path) -> str:
        return show_path(path, self._context)

    def _look(self, path: Path, *, is_new: bool = False) -> None:
        """Get to know a file as it is on disk. Raises `ToolError` when there is none, unless it `is_new`."""
        if path not in self._disk:
            if is_new:
                check_place(path, self._context)
            self._disk[path] = self._now[path] = present_bytes(path, self._context) if path.exists() else None
        if self._now[path] is None and not is_new:
            hint = similar_paths(path, self._context)
            raise ToolError(f"{self._shown(path)} does not exist.{hint} A new file begins with *** Add File: .")

    def _is_known(self, path: Path) -> bool:
        """Whether the model has seen the file, or made it by this patch."""
        return bool(self._context.files.digest(str(path))) or self._now[path] != self._disk[path]

    def _check_unchanged(self, path: Path) -> None:
        data = self._now[path]
        if data is not None and data == self._disk[path]:
            check_unchanged(find_text(path, data), self._context)

    def _added(self, path: Path, text: str) -> bytes:
        """Return the bytes of a new file, or of one that is replaced as a whole, in its own encoding and line ends."""
        present = self._now[path]
        if present is None:
            return text.encode()
        if not self._is_known(path):
            raise ToolError(f"{self._shown(path)} exists and you have not read it: update it, or read it first.")
        self._check_unchanged(path)
        return _encoded(find_text(path, present).content, text)

    def _delete(self, name: str, path: Path) -> None:
        self._check_goes(name, path)
        if self._context.files.digest(str(path)) and decode_file(self._disk[path] or b"") is not None:
            self._check_unchanged(path)
        self._now[path] = None
        self._came_from.pop(path, None)

    def _check_goes(self, name: str, path: Path) -> None:
        """Raise `ToolError` for what cannot be taken away here: a link, or what could not be brought back."""
        if Path(os.path.abspath(self._context.cwd / Path(name).expanduser())).is_symlink():  # noqa: PTH100
            raise ToolError(f"{name} is a link to {self._shown(path)}. Remove or rename links through bash.")
        if len(self._disk[path] or b"") > MAX_KEPT_FILE:
            raise ToolError(f"{self._shown(path)} is too large to be kept for /undo. Use bash.")

    def _update(self, section: UpdateFile, path: Path) -> None:
        data = self._now[path] or b""
        if section.hunks:
            self._check_unchanged(path)
            data = self._with_hunks(section, path, data)
        if not section.move_to:
            self._now[path] = data
            return
        self._check_goes(section.path, path)
        target = resolve(section.move_to, self._context)
        if target == path:
            raise ToolError(f"{self._shown(path)} is to be moved to where it is.")
        self._look(target, is_new=True)
        if self._now[target] is not None:
            raise ToolError(f"{self._shown(target)} exists already: {self._shown(path)} cannot be moved there.")
        self._now[target], self._now[path] = data, None
        self._came_from[target] = self._came_from.pop(path, path)

    def _with_hunks(self, section: UpdateFile, path: Path, data: bytes) -> bytes:
        found = find_text(path, data)
        if parse_notebook(path, data) is not None:
            raise ToolError(
                f"{self._shown(path)} is a notebook: what read shows are its cells and not the JSON of the file. "
                "Change the JSON through bash (python3 with json or nbformat)."
            )
        text = to_lf(found.content.text)
        lines = text.removesuffix("\n").split("\n") if text else []
        placed = place_hunks(lines, section.hunks, shown=self._shown(path), is_known=self._is_known(path))
        self._tolerances.update(dict.fromkeys(hunk.tolerance for hunk in placed if hunk.tolerance))
        made = "\n".join(with_hunks(lines, placed))
        ends_line = text.endswith("\n") or not text
        made = f"{made}\n" if made and ends_line else made
        if made == text and not section.move_to:
            raise ToolError(f"{self._shown(path)} already reads like that.")
        return _encoded(found.content, made)

    def _change(self, path: Path) -> PlannedChange:
        data, like = self._now[path], self._came_from.get(path)
        if data is None:
            return PlannedChange(path=path, data=None, op="delete")
        is_edit = self._disk[path] is not None or like is not None
        return PlannedChange(path=path, data=data, op="edit" if is_edit else "write", like=like)

    def _diff(self, path: Path) -> DiffView:
        source = self._came_from.get(path, path)
        before, after = self._disk[source], self._now[path]
        refuse_masks(_text(before), _text(after))
        diff = diff_view(self._shown(path), _text(before), _text(after), created=before is None)
        moved = self._shown(source) if source != path else ""
        return msgspec.structs.replace(diff, deleted=after is None, moved_from=moved)


def _encoded(content: TextFile, text: str) -> bytes:
    """Return the bytes of a file with another text (LF), in its own encoding and line ends."""
    text = text.removeprefix("\ufeff") if content.bom else text
    try:
        return content.encode(splice_lines(content.text, to_lf(content.text), text, content.newline))
    except UnicodeEncodeError as error:
        raise ToolError(not_encodable(content, error)) from None


def _text(data: bytes | None) -> str:
    content = decode_file(data or b"")
    return content.text if content is not None else ""


def _report(planned: PlannedPatch) -> str:
    lines = [f"The patch was applied to {plural(len(planned.diffs), 'file')}:"]
    for diff in planned.diffs:
        counts = f"(+{diff.added} −{diff.removed})"
        if diff.deleted:
            lines.append(f"D {diff.path}")
        elif diff.created:
            lines.append(f"A {diff.path} {counts}")
        elif diff.moved_from:
            lines.append(f"M {diff.moved_from} -> {diff.path} {counts}")
        else:
            lines.append(f"M {diff.path} {counts}")
    if planned.tolerances:
        lines.append(f"Not all lines matched exactly ({'; '.join(planned.tolerances)}); this is what was changed:")
        lines += [f"{diff.path}:\n{diff.diff}" for diff in planned.diffs if diff.diff]
    return "\n".join(lines)
