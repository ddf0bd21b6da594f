"""The list that nobody asked for: it waits for an empty prompt, gives way to whoever types, and comes again."""

from __future__ import annotations

from tenuto.command.outcome import Choice, Choose, RowChanged
from tenuto.protocol.event import TrustWaitingEvent
from tenuto.tui.machine.approval import EMPTY_PAUSE
from tenuto.tui.state.effects import RunCommand, Toast
from tenuto.tui.state.intents import ActOnRow, DraftChanged, Escape, FilterChanged, MovePicker, PickChoice, Tick
from tests.tui.machine.driving import SESSION, Driver

DIALOG = Choose(
    "This project brings 1 thing",
    "trust",
    (
        Choice("", "Not now", present=True),
        Choice("allow all", "Trust all 1"),
        Choice("a1b2", "setting model", "not decided", mark="?", stays=True),
    ),
    in_order=True,
    acts=("refuse",),
    held=True,
)


def test_r085_it_waits_while_something_is_typed_and_opens_behind_a_pause() -> None:
    driver = Driver()
    driver.feed(DraftChanged("fix", 3))
    driver.after(10).feed(DIALOG, Tick())
    assert driver.state.picker is None and driver.state.held_picker is not None
    driver.feed(DraftChanged("", 0), Tick())
    assert driver.state.picker is None
    driver.after(2 * EMPTY_PAUSE).feed(Tick())
    assert driver.state.picker is not None and driver.state.picker.current == DIALOG.choices[0]


def test_r085_what_is_typed_over_it_goes_into_the_prompt_and_it_comes_again() -> None:
    driver = Driver().after(10)
    driver.feed(DIALOG)
    assert driver.state.picker is not None
    driver.feed(FilterChanged("f"))
    assert driver.state.picker is None and driver.state.draft.text == "f"
    driver.after(10).feed(DraftChanged("fix it", 6), Tick())
    assert driver.state.picker is None
    driver.feed(DraftChanged("", 0))
    driver.after(2 * EMPTY_PAUSE).feed(Tick())
    assert driver.state.picker is not None and driver.state.picker.filter == ""


def test_r085_escape_and_enter_decide_nothing() -> None:
    for intent in (Escape(), PickChoice()):
        driver = Driver().after(10)
        driver.feed(DIALOG)
        made = driver.feed(intent)
        assert driver.state.picker is None and driver.state.held_picker is None
        assert not [effect for effect in made if isinstance(effect, RunCommand)]


def test_r085_an_item_is_trusted_or_refused_and_the_list_stays() -> None:
    driver = Driver().after(10)
    driver.feed(DIALOG, MovePicker(2))
    assert RunCommand("/trust a1b2") in driver.feed(PickChoice())
    assert driver.state.picker is not None and driver.state.picker.busy == "a1b2"
    assert not [effect for effect in driver.feed(PickChoice()) if isinstance(effect, RunCommand)]
    driver.feed(RowChanged("trust", "a1b2", Choice("a1b2", "setting model", "trusted", mark="✓", stays=True)))
    assert driver.state.picker.current is not None and driver.state.picker.current.mark == "✓"
    assert RunCommand("/trust a1b2 refuse") in driver.feed(ActOnRow("delete"))
    assert driver.state.picker is not None


def test_whoever_types_is_told_that_something_waits() -> None:
    driver = Driver()
    driver.feed(DraftChanged("fix", 3))
    made = driver.feed(TrustWaitingEvent(session_id=SESSION, count=2))
    assert [effect.text for effect in made if isinstance(effect, Toast)] == ["2 things of this project: /trust decides"]
    driver.feed(DraftChanged("", 0))
    assert not driver.feed(TrustWaitingEvent(session_id=SESSION, count=2))
