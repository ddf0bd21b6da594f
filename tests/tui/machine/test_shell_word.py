"""Tab in a `!command`: one match goes in, of several what they have in common, and then the popup."""

from __future__ import annotations

from tenuto.tui.complete.paste import Pastes
from tenuto.tui.state.effects import Complete
from tenuto.tui.state.intents import AcceptCompletion, CompleteShell, CompletionItem, CompletionOffered
from tests.tui.machine.driving import Driver


def tab(driver: Driver, start: int, *inserts: str) -> None:
    """Press Tab, and answer with these."""
    [asked] = [effect for effect in driver.feed(CompleteShell()) if isinstance(effect, Complete)]
    assert asked.in_shell
    items = tuple(CompletionItem(insert, insert) for insert in inserts)
    driver.feed(CompletionOffered(asked.generation, start, asked.cursor, items, at_once=True))


def test_one_match_goes_in_at_once():
    driver = Driver()
    driver.type("!cat se")
    tab(driver, 5, "setup.py ")
    assert driver.state.draft.text == "!cat setup.py " and driver.state.completion is None


def test_of_several_what_they_share_goes_in_and_then_they_show():
    driver = Driver()
    driver.type("!cat s")
    tab(driver, 5, "src\\ a/", "src\\ b/")
    assert driver.state.draft.text == "!cat src\\ " and driver.state.completion is None
    tab(driver, 5, "src\\ a/", "src\\ b/")
    assert driver.state.completion is not None and len(driver.state.completion.items) == 2
    assert driver.state.contexts[0] == "completion"
    effects = driver.feed(AcceptCompletion())
    assert driver.state.draft.text == "!cat src\\ a/"
    assert not [effect for effect in effects if isinstance(effect, Complete)], "a shell waits for the next Tab"


def test_no_half_of_an_escaped_character_goes_in():
    driver = Driver()
    driver.type("!cat a")
    tab(driver, 5, "ab\\ c ", "ab\\(c ")
    assert driver.state.draft.text == "!cat ab"


def test_nothing_found_changes_nothing_and_an_old_answer_is_dropped():
    driver = Driver()
    driver.type("!cat zz")
    tab(driver, 5)
    assert driver.state.draft.text == "!cat zz" and driver.state.completion is None
    [asked] = [effect for effect in driver.feed(CompleteShell()) if isinstance(effect, Complete)]
    driver.type("!cat zzz")
    driver.feed(CompletionOffered(asked.generation, 5, 7, (CompletionItem("zzy ", "zzy"),), at_once=True))
    assert driver.state.draft.text == "!cat zzz"


def test_at_the_mark_of_a_paste_tab_shows_all_of_it():
    driver = Driver()
    driver.state.pastes = Pastes()
    mark = driver.state.pastes.mark("one\ntwo")
    driver.type(f"!{mark}")
    driver.feed(CompleteShell())
    assert driver.state.draft.text == "!one\ntwo"
