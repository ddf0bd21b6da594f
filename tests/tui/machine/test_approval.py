from __future__ import annotations

import pytest
from msgspec.structs import replace

from tenuto.command.outcome import Choice, Choose
from tenuto.protocol.approval import approval_options
from tenuto.protocol.event import (
    ApprovalResolvedEvent,
    AssistantMessageEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, InterruptOperation
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.tui.machine.approval import GRACE, TYPING_PAUSE
from tenuto.tui.state.effects import Bell, Remember, Submit
from tenuto.tui.state.intents import (
    AnswerApproval,
    AnswerApprovalWith,
    Cancel,
    Escape,
    FeedbackChanged,
    FilterChanged,
    HelpFilterChanged,
    MoveApproval,
    MovePicker,
    OpenSearch,
    SearchChanged,
    SwitchKind,
    Tick,
    ToggleHelp,
)
from tenuto.tui.state.item import ToolItem
from tests.tui.kinds import kinds
from tests.tui.machine.driving import SESSION, Driver, approval, started


def answers(effects) -> list[tuple[str, str, str]]:
    return [
        (effect.operation.request_id, effect.operation.decision, effect.operation.feedback)
        for effect in effects
        if isinstance(effect, Submit) and isinstance(effect.operation, AnswerApprovalOperation)
    ]


def asked() -> Driver:
    driver = Driver()
    driver.feed(started(), approval())
    return driver


def test_the_state_has_everything_that_the_panel_shows():
    driver = Driver()
    effects = driver.feed(approval())
    assert Bell("approval") in effects
    request = driver.state.approvals.current
    assert request is not None
    assert (request.detail, request.reason) == ("git push --force", "writes outside the workspace")
    options = approval_options(request)
    assert [option.letter for option in options] == ["y", "a", "p", "n", "f"]
    assert options[1].covers == "git *"
    assert driver.state.contexts == ("approval", "transcript", "global")
    assert [option.letter for option in approval_options(approval(pattern=""))] == ["y", "n", "f"]


def test_it_waits_for_a_pause_in_typing_and_keeps_the_draft():
    driver = Driver()
    driver.type("half a sent")
    effects = driver.after(0.2).feed(approval())
    assert Bell("approval") in effects
    assert driver.state.approvals.current is None and driver.state.approvals.held_back
    assert driver.state.animating
    driver.after(0.7).type("half a sentence")
    driver.after(0.9).feed(Tick())
    assert driver.state.approvals.current is None
    driver.after(TYPING_PAUSE - 0.8).feed(Tick())
    assert driver.state.approvals.current is not None
    assert driver.state.draft.text == "half a sentence"


@pytest.mark.parametrize(
    ("opening", "typing"),
    [
        (Choose("Model", "model", (Choice("a", "a"), Choice("b", "b"))), FilterChanged("b")),
        (Choose("Model", "model", (Choice("a", "a"), Choice("b", "b"))), MovePicker(1)),
        (ToggleHelp(), HelpFilterChanged("keys")),
        (OpenSearch(), SearchChanged("word")),
    ],
)
def test_it_waits_for_a_pause_in_what_is_typed_elsewhere(opening, typing):
    driver = Driver()
    driver.feed(started(), opening)
    driver.after(5).feed(typing)
    driver.after(0.5).feed(approval(), Tick())
    assert driver.state.approvals.current is None
    driver.after(TYPING_PAUSE).feed(Tick())
    assert driver.state.approvals.current is not None


def test_the_advice_to_choose_first_goes_with_the_question():
    driver = Driver()
    driver.type("half a sentence")
    driver.after(TYPING_PAUSE).feed(started(), approval())
    driver.after(GRACE).feed(AnswerApproval())
    assert driver.state.hint is not None
    assert answers(driver.feed(AnswerApproval(0)))
    assert driver.state.hint is None


def test_keys_under_way_when_it_opens_answer_nothing():
    driver = asked()
    for early in (AnswerApproval(0), AnswerApprovalWith("y"), AnswerApproval(), Escape()):
        assert answers(driver.feed(early)) == []
    assert answers(driver.after(GRACE).feed(AnswerApproval(0))) == [("r1", "once", "")]


@pytest.mark.parametrize(
    ("intent", "decision"),
    [
        (AnswerApproval(0), "once"),
        (AnswerApproval(1), "session"),
        (AnswerApproval(2), "project"),
        (AnswerApproval(3), "deny"),
        (AnswerApprovalWith("p"), "project"),
        (AnswerApprovalWith("y"), "once"),
        (AnswerApprovalWith("a"), "session"),
        (AnswerApprovalWith("n"), "deny"),
        (Escape(), "deny"),
        (AnswerApproval(), "once"),
    ],
)
def test_answers(intent, decision):
    driver = asked()
    assert answers(driver.after(1).feed(intent)) == [("r1", decision, "")]
    assert driver.state.approvals.requests == []
    assert driver.feed(ApprovalResolvedEvent(session_id=SESSION, request_id="r1", decision=decision)) == []


def test_another_kind_answers_nothing_and_is_what_an_answer_for_longer_covers():
    driver = Driver()
    driver.feed(started(), replace(approval(), kinds=kinds("git push *", "this exact command")))
    driver.after(GRACE)
    assert answers(driver.feed(SwitchKind())) == []
    assert [option.covers for option in driver.state.approvals.options[1:3]] == ["this exact command"] * 2
    (submit,) = [effect for effect in driver.feed(AnswerApprovalWith("a")) if isinstance(effect, Submit)]
    assert (submit.operation.decision, submit.operation.kind) == ("session", 1)
    driver.feed(replace(approval("r2"), kinds=kinds("git push *", "this exact command")))
    assert driver.state.approvals.kind == 0, "each question begins with its likeliest kind"
    driver.after(GRACE).feed(SwitchKind(), SwitchKind())
    assert driver.state.approvals.kind == 0


def test_answers_that_are_not_offered_do_nothing():
    driver = Driver()
    driver.feed(approval(pattern=""))
    driver.after(1)
    for intent in (AnswerApprovalWith("a"), AnswerApproval(3), AnswerApproval(9)):
        assert driver.feed(intent) == []


def test_the_selection_stops_at_the_ends():
    driver = asked()
    driver.after(1).feed(MoveApproval(-1))
    assert driver.state.approvals.selected == 0
    driver.feed(*[MoveApproval(1)] * 9)
    assert driver.state.approvals.selected == 4
    driver.feed(MoveApproval(-1))
    assert answers(driver.feed(AnswerApproval())) == [("r1", "deny", "")]


def test_a_denial_can_say_why():
    driver = asked()
    assert answers(driver.after(1).feed(AnswerApprovalWith("f"))) == []
    assert driver.state.contexts[0] == "feedback"
    driver.feed(FeedbackChanged("use --force-with-lease "))
    driver.feed(Escape())
    assert driver.state.contexts[0] == "approval"
    driver.feed(AnswerApproval(4), FeedbackChanged("use --force-with-lease "))
    assert answers(driver.feed(AnswerApproval())) == [("r1", "deny", "use --force-with-lease")]


def test_what_is_said_to_a_denial_is_not_lost():
    driver = asked()
    driver.after(GRACE).feed(AnswerApprovalWith("f"), FeedbackChanged("use the other branch"), Escape())
    assert driver.state.approvals.feedback is None
    driver.feed(AnswerApprovalWith("f"))
    assert driver.state.approvals.feedback == "use the other branch"
    effects = driver.feed(ApprovalResolvedEvent(session_id=SESSION, request_id="r1", decision="deny"))
    assert Remember("use the other branch") in effects
    driver.feed(approval())
    driver.after(1).feed(Tick())
    driver.after(GRACE).feed(AnswerApprovalWith("f"))
    assert driver.state.approvals.feedback == "", "it was meant for the other one"
    effects = driver.feed(FeedbackChanged("said"), AnswerApproval())
    assert answers(effects)[0][2] == "said" and Remember("said") not in effects


def test_several_wait_in_order_each_with_its_own_grace():
    driver = Driver()
    driver.feed(approval("r1"), approval("r2", "c2", asked=1), approval("r3", "c3", asked=2))
    assert driver.state.approvals.position == (1, 3)
    assert answers(driver.after(1).feed(Escape(), Escape())) == [("r1", "deny", "")]
    assert driver.state.approvals.position == (2, 3)
    assert answers(driver.feed(AnswerApproval(0))) == []
    assert answers(driver.after(GRACE).feed(AnswerApproval(0))) == [("r2", "once", "")]
    assert driver.state.approvals.position == (3, 3)
    driver.feed(ApprovalResolvedEvent(session_id=SESSION, request_id="r3", decision="deny"))
    assert driver.state.contexts[0] == "empty"
    driver.feed(approval("r4"))
    assert driver.state.approvals.position == (1, 1)


def test_those_that_are_to_come_are_counted_with_those_that_wait():
    driver = Driver()
    driver.feed(approval("r1", behind=2))
    assert driver.state.approvals.position == (1, 3)
    driver.after(1).feed(AnswerApproval(0))
    driver.feed(approval("r2", "c2", asked=1, behind=1), approval("r3", "c3", asked=2, behind=1))
    assert driver.state.approvals.position == (2, 4), "more than was expected"
    driver.feed(ApprovalResolvedEvent(session_id=SESSION, request_id="r2", decision="deny"))
    assert driver.state.approvals.position == (3, 4)
    driver.feed(ApprovalResolvedEvent(session_id=SESSION, request_id="r3", decision="deny"), approval("r4"))
    assert driver.state.approvals.position == (1, 1), "another answer's"


def test_one_that_is_settled_elsewhere_leaves_the_one_that_shows():
    driver = Driver()
    driver.feed(approval("r1"), approval("r2", "c2"))
    driver.after(1).feed(ApprovalResolvedEvent(session_id=SESSION, request_id="r2", decision="deny"))
    assert answers(driver.feed(AnswerApproval(0))) == [("r1", "once", "")]


def test_a_sub_agents_approval_is_answered_in_its_session():
    driver = Driver()
    request = approval()
    driver.feed(type(request)(**{**{f: getattr(request, f) for f in request.__struct_fields__}, "session_id": "child"}))
    [effect] = driver.after(1).feed(AnswerApproval(0))[:1]
    assert isinstance(effect, Submit) and effect.operation.session_id == "child"


def test_ctrl_c_interrupts_instead_of_answering():
    driver = asked()
    [effect] = [each for each in driver.feed(Cancel()) if isinstance(each, Submit)]
    assert isinstance(effect.operation, InterruptOperation)


def test_the_call_shows_that_it_waits_and_how_it_was_answered():
    driver = Driver()
    message = AssistantMessage(parts=(ToolCallPart(id="c1", name="bash", arguments="{}"),), seq=2)
    driver.feed(started(), AssistantMessageEvent(session_id=SESSION, message=message))
    driver.feed(ToolStartedEvent(session_id=SESSION, call_id="c1", name="bash", arguments="{}"))
    item = driver.last
    assert isinstance(item, ToolItem)
    driver.after(1).feed(approval())
    assert (item.state, item.seconds, item.id in driver.state.timed) == ("waiting", 0.0, False)
    assert driver.state.spinner.layers["agent"].label == "Waiting for you"
    driver.after(30).feed(AnswerApprovalWith("y"))
    assert driver.state.spinner.layers["agent"].label == "Running bash"
    assert (item.state, item.started) == ("running", driver.now)
    driver.feed(approval("r2"))
    driver.after(30).feed(AnswerApprovalWith("n"))
    result = ToolResultMessage(call_id="c1", name="bash", parts=(TextPart(text="no"),), is_error=True)
    driver.feed(ToolResultEvent(session_id=SESSION, message=result))
    assert item.state == "denied"


def test_while_a_question_is_all_that_goes_on_nothing_moves():
    driver = asked()
    assert driver.state.approvals.current is not None
    assert not driver.state.animating, "an open question needs no timer"
    driver.feed(AnswerApproval(0))
    driver.after(GRACE).feed(AnswerApproval(0))
    assert driver.state.animating
