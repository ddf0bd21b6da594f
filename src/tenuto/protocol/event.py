"""What the core tells every front-end. Every event has its `session_id`.

Events are what a front-end shows. A resumed transcript is made by replaying the events that the log's entries stand
for (`core/transcript.py`), so live and resumed transcripts are the same.
"""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from tenuto.protocol.entry import Level, Mode, Origin, ShellEntry, TodoItem
from tenuto.protocol.message import AssistantMessage, CompactionEntry, DiffView, ToolResultMessage
from tenuto.protocol.operation import CompactionReason, Decision
from tenuto.protocol.part import ContentPart, WebSearch
from tenuto.protocol.usage import Usage

Outcome = Literal["completed", "interrupted", "failed", "cut_off", "limit_reached", "declined"]
"""How a task ended. `cut_off`: the model's output limit ended its answer, and going on did not help. `limit_reached`:
a limit of the user's ended it. `declined`: the model, or a filter of its provider, did not answer."""


class Event(msgspec.Struct, frozen=True, kw_only=True, tag_field="event"):
    """Base of all events; `submission_id` is empty where no operation stands behind it."""

    session_id: str
    submission_id: str = ""


# --- session ---


class SessionOpenedEvent(Event, frozen=True, kw_only=True, tag="session_opened"):
    """A session is open: everything that the screen shows around the transcript. A replay of its entries follows.

    `missing` says that its working directory is not there any more. `read_only`: nothing can be sent, because it is
    open elsewhere; with `locked` the user has not been asked yet what is to be done about that. `sees_images` says
    whether the model takes images. `began` is how the conversation began, for want of a title. `sandboxed` is false
    where the user does without a sandbox.
    """

    cwd: str
    model: str
    mode: Mode
    title: str = ""
    began: str = ""
    effort: str = ""
    resumed: bool = False
    missing: bool = False
    read_only: bool = False
    locked: bool = False
    directory: str = ""
    sees_images: bool = True
    sandboxed: bool = True


class ReplayFinishedEvent(Event, frozen=True, kw_only=True, tag="replay_finished"):
    """The entries of an opened session have all been replayed; what follows is live."""


class EarlierEntriesEvent(Event, frozen=True, kw_only=True, tag="earlier_entries"):
    """A part of a session's transcript: `events` come before everything that was replayed of what is newer.

    It stands for `count` entries of the path, from the one with the seq `before` to the one with the seq `last`.
    `remaining` entries are older still (and newer than `after` of the question); they are asked for by `before`.
    `later` ones lie behind the part and before `upto`, the `before` of the question (`ShowEarlierOperation`).
    """

    remaining: int
    before: int
    last: int = 0
    later: int = 0
    upto: int = 0
    count: int = 0
    events: tuple[AnyEvent, ...] = ()


class EarlierFoundEvent(Event, frozen=True, kw_only=True, tag="earlier_found"):
    """What came of a `FindEarlierOperation` with that `query` and `upto`: the entry `seq`, or 0.

    With 0, the entries whose seq is over `after` and under `before` are still to be looked through; none are if
    `before` is 0.
    """

    query: str
    upto: int
    seq: int = 0
    after: int = 0
    before: int = 0


class ModelChangedEvent(Event, frozen=True, kw_only=True, tag="model_changed"):
    """The session's model is now `model` (`provider/name`); `sees_images` says whether it takes images."""

    model: str
    effort: str = ""
    sees_images: bool = True


class ModeChangedEvent(Event, frozen=True, kw_only=True, tag="mode_changed"):
    """The session's approval mode is now `mode`."""

    mode: Mode


class TitleChangedEvent(Event, frozen=True, kw_only=True, tag="title_changed"):
    """The session's title is now `title`."""

    title: str


class TodoChangedEvent(Event, frozen=True, kw_only=True, tag="todo_changed"):
    """The todo list is now `items`."""

    items: tuple[TodoItem, ...]


class ContextUsageEvent(Event, frozen=True, kw_only=True, tag="context_usage"):
    """How full the window is, in tokens. `window` is `None` when unknown; `estimated` says no provider counted it.

    `jobs` is how many background jobs run.
    """

    tokens: int
    window: int | None
    trigger: int | None
    estimated: bool
    total: Usage
    """Everything that the session used so far, with its cost."""
    jobs: int = 0


# --- a task and its steps ---


class TaskStartedEvent(Event, frozen=True, kw_only=True, tag="task_started"):
    """The task of this submission began; `kind` is agent, compaction or shell."""

    kind: Literal["agent", "compaction", "shell"]


class TaskFinishedEvent(Event, frozen=True, kw_only=True, tag="task_finished"):
    """The task of this submission ended; `error` is one line for a user when it failed."""

    kind: Literal["agent", "compaction", "shell"]
    outcome: Outcome
    error: str = ""
    duration: float = 0.0


class TaskSettledEvent(Event, frozen=True, kw_only=True, tag="task_settled"):
    """The session is really idle: no task runs, no submission is in progress, nothing is due from the queue."""

    outcome: Outcome
    error: str = ""
    refused: int = 0
    """How many calls needed an approval that nobody could give, since the session was idle before."""


class StepStartedEvent(Event, frozen=True, kw_only=True, tag="step_started"):
    """A model call begins; `step` counts from 1 in its task."""

    step: int


class UserMessageEvent(Event, frozen=True, kw_only=True, tag="user_message"):
    """A user message went into the history."""

    seq: int
    parts: tuple[ContentPart, ...]
    origin: Origin = "typed"
    from_queued: int = 0


class AssistantTextDeltaEvent(Event, frozen=True, kw_only=True, tag="assistant_text_delta"):
    """More of the answer's text."""

    text: str


class AssistantThinkingDeltaEvent(Event, frozen=True, kw_only=True, tag="assistant_thinking_delta"):
    """More of the readable reasoning."""

    text: str


class ToolCallDeltaEvent(Event, frozen=True, kw_only=True, tag="tool_call_delta"):
    """A call is being written by the model: its name, and how many characters of arguments there are so far."""

    index: int
    name: str
    characters: int


class WebSearchEvent(Event, frozen=True, kw_only=True, tag="web_search"):
    """The provider searches the web in the answer that streams, or has done so (`search.done`)."""

    search: WebSearch


class AssistantWithdrawnEvent(Event, frozen=True, kw_only=True, tag="assistant_withdrawn"):
    """The attempt that was streaming failed: what was shown of it is not part of the conversation."""

    reason: str


class AssistantMessageEvent(Event, frozen=True, kw_only=True, tag="assistant_message"):
    """The answer is complete and in the history; it stands for everything that was streamed of it."""

    message: AssistantMessage


class ToolStartedEvent(Event, frozen=True, kw_only=True, tag="tool_started"):
    """A call begins to run; `summary` is one line (a path, a command)."""

    call_id: str
    name: str
    arguments: str
    summary: str = ""


class CallRefusedEvent(Event, frozen=True, kw_only=True, tag="call_refused"):
    """A call was refused in a run where nobody can be asked; `summary` is as of its start, `reason` says why.

    `allowed_by` is the mildest mode that allows it, `None` where none does without a user; `rules` allow it as well.
    """

    call_id: str
    name: str
    summary: str
    reason: str
    allowed_by: Mode | None = None
    rules: tuple[str, ...] = ()


class ToolOutputEvent(Event, frozen=True, kw_only=True, tag="tool_output"):
    """More of a running call's live output."""

    call_id: str
    text: str


class ToolResultEvent(Event, frozen=True, kw_only=True, tag="tool_result"):
    """A call has its result, and it is in the history."""

    message: ToolResultMessage


THIS_COMMAND = "this exact command"
"""What a kind covers that is no kind: one command, word for word."""


class ApprovalKind(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of calls that an answer can allow: the rules that it makes, and what they cover, for people.

    `note` is what has to be known of it, empty for most.
    """

    rules: tuple[str, ...]
    covers: str
    note: str = ""


class OfferedAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer to a question of a server. With `writes` a text goes with it; `letter` is its key, where it has one."""

    label: str
    letter: str = ""
    writes: bool = False


class ApprovalRequestedEvent(Event, frozen=True, kw_only=True, tag="approval_requested"):
    """A call waits for the user. `detail` is the exact command or the text that decides; `diffs` for edits, one a file.

    `reason` says why it asks. `kinds` are what can be allowed together with it, for the session or in this project,
    the likeliest first. Of `kind` "plan" it is no call that asks but a plan, which is the `detail`. `asked` counts the
    calls of the same answer that were asked about before, `behind` those behind it that are to be, as far as that can
    be said now. `agent` names the sub-agent that asks (empty: none); then `call_id` is the call that runs it, and
    `session_id` its own session. Of `kind` "question" an MCP server asks the user something: the `summary` says who and
    what about, the `detail` what is asked, and `answers` are what can be said.
    """

    request_id: str
    call_id: str
    tool: str
    summary: str
    detail: str
    reason: str = ""
    diffs: tuple[DiffView, ...] = ()
    kinds: tuple[ApprovalKind, ...] = ()
    kind: Literal["call", "plan", "question"] = "call"
    answers: tuple[OfferedAnswer, ...] = ()
    asked: int = 0
    behind: int = 0
    agent: str = ""


class ApprovalResolvedEvent(Event, frozen=True, kw_only=True, tag="approval_resolved"):
    """An approval is answered, or no longer needed (then as denied)."""

    request_id: str
    decision: Decision


class ChildProgressEvent(Event, frozen=True, kw_only=True, tag="child_progress"):
    """A sub-agent began or went on: `child` is its session, `call_id` the call that runs it.

    `steps` are its calls of the model, `tokens` what they sent and answered in all, `cost` US dollars where known.
    `in_command`: a call of it waits for a command.
    """

    call_id: str
    child: str
    agent: str
    steps: int = 0
    tokens: int = 0
    cost: float | None = None
    in_command: bool = False


class ChildTranscriptEvent(Event, frozen=True, kw_only=True, tag="child_transcript"):
    """What a sub-agent has said and done: the answer to a `WatchChildOperation`. While it works, its own events follow.

    `remaining` entries are older than the `events`.
    """

    child: str
    working: bool
    remaining: int = 0
    events: tuple[AnyEvent, ...] = ()


class ChildEndedEvent(Event, frozen=True, kw_only=True, tag="child_ended"):
    """A sub-agent has ended, and what it used is in its parent's log; its result comes next.

    `answer` is what it said at last, `transcript` the directory of its session.
    """

    call_id: str
    child: str
    agent: str
    outcome: Outcome
    error: str = ""
    answer: str = ""
    transcript: str = ""
    usage: Usage = Usage()


class RetryEvent(Event, frozen=True, kw_only=True, tag="retry"):
    """A model call failed and is tried again in `wait` seconds; `attempt` counts from 1 of `attempts`."""

    attempt: int
    attempts: int
    wait: float
    reason: str


class HooksRunningEvent(Event, frozen=True, kw_only=True, tag="hooks_running"):
    """The hook commands that the work has waited for longer than a moment, by name; empty: it waits for none."""

    names: tuple[str, ...] = ()


class CommandProgressEvent(Event, frozen=True, kw_only=True, tag="command_progress"):
    """How far a command is that takes its time, one line; empty: it is done."""

    text: str = ""


class ExtensionStatusEvent(Event, frozen=True, kw_only=True, tag="extension_status"):
    """What an extension has in the footer is now `text`, one line; empty: nothing any more."""

    extension: str
    text: str = ""


class QueueItem(msgspec.Struct, frozen=True, kw_only=True):
    """One queued prompt."""

    seq: int
    parts: tuple[ContentPart, ...]
    steer: bool = False


class QueueChangedEvent(Event, frozen=True, kw_only=True, tag="queue_changed"):
    """What is queued now. `waiting`: nothing will send it by itself, the user has to (Enter)."""

    items: tuple[QueueItem, ...]
    waiting: bool = False


class PromptReturnedEvent(Event, frozen=True, kw_only=True, tag="prompt_returned"):
    """A prompt was not sent and goes back into the editor; `reason` says why."""

    parts: tuple[ContentPart, ...]
    reason: str = ""


class NoticeEvent(Event, frozen=True, kw_only=True, tag="notice"):
    """Something to tell the user; an error names what to do."""

    text: str
    level: Level = "info"
    kind: str = ""


# --- the user's own shell ---


class ShellStartedEvent(Event, frozen=True, kw_only=True, tag="shell_started"):
    """A `!command` began."""

    command: str
    excluded: bool = False


class ShellOutputEvent(Event, frozen=True, kw_only=True, tag="shell_output"):
    """More of its output."""

    text: str


class ShellFinishedEvent(Event, frozen=True, kw_only=True, tag="shell_finished"):
    """It ended and is in the history."""

    entry: ShellEntry


# --- compaction ---


class TrustWaitingEvent(Event, frozen=True, kw_only=True, tag="trust_waiting"):
    """The project brings so many things that count, or run, only once the user trusts them; nothing waits for that."""

    count: int


class UndoneEvent(Event, frozen=True, kw_only=True, tag="undone"):
    """The entry `target` is undone by the entry `seq`; where `target` is an undo itself, what it undid holds again."""

    seq: int
    target: int


class CompactionStartEvent(Event, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction begins."""

    reason: CompactionReason


class CompactionProgressEvent(Event, frozen=True, kw_only=True, tag="compaction_progress"):
    """Where a compaction is; `summary_tokens` is how much of the summary has been streamed.

    `text` is what came of the summary since the event before; with no `summary_tokens` it begins, and what came before
    does not count. Lines of `--json` are without it: the end has the whole.
    """

    stage: str
    summary_tokens: int = 0
    text: str | UnsetType = UNSET


class CompactionProposedEvent(Event, frozen=True, kw_only=True, tag="compaction_proposed"):
    """A compaction is ready and waits for the user: accept, edit or drop. Its end event comes after that.

    `entry` is what would be written (its `seq` is 0); `kept_tokens` is the estimated size of what stays word for word.
    `summary` is the part of the entry's summary that can be edited (empty: none of it).
    """

    entry: CompactionEntry
    kept_tokens: int = 0
    summary: str = ""


class CompactionEndEvent(Event, frozen=True, kw_only=True, tag="compaction_end"):
    """A compaction ended. `entry` is what was written; nothing was when `aborted`, nor when there is only an `error`.

    `needless` with an `error`: there was nothing to make smaller, which is an answer and no fault.
    `aborted` with an `error`: not the user cancelled it, but an extension, for that reason.
    With an `entry`, `error` says that the context is still over its limit: it may not be shown as a plain success.
    """

    reason: CompactionReason
    aborted: bool = False
    needless: bool = False
    will_retry: bool = False
    tokens_before: int | None = None
    tokens_after: int | None = None
    kept_from_index: int | None = None
    error: str | None = None
    entry: CompactionEntry | None = None


AnyEvent = (
    SessionOpenedEvent
    | ReplayFinishedEvent
    | EarlierEntriesEvent
    | EarlierFoundEvent
    | ModelChangedEvent
    | ModeChangedEvent
    | TitleChangedEvent
    | TodoChangedEvent
    | ContextUsageEvent
    | TaskStartedEvent
    | TaskFinishedEvent
    | TaskSettledEvent
    | StepStartedEvent
    | UserMessageEvent
    | AssistantTextDeltaEvent
    | AssistantThinkingDeltaEvent
    | ToolCallDeltaEvent
    | WebSearchEvent
    | AssistantWithdrawnEvent
    | AssistantMessageEvent
    | ToolStartedEvent
    | CallRefusedEvent
    | ToolOutputEvent
    | ToolResultEvent
    | ApprovalRequestedEvent
    | ApprovalResolvedEvent
    | ChildProgressEvent
    | ChildTranscriptEvent
    | ChildEndedEvent
    | RetryEvent
    | HooksRunningEvent
    | QueueChangedEvent
    | PromptReturnedEvent
    | NoticeEvent
    | CommandProgressEvent
    | ExtensionStatusEvent
    | ShellStartedEvent
    | ShellOutputEvent
    | ShellFinishedEvent
    | CompactionStartEvent
    | CompactionProgressEvent
    | CompactionProposedEvent
    | CompactionEndEvent
    | UndoneEvent
    | TrustWaitingEvent
)
