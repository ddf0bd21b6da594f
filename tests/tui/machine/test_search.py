"""The search in the transcript: which match is next, what is unfolded for it, and how it goes on in the log."""

from __future__ import annotations

from tenuto.protocol.event import (
    AssistantMessageEvent,
    EarlierEntriesEvent,
    EarlierFoundEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import AnyOperation, FindEarlierOperation, ShowEarlierOperation
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.tui.state.effects import MatchShown, PlaceKept, PlaceRestored, Submit, Toast
from tenuto.tui.state.intents import AcceptSearch, Escape, LeaveTranscript, MoveMatch, OpenSearch, SearchChanged
from tenuto.tui.state.item import AssistantItem, Item, ToolItem
from tenuto.tui.state.search import Search
from tenuto.tui.state.texts import searched_text
from tests.tui.machine.driving import SESSION, Driver, user


def answer(seq: int, text: str) -> AssistantMessageEvent:
    return AssistantMessageEvent(session_id=SESSION, message=AssistantMessage(seq=seq, parts=(TextPart(text=text),)))


def tool_call(seq: int, command: str, output: str) -> list[object]:
    call = ToolCallPart(id=f"c{seq}", name="bash", arguments=f'{{"command":"{command}"}}')
    return [
        AssistantMessageEvent(session_id=SESSION, message=AssistantMessage(seq=seq, parts=(call,))),
        ToolStartedEvent(session_id=SESSION, call_id=call.id, name="bash", arguments=call.arguments),
        ToolResultEvent(
            session_id=SESSION,
            message=ToolResultMessage(seq=seq + 1, call_id=call.id, name="bash", parts=(TextPart(text=output),)),
        ),
    ]


def conversation() -> Driver:
    driver = Driver()
    driver.feed(user(1, "where is the parser?"), answer(2, "The parser is in `parse.py`; a Parser class."))
    driver.feed(*tool_call(3, "grep parser", "a parser\nb\nparser c"))  # type: ignore[arg-type]
    driver.feed(user(5, "thanks"), answer(6, "You are welcome."))
    driver.effects.clear()
    return driver


def search(driver: Driver) -> Search:
    found = driver.state.search
    assert found is not None
    return found


def present(driver: Driver) -> tuple[object, int]:
    found = search(driver)
    assert found.current is not None
    return type(driver.state.transcript.items[found.current.id]), found.ordinal


def test_it_begins_with_the_nearest_match_above_and_goes_up_and_round():
    driver = conversation()
    assert PlaceKept() in driver.feed(OpenSearch())
    assert MatchShown() in driver.feed(SearchChanged("parser"))
    assert (search(driver).number, search(driver).total) == (6, 6)
    seen = []
    for _ in range(7):
        seen.append(search(driver).number)
        driver.feed(MoveMatch(-1))
    assert seen == [6, 5, 4, 3, 2, 1, 6]
    driver.feed(MoveMatch(1))
    driver.feed(MoveMatch(1))
    assert search(driver).number == 1
    assert search(driver).round, "it says that it went round"


def test_capitals_count_once_one_is_typed():
    driver = conversation()
    driver.feed(OpenSearch(), SearchChanged("parser"), SearchChanged("Parser"))
    assert search(driver).total == 1
    assert present(driver) == (AssistantItem, 0)
    driver.feed(SearchChanged("arse"))
    assert search(driver).total == 7, "a wider text finds again what a narrower one did not"


def test_typing_on_keeps_the_match_where_it_still_matches():
    driver = conversation()
    driver.feed(OpenSearch(), SearchChanged("p"))
    for query in ("pa", "par", "parse", "parser "):
        driver.feed(SearchChanged(query))
    assert present(driver)[0] is ToolItem
    driver.feed(SearchChanged("parser is"))
    assert present(driver) == (AssistantItem, 0)


def test_what_is_folded_is_unfolded_for_its_match_only():
    driver = conversation()
    tool = next(item for item in driver.items if isinstance(item, ToolItem))
    version = tool.version
    driver.feed(OpenSearch(), SearchChanged("parser c"))
    assert not tool.folded
    assert tool.version > version
    driver.feed(SearchChanged("where is"))
    assert tool.folded, "the search went on to another item"
    driver.feed(SearchChanged("parser c"), Escape())
    assert tool.folded
    assert driver.state.search is None
    driver.feed(OpenSearch(), SearchChanged("parser c"), AcceptSearch(), Escape())
    assert not tool.folded, "who stays with a match wants to read it"


def test_escape_goes_back_and_enter_stays():
    driver = conversation()
    driver.feed(OpenSearch(), SearchChanged("parser"))
    assert PlaceRestored() in driver.feed(Escape())
    driver.feed(OpenSearch(), SearchChanged("parser"), AcceptSearch())
    assert driver.state.contexts[0] == "found"
    driver.feed(OpenSearch())
    assert driver.state.contexts[0] == "search", "back in the field, with the same words"
    assert search(driver).query == "parser"
    assert PlaceRestored() not in driver.feed(AcceptSearch(), Escape())
    assert driver.state.contexts[0] == "empty"


def test_emphasis_in_the_source_hides_nothing_from_a_search():
    driver = Driver()
    driver.feed(answer(1, "Look at the **tail** block of `x`."), OpenSearch(), SearchChanged("tail block"))
    assert search(driver).total == 1


def test_what_comes_in_while_it_is_open_counts_too():
    driver = conversation()
    driver.feed(OpenSearch(), SearchChanged("parser"))
    driver.feed(answer(8, "parser again"))
    assert search(driver).total == 6, "nothing moves by itself"
    driver.feed(MoveMatch(1))
    assert (search(driver).number, search(driver).total) == (7, 7)


def older(remaining: int, text: str, seq: int = -5) -> EarlierEntriesEvent:
    events = (user(seq, text), answer(seq + 1, "an old answer"))
    return EarlierEntriesEvent(session_id=SESSION, remaining=remaining, before=seq, events=events)


def asked(effects: list[object]) -> list[AnyOperation]:
    return [effect.operation for effect in effects if isinstance(effect, Submit)]


def found(driver: Driver, seq: int = 0, *, after: int = 0, before: int = 0) -> EarlierFoundEvent:
    looking = search(driver).looking
    assert looking is not None
    query = search(driver).query
    return EarlierFoundEvent(session_id=SESSION, query=query, upto=looking.before, seq=seq, after=after, before=before)


def with_older_entries() -> Driver:
    driver = conversation()
    driver.feed(older(900, "the first that is loaded"))
    driver.effects.clear()
    return driver


def test_going_up_past_the_first_match_looks_on_in_the_log():
    driver = with_older_entries()
    driver.feed(OpenSearch(), SearchChanged("where is"))
    assert search(driver).entries_left == 900
    (question,) = asked(driver.feed(MoveMatch(-1)))
    assert isinstance(question, FindEarlierOperation)
    assert (question.query, question.after, question.before, question.newest) == ("where is", 0, -5, True)
    assert driver.feed(MoveMatch(-1)) == [], "it is looking already"
    (part,) = asked(driver.feed(found(driver, -70)))
    assert isinstance(part, ShowEarlierOperation)
    assert (part.before, part.after, part.at) == (-5, 0, -70)
    events = (user(-70, "and where is that?"), answer(-69, "there"))
    driver.feed(
        EarlierEntriesEvent(
            session_id=SESSION, remaining=600, before=-70, last=-69, later=298, upto=-5, count=2, events=events
        )
    )
    assert (search(driver).number, search(driver).total) == (1, 2)
    assert search(driver).looking is None
    assert search(driver).entries_left == 600, "what is newer than the newest match has none"


def test_a_text_that_is_nowhere_is_looked_for_everywhere_once():
    driver = with_older_entries()
    driver.feed(OpenSearch(), SearchChanged("zebra"))
    assert asked(driver.feed(AcceptSearch()))
    (further,) = asked(driver.feed(found(driver, before=-500)))
    assert isinstance(further, FindEarlierOperation), "there is more to look through"
    assert (further.after, further.before) == (0, -500)
    assert Toast("Nothing matches in this session") in driver.feed(found(driver))
    assert search(driver).entries_left == 0
    assert not asked(driver.feed(AcceptSearch()))
    assert not asked(driver.feed(SearchChanged("zebras"), AcceptSearch())), "what has no zebra has no zebras"
    assert asked(driver.feed(SearchChanged("zeb"), AcceptSearch()))


def test_escape_and_other_words_stop_looking_through_the_log():
    driver = with_older_entries()
    driver.feed(OpenSearch(), SearchChanged("zebra"), AcceptSearch())
    answer = found(driver, -70)
    driver.feed(SearchChanged("lion"))
    assert not asked(driver.feed(answer))
    driver.feed(AcceptSearch())
    answer = found(driver, -70)
    driver.feed(Escape())
    assert not asked(driver.feed(answer))


def test_leaving_for_the_prompt_stays():
    driver = conversation()
    driver.feed(OpenSearch(), SearchChanged("where"), AcceptSearch())
    assert PlaceRestored() not in driver.feed(LeaveTranscript())
    assert driver.state.search is None


def test_of_ten_thousand_items_a_longer_text_is_looked_for_only_where_the_shorter_one_was(monkeypatch):
    looked_at = 0

    def look(item: Item) -> str:
        nonlocal looked_at
        looked_at += 1
        return searched_text(item)

    monkeypatch.setattr("tenuto.tui.machine.reading.searched_text", look)
    driver = Driver()
    text = "some words of an answer that goes on for a while\n" * 20
    for number in range(10_000):
        driver.state.transcript.items[number + 100] = AssistantItem(
            id=number + 100, text=text + str(number), final=True
        )
    driver.shown = list(driver.state.transcript.items)
    driver.feed(OpenSearch())
    for query in ("9", "99", "999", "9999"):
        driver.feed(SearchChanged(query))
    assert search(driver).total == 1
    matching = [sum(query in str(number) for number in range(10_000)) for query in ("9", "99", "999")]
    assert looked_at == 10_000 + sum(matching)
