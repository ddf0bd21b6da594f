"""A plan that an answer proposes: the user is asked about it, and what they say is the next thing that the model reads.

How a plan stands in an answer: `session/plans.py`. What became of it is a developer message, because there is no call
that it could be the result of.
"""

from __future__ import annotations

import asyncio

from msgspec import Struct

from tenuto.core.state.approvals import Answer, Question
from tenuto.core.state.live import LiveSession
from tenuto.protocol.entry import Mode, ModeEntry, PlanEntry
from tenuto.protocol.event import ModeChangedEvent, ToolResultEvent, ToolStartedEvent
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, PlanView, ToolResultMessage, UserMessage
from tenuto.session.plans import PLAN_CALL, as_shown, call_id_of, proposed_plan, shown_answer, unfinished_plan
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.writable import tagged

DEFAULT_MODE: Mode = "edits"
"""The mode after a plan was approved without a word on it."""
MODE_WORDS: dict[Mode, str] = {
    "ask": "the user is asked before each edit and each command",
    "edits": "edits inside the working directory need no approval, commands do",
    "auto": "edits and commands run without approval",
    "plan": "nothing may be changed",
}
UNASKED = (
    "Nobody can be asked in this run: the plan was printed as the answer, and is not approved. "
    "The work begins when the user says so, in another mode."
)
ASIDE = "Plan mode is off (mode {mode}), so nobody was asked about this plan. Go on with the work."
UNANSWERED = "interrupted before the user answered: the plan is not approved, and nothing may be changed yet."
GO_AHEAD = (
    "The user approved the plan. Plan mode is off; the approval mode is now {mode}: {words}. Carry the plan out now; "
    "for more than a few steps keep a todo list."
)
CHANGED = "They changed it first. This is the plan that holds:"
REVISE = "They changed it as far as this; revise it from here:"
CONTINUE = "The user wants to go on planning; nothing may be changed yet. Revise the plan and hand it over again."
KIND = "plan"


class _Decision(Struct, frozen=True):
    """What became of a plan: what the model is told, and what is shown."""

    text: str
    view: PlanView


def plan_begun(live: LiveSession) -> str:
    """Return what the answer before has of a plan, where it was cut off in one and nobody spoke since; else nothing."""
    last = next(newest_of_kind(live.session.path(), AssistantMessage, UserMessage), None)
    return unfinished_plan(last) if isinstance(last, AssistantMessage) else ""


async def hand_over(live: LiveSession, answer: AssistantMessage, submission_id: str) -> bool:
    """Ask the user about the plan in an answer and put down what they say. Returns whether the turn goes on with that.

    An interrupt is put down as well, and goes on up. Approving switches the session's mode.
    """
    from tenuto.text.call_summary import first_heading

    plan, call_id = proposed_plan(answer), call_id_of(answer.seq)
    call = next(call for call in shown_answer(answer).tool_calls if call.id == call_id)
    live.bus.publish(
        ToolStartedEvent(
            session_id=live.id,
            submission_id=submission_id,
            call_id=call_id,
            name=PLAN_CALL,
            arguments=call.arguments,
            summary=first_heading(plan),
        )
    )
    if not live.plans:  # the user left it while the plan was being written
        _put_down(live, answer.seq, _Decision(ASIDE.format(mode=live.mode), PlanView(text=plan)), submission_id)
        return True
    if not live.can_ask:
        _put_down(live, answer.seq, _Decision(UNASKED, PlanView(text=plan, outcome="unasked")), submission_id)
        return False
    question = Question(call_id=call_id, tool=PLAN_CALL, summary="", detail=plan, reason="", kind="plan")
    try:
        said = await live.approvals.ask(question, submission_id)
    except asyncio.CancelledError:
        _put_down(live, answer.seq, _unanswered(plan), submission_id)
        raise
    decision = _plan_on(plan, said) if said.decision == "deny" else _approve(live, plan, said)
    _put_down(live, answer.seq, decision, submission_id)
    return True


def close_open_plan(live: LiveSession) -> None:
    """Write of a plan that is asked about no more, because the program was killed, that nobody approved it.

    The model is told; whoever shows the session closed the plan when it was opened.
    """
    for entry in newest_of_kind(live.session.path(), AssistantMessage, UserMessage, DeveloperMessage):
        if isinstance(entry, DeveloperMessage) and entry.plan is None:
            continue
        if isinstance(entry, AssistantMessage) and (plan := proposed_plan(entry)):
            live.session.append(_entry(entry.seq, _unanswered(plan)))
        return


def _unanswered(plan: str) -> _Decision:
    return _Decision(UNANSWERED, PlanView(text=plan, outcome="interrupted"))


def _plan_on(plan: str, answer: Answer) -> _Decision:
    text = answer.plan.strip() or plan
    said = f"{CONTINUE} They said: {answer.feedback}" if answer.feedback else CONTINUE
    edited = text != plan
    if edited:
        said = f"{said}\n{REVISE}\n{tagged('plan', text)}"
    return _Decision(said, PlanView(text=text, outcome="continued", feedback=answer.feedback, edited=edited))


def _approve(live: LiveSession, plan: str, answer: Answer) -> _Decision:
    text = answer.plan.strip() or plan
    mode = answer.mode or (live.settings.mode if live.settings.mode != "plan" else DEFAULT_MODE)
    live.session.append(PlanEntry(text=text))
    live.session.append(ModeEntry(mode=mode))
    live.bus.publish(ModeChangedEvent(session_id=live.id, mode=mode))
    said = GO_AHEAD.format(mode=mode, words=MODE_WORDS[mode])
    edited = text != plan
    if edited:
        said = f"{said}\n{CHANGED}\n{tagged('plan', text)}"
    return _Decision(said, PlanView(text=text, outcome="approved", mode=mode, edited=edited))


def _put_down(live: LiveSession, answers: int, decision: _Decision, submission_id: str) -> None:
    """Put a decision into the history and tell everybody, as the result of the call that the plan is shown as."""
    result = as_shown(live.session.append(_entry(answers, decision)))
    assert isinstance(result, ToolResultMessage)
    live.bus.publish(ToolResultEvent(session_id=live.id, submission_id=submission_id, message=result))


def _entry(answers: int, decision: _Decision) -> DeveloperMessage:
    return DeveloperMessage(text=decision.text, kind=KIND, plan=decision.view, answers=answers)
