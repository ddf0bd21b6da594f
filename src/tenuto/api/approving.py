"""Questions to the user, answered by a function of the program: what it may say, and what becomes of its faults."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from msgspec import Struct

from tenuto.core.runtime import Runtime
from tenuto.extension.lane import Lane, describe_fault
from tenuto.protocol.entry import Mode
from tenuto.protocol.event import AnyEvent, ApprovalRequestedEvent, ApprovalResolvedEvent
from tenuto.protocol.operation import AnswerApprovalOperation, Decision, InterruptOperation

FOR_EVER = 365 * 86_400.0
"""Seconds that a plain function may think: a user may be asked by it."""


class Allow(Struct, frozen=True):
    """Yes to a question.

    Attributes:
        kind: The number, from 0, of the one of `request.kinds` that is allowed for the rest of the session as well;
            `None` allows this one call.
        permanently: Allow that kind in this directory in later sessions too (kind 0 where none is named).
        mode: For a plan: the mode that the work begins in; `None` is the settings' own.
        choice: For a question of an MCP server: the number, from 0, of the one of `request.answers` that is given.
        text: The text that goes with such an answer.

    """

    kind: int | None = None
    permanently: bool = False
    mode: Mode | None = None
    choice: int = 0
    text: str = ""


class Deny(Struct, frozen=True):
    """No to a question.

    Attributes:
        reason: What the model reads.
        stop: Stop the run as well: the next prompt says what to do instead.

    """

    reason: str = ""
    stop: bool = False


Approve: TypeAlias = Callable[[ApprovalRequestedEvent], "Allow | Deny | Awaitable[Allow | Deny]"]
"""Answers a question: an `async` function on the agent's event loop, a plain one on a thread of its own."""


class BadAnswerError(Exception):
    """What the function returned is no answer to this question; the text says why."""


class Approver:
    """Answers every question of a runtime by calling `approve`; a fault of that denies, and is told."""

    def __init__(self, runtime: Runtime, approve: Approve) -> None:
        self._runtime = runtime
        self._approve = approve
        self._answering: dict[str, asyncio.Task[None]] = {}
        self._lane: Lane | None = None

    def note(self, event: AnyEvent) -> None:
        """Answer a question that was asked; let go of one that is closed."""
        match event:
            case ApprovalRequestedEvent():
                name = f"approval {event.request_id}"
                self._answering[event.request_id] = asyncio.create_task(self._answer(event), name=name)
            case ApprovalResolvedEvent():
                task = self._answering.pop(event.request_id, None)
                if task is not None and task is not asyncio.current_task():
                    task.cancel()
            case _:
                pass

    def close(self) -> None:
        """Wait for no answer any more."""
        for task in self._answering.values():
            task.cancel()
        if self._lane is not None:
            self._lane.close()

    async def _answer(self, request: ApprovalRequestedEvent) -> None:
        stops = False
        try:
            given = await self._call(request)
            answer, stops = read_answer(request, given), isinstance(given, Deny) and given.stop
        except Exception as error:  # noqa: BLE001 - a fault of the program's own function: nothing is allowed by it
            fault = str(error) if isinstance(error, BadAnswerError) else describe_fault(error)
            what = request.summary or request.tool
            self._runtime.live.notify(f"The approve function failed, so {what} was denied: {fault}", "error", keep=True)
            answer = _operation(request, "deny", feedback="the program that was asked failed to answer")
        await self._runtime.submit(answer)
        if stops:
            await self._runtime.submit(InterruptOperation(session_id=self._runtime.session_id))

    async def _call(self, request: ApprovalRequestedEvent) -> object:
        if inspect.iscoroutinefunction(self._approve) or inspect.iscoroutinefunction(
            getattr(self._approve, "__call__", None)  # noqa: B004 - an object whose call is async
        ):
            answer = self._approve(request)
            return await answer if inspect.isawaitable(answer) else answer
        if self._lane is None:
            self._lane = Lane("approvals", lambda _error: None)
        return await self._lane.call(self._approve, request, timeout=FOR_EVER)


def read_answer(request: ApprovalRequestedEvent, answer: object) -> AnswerApprovalOperation:
    """Return what an answer means for a question. Raises `BadAnswerError`."""
    match answer:
        case Deny():
            return _operation(request, "deny", feedback=answer.reason)
        case Allow(kind=None, permanently=False):
            if request.answers and not 0 <= answer.choice < len(request.answers):
                raise BadAnswerError(f"it chose answer {answer.choice} of {len(request.answers)}, counted from 0")
            return _operation(request, "once", feedback=answer.text, mode=answer.mode, choice=answer.choice)
        case Allow():
            kind = answer.kind or 0
            if not 0 <= kind < len(request.kinds):
                raise BadAnswerError(f"it allowed kind {kind} of {len(request.kinds)}, counted from 0")
            return _operation(request, "project" if answer.permanently else "session", kind=kind)
        case _:
            raise BadAnswerError(f"it returned {type(answer).__name__}, which is neither Allow nor Deny")


def _operation(
    request: ApprovalRequestedEvent,
    decision: Decision,
    *,
    feedback: str = "",
    kind: int = 0,
    mode: Mode | None = None,
    choice: int = 0,
) -> AnswerApprovalOperation:
    return AnswerApprovalOperation(
        session_id=request.session_id,
        request_id=request.request_id,
        decision=decision,
        feedback=feedback,
        kind=kind,
        mode=mode,
        choice=choice,
    )
