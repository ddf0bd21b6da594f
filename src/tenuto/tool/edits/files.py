"""Reading, checking and replacing files on disk."""

from __future__ import annotations

import contextlib
import difflib
import os
import secrets
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.guard.subject import ApprovalSubject, SubjectKind, has_name_outside, is_inside, is_protected, resolve_path
from tenuto.protocol.message import DiffView, FileUse
from tenuto.tool.documents.pdf import is_pdf
from tenuto.tool.edits.diff import diff_view
from tenuto.tool.edits.encoding import TextFile, decode_file
from tenuto.tool.run.context import ToolContext, ToolError, digest_of

MAX_EDIT_BYTES = 32_000_000
_SHOWN_CHANGE_CHARS = 8_000
_WIDE_PARTS = 3
"""A lasting answer may cover a directory only below this depth: never all of `/`, `/etc` or a home directory."""


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


def find_text(path: Path, data: bytes | None = None) -> FoundFile:
    """Return an existing text file, or as it would be with `data`. Raises `ToolError`.

    A PDF file is none, however much of it is text.
    """
    data = read_bytes(path) if data is None else data
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


def place_subject(tool: str, path: Path, context: ToolContext) -> ApprovalSubject:
    """Return what changing `path` amounts to, with every reason to ask that the path alone gives (R-087)."""
    concerns: list[str] = []
    inside = is_inside(str(path), str(context.workspace))
    if is_protected(str(path), str(context.workspace)):
        concerns.append(f"{show_path(path, context)} can make other programs run code")
    if inside and has_name_outside(path, context.workspace):
        concerns.append(f"{show_path(path, context)} is a hard link: the same file has a name outside the workspace")
    return ApprovalSubject(
        kind="edit",
        tool=tool,
        summary=show_path(path, context),
        detail=str(path),
        paths=(str(path),),
        pattern=str(path) if concerns or not inside else f"{context.workspace}/**",
        concerns=tuple(concerns),
    )


def change_subject(
    place: ApprovalSubject, plan: Callable[[], tuple[bytes, DiffView]], context: ToolContext
) -> ApprovalSubject:
    """Return what the planned change amounts to. Raises `ToolError` when there is none to make.

    Outside the workspace that is a question as well, with the reason for the user: an answer without one would say
    what is in the file.
    """
    try:
        data, diff = plan()
    except ToolError as error:
        if all(is_inside(path, str(context.workspace)) for path in place.paths):
            raise
        return msgspec.structs.replace(place, detail=f"{place.detail}\n{error}")
    return msgspec.structs.replace(place, diff=diff, fingerprint=digest_of(data))


def read_subject(tool: str, path: Path, summary: str, context: ToolContext) -> ApprovalSubject:
    """Return what reading `path` amounts to; the session's own stored outputs need nobody's leave."""
    own = any(is_inside(str(path), os.path.realpath(place)) for place in (context.outputs, context.session.store.blobs))
    kind: SubjectKind = "none" if own else "read"
    place = path if path.is_dir() else path.parent
    wide = len(place.parts) > _WIDE_PARTS
    return ApprovalSubject(
        kind=kind,
        tool=tool,
        summary=summary,
        detail=str(path),
        paths=(str(path),),
        pattern=f"{place}/**" if wide else str(path),
    )


def check_approved(path: Path, data: bytes, context: ToolContext) -> None:
    """Raise `ToolError` when a change is not the one that was approved: the file or a link moved meanwhile."""
    subject = context.subject
    if subject is not None and (subject.paths != (str(path),) or subject.fingerprint != digest_of(data)):
        raise ToolError(f"{show_path(path, context)} changed while the call waited; nothing was written. Call again.")


def change_file(path: Path, data: bytes, op: Literal["write", "edit"], context: ToolContext) -> FileUse:
    """Write a file, with what it was kept for `/undo` and `/rewind`; return the use. Raises `ToolError`."""
    created = not path.exists()
    before = ""
    if path.is_file():
        with contextlib.suppress(OSError):  # what cannot be read cannot be kept; writing says what is wrong
            before = context.keep_before(path.read_bytes())
    replace_file(path, data)
    use = FileUse(path=str(path), op=op, sha256=digest_of(data), before=before, created=created)
    return context.files.record(use, data)


def replace_file(path: Path, data: bytes) -> None:
    """Replace a file's content in one step, keeping mode, owner and attributes. Raises `ToolError`.

    `path` is a real path, so links stay links. A file with several names is written in place, or its other names
    would keep the old content.
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
        _swap(path, data, facts)
    except OSError as error:
        raise ToolError(f"{path} cannot be written: {error.strerror or error}") from None


def _swap(path: Path, data: bytes, facts: os.stat_result | None) -> None:
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(4)}.tmp")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            if facts is not None:
                _keep_attributes(path, descriptor, facts)
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


def not_encodable(content: TextFile, error: UnicodeEncodeError) -> str:
    """Return what to tell the model when a file's own encoding lacks a character."""
    char = error.object[error.start]
    return (
        f"The file is in {content.encoding}, which has no {char!r} (U+{ord(char):04X}); nothing was written. "
        "Use other characters, or convert the file first (iconv through bash)."
    )
