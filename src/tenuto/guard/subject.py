"""What is judged and what the judgement is: the words that tools, guard and core share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.protocol.entry import Mode
from tenuto.protocol.message import DiffView

SubjectKind = Literal["read", "edit", "execute", "network", "mcp", "none"]


MCP_PREFIX = "mcp__"
"""What the public names of the tools of MCP servers begin with; a second joint ends the server's part."""
MCP_RESULT_TAG = "mcp-result"
"""The tag of what such a tool answered: it tells the model that a stranger wrote it."""


class ApprovalSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What one call would do, said before it does it.

    `summary` is one line, `detail` the exact text that decides (a whole command, a URL). `paths` are real paths,
    links resolved. `pattern` is what "always for this session" would allow: an exact command, a URL's origin, a
    path, or everything below one (`/x/**`). `concerns` are reasons to ask that the tool found; a lasting answer
    covers them only when it names exactly this call. Of a call of an MCP server, `tool` and `pattern` are its
    public name. `fingerprint` names the outcome exactly (the hash of a file's new content): what runs later must
    lead to the same.
    """

    kind: SubjectKind
    tool: str
    summary: str
    detail: str = ""
    paths: tuple[str, ...] = ()
    diffs: tuple[DiffView, ...] = ()
    pattern: str = ""
    concerns: tuple[str, ...] = ()
    fingerprint: str = ""


class Allow(msgspec.Struct, frozen=True):
    """The call may run."""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A user has to say yes. `session_pattern` is what "always for this session" would allow (empty: not offered).

    `allowed_by` is the mode that would not ask, empty when every mode does.
    """

    reason: str
    session_pattern: str = ""
    allowed_by: Mode | None = None


class Refuse(msgspec.Struct, frozen=True, kw_only=True):
    """The call may not run; `reason` goes to the model."""

    reason: str


Verdict = Allow | Ask | Refuse


_LINK_SCAN_LIMIT = 20_000
"""Directory entries looked at when the other names of a hard-linked file are searched for."""
_PROTECTED_NAMES = frozenset({".git", ".tenuto"})


def resolve_path(path: str, cwd: Path) -> Path:
    """Return the real path that `path` leads to: `~` and `..` resolved, every link followed, dangling ones too.

    Raises `OSError` (a loop of links) and `ValueError` (a NUL in the name).
    """
    return Path(os.path.realpath(cwd / Path(path).expanduser()))


def is_inside(path: str, root: str) -> bool:
    """Whether the real path `path` is `root` or lies under it. Pure: both must be resolved already."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


def is_protected(path: str, root: str) -> bool:
    """Whether writing `path` could make other programs run code or change the agent's own rules (`.git`, `.tenuto`)."""
    if not is_inside(path, root):
        return False
    return not _PROTECTED_NAMES.isdisjoint(path[len(root) :].split("/"))


def has_name_outside(path: Path, root: Path) -> bool:
    """Whether the file has a hard link that was not found under `root`, so that a write may reach outside.

    Looks at a bounded number of directory entries; what was not found counts as outside.
    """
    try:
        facts = path.stat()
    except OSError:
        return False
    if facts.st_nlink < 2 or not path.is_file():
        return False
    return _count_names(root, facts.st_dev, facts.st_ino, facts.st_nlink) < facts.st_nlink


def _count_names(root: Path, device: int, inode: int, wanted: int) -> int:
    found = seen = 0
    pending = [str(root)]
    while pending:
        try:
            entries = list(os.scandir(pending.pop()))
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > _LINK_SCAN_LIMIT:
                return found
            if entry.is_dir(follow_symlinks=False):
                pending.append(entry.path)
            elif entry.inode() == inode and entry.stat(follow_symlinks=False).st_dev == device:
                found += 1
                if found >= wanted:
                    return found
    return found
