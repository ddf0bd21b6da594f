"""A plan that asks for approval: its answers, its editor, and how it stays apart from a call that is denied."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tenuto.protocol.entry import TodoItem
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    AssistantMessageEvent,
    TodoChangedEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import AssistantMessage, PlanView, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.tui.machine.approval import EMPTY_PAUSE, GRACE, TYPING_PAUSE
from tenuto.tui.panels.lists import side_panel
from tenuto.tui.panels.panel import status_line
from tenuto.tui.render.options import UNICODE
from tenuto.tui.state.effects import OpenEditor, Submit
from tenuto.tui.state.intents import (
    AnswerApproval,
    AnswerApprovalWith,
    EditPlan,
    Escape,
    FeedbackChanged,
    MoveApproval,
    PlanEdited,
    Tick,
    ToggleTodo,
)
from tenuto.tui.state.item import NoticeItem, ToolItem
from tests.tui.machine.driving import SESSION, Driver, approval, finished, started, user

PLAN = "# Do it\n\n1. one"


def plan(request_id: str = "p1") -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        session_id=SESSION, request_id=request_id, call_id="c1", tool="plan", summary="", detail=PLAN, kind="plan"
    )


def asked() -> Driver:
    driver = Driver()
    call = ToolCallPart(id="c1", name="plan", arguments="{}")
    driver.feed(started(), AssistantMessageEvent(session_id=SESSION, message=AssistantMessage(parts=(call,), seq=2)))
    driver.feed(ToolStartedEvent(session_id=SESSION, call_id="c1", name="plan", arguments="{}"), plan())
    return driver.after(1)


def answers(effects) -> list[tuple[str, str | None, str, str]]:
    operations = [effect.operation for effect in effects if isinstance(effect, Submit)]
    return [
        (each.decision, each.mode, each.plan, each.feedback)
        for each in operations
        if isinstance(each, AnswerApprovalOperation)
    ]


@pytest.mark.parametrize(
    ("intent", "answer"),
    [
        (AnswerApproval(0), ("once", "edits", "", "")),
        (AnswerApprovalWith("y"), ("once", "edits", "", "")),
        (AnswerApproval(1), ("once", "ask", "", "")),
        (AnswerApprovalWith("m"), ("once", "ask", "", "")),
        (AnswerApproval(2), ("once", "auto", "", "")),
        (AnswerApprovalWith("a"), ("once", "auto", "", "")),
        (AnswerApproval(), ("once", "edits", "", "")),
        (Escape(), ("deny", None, "", "")),
    ],
)
def test_answers_to_a_plan(intent, answer):
    driver = asked()
    assert answers(driver.feed(intent)) == [answer]
    assert driver.state.approvals.requests == []


def test_going_on_planning_takes_words():
    driver = asked()
    assert answers(driver.feed(AnswerApproval(3))) == []
    driver.feed(FeedbackChanged("smaller steps"))
    assert answers(driver.feed(AnswerApproval())) == [("deny", None, "", "smaller steps")]


def test_what_was_changed_in_the_editor_is_what_is_approved():
    driver = asked()
    assert driver.feed(EditPlan()) == [OpenEditor(PLAN, "p1")]
    driver.feed(PlanEdited("p1", "# Mine"))
    assert driver.state.approvals.plan == "# Mine"
    assert answers(driver.feed(AnswerApproval(0))) == [], "a key that was under way answers nothing"
    assert driver.after(GRACE).feed(EditPlan()) == [OpenEditor("# Mine", "p1")]
    assert answers(driver.feed(AnswerApproval(1))) == [("once", "ask", "# Mine", "")]
    driver.feed(plan("p2"))
    assert driver.state.approvals.edited == ""


@pytest.mark.parametrize("text", [PLAN, "", "  \n"])
def test_an_editor_that_changes_nothing_or_leaves_nothing_keeps_the_plan(text):
    driver = asked()
    driver.feed(PlanEdited("p1", text))
    assert driver.state.approvals.plan == PLAN
    assert answers(driver.after(GRACE).feed(AnswerApproval(0))) == [("once", "edits", "", "")]


def test_a_changed_plan_that_is_put_off_by_typing_is_still_there_and_goes_along_when_planning_goes_on():
    driver = asked()
    driver.feed(PlanEdited("p1", "# Mine"))
    driver.type("wait")
    assert driver.state.approvals.held_back
    driver.after(TYPING_PAUSE).feed(Tick())
    assert driver.state.approvals.plan == "# Mine"
    assert answers(driver.after(GRACE).feed(Escape())) == [("deny", None, "# Mine", "")]


def test_an_editor_that_comes_too_late_says_so():
    driver = asked()
    driver.feed(ApprovalResolvedEvent(session_id=SESSION, request_id="p1", decision="deny"))
    driver.feed(PlanEdited("p1", "# Mine"))
    [notice] = [item for item in driver.state.transcript.items.values() if isinstance(item, NoticeItem)]
    assert notice.text.endswith("press Up"), "the end of it is what to do"
    driver.feed(approval())
    assert driver.after(1).feed(EditPlan()) == [], "a call is no plan"


def test_a_plan_that_is_not_approved_was_not_denied_so_that_live_and_resumed_are_the_same():
    driver = asked()
    driver.feed(Escape())
    view = PlanView(text=PLAN, outcome="continued")
    result = ToolResultMessage(call_id="c1", name="plan", parts=(TextPart(text="go on"),), ui=(view,))
    driver.feed(ToolResultEvent(session_id=SESSION, message=result))
    item = driver.last
    assert isinstance(item, ToolItem)
    assert item.state == "done"


# --- typing ---


def test_over_a_draft_enter_answers_nothing_until_something_is_chosen():
    driver = Driver()
    driver.type("half a thought")
    driver.feed(started(), approval())
    driver.after(TYPING_PAUSE).feed(Tick())
    driver.after(GRACE)
    assert driver.state.approvals.selected is None
    assert answers(driver.feed(AnswerApproval())) == []
    assert driver.state.hint is not None and "Choose" in driver.state.hint.text
    driver.feed(MoveApproval(1))
    assert driver.state.approvals.selected == 0
    assert answers(driver.feed(AnswerApproval())) == [("once", None, "", "")]
    driver.feed(approval("r2"))
    driver.after(1).feed(MoveApproval(-1))
    assert driver.state.approvals.selected == 4


def test_whoever_types_on_has_the_panel_go_away_until_the_next_pause():
    driver = Driver()
    driver.feed(started(), approval("r1"), approval("r2"))
    assert driver.state.approvals.current is not None
    driver.after(1).type("h")
    assert driver.state.approvals.held_back and driver.state.approvals.position == (1, 2)
    assert driver.state.animating, "the clock has to bring it back"
    driver.after(0.9).type("he")
    driver.after(0.9).feed(Tick())
    assert driver.state.approvals.current is None
    driver.type("")
    driver.after(EMPTY_PAUSE + 0.1).feed(Tick())
    assert driver.state.approvals.current is not None
    assert driver.state.approvals.selected == 0


# --- the todo list ---


def rows(driver: Driver) -> list[str]:
    return [line.text.strip() for line in side_panel(driver.state, 60, UNICODE).lines]


def todo(*states) -> TodoChangedEvent:
    return TodoChangedEvent(
        session_id=SESSION, items=tuple(TodoItem(text=f"t{n}", status=state) for n, state in enumerate(states))
    )


def test_the_todo_list_goes_with_the_turn_that_finished_it():
    driver = Driver()
    driver.feed(started(), todo("done", "in_progress", "pending"))
    assert rows(driver) == ["☑ t0", "▶ t1", "☐ t2"]
    driver.feed(todo("done", "done", "cancelled"))
    assert rows(driver) == ["☑ t0", "☑ t1", "☒ t2"]
    driver.feed(finished())
    assert rows(driver) == []
    driver.feed(started(submission_id="u"))
    assert rows(driver) == [], "a later turn does not bring it back"
    driver.feed(todo("pending"))
    assert rows(driver) == ["☐ t0"]


def test_a_finished_list_of_a_resumed_session_is_not_shown():
    driver = Driver()
    driver.feed(todo("done", "done"), started())
    assert rows(driver) == []


def test_the_todo_list_has_five_rows_at_most_and_shows_what_comes_next():
    driver = Driver()
    driver.feed(started(), todo(*["done"] * 7, "in_progress", *["pending"] * 4))
    assert rows(driver) == ["▶ t7", "☐ t8", "☐ t9", "☐ t10", "7 of 12 done · Ctrl+T show all"]
    driver.feed(todo(*["done"] * 12))
    assert len(rows(driver)) == 5


def test_f13_a_stale_todo_list_can_be_put_away_and_comes_back_when_it_changes():
    driver = Driver()
    driver.feed(todo("done", "pending"))
    assert driver.state.shows_todo
    driver.feed(ToggleTodo(), ToggleTodo())
    assert not driver.state.shows_todo
    driver.feed(started(), finished())
    assert not driver.state.shows_todo, "a later turn that leaves it alone does not bring it back"
    driver.feed(ToggleTodo())
    assert driver.state.shows_todo and not driver.state.todo_open
    driver.feed(ToggleTodo(), ToggleTodo(), todo("done", "in_progress"))
    assert driver.state.shows_todo


def test_f13_a_key_shows_a_finished_list_again():
    driver = Driver()
    driver.feed(todo("done"))
    assert not driver.state.shows_todo
    driver.feed(ToggleTodo())
    assert driver.state.shows_todo


def test_f13_a_queued_prompt_counts_its_own_seconds():
    driver = Driver()
    driver.feed(started(), user(1, "one"))
    driver.after(39.0).feed(user(2, "two"))
    assert driver.state.spinner.layers["agent"].since == driver.now
    driver.after(1.0)
    assert "39s" not in status_line(driver.state, driver.now, 80, None, None).text


def test_f13_the_mode_changes_over_an_approval_and_not_over_a_plan():
    for kind, modes in (("call", ["edits"]), ("plan", [])):
        driver = Driver()
        driver.feed(started(), replace(approval(), kind=kind, detail="# x"))
        driver.after(5.0).feed(Tick())
        row = driver.state.keys.find(driver.state.contexts, "shift+tab")
        assert row is not None and row.intent is not None
        sent = [effect.operation for effect in driver.feed(row.intent) if isinstance(effect, Submit)]
        assert [operation.mode for operation in sent] == modes  # type: ignore[union-attr]
