from __future__ import annotations

import msgspec

from tenuto.protocol.event import (
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    NoticeEvent,
    RetryEvent,
    StepStartedEvent,
    TaskSettledEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
    WebSearchEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.part import OpaquePart, TextPart, ThinkingPart, ToolCallPart, WebSearch, WebSource
from tenuto.tui.state.effects import Bell, ItemChanged
from tenuto.tui.state.intents import Tick
from tenuto.tui.state.item import (
    LIVE_OUTPUT_CHARACTERS,
    AssistantItem,
    NoticeItem,
    SearchItem,
    SourcesItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tests.tui.machine.driving import Driver, finished, settled, started, user


def text_delta(text: str) -> AssistantTextDeltaEvent:
    return AssistantTextDeltaEvent(session_id="s", text=text)


def thinking_delta(text: str) -> AssistantThinkingDeltaEvent:
    return AssistantThinkingDeltaEvent(session_id="s", text=text)


def answer(*parts, seq=5, **fields) -> AssistantMessageEvent:
    return AssistantMessageEvent(session_id="s", message=AssistantMessage(parts=parts, seq=seq, **fields))


def call(call_id="c1", name="bash", arguments='{"command":"ls"}') -> ToolCallPart:
    return ToolCallPart(id=call_id, name=name, arguments=arguments)


def result(call_id="c1", text="out", **fields) -> ToolResultEvent:
    return ToolResultEvent(
        session_id="s",
        message=ToolResultMessage(call_id=call_id, name="bash", parts=(TextPart(text=text),), seq=9, **fields),
    )


def run(call_id="c1", name="bash", arguments='{"command":"ls"}') -> ToolStartedEvent:
    return ToolStartedEvent(session_id="s", call_id=call_id, name=name, arguments=arguments)


def test_text_streams_into_one_item_and_the_message_makes_it_final():
    driver = Driver()
    driver.feed(started(), text_delta("Hel"), text_delta("lo"))
    item = driver.last
    assert isinstance(item, AssistantItem)
    assert (item.text, item.final, item.version) == ("Hello", False, 1)
    driver.feed(answer(TextPart(text="Hello"), seq=7))
    assert driver.items == [item]
    assert (item.final, item.seq) == (True, 7)


def test_an_answer_that_pauses_is_shown_whole_once():
    driver = Driver()
    driver.feed(started(), text_delta("Hel"))
    item = driver.last
    assert isinstance(item, AssistantItem)
    driver.after(1).feed(Tick())
    assert not item.pausing, "it has grown since the last look"
    assert ItemChanged(item.id) in driver.after(1).feed(Tick()) and item.pausing
    assert ItemChanged(item.id) not in driver.after(1).feed(Tick()), "once"
    driver.feed(text_delta("lo"))
    assert not item.pausing
    driver.after(1).feed(Tick())
    driver.after(1).feed(Tick())
    driver.feed(answer(TextPart(text="Hello"), seq=7))
    assert item == AssistantItem(id=item.id, version=item.version, text="Hello", seq=7, final=True)


def test_thinking_counts_seconds_until_the_text_begins():
    driver = Driver()
    driver.feed(started(), thinking_delta("hm"))
    item = driver.last
    assert isinstance(item, ThinkingItem)
    assert ItemChanged(item.id) in driver.after(2.5).feed(Tick())
    assert item.seconds == 2.5
    driver.after(1).feed(text_delta("Yes"))
    assert (item.seconds, item.final) == (3.5, True), "what comes behind it can be printed"
    driver.after(9).feed(Tick())
    assert item.seconds == 3.5
    driver.feed(answer(ThinkingPart(text="hm"), TextPart(text="Yes"), thinking_duration=3.2))
    assert (item.seconds, item.started, item.final) == (3.2, 0.0, True)


def test_b15_a_search_shows_while_it_runs_and_ends_as_it_is_resumed():
    begun = WebSearch(id="s1", query="clocks")
    pages = (WebSource("https://a.example", "A"), WebSource("https://b.example", "B"))
    found = WebSearch(id="s1", query="clocks", sources=pages, done=True)
    driver = Driver()
    driver.feed(started(), text_delta("I look."), WebSearchEvent(session_id="s", search=begun))
    item = driver.last
    assert isinstance(item, SearchItem)
    assert (item.search, driver.state.spinner.label) == (begun, "Searching the web")
    driver.feed(WebSearchEvent(session_id="s", search=found), text_delta("So "), text_delta("it is."))
    assert [type(one) for one in driver.items] == [AssistantItem, SearchItem, AssistantItem]
    assert item.search == found
    block = msgspec.Raw(b"{}")
    message = answer(
        TextPart(text="I look."),
        OpaquePart(provider="p", block=block, search=begun),
        OpaquePart(provider="p", block=block, search=found),
        TextPart(text="So ", sources=pages[:1]),
        TextPart(text="it is.", sources=pages),
        call("a"),
        seq=7,
    )
    driver.feed(message)
    resumed = Driver()
    resumed.feed(started(), message)
    assert [type(one) for one in driver.items] == [AssistantItem, SearchItem, AssistantItem, SourcesItem, ToolItem]
    cited = driver.items[3]
    assert isinstance(cited, SourcesItem) and cited.sources == pages, "each once, under the text and above the calls"
    live, again = (
        [msgspec.structs.replace(one, id=0, version=0) for one in items] for items in (driver.items, resumed.items)
    )
    assert live == again


def test_b15_a_search_of_an_attempt_that_failed_or_was_interrupted_goes():
    for end in (
        AssistantWithdrawnEvent(session_id="s", reason="x"),
        TaskSettledEvent(session_id="s", outcome="failed"),
    ):
        driver = Driver()
        driver.feed(started(), WebSearchEvent(session_id="s", search=WebSearch(id="s1", query="clocks")), end)
        assert not any(isinstance(item, SearchItem) for item in driver.items)


def test_calls_show_while_they_are_written_and_then_run_and_end():
    driver = Driver()
    driver.feed(
        started(),
        ToolCallDeltaEvent(session_id="s", index=0, name="bash", characters=0),
        ToolCallDeltaEvent(session_id="s", index=1, name="read", characters=0),
        ToolCallDeltaEvent(session_id="s", index=0, name="", characters=12),
    )
    first, second = driver.items
    assert isinstance(first, ToolItem) and isinstance(second, ToolItem)
    assert (first.state, first.name, first.characters, second.name) == ("writing", "bash", 12, "read")
    driver.feed(answer(call("a"), call("b", "read", '{"path":"x.py"}')))
    assert [item.id for item in driver.items] == [first.id, second.id]
    assert (first.state, first.call_id, first.summary, second.summary) == ("ready", "a", "ls", "x.py")
    driver.feed(run("a"), run("b", "read", '{"path":"x.py"}'))
    assert driver.state.spinner.label == "Running 2 calls"
    driver.feed(ToolOutputEvent(session_id="s", call_id="a", text="partial"))
    assert first.output == "partial"
    driver.after(3).feed(Tick(), result("b", is_error=True), result("a", duration=2.0))
    assert (first.state, first.output, first.seconds, first.started) == ("done", "", 2.0, 0.0)
    assert second.state == "failed"
    assert first.final and second.final


def test_a_result_says_how_the_call_ended():
    for fields, state in (
        ({"interrupted": True, "is_error": True}, "interrupted"),
        ({"denied": True, "is_error": True}, "denied"),
        ({"is_error": True}, "failed"),
        ({}, "done"),
    ):
        driver = Driver()
        driver.feed(answer(call()), run(), result(**fields))
        assert isinstance(driver.last, ToolItem)
        assert driver.last.state == state


def test_a_failure_counts_when_nothing_went_well_after_it_in_its_turn():
    driver = Driver()
    driver.feed(user(1, "go"), started())
    for call_id, failed in (("a", True), ("b", False), ("c", True), ("d", True)):
        driver.feed(answer(call(call_id)), run(call_id), result(call_id, is_error=failed))
    calls = driver.items[1:]
    assert [item.unresolved for item in calls] == [False] * 4, "the turn is not over"
    driver.feed(answer(TextPart(text="I give up"), seq=20))
    effects = driver.feed(finished(), settled())
    assert [item.unresolved for item in calls] == [False, False, True, True]
    assert {ItemChanged(item.id) for item in calls[2:]} <= set(effects)
    driver.feed(started(), answer(call("e")), run("e"), result("e"), finished(), settled())
    assert not any(item.unresolved for item in calls), "it went on and recovered"


def test_live_output_keeps_a_tail_of_whole_lines():
    driver = Driver()
    driver.feed(answer(call()), run())
    lines = [f"line {number}" for number in range(10_000)]
    for start in range(0, 10_000, 100):
        driver.feed(ToolOutputEvent(session_id="s", call_id="c1", text="\n".join(lines[start : start + 100]) + "\n"))
    item = driver.last
    assert isinstance(item, ToolItem)
    assert len(item.output) <= LIVE_OUTPUT_CHARACTERS
    assert item.output.endswith("line 9999\n")
    assert item.output.splitlines()[0] in lines


def test_one_endless_line_is_kept_at_its_end():
    driver = Driver()
    driver.feed(answer(call()), run())
    driver.feed(ToolOutputEvent(session_id="s", call_id="c1", text="x" * 100_000 + "end"))
    assert isinstance(driver.last, ToolItem)
    assert len(driver.last.output) == LIVE_OUTPUT_CHARACTERS
    assert driver.last.output.endswith("end")


def test_a_result_without_its_call_still_shows():
    driver = Driver()
    driver.feed(result("lost"))
    assert isinstance(driver.last, ToolItem)
    assert (driver.last.call_id, driver.last.state, driver.last.name) == ("lost", "done", "bash")


def test_r092_a_withdrawn_answer_disappears():
    driver = Driver()
    driver.feed(user(1, "hi"), started(), thinking_delta("a"), text_delta("b"))
    driver.feed(ToolCallDeltaEvent(session_id="s", index=0, name="bash", characters=3))
    driver.feed(AssistantWithdrawnEvent(session_id="s", reason="broken"))
    assert [type(item) for item in driver.items] == [UserItem]
    driver.feed(RetryEvent(session_id="s", attempt=1, attempts=5, wait=4, reason="broken"))
    assert driver.state.retry is not None and driver.state.retry.until == driver.now + 4
    driver.feed(text_delta("again"))
    assert driver.state.retry is None
    assert isinstance(driver.last, AssistantItem) and driver.last.text == "again"


def test_interrupted_text_stays_and_is_marked():
    driver = Driver()
    driver.feed(started(), thinking_delta("t"), text_delta("half an ans"))
    driver.feed(answer(TextPart(text="half an ans"), stop_reason="interrupted"), finished(outcome="interrupted"))
    assert [type(item) for item in driver.items] == [AssistantItem]
    assert isinstance(driver.last, AssistantItem) and driver.last.interrupted and driver.last.final


def test_a_stream_that_just_ends_keeps_what_was_read():
    driver = Driver()
    driver.feed(started(), text_delta("half"), ToolCallDeltaEvent(session_id="s", index=0, name="bash", characters=3))
    driver.feed(finished(outcome="failed", error="the server is gone; try again"))
    text, notice = driver.items
    assert isinstance(text, AssistantItem) and text.interrupted and text.final
    assert isinstance(notice, NoticeItem) and notice.level == "error"
    assert driver.state.timed == set()


def test_a_failure_is_told_once():
    driver = Driver()
    driver.feed(
        started(), NoticeEvent(session_id="s", text="no key", level="error"), finished(outcome="failed", error="no key")
    )
    assert len(driver.items) == 1


def test_settled_closes_everything_and_calls_the_user():
    driver = Driver()
    driver.feed(started(), StepStartedEvent(session_id="s", step=1), answer(call()), run())
    effects = driver.after(3).feed(finished(), settled())
    assert Bell("finished", 3.0) in effects
    assert isinstance(driver.last, ToolItem) and driver.last.state == "interrupted" and driver.last.final
    assert driver.state.spinner.top is None and not driver.state.animating
    assert not [each for each in Driver().feed(started(), settled("interrupted")) if isinstance(each, Bell)]


def test_parallel_calls_of_the_next_step_do_not_touch_those_before():
    driver = Driver()
    driver.feed(answer(call("call_0")), run("call_0"), result("call_0", "first"))
    driver.feed(answer(call("call_0")), run("call_0"), result("call_0", "second"))
    first, second = driver.items
    assert isinstance(first, ToolItem) and isinstance(second, ToolItem)
    assert first.result is not None and second.result is not None
    assert first.result.parts == (TextPart(text="first"),)
    assert second.result.parts == (TextPart(text="second"),)


def test_a_notice_in_the_middle_of_an_answer_comes_before_it_as_in_the_log():
    driver = Driver()
    driver.feed(started(), text_delta("answer"), NoticeEvent(session_id="s", text="disk full", level="warning"))
    driver.feed(answer(TextPart(text="answer")))
    assert [type(item) for item in driver.items] == [NoticeItem, AssistantItem]


def test_commentary_and_final_answer_are_two_paragraphs():
    driver = Driver()
    driver.feed(answer(TextPart(text="Looking.", phase="commentary"), TextPart(text="Done.", phase="final_answer")))
    assert isinstance(driver.last, AssistantItem)
    assert driver.last.text == "Looking.\n\nDone."


def test_items_are_told_apart_by_version():
    driver = Driver()
    driver.feed(text_delta("a"))
    item = driver.last
    seen = {item.version}
    driver.feed(text_delta("b"))
    seen.add(item.version)
    driver.feed(answer(TextPart(text="ab")))
    seen.add(item.version)
    assert len(seen) == 3
