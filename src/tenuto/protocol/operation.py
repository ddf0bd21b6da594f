"""What a front-end asks of the executor. Every operation has one `submission_id`, carried by its events."""

from __future__ import annotations

import uuid
from enum import Enum
from typing import Literal, Protocol

import msgspec

from tenuto.protocol.entry import Mode

CompactionReason = Literal["threshold", "overflow", "manual", "model_switch", "idle"]
Decision = Literal["once", "session", "deny"]


class OperationType(Enum):
    """The names of the operations on the wire (`--json`, API)."""

    RUN_AGENT = "run_agent"
    COMPACT_SESSION = "compact_session"
    INTERRUPT = "interrupt"
    CHANGE_MODEL = "change_model"
    CHANGE_MODE = "change_mode"
    ANSWER_APPROVAL = "answer_approval"
    EDIT_QUEUE = "edit_queue"
    RUN_SHELL = "run_shell"
    SET_TITLE = "set_title"
    OPEN_SESSION = "open_session"
    NEW_SESSION = "new_session"
    FORK_SESSION = "fork_session"
    SHOW_EARLIER = "show_earlier"


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
    """Compact the session's view; `focus` is extra guidance for the summary."""

    reason: CompactionReason = "manual"
    focus: str | None = None
    will_retry: bool = False


class InterruptOperation(Operation, frozen=True, kw_only=True, tag=OperationType.INTERRUPT.value):
    """Cancel whatever task runs in the session; does nothing when none does."""


class ChangeModelOperation(Operation, frozen=True, kw_only=True, tag=OperationType.CHANGE_MODEL.value):
    """Use another model from the next request on; `model` is `provider/name[:effort]`."""

    model: str


class ChangeModeOperation(Operation, frozen=True, kw_only=True, tag=OperationType.CHANGE_MODE.value):
    """Use another approval mode from now on."""

    mode: Mode


class AnswerApprovalOperation(Operation, frozen=True, kw_only=True, tag=OperationType.ANSWER_APPROVAL.value):
    """Answer an open approval; `feedback` goes to the model with a denial."""

    request_id: str
    decision: Decision
    feedback: str = ""


class EditQueueOperation(Operation, frozen=True, kw_only=True, tag=OperationType.EDIT_QUEUE.value):
    """Change a queued text: delete it, take it back into the editor, or deliver it at the next tool boundary."""

    target: int
    action: Literal["delete", "take_back", "steer"]


class RunShellOperation(Operation, frozen=True, kw_only=True, tag=OperationType.RUN_SHELL.value):
    """Run a `!command` of the person; `excluded` (`!!`) keeps it from the model."""

    command: str
    excluded: bool = False


class SetTitleOperation(Operation, frozen=True, kw_only=True, tag=OperationType.SET_TITLE.value):
    """Name the session."""

    title: str


class OpenSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.OPEN_SESSION.value):
    """Leave `session_id` (may be empty) and open `target`."""

    target: str


class NewSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.NEW_SESSION.value):
    """Leave `session_id` (may be empty) and start a new session in `cwd` (empty: the same)."""

    cwd: str = ""


class ForkSessionOperation(Operation, frozen=True, kw_only=True, tag=OperationType.FORK_SESSION.value):
    """Copy the path up to `seq` (0: the leaf) into a new session and open that."""

    seq: int = 0


class ShowEarlierOperation(Operation, frozen=True, kw_only=True, tag=OperationType.SHOW_EARLIER.value):
    """Send what comes on the path right before the entry `before`, as an `EarlierEntriesEvent`."""

    before: int


AnyOperation = (
    RunAgentOperation
    | CompactSessionOperation
    | InterruptOperation
    | ChangeModelOperation
    | ChangeModeOperation
    | AnswerApprovalOperation
    | EditQueueOperation
    | RunShellOperation
    | SetTitleOperation
    | OpenSessionOperation
    | NewSessionOperation
    | ForkSessionOperation
    | ShowEarlierOperation
)


class OperationHandler(Protocol):
    """What the executor implements, one method an operation."""

    async def handle_run_agent(self, operation: RunAgentOperation) -> None:
        """Start an agent task."""
        ...

    async def handle_compact_session(self, operation: CompactSessionOperation) -> None:
        """Start a compaction task."""
        ...

    async def handle_interrupt(self, operation: InterruptOperation) -> None:
        """Cancel the session's running task."""
        ...

    async def handle_change_model(self, operation: ChangeModelOperation) -> None:
        """Switch the model."""
        ...

    async def handle_change_mode(self, operation: ChangeModeOperation) -> None:
        """Switch the approval mode."""
        ...

    async def handle_answer_approval(self, operation: AnswerApprovalOperation) -> None:
        """Answer an open approval."""
        ...

    async def handle_edit_queue(self, operation: EditQueueOperation) -> None:
        """Change the queue."""
        ...

    async def handle_run_shell(self, operation: RunShellOperation) -> None:
        """Run a command of the person."""
        ...

    async def handle_set_title(self, operation: SetTitleOperation) -> None:
        """Name the session."""
        ...

    async def handle_open_session(self, operation: OpenSessionOperation) -> None:
        """Open a session."""
        ...

    async def handle_new_session(self, operation: NewSessionOperation) -> None:
        """Start a session."""
        ...

    async def handle_fork_session(self, operation: ForkSessionOperation) -> None:
        """Fork the session."""
        ...

    async def handle_show_earlier(self, operation: ShowEarlierOperation) -> None:
        """Send older entries."""
        ...
