"""A long session on the disk, read through the machine: where one goes is loaded, what lies between is not."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from msgspec.structs import replace as changed

from tenuto.command.outcome import FindText
from tenuto.core.state.live import LiveSession
from tenuto.core.transcript import SHOWN_ENTRIES, earlier_events, find_earlier, recent_events, replay
from tenuto.protocol.event import ReplayFinishedEvent
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.operation import FindEarlierOperation, ShowEarlierOperation
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.session.log.history import LoadCount
from tenuto.session.session import Session
from tenuto.tui.machine.reading import KEPT_PARTS
from tenuto.tui.state.effects import Effect, Submit
from tenuto.tui.state.intents import AcceptSearch, Intent, MoveMatch, OpenSearch, SearchChanged, ShowEarlier
from tenuto.tui.state.item import Item, ToolItem, UserItem
from tenuto.tui.state.texts import searched_text
from tests.session.long import write_session
from tests.tui.machine.driving import SESSION, Driver

ENTRIES = 12_000


class Reader(Driver):
    """A machine whose questions are answered from a log."""

    def __init__(self, session: Session) -> None:
        super().__init__(resumed=True)
        self.live = cast("LiveSession", SimpleNamespace(id=SESSION, session=session))
        self.questions: list[ShowEarlierOperation | FindEarlierOperation] = []
        self.feed(*recent_events(self.live), ReplayFinishedEvent(session_id=SESSION))

    def do(self, *intents: Intent) -> list[Effect]:
        """Feed intents, and answers until nothing is asked any more."""
        made = self.feed(*intents)
        asked = [effect.operation for effect in made if isinstance(effect, Submit)]
        for question in asked:
            assert isinstance(question, ShowEarlierOperation | FindEarlierOperation)
            self.questions.append(question)
            if isinstance(question, ShowEarlierOperation):
                answers = self.feed(earlier_events(self.live, question))
            else:
                answers = self.feed(find_earlier(self.live, question))
            made += answers
            asked += [effect.operation for effect in answers if isinstance(effect, Submit)]
        return made

    @property
    def loads(self) -> LoadCount:
        return self.live.session.loads

    def seqs(self) -> list[int]:
        return [item.seq for item in self.items if isinstance(item, UserItem)]

    def present_text(self) -> str:
        assert self.state.search is not None
        current = self.state.search.current
        assert current is not None
        return searched_text(self.state.transcript.items[current.id])


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("long")
    return write_session(root / "home", root, ENTRIES, 12_000_000, "openai-chat/test")


@pytest.fixture
def reader(directory: Path) -> Reader:
    return Reader(Session.open(directory, read_only=True))


def plain(items: list[Item]) -> list[Item]:
    return [changed(item, id=0, version=0) for item in items]


def everything(session: Session) -> list[Item]:
    driver = Driver(resumed=True)
    driver.feed(*replay(SESSION, session.path()), ReplayFinishedEvent(session_id=SESSION))
    return plain(driver.items)


def test_the_beginning_of_a_session_is_loaded_without_what_lies_between(reader: Reader):
    recent = len(reader.items)
    before = reader.loads.bytes
    reader.do(ShowEarlier(end="oldest"))
    assert reader.seqs()[0] == min(seq for seq in reader.seqs())
    assert isinstance(reader.items[0], UserItem | ToolItem) or reader.items[0].final
    assert reader.items[0].id not in reader.state.gaps
    assert len(reader.items) - recent < SHOWN_ENTRIES + 2
    assert reader.loads.bytes - before < 2 << 20, "of twelve megabytes"
    (gap,) = reader.state.gaps.values()
    assert gap.entries > ENTRIES - 3 * SHOWN_ENTRIES


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.full) for seed in (1, 2))])
def test_whatever_way_one_goes_it_is_the_same_transcript(reader: Reader, seed: int, monkeypatch: pytest.MonkeyPatch):
    from tenuto.tui.machine import reading

    monkeypatch.setattr(reading, "KEPT_PARTS", 1_000)
    ways = random.Random(seed)
    for _ in range(200):
        if not reader.state.gaps:
            break
        gap_id = ways.choice(list(reader.state.gaps))
        reader.do(ShowEarlier(gap_id, ways.choice(("newest", "oldest"))))
    assert plain(reader.items) == everything(reader.live.session)


def test_far_parts_are_let_go_and_come_again(reader: Reader):
    while (first := reader.items[0].id) in reader.state.gaps:
        reader.do(ShowEarlier(first))
    assert len(reader.state.parts) == KEPT_PARTS
    assert len(reader.items) < (KEPT_PARTS + 2) * SHOWN_ENTRIES
    (gap,) = reader.state.gaps.values()
    path = reader.live.session.path()
    loaded = sum(part.entries for part in reader.state.parts)
    recent = len(path) - len(path.up_to(gap.before - 1))
    assert gap.entries + loaded + recent == len(path), "every entry is loaded, or known to be missing"
    head, missing = reader.seqs()[0], gap.after
    reader.do(ShowEarlier(end="oldest"))
    assert head not in reader.seqs(), "the other end went instead"
    assert missing + 1 in range(*sorted((reader.seqs()[0], reader.seqs()[-1])))
    assert reader.seqs() == sorted(reader.seqs())


def test_a_search_finds_what_is_not_loaded_and_loads_that_part_only(reader: Reader):
    reader.do(OpenSearch(), SearchChanged("part 49 of"), AcceptSearch())
    assert "part 49 of" in reader.present_text()
    assert len(reader.state.parts) == 1
    assert reader.loads.bytes < 4 << 20, "what has no such words is not decoded"
    assert reader.state.search is not None
    assert reader.state.search.total == 1


def test_s8_a_text_that_another_place_names_is_shown_wherever_it_is(reader: Reader):
    reader.do(FindText("part 49 of"))
    assert "part 49 of" in reader.present_text()
    reader.do(FindText("part 73 of"))
    assert "part 73 of" in reader.present_text()


def test_a_search_meets_every_match_of_the_session_once(reader: Reader):
    words = "of the work."
    said = [entry.seq for entry in reader.live.session.path() if isinstance(entry, UserMessage)]
    far = [seq for seq in said if seq % 1_009 < 24]
    assert len(far) > 5
    for seq in far:
        reader.do(OpenSearch(), SearchChanged(f"part {seq} {words}"), AcceptSearch(), MoveMatch(-1))
        assert f"part {seq} {words}" in reader.present_text()
    reader.do(SearchChanged(words))
    met: list[str] = []
    for _ in range(len(said) + 5):
        text = reader.present_text()
        if met and text == met[0]:
            break
        met.append(text)
        reader.do(MoveMatch(-1))
    assert len(met) == len(set(met)) == len(said)


def test_a_search_down_goes_round_by_the_beginning_of_the_session(reader: Reader):
    reader.do(OpenSearch(), SearchChanged("Please go on"))
    reader.do(MoveMatch(1))
    first = min(entry.seq for entry in reader.live.session.path() if isinstance(entry, UserMessage))
    assert f"part {first} of" in reader.present_text()


def test_words_that_are_nowhere_cost_no_decoding(reader: Reader):
    before = reader.loads.blocks
    reader.do(OpenSearch(), SearchChanged("hippopotamus"), AcceptSearch())
    assert reader.loads.blocks - before <= 2
    assert reader.state.search is not None
    assert (reader.state.search.total, reader.state.search.entries_left) == (0, 0)


def test_a_turn_of_thousands_of_calls_keeps_calls_and_results_together(tmp_path: Path):
    session = Session.create(tmp_path / "home", tmp_path)
    entries: list[HistoryEvent] = [UserMessage(parts=(TextPart(text="do it"),))]
    for number in range(1_000):
        call = ToolCallPart(id=f"c{number}", name="bash", arguments='{"command":"ls"}')
        entries.append(AssistantMessage(parts=(call,)))
        entries.append(ToolResultMessage(call_id=call.id, name="bash", parts=(TextPart(text=f"r{number}"),)))
    for entry in entries:
        session.append(entry)
    reader = Reader(session)
    for _ in range(20):
        if not reader.state.gaps:
            break
        reader.do(ShowEarlier())
    tools = [item for item in reader.items if isinstance(item, ToolItem)]
    assert len(tools) == 1_000
    assert {item.state for item in tools} == {"done"}
