"""The entries of `events.jsonl` that are not messages (DESIGN section 3).

An entry is one line. `seq` and `ts` are set by the session when the entry is appended; `seq == 0` means "not in the
log". Messages and `CompactionEntry` live in `message.py`, which also has the union of all of them.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from tenuto.protocol.part import ContentPart
from tenuto.protocol.usage import Usage

FORMAT_VERSION = 1
"""The newest version of the log's format that this program reads; new logs are written in it."""
Level = Literal["info", "warning", "error"]
Mode = Literal["ask", "edits", "auto", "plan"]
Origin = Literal["typed", "command", "skill", "hook", "extension", "continuation"]
USER_ORIGINS = frozenset({"typed", "command", "skill"})
"""Origins of messages that are the user's own words."""
CONTINUE_LINE = "(The conversation before this point is summarised above. The work below is under way; go on with it.)"
"""The message of origin `continuation` behind a summary, where what is kept begins with no message of the user."""
MOVED_KIND, RESTORED_KIND = "moved", "files"
"""Kinds of notices that say what became of going back: the conversation has moved, files are what they were."""
PLACE_KIND = "place"
"""A note on what the place is like; it is told again after each compaction."""
SKILL_KIND = "skill:"
"""Begins the kind of the note that tells a loaded skill; the seq of its entry ends it."""
WAITING_KIND = "waiting for jobs"
FAILED_KIND = "failed"
"""The kind of the notice that keeps why a task failed, so that a resumed transcript says it as well."""
TodoStatus = Literal["pending", "in_progress", "done", "cancelled"]


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    """Base of all entries: `seq` is absolute and never changes, `ts` is seconds since the epoch."""

    seq: int = 0
    ts: float = 0.0


class ForkOrigin(msgspec.Struct, frozen=True):
    """The session and entry that a session was forked from."""

    session: str
    seq: int


def _first_version() -> int:
    """Return what a header without a version means; a function, because plain defaults are left out of the line."""
    return 1


class HeaderEntry(Entry, frozen=True, kw_only=True, tag="header"):
    """Line 0 of every log."""

    session_id: str
    cwd: str
    version: int = msgspec.field(default_factory=_first_version)
    """The version of the log's format."""
    forked_from: ForkOrigin | None = None
    parent_session: str = ""
    """The session whose sub-agent this is, if it is one."""
    folder: str = ""
    """What the file system calls the working directory, whatever its name: device and inode."""


class MovedEntry(Entry, frozen=True, kw_only=True, tag="moved"):
    """The session works in another directory from now on: its project was renamed or moved (R-072)."""

    cwd: str
    folder: str = ""


class ShellEntry(Entry, frozen=True, kw_only=True, tag="shell"):
    """A `!command` that the user ran; `excluded` (`!!`) keeps it from the model.

    `interrupted` says that it was stopped, and `output` is what it had written.
    """

    command: str
    output: str = ""
    exit_code: int | None = None
    excluded: bool = False
    truncated: bool = False
    output_path: str = ""
    duration: float = 0.0
    interrupted: bool = False


class ViewEdit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How one result or user message looks in the view from now on; `keep_head` and `keep_tail` are characters.

    The newest edit of a target holds. With an `image_text`, which stands in their place, only the last `keep_images`
    images of a truncated message stay.
    """

    target: int
    kind: Literal["hidden", "truncated", "omitted"]
    text: str = ""
    keep_head: int = 0
    keep_tail: int = 0
    image_text: str = ""
    keep_images: int = 0


class ViewEditEntry(Entry, frozen=True, kw_only=True, tag="view_edit"):
    """Edits to the view; the history stays as it is.

    `rung` names the compaction that made them (empty: none did); `trigger` is what the context should come under, in
    tokens; `duration` is seconds. `rough` says that `tokens_before` is an estimate; `tokens_after` always is one.
    """

    edits: tuple[ViewEdit, ...]
    reason: str = ""
    rung: str = ""
    tokens_before: int = 0
    tokens_after: int = 0
    rough: bool = False
    trigger: int = 0
    duration: float = 0.0


class UndoEntry(Entry, frozen=True, kw_only=True, tag="undo"):
    """Cancels a compaction, a view edit, or an undo (then it is a redo)."""

    target: int


class BranchEntry(Entry, frozen=True, kw_only=True, tag="branch"):
    """Moves the leaf: the next entry continues after `parent` (0: the root)."""

    parent: int


class BranchSummaryEntry(Entry, frozen=True, kw_only=True, tag="branch_summary"):
    """What happened on a branch that was left; `from_seq` is the leaf that was left.

    `details` are the lists of files; `extension` is what the extension that supplied it wants to find in it again.
    """

    summary: str
    from_seq: int
    details: dict[str, list[str]] = {}
    extension: dict[str, Any] = {}
    from_extension: str = ""
    usage: Usage | None = None


KEPT = msgspec.Raw(b'{"keep":true}')
"""The state of an extension's message that stands word for word beside every later summary."""


class ExtensionEntry(Entry, frozen=True, kw_only=True, tag="extension"):
    """State of an extension, or with `in_view` a message of one that the model sees."""

    extension: str
    in_view: bool = False
    parts: tuple[ContentPart, ...] = ()
    state: msgspec.Raw = msgspec.Raw(b"null")


class PinEntry(Entry, frozen=True, kw_only=True, tag="pin"):
    """A text or message that every later compaction keeps."""

    text: str
    target: int = 0


class UnpinEntry(Entry, frozen=True, kw_only=True, tag="unpin"):
    """Takes a pin back; `target` is the pin's seq."""

    target: int


class SkillEntry(Entry, frozen=True, kw_only=True, tag="skill"):
    """A skill was loaded: its text holds as it was then, in the place of an earlier one of that name.

    `text` is what the model is told, word for word; `folder` is where the skill's files are. With `unloads`, the seq of
    such an entry, that one holds no longer.
    """

    name: str
    text: str = ""
    folder: str = ""
    unloads: int = 0


class TodoItem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One line of the todo list."""

    text: str
    status: TodoStatus = "pending"


class TodoEntry(Entry, frozen=True, kw_only=True, tag="todo"):
    """The whole todo list as it is from now on."""

    items: tuple[TodoItem, ...]


class PlanEntry(Entry, frozen=True, kw_only=True, tag="plan"):
    """A plan that the user approved, as approved: it holds until the next one, or until its todo list is done."""

    text: str


class Terms(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a command file or a skill asks for the turn that its prompt begins. `by` is its name, as it is typed.

    `allows` are rules, as they are written, of what may run unasked; without `model` or `effort` the present one holds.
    In a turn that `only_looks` nothing is changed.
    """

    by: str
    allows: tuple[str, ...] = ()
    model: str = ""
    effort: str = ""
    only_looks: bool = False


class QueuedEntry(Entry, frozen=True, kw_only=True, tag="queued"):
    """A prompt that is on disk and not yet sent; `steer` asks for delivery at the next tool boundary.

    It stands in front of the queued prompt `before` (0, or one that is gone: at the end). `terms` hold for its turn.
    """

    parts: tuple[ContentPart, ...]
    origin: Origin = "typed"
    steer: bool = False
    before: int = 0
    terms: Terms | None = None


class DequeuedEntry(Entry, frozen=True, kw_only=True, tag="dequeued"):
    """A queued prompt was deleted or taken back for editing. Sending it is a `user` entry with `from_queued`."""

    target: int
    reason: Literal["deleted", "edited"] = "deleted"


class QueueEditEntry(Entry, frozen=True, kw_only=True, tag="queue_edited"):
    """A queued prompt is delivered otherwise from now on (`steer`), or stands in front of `before` (0: at the end).

    One line, so that no crash can lose the prompt between two.
    """

    target: int
    steer: bool | None = None
    before: int | None = None


class ModelEntry(Entry, frozen=True, kw_only=True, tag="model"):
    """The session's model from now on, as `provider/name`; `effort` is empty when the model's own default holds.

    With `for_turn` the one before is the session's own, and answers again when the turn is over.
    """

    model: str
    effort: str = ""
    for_turn: bool = False


class ModeEntry(Entry, frozen=True, kw_only=True, tag="mode"):
    """The session's approval mode from now on."""

    mode: Mode


class TitleEntry(Entry, frozen=True, kw_only=True, tag="title"):
    """The session's title from now on."""

    title: str


class LabelEntry(Entry, frozen=True, kw_only=True, tag="label"):
    """A user's mark on an entry; an empty text takes it away."""

    target: int
    text: str = ""


class ApprovalEntry(Entry, frozen=True, kw_only=True, tag="approval"):
    """A lasting answer of the user, or a rule that they gave: calls of `tool` that match `pattern`.

    Of the form "rule" the pattern is written as in rules (`guard/rules.py`); earlier versions kept the exact text of a
    command, a path or folder, or an origin. With `withdrawn` it takes such an answer back. One of scope "project" is in
    no log: it stands in the user's own file (`config/saved_approvals.py`) and holds for every session in a directory.
    """

    tool: str
    pattern: str
    form: Literal["exact", "rule"] = "exact"
    effect: Literal["allow", "ask", "deny"] = "allow"
    scope: Literal["session", "project"] = "session"
    withdrawn: bool = False

    @property
    def text(self) -> str:
        """What it says, as rules are written."""
        return f"{self.tool}({self.pattern})" if self.pattern else self.tool


class DirectoryEntry(Entry, frozen=True, kw_only=True, tag="directory"):
    """A directory (a real path) counts as workspace from now on; with `withdrawn` no longer."""

    path: str
    withdrawn: bool = False


class UsageEntry(Entry, frozen=True, kw_only=True, tag="usage"):
    """What calls cost that left no assistant entry (cancelled, failed, summaries)."""

    usage: Usage
    purpose: str = ""
    model: str = ""


class NoticeEntry(Entry, frozen=True, kw_only=True, tag="notice"):
    """Something that the user was told and the model was not."""

    text: str
    level: Level = "info"
    kind: str = ""


class UnknownEntry(Entry, frozen=True, kw_only=True, tag="?unknown"):
    """An entry of a type that this version does not know; `raw` is its line, copied unchanged by every export."""

    kind: str
    raw: bytes = b""
