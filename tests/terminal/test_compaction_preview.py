"""A compaction that is looked at first, as a user does it: accept, edit, drop, Esc; and where to divide."""

from __future__ import annotations

import pytest

from tests.terminal.conftest import Workplace
from tests.terminal.test_compaction import DONE, ask, at_once, begin, counting, fill, hanging

pytestmark = pytest.mark.terminal


def test_a_preview_is_edited_in_the_prompt_and_accepted_with_enter(place: Workplace) -> None:
    screen = begin(place, counting(at_once), rows=50)
    fill(screen)
    screen.submit("/compact --preview the numbers")
    shown = screen.wait_until(lambda text: "Edit the summary" in text, "the question")
    assert "nothing changes" in shown and "Count the numbers of the house" in shown
    screen.keys("Down", "Enter")
    screen.wait_gone("Edit the summary")  # the question shows the summary as well
    screen.wait_for("## Critical Context")
    screen.type(" AND-MINE")
    screen.keys("Enter")
    shown = screen.wait_settled("Compacted ·")
    assert DONE.search(shown)
    assert "nothing is written yet" not in shown
    ask(screen, "and now?")
    assert place.server is not None
    assert "AND-MINE" in place.server.requests[-1].raw.decode()


def test_a_preview_is_dropped_or_cancelled_and_nothing_has_changed(place: Workplace) -> None:
    screen = begin(place, counting(at_once), rows=50)
    fill(screen)
    screen.submit("/compact --preview")
    screen.wait_for("Edit the summary")
    screen.keys("Escape")
    screen.wait_gone("Edit the summary")
    screen.submit("/compact drop")
    screen.wait_for("nothing changed")
    screen.submit("/compact accept")
    screen.wait_for("No compaction is proposed")
    ask(screen, "and now?")
    assert place.server is not None
    assert "Count the numbers of the house" not in place.server.requests[-1].raw.decode()


def test_esc_cancels_the_making_of_a_preview(place: Workplace) -> None:
    screen = begin(place, counting(hanging))
    fill(screen)
    screen.submit("/compact --preview")
    screen.wait_until(lambda shown: "esc to cancel" in shown, "the spinner")
    screen.keys("Escape")
    screen.wait_settled("nothing changed")


def test_a_message_is_picked_for_notes_and_undo_brings_it_back(place: Workplace) -> None:
    screen = begin(place, counting(at_once), rows=50)
    fill(screen)
    screen.submit("/compact from")
    screen.wait_for("tokens become notes")
    screen.keys("Down", "Enter")
    screen.wait_settled("Notes on what was left")
    screen.wait_gone("Answer to count 3.")
    screen.submit("/compact undo")
    screen.wait_settled("Undone")
    assert "Answer to count 3." in screen.whole() or "count 3" in screen.capture()
