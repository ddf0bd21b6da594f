"""Images, marks and drafts that come back."""

from __future__ import annotations

from tenuto.protocol.event import ModelChangedEvent
from tenuto.protocol.part import ImagePart
from tenuto.tui.complete.history import Extras
from tenuto.tui.state.effects import DraftSet, Remember, SubmitPrompt, Toast
from tenuto.tui.state.intents import (
    Cancel,
    CycleRowFilter,
    DraftChanged,
    DraftRestored,
    Escape,
    FilterChanged,
    HistoryLoaded,
    HistoryNext,
    HistoryPrevious,
    ImageAttached,
    ImageDetached,
    ImageRefused,
    PickChoice,
    SearchHistory,
    SendDraft,
    UnfoldPaste,
)
from tests.tui.machine.driving import SESSION, Driver, opened

SHOT = ImagePart(sha256="ab" * 32, media_type="image/png", size=120_000, width=820, height=600, name="shot.png")
OTHER = ImagePart(sha256="cd" * 32, media_type="image/png", size=1_000)
LONG = "a line\n" * 40


def test_images_go_along_with_the_prompt_and_come_back_with_the_history() -> None:
    driver = Driver()
    driver.feed(opened(), ImageAttached(SHOT), ImageAttached(OTHER), DraftChanged("look", 4))
    effects = driver.feed(SendDraft())
    assert SubmitPrompt("look", False, (SHOT, OTHER)) in effects
    assert Remember("look", Extras(images=(SHOT, OTHER))) in effects
    assert driver.state.draft.images == ()
    driver.feed(HistoryPrevious())
    assert driver.state.draft.images == (SHOT, OTHER)
    driver.feed(HistoryNext())
    assert driver.state.draft.images == ()


def test_an_image_is_taken_out_by_its_place() -> None:
    driver = Driver()
    driver.feed(opened(), ImageAttached(SHOT), ImageAttached(OTHER), ImageDetached(-1))
    assert driver.state.draft.images == (SHOT,)
    driver.feed(ImageDetached(5), ImageDetached(0), ImageDetached(-1))
    assert driver.state.draft.images == ()


def test_a_model_without_eyes_is_told_of_before_sending_and_when_sending() -> None:
    from tenuto.tui.panels.panel import image_chips

    driver = Driver()
    driver.feed(opened(), ModelChangedEvent(session_id=SESSION, model="a/blind", sees_images=False))
    driver.feed(ImageAttached(SHOT))
    assert "a/blind cannot see images" in image_chips(driver.state, 80).lines[-1].text
    driver.feed(DraftChanged("look", 4))
    assert any(isinstance(effect, Toast) for effect in driver.feed(SendDraft()))


def test_a_refused_image_says_why_and_changes_nothing() -> None:
    driver = Driver()
    assert Toast("too large", "warning") in driver.feed(opened(), ImageRefused("too large"))
    assert driver.state.draft.images == ()


def test_a_mark_is_unfolded_where_the_cursor_is() -> None:
    driver = Driver()
    driver.feed(opened())
    mark = driver.state.pastes.fold(LONG)
    driver.feed(DraftChanged(f"see {mark}!", 4 + len(mark)))
    assert DraftSet(f"see {LONG}!", 4 + len(LONG)) in driver.feed(UnfoldPaste())
    assert driver.feed(UnfoldPaste()) == [], "there is none here"


def test_a_huge_paste_is_not_unfolded_into_the_editor() -> None:
    driver = Driver()
    driver.feed(opened())
    mark = driver.state.pastes.fold("x" * 1_000_000)
    driver.feed(DraftChanged(mark, 3))
    [toast] = driver.feed(UnfoldPaste())
    assert isinstance(toast, Toast)
    assert driver.state.draft.text == mark


def test_the_history_keeps_pastes_as_marks() -> None:
    driver = Driver()
    driver.feed(opened())
    shown = f"explain {driver.state.pastes.fold(LONG)} please"
    driver.feed(DraftChanged(shown, 3))
    effects = driver.feed(SendDraft())
    assert Remember(f"explain {LONG} please", Extras(folds=((8, len(LONG)),))) in effects
    driver.feed(HistoryPrevious())
    assert driver.state.draft.text == "explain [Pasted text #2 +41 lines] please"
    assert driver.state.pastes.expand(driver.state.draft.text) == f"explain {LONG} please"


def test_up_goes_through_the_prompts_that_begin_as_typed() -> None:
    driver = Driver()
    driver.feed(opened(), HistoryLoaded(("git log", "make test", "git diff", "other")), DraftChanged("git", 3))
    seen = []
    for intent in (HistoryPrevious(), HistoryPrevious(), HistoryPrevious(), HistoryNext(), HistoryNext()):
        driver.feed(intent)
        seen.append(driver.state.draft.text)
    assert seen == ["git diff", "git log", "git log", "git diff", "git"]
    driver.feed(DraftChanged("nothing like it", 3), HistoryPrevious())
    assert driver.state.draft.text == "other", "where none begins so, all are gone through"


def test_a_prompt_is_in_the_history_once_and_one_with_a_space_not_on_disk() -> None:
    driver = Driver()
    driver.feed(opened(), HistoryLoaded(("one", "two")), DraftChanged("one", 3))
    assert Remember("one") in driver.feed(SendDraft())
    assert driver.state.history.prompts == ["two", "one"]
    driver.feed(DraftChanged(" my password", 3))
    assert not any(isinstance(effect, Remember) for effect in driver.feed(SendDraft()))
    assert driver.state.history.prompts[-1] == " my password", "it is one Up away while the program runs"


def test_the_picker_begins_with_this_project_and_tab_shows_all() -> None:
    driver = Driver()
    driver.feed(opened(), HistoryLoaded(("elsewhere", "here"), frozenset({"here"}), {"here": Extras((SHOT,))}))
    driver.feed(SearchHistory())
    picker = driver.state.picker
    assert picker is not None
    assert [picker.choices[place].label for place in picker.shown] == ["here"]
    driver.feed(PickChoice())
    assert driver.state.draft.text == "here"
    assert driver.state.draft.images == (SHOT,)


def test_a_draft_put_aside_keeps_its_images() -> None:
    driver = Driver()
    driver.feed(opened(), ImageAttached(SHOT), DraftChanged("thought", 7), Escape(), Escape())
    assert (driver.state.draft.text, driver.state.draft.images) == ("", ())
    driver.feed(Escape(), Escape())
    assert (driver.state.draft.text, driver.state.draft.images) == ("thought", (SHOT,))


def test_a_cleared_draft_is_in_the_history_with_its_images() -> None:
    driver = Driver()
    driver.feed(opened(), ImageAttached(SHOT), DraftChanged("thought", 7), Cancel())
    driver.feed(HistoryPrevious())
    assert (driver.state.draft.text, driver.state.draft.images) == ("thought", (SHOT,))


def test_a_draft_comes_back_with_images_and_marks() -> None:
    driver = Driver()
    text = f"see {LONG}"
    effects = driver.feed(
        opened(), DraftRestored(text, "10:03", Extras((SHOT,), ((4, len(LONG)),)), "aside", Extras((OTHER,)))
    )
    assert driver.state.draft.text == "see [Pasted text #1 +41 lines]"
    assert driver.state.draft.images == (SHOT,)
    assert any(isinstance(effect, Toast) and "10:03" in effect.text for effect in effects)
    assert (driver.state.ladder.stash, driver.state.ladder.stashed_images) == ("aside", (OTHER,))


def test_a_draft_that_comes_back_takes_nothing_away() -> None:
    driver = Driver()
    driver.feed(opened(), DraftChanged("typed", 5))
    effects = driver.feed(DraftRestored("older", "10:03"))
    assert driver.state.draft.text == "typed"
    assert Remember("older") in effects
    driver.feed(DraftRestored("", "10:03", stash="aside"))
    assert driver.state.ladder.stash == "aside"
    effects = driver.feed(DraftRestored("", "10:03", stash="aside as well"))
    assert driver.state.ladder.stash == "aside" and Remember("aside as well") in effects


def test_a_draft_that_the_history_took_the_place_of_is_kept() -> None:
    driver = Driver()
    driver.feed(opened(), HistoryLoaded(("older", "newer")), ImageAttached(SHOT))
    driver.type("a long thought")
    driver.feed(HistoryPrevious())
    assert driver.state.draft.text == "newer"
    effects = driver.type("newer, changed")
    assert Remember("a long thought", Extras((SHOT,))) in effects
    driver.feed(HistoryPrevious())
    assert driver.state.draft.text == "a long thought"
    driver.feed(HistoryPrevious(), HistoryPrevious(), SendDraft())
    assert driver.state.history.prompts[-2:] == ["newer, changed", "older"]
    driver.type("o")
    driver.feed(HistoryPrevious())
    assert Remember("o") not in driver.type("older, changed"), "it was what was looked for"


def test_a_draft_that_a_searched_prompt_takes_the_place_of_is_kept() -> None:
    driver = Driver()
    driver.feed(opened(), HistoryLoaded(("older", "newer")))
    driver.type("a long thought")
    effects = driver.feed(SearchHistory(), FilterChanged(""), PickChoice())
    assert driver.state.draft.text == "newer"
    assert Remember("a long thought") in effects
    driver.type("old")
    effects = driver.feed(SearchHistory(), CycleRowFilter(1), PickChoice())
    assert driver.state.draft.text == "older"
    assert Remember("old") not in effects
