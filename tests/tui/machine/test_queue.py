from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, PromptReturnedEvent
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import ImagePart, TextPart
from tenuto.tui.machine.step import step
from tenuto.tui.state.effects import DraftSet, Remember, RunCommand, Submit, SubmitPrompt, Toast
from tenuto.tui.state.intents import (
    DraftChanged,
    HistoryPrevious,
    ImageAttached,
    SendDraft,
    SendFailed,
    SendText,
    SteerDraft,
)
from tenuto.tui.state.item import CompactionItem, NoticeItem, UserItem
from tests.tui.machine.driving import SESSION, Driver, finished, queue, settled, started, user


def texts(driver: Driver) -> list[str]:
    return [item.text for item in driver.items if isinstance(item, UserItem)]


def rows(driver: Driver) -> list[str]:
    return [row.text for row in driver.state.queue]


def test_enter_shows_the_prompt_before_the_core_has_it_and_once_afterwards():
    driver = Driver()
    driver.type("hello")
    effects = driver.feed(SendDraft())
    assert effects[-1] != SubmitPrompt("other")
    assert SubmitPrompt("hello") in effects and DraftSet("", 0) in effects and Remember("hello") in effects
    item = driver.last
    assert isinstance(item, UserItem) and not item.final
    driver.feed(queue((3, "hello")))
    assert (texts(driver), rows(driver)) == (["hello"], [])
    driver.feed(started(), user(4, "hello", 3), queue())
    assert driver.items == [item]
    assert (item.seq, item.final) == (4, True)


def test_r043_prompts_typed_during_a_compaction_show_as_queued_and_become_messages_in_order():
    driver = Driver()
    driver.feed(started("compaction"), CompactionStartEvent(session_id=SESSION, reason="manual"))
    for text in ("one", "two", "one"):
        driver.type(text)
        driver.feed(SendDraft())
    assert rows(driver) == ["one", "two", "one"]
    assert texts(driver) == []
    driver.feed(queue((5, "one")), queue((5, "one"), (6, "two")), queue((5, "one"), (6, "two"), (7, "one")))
    assert [(row.seq, row.text) for row in driver.state.queue] == [(5, "one"), (6, "two"), (7, "one")]
    driver.feed(CompactionEndEvent(session_id=SESSION, reason="manual", aborted=True), finished("compaction"))
    driver.feed(started(), user(8, "one", 5), queue((6, "two"), (7, "one")))
    assert (texts(driver), rows(driver)) == (["one"], ["two", "one"])


def test_r043_a_cancelled_threshold_compaction_puts_the_text_back():
    driver = Driver()
    driver.type("do it")
    driver.feed(SendDraft(), queue((3, "do it")), started("compaction"))
    driver.feed(CompactionStartEvent(session_id=SESSION, reason="threshold"))
    driver.type("and then this")
    driver.feed(CompactionEndEvent(session_id=SESSION, reason="threshold", aborted=True))
    effects = driver.feed(
        queue(), PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text="do it"),), reason="not sent")
    )
    assert driver.state.draft.text == "do it\n\nand then this"
    assert Toast("not sent", "warning") in effects
    assert texts(driver) == []


def returned(text: str) -> PromptReturnedEvent:
    return PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text=text),), reason="not sent")


WORDS = st.text(alphabet="ab ", min_size=1, max_size=6).map(str.strip).filter(bool)


@given(
    given_back=st.lists(WORDS, min_size=1, max_size=4),
    typed=st.text(alphabet="xy ", max_size=6),
    when=st.integers(0, 3),
)
def test_texts_given_back_stand_in_order_of_time_before_what_was_typed_later(given_back, typed, when):
    """The texts come back one after the other, and the draft is typed before, between or behind them."""
    driver = Driver()
    when = min(when, len(given_back))
    for text in given_back[:when]:
        driver.feed(returned(text))
    beginning = driver.state.draft.text
    if typed.strip():
        draft = f"{beginning}\n\n{typed}" if beginning else typed
        driver.feed(DraftChanged(draft, len(draft)))
    for text in given_back[when:]:
        driver.feed(returned(text))
    parts = [*given_back, *([typed] if typed.strip() else [])]
    assert driver.state.draft.text == "\n\n".join(parts)
    assert driver.state.draft.cursor == len(driver.state.draft.text), "typing goes on where it was"


def test_a_text_given_back_that_is_being_changed_stays_before_a_later_one():
    driver = Driver()
    driver.feed(returned("fix the"))
    driver.feed(DraftChanged("fix the bug", 11), returned("then test"))
    assert (driver.state.draft.text, driver.state.draft.cursor) == ("fix the bug\n\nthen test", 11)


def test_images_given_back_stand_in_order_too():
    driver = Driver()
    first, second, later = (ImagePart(sha256=f"{number}" * 64, media_type="image/png") for number in range(3))
    driver.feed(ImageAttached(later))
    for image in (first, second):
        driver.feed(SendFailed("look", "no disk", (image,)))
    assert driver.state.draft.images == (first, second, later)


def test_a_prompt_sent_into_a_compaction_stands_after_it():
    driver = Driver()
    driver.feed(SendText("go on"), queue((3, "go on")), started("compaction"))
    driver.feed(CompactionStartEvent(session_id=SESSION, reason="threshold"))
    assert [type(item) for item in driver.items] == [UserItem, CompactionItem]
    driver.feed(CompactionEndEvent(session_id=SESSION, reason="threshold"), finished("compaction"))
    driver.feed(started(), user(9, "go on", 3), queue())
    assert [type(item) for item in driver.items] == [CompactionItem, UserItem]


def test_a_queue_that_waits_shows_and_is_sent_by_enter():
    driver = Driver()
    driver.feed(SendText("a"), queue((3, "a")), started())
    driver.feed(finished(outcome="interrupted"), queue((3, "a"), waiting=True), settled("interrupted"))
    assert (texts(driver), rows(driver)) == ([], ["a"])
    assert SubmitPrompt("") in driver.feed(SendDraft())
    assert driver.feed(SendDraft()) == []


def test_nothing_is_sent_by_enter_at_an_empty_editor():
    driver = Driver()
    assert driver.feed(SendDraft()) == []
    driver.type("  \n ")
    assert driver.feed(SendDraft()) == []


def test_up_takes_the_newest_queued_text_back():
    driver = Driver()
    driver.feed(started(), SendText("a"), SendText("b"), queue((3, "a"), (4, "b")))
    [effect] = [each for each in driver.feed(HistoryPrevious()) if isinstance(each, Submit)]
    assert isinstance(effect.operation, EditQueueOperation)
    assert (effect.operation.target, effect.operation.action) == (4, "take_back")
    returned = PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text="b"),), reason="taken back")
    effects = driver.feed(queue((3, "a")), returned)
    assert driver.state.draft.text == "b"
    assert not [effect for effect in effects if isinstance(effect, Toast)]


@pytest.mark.parametrize("columns", [20, 100])
def test_the_reason_why_a_prompt_came_back_can_be_read_to_its_end(columns):
    driver = Driver()
    reason = "it does not fit the window; shorten it, or attach it as a file"
    event = PromptReturnedEvent(session_id=SESSION, parts=(TextPart(text="b"),), reason=reason)
    effects = step(driver.state, event, 0.0, columns)[1]
    toasts = [effect.text for effect in effects if isinstance(effect, Toast)]
    notices = [item.text for item in driver.state.transcript.items.values() if isinstance(item, NoticeItem)]
    assert (toasts, notices) == (([reason], []) if columns == 100 else ([], [reason]))


def test_steering():
    driver = Driver()
    driver.feed(started())
    driver.type("use uv")
    assert SubmitPrompt("use uv", True) in driver.feed(SteerDraft())
    driver.feed(queue((3, "a")))
    [effect] = [each for each in driver.feed(SteerDraft()) if isinstance(each, Submit)]
    assert isinstance(effect.operation, EditQueueOperation)
    assert (effect.operation.target, effect.operation.action) == (3, "steer")


def test_a_prompt_that_cannot_be_handed_over_is_back_in_the_editor():
    driver = Driver()
    image = ImagePart(sha256="0" * 64, media_type="image/png")
    driver.feed(ImageAttached(image))
    driver.type("look")
    driver.feed(SendDraft())
    assert driver.state.draft.images == ()
    driver.feed(SendFailed("look", "no disk", (image,)))
    assert (driver.state.draft.text, driver.state.draft.images) == ("look", (image,))
    assert [type(item) for item in driver.items] == [NoticeItem]
    assert driver.state.echoes == []


def test_a_backslash_before_the_cursor_makes_a_line():
    driver = Driver()
    driver.feed(DraftChanged("one\\two", 4))
    assert driver.feed(SendDraft())[0] == DraftSet("one\ntwo", 4)
    assert texts(driver) == []


def test_lines_that_are_commands_and_lines_that_only_look_so():
    driver = Driver()
    assert RunCommand("/model x") in driver.feed(SendText("/model x"))
    assert RunCommand("/?") in driver.feed(SendText("/?"))
    assert SubmitPrompt("/usr/bin/env is old") in driver.feed(SendText("/usr/bin/env is old"))


def test_shell_commands():
    driver = Driver()
    [submit] = [each for each in driver.feed(SendText("!ls -l")) if isinstance(each, Submit)]
    assert (submit.operation.command, submit.operation.excluded) == ("ls -l", False)
    [submit] = [each for each in driver.feed(SendText("!!ls")) if isinstance(each, Submit)]
    assert (submit.operation.command, submit.operation.excluded) == ("ls", True)


@given(st.lists(st.text(min_size=1, max_size=6), max_size=4), st.booleans())
def test_no_prompt_is_lost_or_doubled(sent, busy):
    """Whatever is sent stands exactly once, in the transcript or in the queue, at every moment."""
    prompts = [f"x{text}" for text in sent]
    driver = Driver()
    if busy:
        driver.feed(started())
    queued: list[tuple[int, str]] = []
    for seq, text in enumerate(prompts, 10):
        driver.feed(SendText(text))
        queued.append((seq, text))
        assert sorted(texts(driver) + rows(driver)) == sorted(text for _, text in queued)
        driver.feed(queue(*queued))
        assert sorted(texts(driver) + rows(driver)) == sorted(text for _, text in queued)
    for seq, text in list(queued):
        queued.remove((seq, text))
        driver.feed(user(seq + 100, text, seq), queue(*queued))
        assert sorted(texts(driver) + rows(driver)) == sorted(prompts)
    assert texts(driver) == prompts
    assert driver.state.echoes == []
