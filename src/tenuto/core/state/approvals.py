"""Open approvals: questions to the user that a tool call waits for."""

from __future__ import annotations

import asyncio
import uuid
from typing import Literal

from msgspec import Struct

from tenuto.core.bus import EventBus
from tenuto.protocol.entry import Mode
from tenuto.protocol.event import ApprovalKind, ApprovalRequestedEvent, ApprovalResolvedEvent, OfferedAnswer
from tenuto.protocol.message import DiffView
from tenuto.protocol.operation import AnswerApprovalOperation, Decision


class Answer(Struct, frozen=True):
    """What the user said; `feedback` goes to the model with a denial, `mode` and `plan` with an approved plan.

    `kind` is which of the question's kinds is allowed for longer, `choice` which of the offered answers was given.
    """

    decision: Decision
    feedback: str = ""
    mode: Mode | None = None
    plan: str = ""
    kind: int = 0
    choice: int = 0


class Question(Struct, frozen=True):
    """What the user is asked: the exact command, the diffs or the plan, why it asks, and what kinds may be allowed.

    A question of a server has its `answers` with it.

    `asked` and `behind` count the questions before it and behind it that calls of the same answer ask.
    """

    call_id: str
    tool: str
    summary: str
    detail: str
    reason: str
    diffs: tuple[DiffView, ...] = ()
    kinds: tuple[ApprovalKind, ...] = ()
    kind: Literal["call", "plan", "question"] = "call"
    answers: tuple[OfferedAnswer, ...] = ()
    asked: int = 0
    behind: int = 0


class OpenApprovals:
    """The open approvals of one session. Questions are answered by id, in any order."""

    def __init__(self, session_id: str, bus: EventBus) -> None:
        self._session_id = session_id
        self._bus = bus
        self._open: dict[str, asyncio.Future[Answer]] = {}

    @property
    def is_open(self) -> bool:
        """Whether anything waits for the user."""
        return bool(self._open)

    async def ask(self, question: Question, submission_id: str) -> Answer:
        """Ask the user and wait. When the asking task is cancelled the question is closed as denied."""
        request_id = uuid.uuid4().hex[:12]
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._open[request_id] = future
        answer = Answer("deny")
        try:
            self._bus.publish(
                ApprovalRequestedEvent(
                    session_id=self._session_id,
                    submission_id=submission_id,
                    request_id=request_id,
                    call_id=question.call_id,
                    tool=question.tool,
                    summary=question.summary,
                    detail=question.detail,
                    reason=question.reason,
                    diffs=question.diffs,
                    kinds=question.kinds,
                    kind=question.kind,
                    answers=question.answers,
                    asked=question.asked,
                    behind=question.behind,
                )
            )
            answer = await future
            return answer
        finally:
            del self._open[request_id]
            self._bus.publish(
                ApprovalResolvedEvent(
                    session_id=self._session_id,
                    submission_id=submission_id,
                    request_id=request_id,
                    decision=answer.decision,
                )
            )

    def answer(self, operation: AnswerApprovalOperation) -> bool:
        """Answer an open question; `False` when it is not open (any more)."""
        future = self._open.get(operation.request_id)
        if future is None or future.done():
            return False
        future.set_result(
            Answer(
                operation.decision,
                operation.feedback,
                operation.mode,
                operation.plan,
                operation.kind,
                operation.choice,
            )
        )
        return True
