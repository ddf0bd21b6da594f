from __future__ import annotations

import pytest

from tenuto.command.outcome import Choice, Choose, Edit, RowFilter
from tenuto.protocol.part import ImagePart
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.lists import picker_panel
from tenuto.tui.state.effects import DraftSet, Remember, RunCommand
from tenuto.tui.state.intents import CycleRowFilter, FilterChanged, MovePicker, PickChoice, ScrollPreview, SendDraft
from tests.tui.machine.driving import Driver

FILTERS = (RowFilter("some", ("a", "b")), RowFilter("few", ("a",)), RowFilter("all"))
ROWS = (
    Choice("before 1", "earlier"),
    Choice("1", "You: one thing", "#1", kind="a", mark="│"),
    Choice("2", "read: file", "#2", kind="c", mark="│"),
    Choice("3", "Model: other thing", "#3", kind="b", indent=1, mark=" "),
    Choice(
        "4", "You: one more", "#4", present=True, kind="a", mark="●", preview="\n".join(f"line {n}" for n in range(99))
    ),
)


def offered() -> Driver:
    driver = Driver()
    driver.feed(Choose("Go on from", "tree ask", ROWS, FILTERS, in_order=True))
    return driver


def values(driver: Driver) -> list[str]:
    picker = driver.state.picker
    assert picker is not None
    return [picker.choices[place].value for place in picker.shown]


def current(driver: Driver) -> str:
    picker = driver.state.picker
    assert picker is not None and picker.current is not None
    return picker.current.value


def lines(driver: Driver, rows: int = 30) -> list[str]:
    return [line.text for line in picker_panel(driver.state, 80, rows, LineEditor()).lines]


def test_it_opens_on_the_present_row_and_the_first_filter():
    driver = offered()
    assert values(driver) == ["before 1", "1", "3", "4"]
    assert current(driver) == "4"


def test_row_filters_go_round_and_the_selected_row_stays_or_the_nearest_before_it():
    driver = offered()
    driver.feed(MovePicker(-1))
    assert current(driver) == "3"
    driver.feed(CycleRowFilter(1))
    assert values(driver) == ["before 1", "1", "4"] and current(driver) == "1"
    driver.feed(CycleRowFilter(1))
    assert values(driver) == ["before 1", "1", "2", "3", "4"] and current(driver) == "1"
    driver.feed(CycleRowFilter(-1), CycleRowFilter(-1))
    assert values(driver) == ["before 1", "1", "3", "4"] and current(driver) == "1"


def test_rows_in_order_stay_in_order_and_have_to_contain_the_words():
    driver = offered()
    driver.feed(FilterChanged("ONE"))
    assert values(driver) == ["1", "4"]
    driver.feed(FilterChanged("more one"))
    assert values(driver) == ["4"]
    driver.feed(FilterChanged("oe"))
    assert values(driver) == []
    driver.feed(ScrollPreview(1), CycleRowFilter(1), MovePicker(1), PickChoice())
    assert driver.state.picker is not None


def test_a_picked_row_runs_the_command():
    driver = offered()
    driver.feed(MovePicker(-1))
    assert RunCommand("/tree ask 3") in driver.feed(PickChoice())


def test_the_panel_shows_marks_indents_the_filter_and_as_much_of_the_preview_as_fits():
    driver = offered()
    shown = lines(driver)
    assert "some (Tab)" in shown[0]
    you, model = (next(row for row in shown if text in row) for text in ("You: one thing", "Model: other thing"))
    assert model.index("Model") > you.index("You")
    assert any("❯ ● You: one more" in row for row in shown)
    assert any("line 0" in row for row in shown)
    driver.feed(ScrollPreview(10))
    assert not any("line 0" in row for row in lines(driver)) and any("line 10" in row for row in lines(driver))
    driver.feed(ScrollPreview(1_000))
    assert any("line 98" in row for row in lines(driver))
    driver.feed(MovePicker(-1))
    assert not any("line" in row for row in lines(driver))
    driver.feed(MovePicker(1))
    assert any("line 0" in row for row in lines(driver)), "another look begins at the top"
    for rows in range(4, 40):
        assert len(lines(driver, rows)) <= max(rows, 6)
        assert any("one more" in row for row in lines(driver, rows))


def test_a_text_that_is_offered_takes_the_drafts_place_and_the_draft_is_one_up_away():
    driver = Driver()
    driver.type("my draft")
    image = ImagePart(sha256="0" * 64, media_type="image/png")
    effects = driver.feed(Edit("said before", (image,)))
    assert Remember("my draft") in effects and DraftSet("said before", 11) in effects
    assert driver.state.draft.images == (image,)
    assert driver.state.history.prompts[-1] == "my draft"
    driver.feed(Edit("x" * 50_000))
    assert len(driver.state.draft.text) < 100
    assert driver.state.pastes.expand(driver.state.draft.text) == "x" * 50_000


def test_what_is_typed_while_a_list_is_looked_for_is_its_filter():
    driver = Driver()
    rows = (Choice("a", "anthropic/test"), Choice("b", "anthropic/small"))
    driver.type("/model")
    driver.feed(SendDraft())
    driver.after(0.1).type("small")
    effects = driver.after(0.1).feed(Choose("Model", "model", rows))
    picker = driver.state.picker
    assert picker is not None and picker.filter == "small"
    assert picker.current is not None and picker.current.value == "b"
    assert DraftSet("", 0) in effects and not driver.state.draft.text


@pytest.mark.parametrize(
    ("text", "seconds"), [("small", 5.0), ("a whole prompt that somebody has gone on to write", 0.1)]
)
def test_a_prompt_that_was_begun_meanwhile_stays_one(text: str, seconds: float):
    driver = Driver()
    driver.type("/model")
    driver.feed(SendDraft())
    driver.after(0.1).type(text)
    driver.after(seconds).feed(Choose("Model", "model", (Choice("a", "anthropic/test"),)))
    assert driver.state.picker is not None and driver.state.picker.filter == ""
    assert driver.state.draft.text == text
