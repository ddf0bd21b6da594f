"""The overflow decision tree (seed 001): compact, else shorten oversized results once, else condense, else say so."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.compaction.ways.strategies import ToolResultHidingCompaction
from tenuto.core.compacting.undo import undo_compaction
from tenuto.protocol.compaction import CompactionContext, CompactionOutcome
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent
from tenuto.protocol.message import CompactionEntry, ToolResultMessage
from tenuto.protocol.operation import ChangeModelOperation
from tenuto.protocol.part import text_of
from tests.core.compacting import (
    LONG_ANSWER,
    SUMMARY,
    check_requests,
    fill,
    is_summary_request,
    seeded_session,
    step_requests,
    summary_requests,
    talk,
    user,
    words,
)
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.core.test_compaction_crash import victim
from tests.core.test_compaction_shapes import answer, step
from tests.examples import one_of
from tests.server import Call, Hang, HttpError, Reply, Request, ScriptedServer
from tests.server.reply import AnyReply
from tests.session.build import check_pairs

NO_NUMBERS = "Your input exceeds the context window of this model. Please adjust your input and try again."
RULES = "Follow this rule always. " * 1_300
"""About 8 000 tokens that no compaction can shorten."""
REAL_WINDOW = 16_000
CEILING = 19_200
"""Characters of one result in the real window."""
READ = Reply("look", tool_calls=[Call("read", {"path": "big.txt"})])


@pytest.fixture
def _half_of_a_window_is_reserve(tmp_path):
    """So the rules are over the trigger of the real window, and a shortened result still fits it."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("[compaction]\nreserve_tokens = 8000\n")


def refusing(answers: list[AnyReply], window: int = REAL_WINDOW):
    """Answer steps from a list; refuse whatever is over the real window, which the refusal names."""
    left = list(answers)

    def script(request: Request) -> AnyReply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        if request.tokens > window:
            text = f"maximum context length is {window} tokens. However, your messages resulted in {request.tokens}"
            return HttpError(400, f"This model's {text} tokens. Please reduce the length of the messages.")
        return left.pop(0) if left else Reply("done")

    return script


def write_long_lines(tmp_path) -> None:
    (tmp_path / "work").mkdir(exist_ok=True)
    (tmp_path / "work" / "big.txt").write_text("some words in a line of the file\n" * 2_000)


def edits(running: Agent) -> list[ViewEditEntry]:
    return [entry for entry in running.session.path() if isinstance(entry, ViewEditEntry)]


def result_texts(running: Agent) -> list[str]:
    return [text_of(m.parts) for m in running.session.get_llm_history() if isinstance(m, ToolResultMessage)]


def refused_steps(running: Agent) -> list[Request]:
    return [request for request in step_requests(running.server) if request.status == 400]


@pytest.mark.usefixtures("_half_of_a_window_is_reserve")
async def test_where_nothing_can_be_compacted_oversized_results_are_shortened_and_the_step_is_repeated(tmp_path):
    """The rules alone fill what may be used of the real window, so there is nothing that a summary could replace."""
    write_long_lines(tmp_path)
    async with agent(tmp_path, refusing([READ]), extra_prompt=RULES, options={"listed_window": 200_000}) as running:
        settled = await running.ask("read the file")
        assert settled.outcome == "completed", settled.error
        (entry,) = edits(running)
        assert (entry.rung, entry.reason) == ("truncate", "overflow")
        assert 0 < entry.tokens_after < entry.tokens_before
        assert max(map(len, result_texts(running))) <= CEILING
        refused, repeated = step_requests(running.server)[1:]
        assert repeated.tokens < refused.tokens
        assert repeated.items[:-1] == refused.items[:-1], "only the result changed"
        assert not summary_requests(running.server)
        begun, ended = running.of(CompactionStartEvent), running.of(CompactionEndEvent)
        assert [event.reason for event in begun] == [event.reason for event in ended] == ["overflow"]
        (end,) = ended
        assert end.entry is not None
        assert (end.entry.rung, end.will_retry, end.error) == ("truncate", True, None)
        assert running.runtime.live.budget().trigger < end.entry.trigger < REAL_WINDOW, (
            "it has to fit the window, and that is all"
        )
        stored = next(entry for entry in running.session.entries() if isinstance(entry, ToolResultMessage))
        assert len(text_of(stored.parts)) > CEILING, "the history has the whole"
        check_pairs(running.session.get_llm_history())


async def test_the_shortening_can_be_undone_and_is_the_same_after_a_restart(tmp_path):
    write_long_lines(tmp_path)
    async with ScriptedServer(refusing([READ]), listed_window=200_000) as server:
        async with reopened(tmp_path, server, extra_prompt=RULES) as running:
            await running.ask("read the file")
            shown = running.session.get_llm_history()
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert running.session.get_llm_history() == shown
            kinds = [type(event) for event in running.events]
            assert kinds.count(CompactionEndEvent) == 1, "a resumed transcript shows it"
            running.runtime.live.model.facts = running.runtime.live.models.facts("openai-chat/test-small")
            undo_compaction(running.runtime.live)
            assert max(map(len, result_texts(running))) > CEILING


async def test_when_even_that_does_not_help_the_error_names_the_sizes_and_the_session_goes_on(tmp_path):
    write_long_lines(tmp_path)
    script, is_open = refusing([READ], window=11_000), False

    def door(request: Request) -> AnyReply:
        return Reply("I see") if is_open else script(request)

    async with agent(tmp_path, door, extra_prompt=RULES, options={"listed_window": 200_000}) as running:
        settled = await running.ask("read the file")
        assert settled.outcome == "failed"
        for part in ("could not be made smaller", "shortened", "system prompt", "conversation", "/model", "/new"):
            assert part in settled.error
        # seeds-001-002-004.md, polish e: no “1,618 of 19,501 tokens” of a request that was refused as too long
        assert "tokens were refused" in settled.error
        assert len(edits(running)) == 1, "once"
        sizes = [request.tokens for request in refused_steps(running)]
        assert sizes == sorted(set(sizes), reverse=True), "never the same request twice"
        check_pairs(running.session.get_llm_history())
        is_open = True
        running.runtime.live.model.facts = running.runtime.live.models.facts("openai-chat/test-small")
        assert (await running.ask("go on")).outcome == "completed"


class Stubborn:
    """A strategy that only ever leaves out the newest part of what may go: it cannot keep up."""

    def __init__(self) -> None:
        self.attempts = 0

    async def compact(self, ctx: CompactionContext) -> CompactionOutcome | None:
        self.attempts += 1
        return await ToolResultHidingCompaction().compact(ctx)


async def test_whatever_it_is_sent_a_provider_refuses_a_bounded_number_of_requests_each_smaller(tmp_path):
    """Three compactions, one shortening, one digest, then the last word."""
    refuses = True

    def script(request: Request) -> AnyReply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        return HttpError(400, NO_NUMBERS) if refuses else Reply(LONG_ANSWER)

    turns = [entry for n in range(12) for entry in (user(f"q{n} {words(300)}"), *step(n, words(4_000)), answer("ok"))]
    last = [user("now both"), *step(90, words(9_000), words(9_000))]
    seeded_session(tmp_path, "openai", *turns, *last).close()
    async with ScriptedServer(script, listed_window=200_000) as server:
        async with reopened(tmp_path, server, model="openai/test", resume_latest=True) as running:
            settled = await running.ask("go")
            assert settled.outcome == "failed"
            sizes = [request.tokens for request in step_requests(server)]
            assert sizes == sorted(set(sizes), reverse=True), "never the same size twice"
            assert 3 <= len(sizes) <= 6
            assert len([event for event in running.of(CompactionEndEvent) if event.entry]) == len(sizes) - 1
            assert "still refuses" in settled.error or "could not be made smaller" in settled.error
            for part in ("tokens", "system prompt", "conversation", "/new", "/model"):
                assert part in settled.error
            check_pairs(running.session.get_llm_history())
            refuses = False
            assert (await running.ask("and now?")).outcome == "completed"


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_after_three_compactions_with_nothing_oversized_the_digest_is_tried(tmp_path, protocol):
    turns = [
        entry
        for turn in range(60)
        for entry in (
            user(f"q{turn} {words(400)}"),
            *(one for number in range(4) for one in step(9 * turn + number, words(300))),
            answer(words(100)),
        )
    ]
    seeded_session(tmp_path, protocol, *turns).close()
    refusals = 4

    def step_answer(_request: Request) -> AnyReply:
        nonlocal refusals
        refusals -= 1
        return HttpError(400, NO_NUMBERS) if refusals >= 0 else Reply("done")

    async with ScriptedServer(talk(step_answer), listed_window=200_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            settled = await running.ask("GO-NONCE")
            assert settled.outcome == "completed", settled.error
            rungs = [entry.rung for entry in running.session.path() if isinstance(entry, CompactionEntry)]
            assert rungs[-1] == "digest"
            assert len(rungs) == 4
            assert "digest" not in rungs[:-1]
            sizes = [request.tokens for request in step_requests(server)]
            assert sizes == sorted(set(sizes), reverse=True)
            assert all(request.raw.count(b"GO-NONCE") == 1 for request in step_requests(server))
            check_pairs(running.session.get_llm_history())


async def test_the_chain_ends_when_a_request_is_accepted_and_a_later_step_begins_a_new_one(tmp_path):
    """Four refusals in one task, two for each of two steps: each step has its own three compactions."""
    write_long_lines(tmp_path)
    count = 0

    def step_answer(_request: Request) -> AnyReply:
        nonlocal count
        count += 1
        if count in {13, 14, 16, 17}:
            return HttpError(400, NO_NUMBERS)
        return READ if count == 15 else Reply(LONG_ANSWER)

    async with agent(tmp_path, talk(step_answer), model="openai/test", options={"listed_window": 200_000}) as running:
        await fill(running, 12, 600)
        settled = await running.ask("two steps, please")
        assert settled.outcome == "completed", settled.error
        assert len(step_requests(running.server)) == 18
        assert len([event for event in running.of(CompactionEndEvent) if event.will_retry]) == 4


async def test_an_extension_strategy_that_does_nothing_more_is_followed_by_the_ladder(tmp_path):
    strategy = Stubborn()
    count = 0

    def step_answer(_request: Request) -> AnyReply:
        nonlocal count
        count += 1
        return HttpError(400, NO_NUMBERS) if count == 9 else Reply(LONG_ANSWER)

    options = {"listed_window": 200_000}
    async with agent(tmp_path, talk(step_answer), model="openai/test", compaction=strategy, options=options) as running:
        await fill(running, 8)
        settled = await running.ask("go")
        assert settled.outcome == "completed", settled.error
        assert strategy.attempts == 1
        assert any(isinstance(entry, CompactionEntry) for entry in running.session.path())


async def test_switched_off_neither_the_door_nor_an_overflow_changes_anything(tmp_path):
    write_long_lines(tmp_path)
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("[compaction]\nenabled = false\n")
    async with agent(tmp_path, refusing([READ]), extra_prompt=RULES, options={"listed_window": 200_000}) as running:
        settled = await running.ask("read the file")
        assert settled.outcome == "failed"
        assert "/compact" in settled.error
        assert not edits(running)
        assert not running.of(CompactionStartEvent)
        await running.ask("again")
        assert not edits(running)


# --- at the door ---

SMALL = '[models."openai-chat/test-small"]\ncontext_window = 16000\nmax_output_tokens = 2000\n'


def huge_results() -> list[object]:
    texts = ("FIRST " + words(9_000), "short", words(8_000) + "\n3 failed, 1 passed")
    return [entry for n, text in enumerate(texts) for entry in (user(f"q{n}"), *step(n, text), answer("seen"))]


async def switch(running: Agent, model: str) -> None:
    await running.runtime.submit(ChangeModelOperation(session_id=running.runtime.session_id, model=model))


async def test_after_a_switch_to_a_smaller_window_one_edit_before_the_first_request(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(SMALL)
    seeded_session(tmp_path, "openai-chat", *huge_results()).close()
    async with ScriptedServer(talk("fine"), listed_window=200_000) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert (await running.ask("with the large one")).outcome == "completed"
            assert not edits(running)
            whole = [item.text for item in server.requests[-1].items if item.kind == "result"]
            await switch(running, "openai-chat/test-small")
            settled = await running.ask("with the small one")
            assert settled.outcome == "completed", settled.error
            (entry,) = edits(running)
            assert (entry.rung, entry.reason, len(entry.edits)) == ("truncate", "model_switch", 2)
            assert len(running.of(CompactionStartEvent)) == len(running.of(CompactionEndEvent)) == 1
            assert not summary_requests(server), "that was enough, no summary was needed"
            shown = [item.text for item in server.requests[-1].items if item.kind == "result"]
            assert [len(text) <= CEILING for text in shown] == [True, True, True]
            assert shown[1] == whole[1]
            assert shown[0].startswith("FIRST")
            assert "3 failed, 1 passed" in shown[2]
            check_requests(server, 200_000)

            await running.ask("once more")
            await switch(running, "openai-chat/test")
            await running.ask("large again")
            await switch(running, "openai-chat/test-small")
            await running.ask("small again")
            assert len(edits(running)) == 1, "nothing is over the ceiling any more"


async def test_a_session_that_came_with_longer_results_is_bounded_before_its_first_request(tmp_path):
    seeded_session(tmp_path, "openai-chat", *huge_results()).close()
    options = {"window": 64_000}
    async with ScriptedServer(talk("fine"), **options) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert not edits(running), "resuming changes nothing (R-101)"
            await running.ask("hello")
            assert not edits(running), "9 000 tokens are no more than 30 % of this window"
    async with ScriptedServer(talk("fine"), window=24_000) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert not edits(running)
            await running.ask("hello")
            assert [len(entry.edits) for entry in edits(running)][:1] == [2]
            check_requests(server, 24_000)


async def test_what_the_user_undid_stays_undone(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(SMALL.replace("16000", "28000"))
    seeded_session(tmp_path, "openai-chat", *huge_results()[:4]).close()
    async with ScriptedServer(talk("fine"), listed_window=200_000) as server:
        async with reopened(tmp_path, server, resume_latest=True, model="openai-chat/test-small") as running:
            await running.ask("hello")
            assert len(edits(running)) == 1
            undo_compaction(running.runtime.live)
            await running.ask("hello again")
        async with reopened(tmp_path, server, resume_latest=True, model="openai-chat/test-small") as running:
            await running.ask("and in a new process")
            assert len(edits(running)) == 1
            assert max(map(len, result_texts(running))) > 33_600


# --- over a restart ---


@pytest.mark.usefixtures("_half_of_a_window_is_reserve")
async def test_kill_9_in_the_middle_of_a_chain_shortens_nothing_a_second_time(tmp_path):
    """The process dies while the repeated request runs. The next one goes on from what is on disk."""
    write_long_lines(tmp_path)
    hanging, is_full = asyncio.Event(), False
    script = refusing([Reply("hello"), READ])

    def answers(request: Request) -> AnyReply:
        if is_full:
            return HttpError(400, NO_NUMBERS)
        reply = script(request)
        if len(step_requests(server)) == 4:
            hanging.set()
            return Hang()
        return reply

    async with ScriptedServer(answers, listed_window=200_000) as server:
        async with reopened(tmp_path, server, extra_prompt=RULES) as running:
            await running.ask("hello")
        async with victim(tmp_path, server) as killed:
            await killed.send("say read the file")
            await asyncio.wait_for(hanging.wait(), 60)
            await killed.kill()
        async with reopened(tmp_path, server, resume_latest=True) as running:
            (entry,) = edits(running)
            assert (entry.rung, entry.reason) == ("truncate", "overflow")
            is_full = True
            settled = await running.ask("go on")
            assert settled.outcome == "failed"
            assert "shortened" in settled.error, "what was done before the kill counts"
            assert [one.seq for one in edits(running)] == [entry.seq]
            is_full = False
            assert (await running.ask("go on")).outcome == "completed"
            check_pairs(running.session.get_llm_history())
