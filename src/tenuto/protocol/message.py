"""Messages, the compaction entry, and `HistoryEvent`, the union of everything that a log can hold.

Messages are entries themselves: the same struct is written to the log and handed to a model client, so nothing is
converted on the way. A message with `seq == 0` is not an entry (it stands in a compaction's `replacement`).
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import msgspec

from tenuto.protocol.entry import (
    ApprovalEntry,
    BranchEntry,
    BranchSummaryEntry,
    DequeuedEntry,
    DirectoryEntry,
    Entry,
    ExtensionEntry,
    HeaderEntry,
    LabelEntry,
    Mode,
    ModeEntry,
    ModelEntry,
    MovedEntry,
    NoticeEntry,
    Origin,
    PinEntry,
    PlanEntry,
    QueuedEntry,
    QueueEditEntry,
    ShellEntry,
    SkillEntry,
    TitleEntry,
    TodoEntry,
    TodoItem,
    UndoEntry,
    UnknownEntry,
    UnpinEntry,
    UsageEntry,
    ViewEdit,
    ViewEditEntry,
)
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import AssistantPart, ContentPart, ToolCallPart
from tenuto.protocol.usage import Usage

StopReason = Literal[
    "end_turn", "tool_use", "max_tokens", "refusal", "pause", "window_exceeded", "interrupted", "other"
]


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as the model sees it; `parameters` is a JSON schema object, already encoded.

    With a `grammar` (Lark) the tool takes one text; `parameters` are for servers that know tools with objects only,
    and have that text as `input`.
    """

    name: str
    description: str
    parameters: msgspec.Raw
    grammar: str = ""


class SystemMessage(Entry, frozen=True, kw_only=True, tag="system"):
    """The system prompt as sent, with the names and the digest of the tools sent beside it; or a summary.

    In the log this is the `system` entry. In a compaction's `replacement` it carries the framed summary. `family` is
    the family of models that it is for; empty: for all. `registered` are those of the tools that are not built in, as
    the model was told of them: they come from elsewhere and may change, and what was sent must not.
    """

    role: ClassVar[str] = "system"
    text: str
    tools: tuple[str, ...] = ()
    tools_digest: str = ""
    family: str = ""
    registered: tuple[ToolSchema, ...] = ()


class DeveloperMessage(Entry, frozen=True, kw_only=True, tag="developer"):
    """Something that the harness tells the model (mode, todo, date, changed files); belongs to its gap (DESIGN 3).

    `files` are those whose content it gives (what the user mentioned). `plan` is what became of the plan that the
    answer with the seq `answers` proposes; then the text says it to the model.
    """

    role: ClassVar[str] = "developer"
    text: str
    kind: str = ""
    files: tuple[FileUse, ...] = ()
    plan: PlanView | None = None
    answers: int = 0


class UserMessage(Entry, frozen=True, kw_only=True, tag="user"):
    """What the user, or something in the user's name, said. `from_queued` is the seq of its `queued` entry."""

    role: ClassVar[str] = "user"
    parts: tuple[ContentPart, ...]
    origin: Origin = "typed"
    from_queued: int = 0


class AssistantMessage(Entry, frozen=True, kw_only=True, tag="assistant"):
    """A complete answer of a model.

    `model` is `provider/name`. `estimate` is our estimate of the request in tokens, kept to calibrate later ones.
    `prefix` is the chain hash of what was sent before this answer (DESIGN section 7, signed thinking). `duration` and
    `thinking_duration` (until the first text or call) are seconds. `plan` is set where it was given in plan
    mode and has tags of a plan in its text (`session/plans.py`).
    """

    role: ClassVar[str] = "assistant"
    parts: tuple[AssistantPart, ...]
    model: str = ""
    stop_reason: StopReason = "end_turn"
    usage: Usage | None = None
    estimate: int = 0
    prefix: str = ""
    response_id: str = ""
    duration: float = 0.0
    thinking_duration: float = 0.0
    plan: PlanMark | None = None

    @property
    def tool_calls(self) -> tuple[ToolCallPart, ...]:
        """The calls that the answer asks for; all of them together are one group (seed 004)."""
        return tuple(part for part in self.parts if isinstance(part, ToolCallPart))

    @property
    def is_cut_off(self) -> bool:
        """Whether the output limit ended the answer in its text; the next answer goes on with it."""
        return self.stop_reason == "max_tokens" and not self.tool_calls


class PlanMark(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an answer has of a plan.

    `state`: "proposed" when the last complete one in it is handed over to the user; "begun" when the answer was cut off
    in one; "aside" when none is handed over, only the tags are not shown. `before` is what earlier answers that were
    cut off have of it, from its tag on.
    """

    state: Literal["proposed", "begun", "aside"] = "aside"
    before: str = ""


class FileUse(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that a tool touched; `sha256` is of its bytes afterwards (empty: gone or unknown).

    `before` is the hash under which the bytes from before a change are kept (empty: they are not); `created` says that
    there was no file before. `mode` are the permission bits of a file that is gone (0: unknown).
    """

    path: str
    op: Literal["read", "write", "edit", "delete"]
    sha256: str = ""
    before: str = ""
    created: bool = False
    mode: int = 0


class FilesEntry(Entry, frozen=True, kw_only=True, tag="files"):
    """Files that the user took back to what they were at entry `target`; `turn` says that it was one turn's edits.

    What the agent knows of the files stays as it was: the difference is told to it like any other change.
    """

    target: int
    files: tuple[FileUse, ...]
    turn: bool = False


class DiffView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="diff", tag_field="kind"):
    """A change to one file as a unified diff (no `---`/`+++` head), with its counts of lines.

    The path is as users read it: relative where the file lies in the workspace. `moved_from` is the one that the file
    had before (empty: the same).
    """

    path: str
    diff: str
    added: int = 0
    removed: int = 0
    created: bool = False
    deleted: bool = False
    moved_from: str = ""


class TodoView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="todo", tag_field="kind"):
    """The todo list after the call."""

    items: tuple[TodoItem, ...]


class ShellView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="shell", tag_field="kind"):
    """How a command ended; `exit_code` is `None` for a background job or a kill.

    `ending` is the line of the result's text that says it to the model; who says it otherwise leaves that line out.
    """

    command: str
    exit_code: int | None = None
    background: bool = False
    ending: str = ""


class FoundView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="found", tag_field="kind"):
    """What a search found in all: `files`, and where lines were looked for the matching `lines` in them.

    `partial`: the result does not show all of it, or the search was stopped early.
    """

    files: int = 0
    lines: int = 0
    partial: bool = False


class PageView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="page", tag_field="kind"):
    """What an address answered with. `size` is bytes; `partial`: there was more than was taken."""

    status: int
    media_type: str = ""
    size: int = 0
    partial: bool = False


class LinesView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="lines", tag_field="kind"):
    """How many lines of a file are in the result."""

    count: int


class PlanView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="plan", tag_field="kind"):
    """A plan that the model handed over, as it was answered.

    `outcome`: "approved" with the `mode` that the work begins in; "continued" when planning goes on, for `feedback`;
    "unasked" where nobody could be asked; "interrupted" when the user stopped the task instead; "aside" when it was
    handed over outside plan mode. `edited` says that the user changed the text.
    """

    text: str
    outcome: Literal["approved", "continued", "unasked", "interrupted", "aside"] = "aside"
    mode: Mode | None = None
    edited: bool = False
    feedback: str = ""


class DenialView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="denial", tag_field="kind"):
    """What the user said when they did not allow a call."""

    feedback: str


class NotNowView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="not_now", tag_field="kind"):
    """Why a call in order was not done at this time, in few words. It is an error for the model alone."""

    reason: str


class AgentView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="agent", tag_field="kind"):
    """A sub-agent that a call ran: the id of its session, the agent's name, and what it took.

    `outcome` is how its task ended, as of every task, "unknown" when the program was killed before that.
    """

    session: str
    agent: str = ""
    outcome: str = "completed"
    steps: int = 0
    tokens: int = 0
    cost: float | None = None


class OwnView(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="own", tag_field="kind"):
    """What an extension's renderer made of a result: lines of (text, style name); and the result's details."""

    extension: str
    lines: tuple[tuple[tuple[str, str], ...], ...] = ()
    details: msgspec.Raw = msgspec.Raw(b"null")


ResultView = (
    DiffView
    | TodoView
    | ShellView
    | FoundView
    | PageView
    | LinesView
    | PlanView
    | DenialView
    | NotNowView
    | AgentView
    | OwnView
)
"""An older version leaves out a view that it does not know."""


class ToolResultMessage(Entry, frozen=True, kw_only=True, tag="tool_result"):
    """The result of one tool call. `ui` is data for the screen only; the model sees `parts`.

    `truncated` says that `parts` is not the whole output; then `output_path` names the file that has it and
    `output_size` its size in bytes. `interrupted` marks a result of a call that did not
    end, with what there was of it; `denied` one of a call that was not allowed to run.
    """

    role: ClassVar[str] = "tool"
    call_id: str
    name: str
    parts: tuple[ContentPart, ...]
    is_error: bool = False
    ui: tuple[ResultView, ...] = ()
    files: tuple[FileUse, ...] = ()
    truncated: bool = False
    output_path: str = ""
    output_size: int = 0
    interrupted: bool = False
    denied: bool = False
    duration: float = 0.0

    @property
    def tool_call_id(self) -> str:
        """The id of the call under the name that strategies know it by (seed 004)."""
        return self.call_id

    @property
    def failed(self) -> bool:
        """Whether something went wrong: the model gets more than that as an error, lest it tries the same again."""
        return self.is_error and not any(isinstance(view, NotNowView) for view in self.ui)


Message = SystemMessage | DeveloperMessage | UserMessage | AssistantMessage | ToolResultMessage


class NameAudit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What became of the exact names (paths, hashes, ports, addresses, error codes) of the latest summarised part.

    Of `found` names the summary and what stays beside it have `kept`; `added` were put in from data.
    """

    found: int = 0
    kept: int = 0
    added: int = 0


class CompactionDetails(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Files touched in what was summarised, accumulated over rounds; a modified file is not repeated as read.

    `extension` is what the extension that supplied the compaction wants to find in it again. `names` is `None` where
    nothing was audited.
    """

    read_files: tuple[str, ...] = ()
    modified_files: tuple[str, ...] = ()
    extension: dict[str, Any] = {}
    names: NameAudit | None = None


class ProviderItems(msgspec.Struct, frozen=True, kw_only=True):
    """A provider's own compaction, readable by that provider and model only."""

    provider: str
    model: str
    items: tuple[msgspec.Raw, ...]


class CompactionEntry(Entry, frozen=True, kw_only=True, tag="compaction"):
    """A compaction, written once when it is complete. `first_kept_index` is a `seq`, never a list position.

    `replacement` are the exact messages that stand in the view before `first_kept_index`; `summary` is the bare text
    for display, search and the next round. `duration` is seconds. `ts` is when it was made. `trigger` is what the
    context should come under, in tokens (0: not known). `rough` says that `tokens_before` is an estimate for the most
    part; `tokens_after` always is one.
    """

    summary: str = ""
    first_kept_index: int = 0
    replacement: tuple[Message, ...] = ()
    edits: tuple[ViewEdit, ...] = ()
    system_seq: int = 0
    tokens_before: int | None = None
    tokens_after: int | None = None
    rough: bool = False
    trigger: int = 0
    reason: CompactionReason = "manual"
    rung: str = ""
    focus: str = ""
    details: CompactionDetails | None = None
    provider_items: ProviderItems | None = None
    from_extension: str = ""
    usage: Usage | None = None
    duration: float = 0.0


KnownEntry = (
    HeaderEntry
    | SystemMessage
    | DeveloperMessage
    | UserMessage
    | AssistantMessage
    | ToolResultMessage
    | ShellEntry
    | CompactionEntry
    | ViewEditEntry
    | UndoEntry
    | BranchEntry
    | BranchSummaryEntry
    | ExtensionEntry
    | FilesEntry
    | PinEntry
    | UnpinEntry
    | SkillEntry
    | TodoEntry
    | PlanEntry
    | QueuedEntry
    | DequeuedEntry
    | QueueEditEntry
    | ModelEntry
    | MovedEntry
    | ModeEntry
    | TitleEntry
    | LabelEntry
    | ApprovalEntry
    | DirectoryEntry
    | UsageEntry
    | NoticeEntry
)
HistoryEvent = KnownEntry | UnknownEntry
MESSAGE_TYPES = (SystemMessage, DeveloperMessage, UserMessage, AssistantMessage, ToolResultMessage)
