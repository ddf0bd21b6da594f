"""Several compactions of one session: over restarts, inside one turn, on branches; nothing twice and nothing lost."""

from __future__ import annotations

import itertools
import re

import pytest

from tenuto.protocol.entry import BranchEntry, UndoEntry
from tenuto.protocol.event import CompactionStartEvent
from tenuto.protocol.message import AssistantMessage, UserMessage
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tests.compaction.listing import listed_in
from tests.core.compacting import (
    FROM_A_TRANSCRIPT,
    LONG_ANSWER,
    SUMMARY,
    check_requests,
    compact,
    compactions,
    fill,
    is_summary_request,
    step_requests,
    summary_requests,
    talk,
    words,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.examples import one_of
from tests.server import Call, Reply, Request, ScriptedServer, Tokens
from tests.session.build import check_pairs


def check_view(running: Agent) -> list[object]:
    """The live view is what a reader of the log computes, entry by entry."""
    session = running.session
    view = list(session.get_llm_history())
    assert project(session.path(), running.runtime.live.facts.id) == view
    stored = Session.open(session.directory, read_only=True)
    assert stored.get_llm_history() == view
    check_pairs(view)
    return view


def numbered_summaries():
    """Summaries that can be told apart."""
    made = 0

    def answer(_request: Request):
        nonlocal made
        made += 1
        return Reply(SUMMARY.replace("Keep the tests green.", f"SUMMARY-{made}"))

    return answer


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 2))
async def test_compact_reload_compact_reload_equals_the_live_view(tmp_path, protocol):
    async with ScriptedServer(talk(summary=numbered_summaries()), window=32_000) as server:
        before: list[object] = []
        for round_number in range(3):
            changes = {"model": f"{protocol}/test", "resume_latest": round_number > 0, "environ": FROM_A_TRANSCRIPT}
            async with reopened(tmp_path, server, **changes) as running:
                resumed = list(running.session.get_llm_history())
                assert resumed[: len(before)] == before
                assert not running.of(CompactionStartEvent), "R-101: resuming compacts nothing"
                await fill(running, 5)
                await compact(running, f"focus {round_number}")
                assert len(compactions(running)) == round_number + 1
                before = check_view(running)
                await running.ask(f"after {round_number}")
                check_view(running)
                before = list(running.session.get_llm_history())
        texts = [request.items[-1].text for request in summary_requests(server)]
        assert "<previous-summary>" not in texts[0]
        assert all(f"SUMMARY-{number}" in texts[number] for number in range(1, len(texts)))
        last = step_requests(server)[-1].raw.decode()
        assert [f"SUMMARY-{number}" in last for number in range(1, len(texts) + 1)][-1]
        assert "SUMMARY-1" not in last
        check_requests(server, 32_000)


async def test_a_second_cut_inside_the_first_kept_tail(tmp_path):
    """R-038: what the first compaction kept is summarised by the second, not lost and not summarised twice."""
    script, options = talk(summary=numbered_summaries()), {"window": 64_000}
    async with agent(tmp_path, script, options=options, environ=FROM_A_TRANSCRIPT) as running:
        for number in range(12):
            await running.ask(f"QUESTION-{number}. " + words(700))
        await compact(running)
        for number in range(12, 14):
            await running.ask(f"QUESTION-{number}. " + words(700))
        await compact(running)
        first, second = compactions(running)
        assert first.first_kept_index < second.first_kept_index < first.seq, "the second cut is in the first tail"
        one, two = (request.items[-1].text for request in summary_requests(running.server))
        asked_first, asked_second = (set(re.findall(r"\[User\]: (QUESTION-\d+)", text)) for text in (one, two))
        assert asked_first and asked_second
        assert not asked_first & asked_second
        path = [entry for entry in running.session.path() if isinstance(entry, UserMessage)]
        kept = {f"QUESTION-{n}" for n, entry in enumerate(path) if entry.seq >= second.first_kept_index}
        assert asked_first | asked_second | kept == {f"QUESTION-{n}" for n in range(14)}
        assert "SUMMARY-1" in two
        check_view(running)


async def test_three_compactions_inside_one_turn(tmp_path):
    """The user's message is in every request exactly once; every result is summarised at most once (R-034, R-039)."""
    count = 0

    def answer(_request: Request):
        nonlocal count
        count += 1
        if count in (1, 40):
            return Reply("done")
        command = f"echo RESULT-{count:03}; seq 1 900"
        return Reply(f"STEP-{count:03}", tool_calls=[Call("bash", {"command": command})])

    script = talk(answer, numbered_summaries())
    async with agent(tmp_path, script, options={"window": 16_000}, environ=FROM_A_TRANSCRIPT) as running:
        await running.ask("an earlier question")
        settled = await running.ask("THE-REQUEST " + words(200), timeout=60)
        assert settled.outcome == "completed", settled.error
        made = compactions(running)
        assert len(made) >= 3
        turn = [entry for entry in running.session.path() if isinstance(entry, UserMessage)][1]
        assert all(entry.first_kept_index > turn.seq for entry in made), "they all cut inside the turn"
        for request in step_requests(running.server)[1:]:
            users = [item for item in request.items if item.kind in ("user", "system") and "THE-REQUEST" in item.text]
            assert [item.kind for item in users] == ["user"]
            assert users[0].text.count("THE-REQUEST") == 1
        bodies = [text_between(request, "conversation") for request in summary_requests(running.server)]
        summarised = [mark for body in bodies for mark in re.findall(r"\[Tool result\]: (RESULT-\d+)", body)]
        assert len(summarised) == len(set(summarised)) > 20
        said = [mark for body in bodies for mark in re.findall(r"\[Assistant\]: (STEP-\d+)", body)]
        assert said == sorted(set(said)), "and in order"
        check_requests(running.server, 16_000)
        check_view(running)


def text_between(request: Request, tag: str) -> str:
    return request.items[-1].text.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_a_compaction_on_an_abandoned_branch_does_not_count(tmp_path, protocol):
    async with ScriptedServer(talk(summary=numbered_summaries()), window=64_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await fill(running, 4)
            fork = running.session.path()[-1].seq
            for number in range(4):
                await running.ask(f"ABANDONED-{number} " + words(600))
            await compact(running)
            abandoned = compactions(running)[0]
            assert abandoned.first_kept_index > fork, "it stands for what both branches have"
            await running.ask("ABANDONED-last")
            running.session.append(BranchEntry(parent=fork))
            await running.ask("the other way")
            request = server.requests[-1].raw.decode()
            assert "SUMMARY-1" not in request
            assert "ABANDONED" not in request
            assert request.count("question ") == 4
            await fill(running, 4)
            await compact(running)
            second = compactions(running)[1]
            assert "SUMMARY-1" not in summary_requests(server)[-1].raw.decode()
            assert "ABANDONED" not in second.summary + str(second.replacement)
            view = check_view(running)
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            assert list(running.session.get_llm_history()) == view
            running.session.append(BranchEntry(parent=abandoned.seq))
            await running.ask("back on the first branch")
            request = server.requests[-1].raw.decode()
            assert "SUMMARY-1" in request
            assert "the other way" not in request
            check_view(running)
        check_requests(server, 64_000)


async def test_undo_and_redo_between_compactions(tmp_path):
    async with agent(tmp_path, talk(summary=numbered_summaries()), options={"window": 64_000}) as running:
        await fill(running, 6)
        whole = list(running.session.get_llm_history())
        await compact(running)
        short = list(running.session.get_llm_history())
        undo = running.session.append(UndoEntry(target=compactions(running)[0].seq))
        assert check_view(running)[: len(whole)] == whole
        await running.ask("with everything")
        assert "SUMMARY" not in running.server.requests[-1].raw.decode()
        running.session.append(UndoEntry(target=undo.seq))
        assert check_view(running)[: len(short)] == short
        await running.ask("with the summary")
        assert "SUMMARY-1" in running.server.requests[-1].raw.decode()
        check_requests(running.server, 64_000)


async def test_usage_from_before_the_compaction_never_triggers_again(tmp_path):
    """R-027: the usage of kept answers was counted with all that is gone; over a restart as well."""

    def answer(request: Request):
        return Reply(LONG_ANSWER, usage=Tokens(input=2 * request.tokens, output=700))

    options = {"listed_window": 24_000}
    async with ScriptedServer(talk(answer), **options) as server:
        async with reopened(tmp_path, server) as running:
            while not compactions(running):
                await fill(running, 1)
            (entry,) = compactions(running)
            kept = [
                one
                for one in running.session.path()
                if isinstance(one, AssistantMessage) and entry.first_kept_index <= one.seq < entry.seq
            ]
            trigger = running.runtime.live.budget().trigger
            assert kept and kept[-1].usage is not None
            assert kept[-1].usage.context_size > 0.8 * trigger, "the kept answers still say that it was nearly full"
            await running.ask("small")
            assert len(compactions(running)) == 1
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.ask("small again")
            assert len(compactions(running)) == 1
            assert not running.of(CompactionStartEvent)


async def test_every_file_of_a_session_is_in_the_details_however_often_it_is_compacted(tmp_path):
    """Seed 000, `compaction_file_lists`: read and changed by real tools, accumulated, listed once."""
    write_big_file(tmp_path)
    names = [f"file-{number}.txt" for number in range(12)]

    def answer(request: Request):
        if request.turn and request.turn[-1].kind == "result":
            return Reply(LONG_ANSWER)
        name = names[int(request.last_user.split("make ")[-1].split()[0])]
        return Reply(
            tool_calls=[Call("write", {"path": name, "content": words(400)}), Call("read", {"path": "big.txt"})]
        )

    async with agent(tmp_path, talk(answer), options={"window": 64_000}) as running:
        for number in range(12):
            await running.ask(f"make {number} now")
            if number in (4, 8, 11):
                await compact(running)
        made = compactions(running)
        assert len(made) == 3
        work = str((tmp_path / "work").resolve())
        for earlier, later in itertools.pairwise(made):
            assert set(earlier.details.modified_files) < set(later.details.modified_files)
        assert all(path.startswith(work) for path in made[-1].details.modified_files)
        for entry in made:
            assert entry.summary.count("<read-files>") == entry.summary.count("<modified-files>") == 1
            changed = {path.removeprefix(f"{work}/") for path in entry.details.modified_files}
            assert listed_in(entry.summary, "modified-files") == (changed, 0)
            assert listed_in(entry.summary, "read-files") == ({"big.txt"}, 0)
            assert entry.details.read_files == (f"{work}/big.txt",)
        assert all("<modified-files>" not in r.items[-1].text for r in running.server.requests if is_summary_request(r))
