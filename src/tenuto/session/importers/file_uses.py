"""Which file a call of another agent's tool touched, by the tools' usual names. Pure."""

from __future__ import annotations

import re
from pathlib import PurePath
from typing import Literal

import msgspec

from tenuto.protocol.message import FileUse
from tenuto.protocol.part import ToolCallPart
from tenuto.session.importers.json_access import as_fields, text

_READS = frozenset({"read", "readfile", "read_file", "view", "view_image", "readmediafile"})
_WRITES = frozenset({"write", "writefile", "write_file", "create_file"})
_EDITS = frozenset(
    {"edit", "multiedit", "notebookedit", "strreplacefile", "str_replace", "str_replace_editor", "edit_file"}
)
_PATHS = ("file_path", "path", "filePath", "notebook_path")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)
_PATCH_OPS: dict[str, Literal["write", "edit", "delete"]] = {"Add": "write", "Update": "edit", "Delete": "delete"}


def file_uses(call: ToolCallPart, cwd: str) -> tuple[FileUse, ...]:
    """Return the files that a call touched; what was in them then is not known."""
    name = call.name.lower()
    if name == "apply_patch":
        return _patched(call.arguments, cwd)
    operation = _operation(name)
    if operation is None:
        return ()
    try:
        arguments = as_fields(msgspec.json.decode(call.arguments))
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return ()
    for key in _PATHS:
        path = text(arguments, key)
        if path:
            return (FileUse(path=_whole(path, cwd), op=operation),)
    return ()


def _whole(path: str, cwd: str) -> str:
    """Return a path from the root, or from a home directory, which is not known here."""
    return path if path.startswith("~") else str(PurePath(cwd, path))


def _operation(name: str) -> Literal["read", "write", "edit"] | None:
    if name in _READS:
        return "read"
    if name in _WRITES:
        return "write"
    return "edit" if name in _EDITS else None


def _patched(arguments: str, cwd: str) -> tuple[FileUse, ...]:
    patch = arguments.replace("\\n", "\n").replace('\\"', '"')
    return tuple(FileUse(path=_whole(path.strip(), cwd), op=_PATCH_OPS[kind]) for kind, path in _PATCHED.findall(patch))
