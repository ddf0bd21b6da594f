"""What the user does to queued prompts, step by step."""

from __future__ import annotations

import pytest

from tenuto.protocol.event import PromptReturnedEvent
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import ImagePart, TextPart
from tenuto.tui.panels.lists import queue_panel
from tenuto.tui.state.effects import Submit, SubmitPrompt
from tenuto.tui.state.intents import (
    ActOnQueued,
    Cancel,
    Escape,
    FocusQueue,
    HistoryPrevious,
    LeaveQueue,
    MoveInQueue,
    SendDraft,
)
from tests.tui.machine.driving import SESSION, Driver, approval, queue, started


def busy(*texts: str) -> Driver:
    """A driver in whose session something runs, with these texts queued as 3, 4, …"""
    driver = Driver()
    driver.feed(started(), queue(*((seq, text) for seq, text in enumerate(texts, 3))))
    driver.effects.clear()
    return driver


def edits(driver: Driver) -> list[tuple[int, str, int]]:
    operations = [effect.operation for effect in driver.effects if isinstance(effect, Submit)]
    return [(each.target, each.action, each.before) for each in operations if isinstance(each, EditQueueOperation)]


def shown(driver: Driver, width: int = 80) -> list[str]:
    return [line.text.rstrip() for line in queue_panel(driver.state, width).lines]


def test_the_keyboard_goes_to_the_newest_and_back():
    driver = busy("a", "b", "c")
    driver.feed(FocusQueue())
    assert driver.state.contexts == ("queue", "transcript", "global") and driver.state.queue_selected == 5
    driver.feed(MoveInQueue(-1), MoveInQueue(-1), MoveInQueue(-1))
    assert driver.state.queue_selected == 3
    driver.feed(MoveInQueue(1), LeaveQueue())
    assert driver.state.contexts[0] == "empty"
    driver.feed(FocusQueue(), MoveInQueue(1))
    assert driver.state.contexts[0] == "empty", "below the last one is the editor"


@pytest.mark.parametrize("intent", [Escape(), Cancel()])
def test_leaving_the_queue_interrupts_nothing_and_clears_nothing(intent):
    driver = busy("a")
    driver.type("a draft")
    driver.feed(FocusQueue(), intent)
    assert edits(driver) == [] and not any(isinstance(effect, Submit) for effect in driver.effects)
    assert (driver.state.contexts[0], driver.state.draft.text) == ("prompt", "a draft")


def test_nothing_is_queued():
    driver = busy()
    driver.feed(FocusQueue())
    assert driver.state.contexts[0] == "empty" and driver.state.queue_selected == 0


@pytest.mark.parametrize(
    ("moves", "action", "expected"),
    [
        (0, "delete", [(5, "delete", 0)]),
        (-1, "steer", [(4, "steer", 0)]),
        (0, "edit", [(5, "take_back", 0)]),
        (0, "up", [(5, "move", 4)]),
        (-2, "up", []),
        (-2, "down", [(3, "move", 5)]),
        (-1, "down", [(4, "move", 0)]),
        (0, "down", []),
    ],
)
def test_what_can_be_done_to_the_selected_one(moves, action, expected):
    driver = busy("a", "b", "c")
    driver.feed(FocusQueue(), MoveInQueue(moves), ActOnQueued(action))
    assert edits(driver) == expected


def test_one_that_is_heard_sooner_can_wait_for_its_turn_after_all():
    driver = busy("a")
    driver.state.queue[0].steer = True
    driver.feed(FocusQueue(), ActOnQueued("steer"))
    assert edits(driver) == [(3, "unsteer", 0)]


def test_deleting_selects_the_next_and_the_text_is_in_the_history():
    driver = busy("a", "b", "c")
    driver.feed(FocusQueue(), MoveInQueue(-1), ActOnQueued("delete"))
    assert driver.state.queue_selected == 5 and driver.state.history.prompts[-1] == "b"
    driver.feed(queue((3, "a"), (5, "c")), ActOnQueued("delete"))
    assert driver.state.queue_selected == 3
    driver.feed(queue((3, "a")), ActOnQueued("delete"), queue())
    assert edits(driver) == [(4, "delete", 0), (5, "delete", 0), (3, "delete", 0)]
    assert driver.state.contexts[0] == "empty"


def test_a_selected_one_that_is_sent_meanwhile_is_not_replaced_by_another():
    driver = busy("a", "b")
    driver.feed(FocusQueue(), MoveInQueue(-1), queue((4, "b")), ActOnQueued("delete"))
    assert edits(driver) == [] and driver.state.contexts[0] == "empty"


def test_one_that_was_edited_keeps_its_place():
    driver = busy("a", "b", "c")
    driver.feed(FocusQueue(), MoveInQueue(-1), ActOnQueued("edit"))
    assert driver.state.contexts[0] == "empty"
    back = PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text="b"),), reason="taken back")
    driver.feed(queue((3, "a"), (5, "c")), back)
    driver.type("b, better")
    driver.feed(queue((3, "a"), (5, "c"), (6, "d")))
    assert SubmitPrompt("b, better", before=5) in driver.feed(SendDraft())
    driver.type("another")
    assert SubmitPrompt("another") in driver.feed(SendDraft()), "what is written next is the newest"


def test_one_whose_followers_are_gone_is_the_newest_again_and_one_whose_predecessors_are_gone_comes_first():
    back = PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text="b"),), reason="taken back")
    driver = busy("a", "b", "c")
    driver.feed(ActOnQueued("edit", 4), queue((3, "a")), back)
    assert SubmitPrompt("b") in driver.feed(SendDraft())
    driver = busy("a", "b", "c")
    driver.feed(ActOnQueued("edit", 4), back, queue((5, "c"), (6, "d")))
    assert SubmitPrompt("b", before=5) in driver.feed(SendDraft())


def test_a_draft_that_was_thrown_away_leaves_its_place():
    back = PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text="b"),), reason="taken back")
    driver = busy("a", "b", "c")
    driver.feed(ActOnQueued("edit", 4), queue((3, "a"), (5, "c")), back, Cancel())
    driver.type("another")
    assert SubmitPrompt("another") in driver.feed(SendDraft())


def test_up_on_the_empty_prompt_takes_the_newest():
    driver = busy("a", "b")
    driver.feed(HistoryPrevious())
    assert edits(driver) == [(4, "take_back", 0)]


def test_what_is_not_on_disk_yet_is_left_alone():
    driver = busy("a")
    driver.type("b")
    driver.feed(SendDraft(), FocusQueue())
    assert driver.state.queue_selected == 3 and [row.seq for row in driver.state.queue] == [3, 0]
    driver.feed(ActOnQueued("down"))
    assert edits(driver) == []


def test_an_approval_comes_before_the_queue_and_leaves_it_where_it_was():
    driver = busy("a")
    driver.feed(FocusQueue(), approval())
    assert driver.state.contexts[0] == "approval"
    driver.after(1).feed(Escape())
    assert driver.state.contexts[0] == "queue"


def test_rows_are_shown_in_order_with_what_is_left_out_counted():
    driver = busy("first", "two\nlines", "a\nb\nc", "x" * 200)
    driver.state.queue[0].images = (
        ImagePart(sha256="0" * 64, media_type="image/png", name="shot.png", width=8, height=6),
    )
    assert shown(driver) == [
        "  queued  first [image shot.png 8x6]  Alt+Q",
        "  queued  two … +1 line",
        "  queued  a … +2 lines",
        f"  queued  {'x' * 67}…",
    ]
    assert max(map(len, shown(driver, 40))) <= 40 and "Alt+Q" not in shown(driver, 40)[0]
    driver = busy(*"abcdef")
    assert shown(driver)[-1] == "  … +3 queued"
    driver.feed(FocusQueue())
    lines = shown(driver)
    assert lines[5] == "❯ queued  f"
    assert lines[-1] == "  Enter edit · d delete · s steer · Alt+↑ Alt+↓ move · Esc close"


def test_a_long_queue_is_scrolled_with_the_keyboard_in_it_and_clicks_find_their_row():
    driver = busy(*(f"row {number}" for number in range(30)))
    driver.feed(FocusQueue())
    panel = queue_panel(driver.state, 120)
    assert "23 before" in panel.lines[-2].text and "❯ queued  row 29" in panel.lines[-3].text
    assert panel.choices[0] == 3 + 23
    driver.feed(MoveInQueue(-30))
    assert queue_panel(driver.state, 120).choices[0] == 3
