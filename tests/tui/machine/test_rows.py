"""Renaming, deleting and copying what a row of a list stands for, without leaving the list."""

from __future__ import annotations

import pytest

from tenuto.command.outcome import Choice, Choose, RowAct, RowChanged, RowFilter
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.lists import picker_panel
from tenuto.tui.state.effects import RunCommand
from tenuto.tui.state.intents import (
    ActOnRow,
    AnswerRow,
    Cancel,
    CycleRowFilter,
    Escape,
    FilterChanged,
    MovePicker,
    PickChoice,
    RowAnswerChanged,
)
from tenuto.tui.state.state import Picker
from tests.tui.machine.driving import Driver

ROWS = (
    Choice("a", "alpha", title="alpha", kind="here"),
    Choice("b", "how it began", kind="there"),
    Choice("c", "gamma", title="gamma", kind="here"),
    Choice("d", "delta", title="delta", kind="here"),
)
ACTS: tuple[RowAct, ...] = ("rename", "delete", "fork")


def offered(*, acts: tuple[RowAct, ...] = ACTS, filters: tuple[RowFilter, ...] = ()) -> Driver:
    driver = Driver()
    driver.feed(Choose("Resume a session", "resume", ROWS, filters, acts=acts))
    return driver


def picker_of(driver: Driver) -> Picker:
    assert driver.state.picker is not None
    return driver.state.picker


def current(driver: Driver) -> str:
    row = picker_of(driver).current
    return row.value if row is not None else ""


def commands(driver: Driver, *inputs: object) -> list[str]:
    return [effect.line for effect in driver.feed(*inputs) if isinstance(effect, RunCommand)]  # pyright: ignore


def lines(driver: Driver, text: str = "", width: int = 80) -> list[str]:
    return [line.text for line in picker_panel(driver.state, width, 30, LineEditor(text, len(text))).lines]


def test_renaming_begins_with_the_title_and_keeps_what_was_typed_on_one_line():
    driver = offered()
    assert commands(driver, ActOnRow("rename")) == []
    assert driver.state.contexts[0] == "row"
    question = picker_of(driver).question
    assert question is not None and question.text == "alpha"
    assert any("title: alpha" in line for line in lines(driver, "alpha"))
    assert "Enter save · Esc cancel" in lines(driver, "alpha")[-1]
    assert commands(driver, RowAnswerChanged("  a new \n name "), AnswerRow()) == ["/resume a rename a new name"]
    assert driver.state.contexts[0] == "picker" and current(driver) == "a"


@pytest.mark.parametrize("text", ["", "   ", "alpha", " alpha "])
def test_a_title_that_is_empty_or_the_same_changes_nothing(text: str):
    driver = offered()
    assert commands(driver, ActOnRow("rename"), RowAnswerChanged(text), AnswerRow()) == []
    assert driver.state.contexts[0] == "picker"
    assert commands(driver, PickChoice()) == ["/resume a"], "nothing is under way"


def test_what_has_no_title_yet_begins_with_none():
    driver = offered()
    driver.feed(MovePicker(1), ActOnRow("rename"))
    question = picker_of(driver).question
    assert question is not None and question.text == ""


@pytest.mark.parametrize("act", ["rename", "delete"])
@pytest.mark.parametrize("way_out", [Escape(), Cancel()])
def test_the_way_out_of_a_question_leads_back_to_the_list_with_nothing_done(act: RowAct, way_out: object):
    driver = offered()
    driver.feed(FilterChanged("a"), MovePicker(1))
    before = current(driver)
    assert commands(driver, ActOnRow(act), RowAnswerChanged("x"), way_out) == []
    assert driver.state.contexts[0] == "picker"
    assert (current(driver), picker_of(driver).filter) == (before, "a")
    driver.feed(Escape())
    assert driver.state.picker is None


def test_deleting_asks_in_the_row_and_typing_there_answers_nothing():
    driver = offered()
    driver.feed(MovePicker(2))
    assert commands(driver, ActOnRow("delete"), RowAnswerChanged("y")) == []
    assert [line for line in lines(driver) if "gamma" in line and "delete? Enter / Esc" in line]
    assert "Enter yes · Esc no" in lines(driver)[-1]
    assert commands(driver, AnswerRow()) == ["/resume c delete yes"]


def test_a_row_that_is_being_deleted_is_not_opened_by_a_second_enter():
    driver = offered()
    driver.feed(ActOnRow("delete"), AnswerRow())
    assert commands(driver, PickChoice(), ActOnRow("fork"), ActOnRow("delete"), AnswerRow()) == []
    assert commands(driver, RowChanged("resume", "a", ROWS[0]), PickChoice()) == ["/resume a"], "it could not be"


def test_a_copy_is_opened_at_once():
    driver = offered()
    assert commands(driver, MovePicker(1), ActOnRow("fork")) == ["/resume b fork"]
    assert driver.state.picker is None


@pytest.mark.parametrize(
    ("selected", "gone", "then"),
    [(0, "a", "b"), (1, "b", "c"), (3, "d", "c"), (2, "a", "c"), (1, "d", "b"), (1, "nobody", "b")],
)
def test_a_row_that_is_gone_leaves_the_cursor_where_it_was(selected: int, gone: str, then: str):
    driver = offered()
    driver.feed(MovePicker(selected), RowChanged("resume", gone, None))
    assert current(driver) == then
    assert gone not in [choice.value for choice in picker_of(driver).choices]


def test_a_row_that_changed_stays_in_its_place_under_the_filters():
    driver = offered(filters=(RowFilter("this directory", ("here",)), RowFilter("all directories")))
    driver.feed(MovePicker(1))
    assert current(driver) == "c"
    driver.feed(RowChanged("resume", "c", Choice("c", "new name", title="new name", kind="here")))
    assert current(driver) == "c" and any("❯ new name" in line for line in lines(driver))
    driver.feed(CycleRowFilter(1), RowChanged("resume", "b", None))
    assert [choice.value for choice in picker_of(driver).choices] == ["a", "c", "d"] and current(driver) == "c"


def test_a_question_ends_when_its_row_goes_and_lives_when_another_does():
    driver = offered()
    driver.feed(ActOnRow("rename"), RowAnswerChanged("half a na"), RowChanged("resume", "d", None))
    question = picker_of(driver).question
    assert question is not None and question.text == "half a na"
    driver.feed(RowChanged("resume", "a", None))
    assert picker_of(driver).question is None
    assert commands(driver, AnswerRow()) == []


def test_the_list_closes_when_its_last_row_is_gone():
    driver = offered()
    driver.feed(*(RowChanged("resume", row.value, None) for row in ROWS))
    assert driver.state.picker is None


def test_other_lists_know_no_such_acts_and_no_hint_names_them():
    driver = offered(acts=())
    for act in ACTS:
        assert commands(driver, ActOnRow(act)) == []
        assert driver.state.contexts[0] == "picker"
    assert "Ctrl+R" not in lines(driver)[-1]
    driver.feed(RowChanged("model", "a", None), FilterChanged("nothing like it"), RowChanged("resume", "a", None))
    assert commands(offered(), FilterChanged("nothing like it"), ActOnRow("delete"), AnswerRow()) == []


def test_the_hint_names_the_keys_and_the_way_out_stays_when_it_is_narrow():
    driver = offered()
    assert lines(driver)[-1].strip() == ("Enter select · Ctrl+R rename · Ctrl+D delete · Ctrl+G fork · Esc close")
    assert lines(driver, width=40)[-1].strip().endswith("Esc close")


def test_a_job_is_ended_with_the_key_that_deletes_and_after_a_question():
    driver = Driver()
    jobs = (Choice("job-1", "npm run dev"), Choice("job-2", "sleep 9"))
    driver.feed(Choose("Background jobs", "jobs", jobs, acts=("end",), in_order=True))
    driver.feed(MovePicker(1))
    assert "Ctrl+D end" in lines(driver)[-1]
    assert commands(driver, ActOnRow("delete")) == commands(driver, ActOnRow("rename")) == []
    assert "end? Enter / Esc" in "\n".join(lines(driver)) and "Esc lets it run" in lines(driver)[-1]
    assert commands(driver, AnswerRow()) == ["/jobs job-2 end yes"]
    driver.feed(RowChanged("jobs", "job-2", Choice("job-2", "sleep 9", "ended by you")))
    assert picker_of(driver).choices[1].detail == "ended by you"
    assert commands(driver, Escape()) == []
    assert driver.state.picker is None
