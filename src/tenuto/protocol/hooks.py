"""What extensions are asked and told around compaction and branches, and what they may answer (DESIGN sections 6, 8).

An event is frozen and says everything that the core knows; an answer is one of the structs here or a plain `dict` of
the same shape. `None` as an answer always means: go on as usual. The field names are those of seed 003 in snake case.
"""

from __future__ import annotations

import threading
from typing import Any, Literal

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.message import CompactionEntry, HistoryEvent
from tenuto.protocol.operation import CompactionReason

HookName = Literal[
    "session_before_compact", "session_compact", "session_compact_failed", "session_before_tree", "session_tree"
]


class HookEvent(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all: which session, and its working directory."""

    session_id: str
    cwd: str


class FileOps(msgspec.Struct, frozen=True, kw_only=True):
    """Files that the summarised part touched, over all rounds; a modified one is not repeated as read."""

    read: tuple[str, ...] = ()
    modified: tuple[str, ...] = ()


class PreparationSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers in effect for the present model. Tokens."""

    enabled: bool
    reserve_tokens: int
    keep_recent_tokens: int
    max_summary_tokens: int


class CompactionPreparation(msgspec.Struct, frozen=True, kw_only=True):
    """What the compaction is about to do.

    `messages_to_summarize` and, where the cut falls into a turn, `turn_prefix_messages` are what a summary has to
    cover beside `previous_summary` (without its file lists); what stays word for word begins at `first_kept_index`, a
    seq. `tokens_before` is the measured size of the whole request. Where there is nothing to summarise (the compaction
    can only shorten results) there are no messages, and `first_kept_index` is 0.
    """

    messages_to_summarize: tuple[HistoryEvent, ...] = ()
    turn_prefix_messages: tuple[HistoryEvent, ...] = ()
    is_split_turn: bool = False
    previous_summary: str = ""
    file_ops: FileOps = FileOps()
    tokens_before: int
    first_kept_index: int = 0
    settings: PreparationSettings


class SessionBeforeCompact(HookEvent, frozen=True, kw_only=True):
    """A compaction is about to begin, whatever its reason. Asked once, before the first attempt.

    `branch_entries` are all entries from the root to the leaf. `signal` is set when the user cancels or the time is
    up; an `async` handler is cancelled as well. With `will_retry` the refused request is repeated afterwards.
    """

    preparation: CompactionPreparation
    branch_entries: tuple[HistoryEvent, ...]
    custom_instructions: str
    reason: CompactionReason
    will_retry: bool
    signal: threading.Event = msgspec.field(default_factory=threading.Event)


class Answer(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of all answers; a field that does not exist is a fault that is reported, not a silence."""


class SuppliedCompaction(Answer, frozen=True, kw_only=True):
    """A compaction made by an extension: it has to pass every check that our own does.

    `summary` is the bare text; frame, file lists, pins and what else is kept are added as usual. `first_kept_index` is
    a seq where the conversation can be cut. `tokens_before` may be repeated from the preparation; the entry has the
    measured number. `details` is kept in the entry as the extension gave it (JSON).
    """

    summary: str
    first_kept_index: int
    tokens_before: int | None = None
    details: dict[str, Any] = {}


class BeforeCompactAnswer(Answer, frozen=True, kw_only=True):
    """`cancel` ends the compaction with nothing written; `cancel_reason` is shown to the user.

    `add_focus` goes into the summary request as further focus; `add_text` stands in the view word for word, beside
    the summary. `compaction` is used in the place of ours.
    """

    cancel: bool = False
    cancel_reason: str = ""
    add_focus: str = ""
    add_text: str = ""
    compaction: SuppliedCompaction | None = None


class SessionCompact(HookEvent, frozen=True, kw_only=True):
    """A compaction is on disk. `from_extension` names the extension that supplied it; empty: it is ours."""

    compaction_entry: CompactionEntry
    from_extension: str
    reason: CompactionReason
    will_retry: bool


class SessionCompactFailed(HookEvent, frozen=True, kw_only=True):
    """A compaction came to nothing: `aborted` by the user or by an extension, or for the reason in `error`."""

    reason: CompactionReason
    error: str
    aborted: bool
    will_retry: bool
    tokens_before: int


class TreePreparation(msgspec.Struct, frozen=True, kw_only=True):
    """A move in the session's tree. All positions are seqs; 0 is the root.

    `entries_to_summarize` are what the old leaf has and the target has not, oldest first.
    """

    target: int
    old_leaf: int
    common_ancestor: int
    entries_to_summarize: tuple[HistoryEvent, ...]
    user_wants_summary: bool


class SessionBeforeTree(HookEvent, frozen=True, kw_only=True):
    """The leaf is about to move, whether the user wants a summary of what is left or not."""

    preparation: TreePreparation
    signal: threading.Event = msgspec.field(default_factory=threading.Event)


class SuppliedBranchSummary(Answer, frozen=True, kw_only=True):
    """A summary of the branch that is left; used only where the user wants one."""

    summary: str
    details: dict[str, Any] = {}


class BeforeTreeAnswer(Answer, frozen=True, kw_only=True):
    """`cancel` leaves everything as it is; `summary` is used in the place of ours."""

    cancel: bool = False
    cancel_reason: str = ""
    summary: SuppliedBranchSummary | None = None


class SessionTree(HookEvent, frozen=True, kw_only=True):
    """The leaf has moved. `summary_entry` is what was written about the branch that was left, if anything was."""

    new_leaf: int
    old_leaf: int
    summary_entry: BranchSummaryEntry | None
    from_extension: str


HOOKS: dict[HookName, type[Answer] | None] = {
    "session_before_compact": BeforeCompactAnswer,
    "session_compact": None,
    "session_compact_failed": None,
    "session_before_tree": BeforeTreeAnswer,
    "session_tree": None,
}
"""Every hook and what it may answer; `None`: it is told, and its answer means nothing."""
