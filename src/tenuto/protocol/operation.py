"""What a front-end asks of the executor. Every operation has one `submission_id`, carried by its events."""

from __future__ import annotations

import uuid
from enum import Enum
from typing import Literal

import msgspec

from tenuto.protocol.entry import Mode

CompactionReason = Literal["threshold", "overflow", "manual", "model_switch", "idle", "agent", "branch"]
"""`agent`: the model asked for it with the `compact` tool. `branch`: notes were made on a part of the conversation that
is left; it moves the leaf and compacts nothing."""
SessionAccess = Literal["write", "read", "copy", "take_over"]
Decision = Literal["once", "session", "project", "deny"]


class OperationType(Enum):
    """The names of the operations on the wire (`--json`, API)."""

    RUN_AGENT = "run_agent"
    COMPACT_SESSION = "compact_session"
    PREVIEW_COMPACTION = "preview_compaction"
    ACCEPT_COMPACTION = "accept_compaction"
    DROP_COMPACTION = "drop_compaction"
    COMPACT_FROM = "compact_from"
    MOVE_LEAF = "move_leaf"
    INTERRUPT = "interrupt"
    MOVE_TO_BACKGROUND = "move_to_background"
    WATCH_CHILD = "watch_child"
    CHANGE_MODEL = "change_model"
    CHANGE_MODE = "change_mode"
    ANSWER_APPROVAL = "answer_approval"
    EDIT_QUEUE = "edit_queue"
    RUN_SHELL = "run_shell"
    SET_TITLE = "set_title"
    OPEN_SESSION = "open_session"
    MOVE_SESSION = "move_session"
    NEW_SESSION = "new_session"
    FORK_SESSION = "fork_session"
    SHOW_EARLIER = "show_earlier"
    FIND_EARLIER = "find_earlier"


def new_submission_id() -> str:
    """Return a fresh id, unique among all submissions of all sessions."""
    return uuid.uuid4().hex[:16]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """Base of all operations."""

    session_id: str
    submission_id: str = msgspec.field(default_factory=new_submission_id)


class RunAgentOperation(Operation, frozen=True, kw_only=True, tag=OperationType.RUN_AGENT.value):
    """Run the agent on what is queued (the oldest first), until nothing is due. The texts are in the log already."""


class CompactSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.COMPACT_SESSION.value):
    """Compact the session's view; `focus` is extra guidance for the summary.

    `first_kept` is the seq that stays word for word with everything after it (0: where the plan cuts). `undoing` is the
    seq of a compaction that is undone by the same step (0: none).
    """

    reason: CompactionReason = "manual"
    focus: str | None = None
    will_retry: bool = False
    first_kept: int = 0
    undoing: int = 0


class PreviewCompactionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.PREVIEW_COMPACTION.value):
    """Make a compaction and propose it: nothing is written until it is accepted."""

    focus: str | None = None
    first_kept: int = 0


class AcceptCompactionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.ACCEPT_COMPACTION.value):
    """Write the proposed compaction, with another summary where one is given; it passes the same checks again."""

    summary: str | None = None


class DropCompactionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.DROP_COMPACTION.value):
    """Let the proposed compaction go; nothing has changed."""


class CompactFromOperation(Operation, frozen=True, kw_only=True, tag=OperationType.COMPACT_FROM.value):
    """Put notes in the place of everything from the entry `target` on; the leaf moves to what came before it."""

    target: int
    focus: str | None = None


class MoveLeafOperation(Operation, frozen=True, kw_only=True, tag=OperationType.MOVE_LEAF.value):
    """Go on from the entry `target`, on whatever branch; from before it where it is a message of the user.

    With `notes` a summary of what is left goes along, `focus` is extra guidance for it. With `files` the agent's edits
    since `target` are taken back as well.
    """

    target: int
    notes: bool = False
    focus: str | None = None
    files: bool = False


class InterruptOperation(Operation, frozen=True, kw_only=True, tag=OperationType.INTERRUPT.value):
    """Cancel whatever task runs in the session; does nothing when none does."""


class MoveToBackgroundOperation(Operation, frozen=True, kw_only=True, tag=OperationType.MOVE_TO_BACKGROUND.value):
    """Let the commands that calls of the model wait for run on as background jobs; does nothing when none runs."""


class WatchChildOperation(Operation, frozen=True, kw_only=True, tag=OperationType.WATCH_CHILD.value):
    """Send the transcript of a sub-agent as a `ChildTranscriptEvent`, and then what happens in its session.

    `child` is its session. Without `watching` nothing of it is sent any more.
    """

    child: str
    watching: bool = True


class ChangeModelOperation(Operation, frozen=True, kw_only=True, tag=OperationType.CHANGE_MODEL.value):
    """Use another model from the next request on; `model` is `provider/name[:effort]`."""

    model: str


class ChangeModeOperation(Operation, frozen=True, kw_only=True, tag=OperationType.CHANGE_MODE.value):
    """Use another approval mode from now on."""

    mode: Mode


class AnswerApprovalOperation(Operation, frozen=True, kw_only=True, tag=OperationType.ANSWER_APPROVAL.value):
    """Answer an open approval; `feedback` goes to the model with a denial.

    What is allowed for longer is the kind of calls of that number, from 0, that the question names. A plan is approved
    with the `mode` that the work begins in (`None`: the settings' own), and with the `plan` as the user changed it
    (empty: as it was). A question of a server is answered "once" with the number of its answer, from 0, and the text
    that goes with it as `feedback`; "deny" leaves it open.
    """

    request_id: str
    decision: Decision
    feedback: str = ""
    kind: int = 0
    mode: Mode | None = None
    plan: str = ""
    choice: int = 0


class EditQueueOperation(Operation, frozen=True, kw_only=True, tag=OperationType.EDIT_QUEUE.value):
    """Change a queued text: delete it, take it back into the editor, deliver it at the next tool boundary or not until
    its turn after all, or move it in front of the queued text `before` (0: to the end).
    """

    target: int
    action: Literal["delete", "take_back", "steer", "unsteer", "move"]
    before: int = 0


class RunShellOperation(Operation, frozen=True, kw_only=True, tag=OperationType.RUN_SHELL.value):
    """Run a `!command` of the user; `excluded` (`!!`) keeps it from the model."""

    command: str
    excluded: bool = False


class SetTitleOperation(Operation, frozen=True, kw_only=True, tag=OperationType.SET_TITLE.value):
    """Name the session."""

    title: str


class OpenSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.OPEN_SESSION.value):
    """Leave `session_id` (may be empty) and open `target`: to go on with it, to read it, or a copy of it.

    `take_over` goes on with it although a process that cannot be seen is named as its owner: a user knows it gone.
    """

    target: str
    access: SessionAccess = "write"


class MoveSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.MOVE_SESSION.value):
    """Go on with the session in another directory, because its project was renamed or moved."""

    cwd: str


class NewSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.NEW_SESSION.value):
    """Leave `session_id` (may be empty) and start a new session in `cwd` (empty: the same)."""

    cwd: str = ""


class ForkSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.FORK_SESSION.value):
    """Copy the path up to `seq` (0: the leaf) into a new session and open that."""

    seq: int = 0


class ShowEarlierOperation(Operation, frozen=True, kw_only=True, tag=OperationType.SHOW_EARLIER.value):
    """Send what comes on the path right before the entry `before`, as an `EarlierEntriesEvent`.

    Nothing up to the entry `after` is sent. With `at`, it is what begins with the turn of that entry.
    """

    before: int
    after: int = 0
    at: int = 0


class FindEarlierOperation(Operation, frozen=True, kw_only=True, tag=OperationType.FIND_EARLIER.value):
    """Look for words in the entries of the path between `after` and `before`; an `EarlierFoundEvent` is the answer.

    The newest entry that has them counts, or the oldest without `newest`. `upto` comes back with the answer.
    """

    query: str
    before: int
    after: int = 0
    newest: bool = True
    upto: int = 0


OpeningOperation = OpenSessionOperation | MoveSessionOperation | NewSessionOperation | ForkSessionOperation
"""Another session becomes the open one."""
AnyOperation = (
    RunAgentOperation
    | CompactSessionOperation
    | PreviewCompactionOperation
    | AcceptCompactionOperation
    | DropCompactionOperation
    | CompactFromOperation
    | MoveLeafOperation
    | InterruptOperation
    | MoveToBackgroundOperation
    | WatchChildOperation
    | ChangeModelOperation
    | ChangeModeOperation
    | AnswerApprovalOperation
    | EditQueueOperation
    | RunShellOperation
    | SetTitleOperation
    | OpenSessionOperation
    | MoveSessionOperation
    | NewSessionOperation
    | ForkSessionOperation
    | ShowEarlierOperation
    | FindEarlierOperation
)
