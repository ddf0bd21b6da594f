"""A session of thousands of entries: what is done in it costs what its end costs (DESIGN section 3, R-069)."""

from __future__ import annotations

from pathlib import Path

from tenuto.core.transcript import SHOWN_ENTRIES, earlier_events
from tenuto.protocol.event import EarlierEntriesEvent, UserMessageEvent
from tenuto.protocol.message import CompactionEntry, UserMessage
from tenuto.protocol.operation import CompactSessionOperation, ShowEarlierOperation
from tenuto.protocol.part import text_of
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tenuto.tool.search.record import Question, Span, recall
from tenuto.tool.search.search import Stop
from tests.core.compacting import SUMMARY, is_summary_request
from tests.core.harness import reopened
from tests.server import Call, Reply, Request, ScriptedServer
from tests.session.long import write_session

ENTRIES = 12_000
SIZE = 6_000_000
MODEL = "openai-chat/test"
BLOCK = 1 << 19


def long_session(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    return write_session(tmp_path / "home", tmp_path / "work", ENTRIES, SIZE, MODEL)


def script(request: Request) -> Reply:
    if is_summary_request(request):
        return Reply(SUMMARY)
    if request.items[-1].kind == "result":
        return Reply("That was it.")
    return Reply("Let me look.", tool_calls=[Call("bash", {"command": "echo seen"})])


async def test_r069_opening_and_the_steps_of_a_long_session_read_its_end_only(tmp_path):
    directory = long_session(tmp_path)
    before = (directory / LOG_NAME).read_bytes()
    settings = {"TENUTO_COMPACTION__USER_MESSAGE_TOKENS": "400"}
    async with (
        ScriptedServer(script) as server,
        reopened(tmp_path, server, resume_latest=True, environ=settings) as run,
    ):
        loads = run.session.loads
        assert loads.bytes < 3 * BLOCK, "opening and replaying"
        assert run.session.directory == directory
        opened = loads.blocks
        for number in range(20):
            await run.ask(f"question {number}")
        assert loads.blocks == opened, "what a step needs is in memory"
        operation = CompactSessionOperation(session_id=run.session.id)
        await run.runtime.submit(operation)
        await run.runtime.wait_for(operation.submission_id)
        assert isinstance(run.session.path()[-1], CompactionEntry)
        await run.ask("and after it")
        assert loads.bytes < SIZE + 3 * BLOCK, "a compaction looks for the user's rules once, back to the first"
    assert (directory / LOG_NAME).read_bytes().startswith(before)


async def test_a_resumed_session_shows_its_last_turns_and_the_rest_when_asked(tmp_path):
    directory = long_session(tmp_path)
    said = [entry.seq for entry in Session.open(directory, read_only=True).path() if isinstance(entry, UserMessage)]
    async with ScriptedServer(script) as server, reopened(tmp_path, server, resume_latest=True) as run:
        shown = [event.seq for event in run.of(UserMessageEvent)]
        (earlier,) = run.of(EarlierEntriesEvent)
        assert 1 < len(shown) < SHOWN_ENTRIES
        assert shown == said[-len(shown) :]
        assert earlier.before == shown[0], "a turn is shown from its beginning"
        assert run.session.path().index(run.session.find(earlier.before)) == earlier.remaining
        while earlier.remaining:
            await run.runtime.submit(ShowEarlierOperation(session_id=run.session.id, before=earlier.before))
            earlier = run.of(EarlierEntriesEvent)[-1]
            shown = [event.seq for event in earlier.events if isinstance(event, UserMessageEvent)] + shown
        assert shown == said
        nothing = ShowEarlierOperation(session_id=run.session.id, before=1)
        assert earlier_events(run.runtime.live, nothing).events == ()


async def test_a_short_session_is_shown_whole(tmp_path):
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server) as run:
            await run.ask("hello")
        async with reopened(tmp_path, server, resume_latest=True) as again:
            assert again.of(EarlierEntriesEvent) == []
            assert [text_of(event.parts) for event in again.of(UserMessageEvent)] == ["hello"]


def test_recall_of_a_range_reads_that_range_and_a_search_streams(tmp_path):
    directory = long_session(tmp_path)
    session = Session.open(directory, read_only=True)
    before = session.loads.blocks
    shown = recall(Question(span=Span(5_000, 5_010)), session.path(), session.store.outputs, Stop())
    assert "#5005 " in shown
    assert session.loads.blocks - before <= 2
    found = recall(Question(query="^result 31:", regex=True), session.path(), session.store.outputs, Stop())
    assert "#31 " in found
    assert session.loads.bytes < 2 * SIZE
    history = session._tree.history
    assert sum(history.blocks[number].size for number in history._recent) <= 8 << 20


def test_r069_a_picker_reads_no_log(tmp_path, monkeypatch):
    from tenuto.session.library import meta
    from tenuto.session.library.catalog import list_sessions

    directory = long_session(tmp_path)
    monkeypatch.setattr(meta, "read_log", None)
    (summary,) = list_sessions(tmp_path / "home")
    assert (summary.directory, summary.title, summary.size) == (
        directory,
        "A long session",
        (directory / LOG_NAME).stat().st_size,
    )
