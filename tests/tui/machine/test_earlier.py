"""The older part of a long session is put before what is shown (DESIGN section 3, "Cost")."""

from __future__ import annotations

from msgspec.structs import replace

from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    EarlierEntriesEvent,
    ReplayFinishedEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import ShowEarlierOperation
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.tui.state.effects import OlderAdded, Submit
from tenuto.tui.state.intents import ShowEarlier
from tenuto.tui.state.item import Item, NoticeItem
from tests.tui.machine.driving import SESSION, Driver, started, user


def turn(number: int) -> list[AnyEvent]:
    call = ToolCallPart(id=f"c{number}", name="bash", arguments='{"command":"ls"}')
    asked = AssistantMessage(seq=10 * number + 1, parts=(TextPart(text=f"looking {number}"), call))
    result = ToolResultMessage(seq=10 * number + 2, call_id=call.id, name="bash", parts=(TextPart(text="a"),))
    return [
        user(10 * number, f"question {number}"),
        AssistantMessageEvent(session_id=SESSION, message=asked),
        ToolStartedEvent(session_id=SESSION, call_id=call.id, name="bash", arguments=call.arguments),
        ToolResultEvent(session_id=SESSION, message=result),
    ]


def replayed(*turns: int, first: EarlierEntriesEvent | None = None) -> Driver:
    driver = Driver(resumed=True)
    if first is not None:
        driver.feed(first)
    for number in turns:
        driver.feed(*turn(number))
    driver.feed(ReplayFinishedEvent(session_id=SESSION))
    return driver


def earlier(remaining: int, before: int, *turns: int) -> EarlierEntriesEvent:
    events = tuple(event for number in turns for event in turn(number))
    return EarlierEntriesEvent(session_id=SESSION, remaining=remaining, before=before, events=events)


def plain(items: list[Item]) -> list[Item]:
    return [replace(item, id=0, version=0) for item in items]


def test_what_is_loaded_later_looks_as_if_it_had_been_there_from_the_start():
    driver = replayed(5, 6, first=earlier(40, 50))
    mark = driver.items[0]
    assert isinstance(mark, NoticeItem)
    assert mark.text.startswith("40 earlier entries: scroll up")
    driver.feed(earlier(20, 30, 3, 4))
    assert driver.effects[-1] == OlderAdded()
    assert driver.items[0].text.startswith("20 earlier entries")
    driver.feed(earlier(0, 1, 1, 2))
    assert plain(driver.items) == plain(replayed(1, 2, 3, 4, 5, 6).items)
    assert len({item.id for item in driver.items}) == len(driver.items)


def test_it_is_asked_for_once_and_only_when_there_is_more():
    driver = replayed(5, first=earlier(40, 50))
    (asked,) = [effect.operation for effect in driver.feed(ShowEarlier()) if isinstance(effect, Submit)]
    assert isinstance(asked, ShowEarlierOperation)
    assert asked.before == 50
    assert driver.feed(ShowEarlier()) == [], "the answer is on its way"
    driver.feed(earlier(0, 1, 4))
    assert driver.feed(ShowEarlier()) == []
    assert replayed(5).feed(ShowEarlier()) == []


def test_a_running_turn_goes_on_below_what_is_put_before_it():
    driver = replayed(5, first=earlier(40, 50))
    driver.feed(started(), *turn(6)[:3])
    running = driver.last
    driver.feed(earlier(0, 1, 4))
    assert driver.last is running
    assert driver.state.running
    driver.feed(turn(6)[3])
    assert driver.last.final
