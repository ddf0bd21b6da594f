"""A plan that the model hands over: asked about, answered, and from then on what the work follows.

Approving switches the mode as Shift+Tab does, and the turn goes on: the result of the call tells the model. Where
nobody can be asked the plan is the run's answer.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tenuto.core.state.approvals import Answer, Question
from tenuto.core.state.live import SessionServices
from tenuto.protocol.entry import Mode, ModeEntry, PlanEntry
from tenuto.protocol.event import ModeChangedEvent
from tenuto.protocol.message import PlanView, ToolResultMessage
from tenuto.protocol.part import TextPart
from tenuto.text.writable import tagged
from tenuto.tool.output import ToolOutput

DEFAULT_MODE: Mode = "edits"
"""The mode after a plan was approved without a word on it."""
MODE_WORDS: dict[Mode, str] = {
    "ask": "the user is asked before each edit and each command",
    "edits": "edits inside the working directory need no approval, commands do",
    "auto": "edits and commands run without approval",
    "plan": "nothing may be changed",
}
ASIDE = "Plan mode is off (mode {mode}), so nobody was asked about this plan. Go on with the work."
UNASKED = (
    "Nobody can be asked in this run: the plan was printed as the answer, and is not approved. "
    "The work begins when the user says so, in another mode."
)
GO_AHEAD = (
    "The user approved the plan. Plan mode is off; the approval mode is now {mode}: {words}. Carry the plan out now; "
    "for more than a few steps keep a todo list."
)
CHANGED = "They changed it first. This is the plan that holds:"
REVISE = "They changed it as far as this; revise it from here:"
CONTINUE = "The user wants to go on planning; nothing may be changed yet. Revise the plan and hand it over again."


async def present_plan(services: SessionServices, plan: str, *, call_id: str, submission_id: str) -> ToolOutput:
    """Ask the user about a plan and return what the model is told. Approving switches the session's mode."""
    if services.mode != "plan":
        return _output(ASIDE.format(mode=services.mode), PlanView(text=plan))
    if not services.interactive:
        return _output(UNASKED, PlanView(text=plan, outcome="unasked"))
    question = Question(call_id=call_id, tool="plan", summary="", detail=plan, reason="", kind="plan")
    started = time.monotonic()
    answer = await services.approvals.ask(question, submission_id)
    waited = time.monotonic() - started
    text = answer.plan.strip() or plan
    if answer.decision == "deny":
        return _plan_on(plan, text, answer, waited)
    return _approve(services, plan, text, answer, waited)


def _plan_on(plan: str, text: str, answer: Answer, waited: float) -> ToolOutput:
    said = f"{CONTINUE} They said: {answer.feedback}" if answer.feedback else CONTINUE
    edited = text != plan
    if edited:
        said = f"{said}\n{REVISE}\n{tagged('plan', text)}"
    view = PlanView(text=text, outcome="continued", feedback=answer.feedback, edited=edited)
    return _output(said, view, waited)


def _approve(services: SessionServices, plan: str, text: str, answer: Answer, waited: float) -> ToolOutput:
    mode = answer.mode or (services.settings.mode if services.settings.mode != "plan" else DEFAULT_MODE)
    services.session.append(PlanEntry(text=text))
    services.session.append(ModeEntry(mode=mode))
    services.bus.publish(ModeChangedEvent(session_id=services.id, mode=mode))
    said = GO_AHEAD.format(mode=mode, words=MODE_WORDS[mode])
    edited = text != plan
    if edited:
        said = f"{said}\n{CHANGED}\n{tagged('plan', text)}"
    return _output(said, PlanView(text=text, outcome="approved", mode=mode, edited=edited), waited)


def _output(text: str, view: PlanView, waited: float = 0.0) -> ToolOutput:
    return ToolOutput(parts=(TextPart(text=text),), ui=(view,), waited=waited)


def is_handed_over(results: Sequence[ToolResultMessage]) -> bool:
    """Say whether a plan among the results ends the turn: in a run where nobody can be asked it is the answer."""
    views = (view for result in results for view in result.ui)
    return any(isinstance(view, PlanView) and view.outcome == "unasked" for view in views)
