"""What is judged and what the judgement is: the words that tools, guard and core share."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.protocol.entry import Mode
from tenuto.protocol.event import ApprovalKind
from tenuto.protocol.message import DiffView

SubjectKind = Literal["read", "edit", "execute", "network", "mcp", "extension", "none"]
MCP_PREFIX = "mcp__"
"""What the public names of the tools of MCP servers begin with; a second joint ends the server's part."""


class SimpleCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A simple command of a shell line, as rules see it.

    `words` are the program and its arguments, `None` where the shell looks something up first. `reads` says that it
    only reads what may be read. `barrier` says why no rule on its words may cover it, and `prefix_barrier` why none
    that ends in `*`: it runs another command, or code from its arguments. A rule that ends in `*` has to spell out the
    first `least` words.
    """

    words: tuple[str | None, ...] = ()
    reads: bool = False
    barrier: str = ""
    prefix_barrier: str = ""
    least: int = 1


class ApprovalSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What one call would do, said before it does it.

    `summary` is one line, `detail` the exact text that decides (a whole command, a URL). `paths` are real paths, links
    resolved; `folder` is what may be read together with them, `pattern` an address's origin. `concerns` are reasons to
    ask that the tool found; a rule covers them only when it names exactly this call. `fingerprint` names the outcome
    exactly (the hash of a file's new content): what runs later must lead to the same. `hard_linked`: a file has a name
    elsewhere, so only its exact path covers it.

    Of a shell line: `reads` says that all of it only reads what may be read, `reason` why not. `commands` are its
    simple commands, none where it is not understood (`problem` says why). `writes` are the places outside the
    workspace, and the protected ones inside, that it plainly writes to; `paths` is what its words name on disk.
    Of a call of an MCP server, `tool` is its public name. `reads` says of an extension's tool that it changes nothing.
    """

    kind: SubjectKind
    tool: str
    summary: str
    detail: str = ""
    paths: tuple[str, ...] = ()
    diffs: tuple[DiffView, ...] = ()
    folder: str = ""
    pattern: str = ""
    concerns: tuple[str, ...] = ()
    fingerprint: str = ""
    hard_linked: bool = False
    confined: bool = False
    """The sandbox holds it: what it must not do it cannot do."""
    leaves_sandbox: str = ""
    """Why the model wants it to run outside of the sandbox, which only a rule that says `outside` covers."""
    reads: bool = False
    reason: str = ""
    commands: tuple[SimpleCommand, ...] = ()
    problem: str = ""
    writes: tuple[str, ...] = ()


class Allow(msgspec.Struct, frozen=True, kw_only=True):
    """The call may run. `reason` says why, `rule` is the user's rule that allows it, where one does."""

    reason: str = ""
    rule: str = ""


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """A user has to say yes. `kinds` are what may be allowed together with it, none where every such call asks.

    `allowed_by` is the mode that would not ask, empty when every mode does; `rule` is the user's rule that asks.
    """

    reason: str
    kinds: tuple[ApprovalKind, ...] = ()
    allowed_by: Mode | None = None
    rule: str = ""


class Refuse(msgspec.Struct, frozen=True, kw_only=True):
    """The call may not run; `reason` goes to the model, `why` to the user; `rule` is the user's rule that denies it."""

    reason: str
    why: str = ""
    rule: str = ""


Verdict = Allow | Ask | Refuse


_LINK_SCAN_LIMIT = 20_000
"""Directory entries looked at when the other names of a hard-linked file are searched for."""


def resolve_path(path: str, cwd: Path) -> Path:
    """Return the real path that `path` leads to: `~` and `..` resolved, every link followed, dangling ones too.

    Raises `OSError` (a loop of links) and `ValueError` (a NUL in the name).
    """
    return Path(os.path.realpath(cwd / Path(path).expanduser()))


def is_inside(path: str, root: str) -> bool:
    """Whether the real path `path` is `root` or lies under it. Pure: both must be resolved already."""
    return path == root or path.startswith(root if root.endswith("/") else root + "/")


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
