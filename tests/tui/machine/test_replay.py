"""Live and resumed transcripts are identical (DESIGN section 2): property tests over random turns."""

from __future__ import annotations

from collections.abc import Iterator

from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.core.transcript import replay
from tenuto.protocol.entry import NoticeEntry, ShellEntry
from tenuto.protocol.event import (
    AnyEvent,
    AssistantMessageEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    CompactionEndEvent,
    CompactionProgressEvent,
    CompactionStartEvent,
    NoticeEvent,
    ReplayFinishedEvent,
    ShellFinishedEvent,
    ShellOutputEvent,
    ShellStartedEvent,
    ToolCallDeltaEvent,
    ToolOutputEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart
from tenuto.tui.state.effects import ItemAdded, TranscriptReset
from tenuto.tui.state.intents import SendText, Tick
from tests.tui.machine.driving import SESSION, Driver, finished, opened, queue, settled, started, user

words = st.text(alphabet="ab \n", min_size=1, max_size=12)
parts = st.lists(
    st.one_of(
        st.builds(lambda text: TextPart(text=text), words),
        st.builds(lambda text: TextPart(text=text, phase="commentary"), words),
        st.builds(lambda text: ThinkingPart(text=text), st.one_of(st.just(""), words)),
        st.just("call"),
    ),
    max_size=5,
)
turns = st.lists(
    st.one_of(
        st.tuples(st.just("prompt"), words),
        st.tuples(st.just("answer"), parts, st.booleans(), st.booleans(), st.booleans(), st.booleans()),
        st.tuples(st.just("shell"), words),
        st.tuples(st.just("compaction"), words),
        st.tuples(st.just("notice"), words),
    ),
    max_size=8,
)


class Script:
    """One session told twice: as it happens, and as the entries that it leaves."""

    def __init__(self) -> None:
        self.entries: list[HistoryEvent] = []
        self.calls = 0

    def append(self, entry):
        entry = type(entry)(**{**{name: getattr(entry, name) for name in entry.__struct_fields__}, "seq": self.seq})
        self.entries.append(entry)
        return entry

    @property
    def seq(self) -> int:
        return len(self.entries) + 1

    def live(self, driver: Driver, turn) -> None:
        for event in getattr(self, turn[0])(*turn[1:]):
            driver.after(0.4).feed(event, Tick())

    def prompt(self, text: str) -> Iterator[AnyEvent | SendText]:
        yield SendText(f"x{text}")
        queued = self.seq
        yield queue((queued, f"x{text}"))
        yield started()
        entry = self.append(UserMessage(parts=(TextPart(text=f"x{text}"),), from_queued=queued))
        yield user(entry.seq, f"x{text}", queued)
        yield queue()
        yield finished()
        yield settled()

    def answer(
        self, parts, streamed: bool, failed_first: bool, noticed: bool, is_error: bool = False
    ) -> Iterator[AnyEvent]:
        yield started()
        made = []
        for part in parts:
            if part == "call":
                self.calls += 1
                part = ToolCallPart(id=f"c{self.calls}", name="bash", arguments='{"command":"x"}')
            made.append(part)
        if failed_first:
            yield from self.deltas(made)
            yield AssistantWithdrawnEvent(session_id=SESSION, reason="broken")
        if streamed:
            yield from self.deltas(made)
        if noticed:
            yield from self.notice("the disk is full")
        message = self.append(AssistantMessage(parts=tuple(made), thinking_duration=1.5))
        yield AssistantMessageEvent(session_id=SESSION, message=message)
        calls = [part for part in made if isinstance(part, ToolCallPart)]
        for part in calls:
            yield ToolStartedEvent(session_id=SESSION, call_id=part.id, name=part.name, arguments=part.arguments)
            yield ToolOutputEvent(session_id=SESSION, call_id=part.id, text="live")
        for part in calls:
            stored = ToolResultMessage(
                call_id=part.id, name="bash", parts=(TextPart(text="out"),), duration=0.7, is_error=is_error
            )
            yield ToolResultEvent(session_id=SESSION, message=self.append(stored))
        yield finished()
        yield settled()

    def deltas(self, made) -> Iterator[AnyEvent]:
        index = 0
        for part in made:
            match part:
                case TextPart(text=text):
                    for character in text:
                        yield AssistantTextDeltaEvent(session_id=SESSION, text=character)
                case ThinkingPart(text=text):
                    yield AssistantThinkingDeltaEvent(session_id=SESSION, text=text)
                case ToolCallPart(name=name):
                    yield ToolCallDeltaEvent(session_id=SESSION, index=index, name=name, characters=4)
                    index += 1

    def shell(self, text: str) -> Iterator[AnyEvent]:
        yield started("shell")
        yield ShellStartedEvent(session_id=SESSION, command=text)
        yield ShellOutputEvent(session_id=SESSION, text="live")
        entry = self.append(ShellEntry(command=text, output="all", exit_code=0, duration=2.0))
        yield ShellFinishedEvent(session_id=SESSION, entry=entry)
        yield finished("shell")
        yield settled()

    def compaction(self, text: str) -> Iterator[AnyEvent]:
        yield started("compaction")
        yield CompactionStartEvent(session_id=SESSION, reason="threshold")
        yield CompactionProgressEvent(session_id=SESSION, stage="summarising", summary_tokens=9)
        yield from self.notice(f"fell back: {text}")
        entry = self.append(CompactionEntry(summary=text, first_kept_index=1, reason="threshold", duration=3.0))
        yield CompactionEndEvent(session_id=SESSION, reason="threshold", entry=entry)
        yield finished("compaction")
        yield settled()

    def notice(self, text: str) -> Iterator[AnyEvent]:
        self.append(NoticeEntry(text=text, level="warning"))
        yield NoticeEvent(session_id=SESSION, text=text, level="warning")


def shown(driver: Driver) -> list[tuple[object, ...]]:
    """What the items show: everything but identity and version."""
    return [
        (type(item), *(getattr(item, name) for name in item.__struct_fields__ if name not in {"id", "version"}))
        for item in driver.items
    ]


@given(turns)
@example([("answer", [], False, False, True), ("answer", [TextPart(text="a")], True, False, True)])
@example(
    [
        ("answer", [], False, False, True),
        ("answer", [ThinkingPart(text="a"), TextPart(text="a")], True, False, True),
    ]
)
def test_live_and_resumed_transcripts_are_identical(script_turns):
    live, script = Driver(), Script()
    for turn in script_turns:
        script.live(live, turn)
    resumed = Driver(resumed=True)
    for event in replay(SESSION, script.entries):
        assert resumed.feed(event) == []
    effects = resumed.feed(ReplayFinishedEvent(session_id=SESSION))
    assert effects.count(TranscriptReset()) == 1
    assert not [effect for effect in effects if isinstance(effect, ItemAdded)]
    assert shown(live) == shown(resumed)
    assert all(item.final for item in live.items)
    assert not live.state.animating and not resumed.state.animating


def test_ids_are_not_used_again_after_a_change_of_session():
    driver = Driver()
    driver.feed(user(1, "a"))
    before = driver.last.id
    driver.feed(opened(), user(1, "b"))
    assert driver.last.id > before
    assert len(driver.items) == 1
