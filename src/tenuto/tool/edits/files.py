"""Reading, checking and replacing files on disk."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import difflib
import os
import secrets
import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.guard.protected import below, protected_names, secret_names
from tenuto.guard.secrets import new_masks
from tenuto.guard.subject import ApprovalSubject, SubjectKind, has_name_outside, is_inside, resolve_path
from tenuto.protocol.message import DiffView, FileUse
from tenuto.tool.documents.pdf import is_pdf
from tenuto.tool.edits.diff import diff_view
from tenuto.tool.edits.encoding import TextFile, decode_file, to_lf, with_newline
from tenuto.tool.run.context import ToolContext, ToolError, digest_of

MAX_EDIT_BYTES = 32_000_000
_SHOWN_CHANGE_CHARS = 8_000


class FoundFile(msgspec.Struct, frozen=True, kw_only=True):
    """An existing text file: real path, bytes, text."""

    path: Path
    data: bytes
    content: TextFile


def resolve(path: str, context: ToolContext) -> Path:
    """Return the real path that a tool's argument names. Raises `ToolError`."""
    if not path.strip():
        raise ToolError("The path is empty.")
    try:
        found = resolve_path(path, context.cwd)
        # Models copy the @ that people put before a file's name. What lies outside decides nothing here.
        if path.startswith("@") and is_inside(str(found), str(context.workspace)) and not found.exists():
            without = resolve_path(path[1:], context.cwd)
            outside = not is_inside(str(without), str(context.workspace))
            return without if outside or without.exists() else found
    except (OSError, ValueError, RuntimeError) as error:
        raise ToolError(f"{path} is not a usable path: {error}") from None
    return found


def show_path(path: Path, context: ToolContext) -> str:
    """Return a path as people read it: relative inside the workspace."""
    if is_inside(str(path), str(context.workspace)):
        return str(path.relative_to(context.workspace))
    return str(path)


def read_bytes(path: Path, limit: int = MAX_EDIT_BYTES) -> bytes:
    """Return a regular file's bytes. Raises `ToolError` for everything that is not one, and over `limit` bytes."""
    try:
        facts = path.stat()
        if stat.S_ISDIR(facts.st_mode):
            raise ToolError(f"{path} is a directory.")
        if not stat.S_ISREG(facts.st_mode):
            raise ToolError(f"{path} is not a regular file (a device, pipe or socket).")
        if facts.st_size > limit:
            raise ToolError(f"{path} has {facts.st_size:,} bytes; this tool takes at most {limit:,}. Use bash.")
        return path.read_bytes()
    except FileNotFoundError:
        raise ToolError(f"{path} does not exist.") from None
    except OSError as error:
        raise ToolError(f"{path} cannot be read: {error.strerror or error}") from None


def present_bytes(path: Path, context: ToolContext, limit: int = MAX_EDIT_BYTES) -> bytes:
    """Return a file's bytes as its user has it, in an editor perhaps unsaved. Raises `ToolError` as `read_bytes`."""
    return _unsaved(path, read_bytes(path, limit), context)


def _unsaved(path: Path, data: bytes, context: ToolContext) -> bytes:
    """Return what the editor has not saved of a file yet, else `data`, which is what the disk has.

    An editor knows texts and not bytes: encoding, BOM and line ends stay those of the disk.
    """
    content = decode_file(data) if context.editor is not None else None
    if context.editor is None or content is None:
        return data
    text = context.editor.read(path)
    if text is None or to_lf(text) == to_lf(content.text):
        return data
    try:
        return content.encode(with_newline(to_lf(text), content.newline))
    except UnicodeEncodeError:
        return data


def find_present(path: Path, context: ToolContext) -> FoundFile:
    """Return an existing text file as its user has it. Raises `ToolError`."""
    return find_text(path, present_bytes(path, context))


def find_text(path: Path, data: bytes) -> FoundFile:
    """Return a text file as it is, or would be, with `data`. Raises `ToolError`.

    A PDF file is none, however much of it is text.
    """
    if is_pdf(data):
        raise ToolError(
            f"{path} is a PDF file: what read shows is its text and not what is in the file, so it cannot be changed "
            "here. Change what it was made from, or use a program for PDF files through bash."
        )
    content = decode_file(data)
    if content is None:
        raise ToolError(f"{path} is a binary file; it cannot be changed as text.")
    return FoundFile(path=path, data=data, content=content)


def check_unchanged(found: FoundFile, context: ToolContext) -> None:
    """Raise `ToolError` with the difference when the content is not what the model last saw (R-090).

    Compares content, never time stamps. The text shows the present content, so it counts as seen from then on.
    """
    path = str(found.path)
    seen = context.files.digest(path)
    if not seen or seen == digest_of(found.data):
        return
    shown = show_path(found.path, context)
    before = context.files.content(path)
    old = None if before is None else decode_file(before)
    if old is None:
        raise ToolError(f"{shown} has changed since you read it; nothing was written. Read it again, then repeat.")
    change = diff_view(path, old.text, found.content.text).diff
    if len(change) > _SHOWN_CHANGE_CHARS or not change:
        raise ToolError(f"{shown} has changed a lot since you read it; nothing was written. Read it again.")
    use = context.files.record(FileUse(path=path, op="read", sha256=digest_of(found.data)), found.data)
    raise ToolError(
        f"{shown} has changed since you read it; nothing was written. What changed:\n{change}\n"
        "If your change still fits, call again with it made to the present content.",
        files=(use,),
    )


def check_place(path: Path, context: ToolContext) -> None:
    """Raise `ToolError` where no file can be: at a directory, or below a file."""
    if path.is_dir():
        raise ToolError(f"{show_path(path, context)} is a directory.")
    blocked = next((parent for parent in path.parents if parent.exists() and not parent.is_dir()), None)
    if blocked is not None:
        raise ToolError(f"{show_path(blocked, context)} is a file, so nothing can be put below it.")


def place_subject(tool: str, paths: Sequence[Path], context: ToolContext) -> ApprovalSubject:
    """Return what changing files amounts to, with every reason to ask that their paths alone give (R-087)."""
    concerns: list[str] = []
    hard_linked = False
    for path in paths:
        shown, place = show_path(path, context), context.place_of(str(path))
        concerns += [f"{shown} {each.reason}" for each in protected_names(below(str(path), place or "/"))[:1]]
        if place and has_name_outside(path, Path(place)):
            hard_linked = True
            concerns.append(f"{shown} is a hard link: the same file has a name outside the workspace")
    names = [show_path(path, context) for path in paths]
    return ApprovalSubject(
        kind="edit",
        tool=tool,
        summary=names[0] if len(names) == 1 else f"{len(names)} files: {', '.join(names)}",
        detail=str(paths[0]) if len(paths) == 1 else "\n".join(names),
        paths=tuple(map(str, paths)),
        concerns=tuple(concerns),
        hard_linked=hard_linked,
    )


class PlannedChange(msgspec.Struct, frozen=True, kw_only=True):
    """What one file is to be: its bytes, `None` where it goes. `like` is the file whose mode it takes over."""

    path: Path
    data: bytes | None
    op: Literal["write", "edit", "delete"]
    like: Path | None = None


def outcome_of(changes: Sequence[PlannedChange]) -> str:
    """Return what names the outcome of changes exactly."""
    if len(changes) == 1 and changes[0].data is not None:
        return digest_of(changes[0].data)
    each = (f"{change.path}\0{'' if change.data is None else digest_of(change.data)}" for change in changes)
    return digest_of("\n".join(each).encode("utf-8", "surrogateescape"))


def change_subject(
    place: ApprovalSubject,
    plan: Callable[[], tuple[Sequence[PlannedChange], Sequence[DiffView]]],
    context: ToolContext,
) -> ApprovalSubject:
    """Return what the planned changes amount to. Raises `ToolError` when there are none to make.

    Outside the workspace that is a question as well, with the reason for the user: an answer without one would say
    what is in the file.
    """
    try:
        changes, diffs = plan()
    except ToolError as error:
        if all(context.place_of(path) for path in place.paths):
            raise
        return msgspec.structs.replace(place, detail=f"{place.detail}\n{error}")
    return msgspec.structs.replace(place, diffs=tuple(diffs), fingerprint=outcome_of(changes))


def read_subject(tool: str, path: Path, summary: str, context: ToolContext) -> ApprovalSubject:
    """Return what reading `path` amounts to; the session's own stored outputs need nobody's leave."""
    own = any(is_inside(str(path), place) for place in context.session.store.readable)
    kind: SubjectKind = "none" if own else "read"
    shown, place = show_path(path, context), context.place_of(str(path))
    concerns = [f"{shown} {each.reason}" for each in secret_names(below(str(path), place or "/"))[:1]]
    hard_linked = bool(place) and has_name_outside(path, Path(place))
    if hard_linked:
        concerns.append(f"{shown} is a hard link: the same file has a name outside the workspace")
    return ApprovalSubject(
        kind=kind,
        tool=tool,
        summary=summary,
        detail=str(path),
        paths=(str(path),),
        folder=str(path if path.is_dir() else path.parent),
        concerns=tuple(concerns),
        hard_linked=hard_linked,
    )


def resolve_allowed(path: str, context: ToolContext) -> Path:
    """Return where a path leads, if that is what was allowed: a link may have moved since. Raises `ToolError`."""
    found = resolve(path, context)
    if context.subject is not None and context.subject.paths != (str(found),):
        raise ToolError(f"{path} leads somewhere else than when it was allowed. Call again.")
    return found


def check_approved(paths: Sequence[Path], changes: Sequence[PlannedChange], context: ToolContext) -> None:
    """Raise `ToolError` when changes are not those that were approved: a file or a link moved meanwhile."""
    subject = context.subject
    if subject is None or (subject.paths == tuple(map(str, paths)) and subject.fingerprint == outcome_of(changes)):
        return
    names = ", ".join(show_path(path, context) for path in paths)
    raise ToolError(f"{names} changed while the call waited; nothing was written. Call again.")


async def make_changes(changes: Sequence[PlannedChange], context: ToolContext) -> tuple[FileUse, ...]:
    """Make all changes or none, where a cancellation cannot cut them in two. Raises `ToolError`.

    An editor is asked from a thread; a cancellation meanwhile waits, and the call has its result all the same.
    """
    if context.editor is None:
        return change_files(changes, context)
    making = asyncio.ensure_future(asyncio.to_thread(change_files, changes, context))
    while not making.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([making])
    return making.result()


def change_files(changes: Sequence[PlannedChange], context: ToolContext) -> tuple[FileUse, ...]:
    """Make all changes or none, with what the files were kept for `/undo` and `/rewind`; return the uses.

    Raises `ToolError`.
    """
    uses: list[FileUse] = []
    taken: list[_Former] = []
    try:
        for change in changes:
            former = _former(change.path, context)
            before = _kept(former, change, context)
            taken.append(former)
            if change.data is None:
                _remove(change.path)
            elif change.like is not None or not _write_there(change.path, change.data, context):
                replace_file(change.path, change.data, like=change.like)
            uses.append(_use(change, former, before))
    except ToolError as error:
        left = [show_path(former.path, context) for former in reversed(taken) if not _give_back(former)]
        if left:
            raise ToolError(f"{error} What was done to {', '.join(left)} could not be taken back.") from None
        raise
    return tuple(context.files.record(use, change.data) for use, change in zip(uses, changes, strict=True))


class _Former(msgspec.Struct, frozen=True):
    """What a file was: its bytes (`None`: there was none, or it could not be read) and its mode."""

    path: Path
    data: bytes | None
    mode: int
    existed: bool


def _write_there(path: Path, data: bytes, context: ToolContext) -> bool:
    """Have the editor write a file that may be written, where it is plain UTF-8; say whether it did."""
    if context.editor is None or data.startswith(codecs.BOM_UTF8):
        return False
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    may_write = not path.exists() or (path.is_file() and os.access(path, os.W_OK))
    return may_write and context.editor.write(path, text)


def _former(path: Path, context: ToolContext) -> _Former:
    data, mode = None, 0
    if path.is_file():
        with contextlib.suppress(OSError):  # what cannot be read cannot be kept; writing says what is wrong
            data = _unsaved(path, path.read_bytes(), context)
            mode = stat.S_IMODE(path.stat().st_mode)
    return _Former(path, data, mode, path.exists())


def _kept(former: _Former, change: PlannedChange, context: ToolContext) -> str:
    """Return the hash under which the former bytes are kept. Raises `ToolError` for a file that would be lost."""
    before = context.keep_before(former.data) if former.data is not None else ""
    if change.data is None and not before:
        shown = show_path(change.path, context)
        raise ToolError(f"{shown} cannot be kept for /undo (too large, or no room), so it stays; nothing was changed.")
    return before


def _use(change: PlannedChange, former: _Former, before: str) -> FileUse:
    path = str(change.path)
    if change.data is None:
        return FileUse(path=path, op="delete", before=before, mode=former.mode)
    return FileUse(path=path, op=change.op, sha256=digest_of(change.data), before=before, created=not former.existed)


def _remove(path: Path) -> None:
    try:
        path.unlink()
    except OSError as error:
        raise ToolError(f"{path} cannot be deleted: {error.strerror or error}") from None


def _give_back(former: _Former) -> bool:
    """Make a file what it was; whether it is."""
    try:
        if not former.existed:
            former.path.unlink(missing_ok=True)
        elif former.data is not None and not (former.path.is_file() and former.path.read_bytes() == former.data):
            replace_file(former.path, former.data)
            former.path.chmod(former.mode)
    except (OSError, ToolError):
        return False
    return True


def replace_file(path: Path, data: bytes, like: Path | None = None) -> None:
    """Replace a file's content in one step, keeping mode, owner and attributes, its own or those of the file `like`.

    `path` is a real path, so links stay links. A file with several names is written in place, or its other names
    would keep the old content. Raises `ToolError`.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = path.stat() if path.exists() else None
        if facts is not None and not stat.S_ISREG(facts.st_mode):
            raise ToolError(f"{path} is not a regular file; nothing was written.")
        if facts is not None and not os.access(path, os.W_OK):
            raise ToolError(f"{path} is read-only; nothing was written.")
        if facts is not None and (facts.st_nlink > 1 or not os.access(path.parent, os.W_OK)):
            path.write_bytes(data)
            return
        _swap(path, data, path if facts is not None else like)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror or error}") from None


def _swap(path: Path, data: bytes, like: Path | None) -> None:
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if like is not None:
                _keep_attributes(like, descriptor, like.stat())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


def _keep_attributes(path: Path, descriptor: int, facts: os.stat_result) -> None:
    """Give the new file what the old one had. Owner first: changing it clears set-id bits."""
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != (facts.st_uid, facts.st_gid):
        with contextlib.suppress(OSError):
            os.fchown(descriptor, facts.st_uid, facts.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(facts.st_mode))
    if hasattr(os, "listxattr"):
        with contextlib.suppress(OSError):
            for name in os.listxattr(path):
                os.setxattr(descriptor, name, os.getxattr(path, name))


def similar_paths(path: Path, context: ToolContext) -> str:
    """Return a hint with names beside a missing file that look like it; empty when there are none."""
    parent = path.parent
    if not is_inside(str(parent), str(context.workspace)) or not parent.is_dir():
        return ""
    names = difflib.get_close_matches(path.name, os.listdir(parent), 3)  # noqa: PTH208
    return f" Did you mean {' or '.join(show_path(parent / name, context) for name in names)}?" if names else ""


def refuse_masks(before: str, after: str) -> None:
    """Raises `ToolError` where a change would write the mask of a secret in the place of the secret."""
    if masks := new_masks(before, after):
        raise ToolError(
            f"The new text has {masks[0]} in it. That is a mask: the secret behind it is never shown to you, and would "
            "be lost. Nothing was written. Use edit on the other lines only, or read the value from a variable."
        )


def not_encodable(content: TextFile, error: UnicodeEncodeError) -> str:
    """Return what to tell the model when a file's own encoding lacks a character."""
    char = error.object[error.start]
    return (
        f"The file is in {content.encoding}, which has no {char!r} (U+{ord(char):04X}); nothing was written. "
        "Use other characters, or convert the file first (iconv through bash)."
    )
