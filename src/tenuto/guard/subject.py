"""What is judged and what the judgement is: the words that tools, guard and core share."""

from __future__ import annotations

from typing import Literal

import msgspec

from tenuto.protocol.entry import Mode
from tenuto.protocol.message import DiffView

SubjectKind = Literal["read", "edit", "execute", "network", "none"]


class ApprovalSubject(msgspec.Struct, frozen=True, kw_only=True):
    """What one call would do, said before it does it.

    `summary` is one line, `detail` the exact text that decides (a whole command, a URL). `paths` are real paths,
    links resolved. `pattern` is what "always for this session" would allow: an exact command, a URL's origin, a path,
    or everything below one (`/x/**`). `concerns` are reasons to ask that the tool found; a standing answer covers them
    only when it names exactly this call. `fingerprint` names the outcome exactly (the hash of a file's new content):
    what runs later must lead to the same.
    """

    kind: SubjectKind
    tool: str
    summary: str
    detail: str = ""
    paths: tuple[str, ...] = ()
    diff: DiffView | None = None
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
