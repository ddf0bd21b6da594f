"""A question of an MCP server: its answers, a text that goes with one, Esc; and that keys under way answer nothing."""

from __future__ import annotations

import pytest

from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.tui.machine.approval import GRACE
from tenuto.tui.state.effects import Submit
from tenuto.tui.state.intents import AnswerApproval, AnswerApprovalWith, Escape, FeedbackChanged, MoveApproval
from tests.tui.machine.driving import Driver, started
from tests.tui.pictures.scenes import asking_a_question


def asked() -> Driver:
    driver = Driver()
    driver.feed(started(), asking_a_question()[-1])
    return driver.after(1)


def answers(effects) -> list[tuple[str, int, str]]:
    operations = [effect.operation for effect in effects if isinstance(effect, Submit)]
    return [
        (each.decision, each.choice, each.feedback) for each in operations if isinstance(each, AnswerApprovalOperation)
    ]


@pytest.mark.parametrize(
    ("intent", "answer"),
    [
        (AnswerApproval(0), ("once", 0, "")),
        (AnswerApproval(), ("once", 0, "")),
        (AnswerApproval(2), ("once", 2, "")),
        (AnswerApproval(3), ("once", 3, "")),
        (Escape(), ("deny", 0, "")),
    ],
)
def test_j1_answers_to_a_question(intent, answer):
    driver = asked()
    assert answers(driver.feed(intent)) == [answer]
    assert driver.state.approvals.requests == []


def test_j1_a_text_goes_with_the_answer_that_is_written_and_esc_goes_back():
    driver = asked()
    driver.feed(MoveApproval(1))
    assert answers(driver.feed(AnswerApproval())) == []
    driver.feed(FeedbackChanged("two tables"))
    assert answers(driver.feed(Escape())) == []
    driver.feed(AnswerApproval(1))
    assert answers(driver.feed(AnswerApproval())) == [("once", 1, "two tables")]


def test_j1_a_letter_that_no_answer_has_answers_nothing():
    assert answers(asked().feed(AnswerApprovalWith("y"))) == []


def test_j1_a_key_that_was_under_way_answers_nothing():
    driver = Driver()
    driver.feed(started(), asking_a_question()[-1])
    driver.after(GRACE / 2)
    assert answers(driver.feed(AnswerApproval(0))) == []
