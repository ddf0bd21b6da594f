"""Overflows as the server sees them (R-003, R-007, R-011, R-020, R-021, R-023, R-028, R-059, R-098, R-101)."""

from __future__ import annotations

import math

import msgspec
import pytest

from tenuto.protocol.entry import QueuedEntry, ViewEditEntry
from tenuto.protocol.event import CompactionStartEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage
from tenuto.protocol.operation import ChangeModelOperation
from tenuto.protocol.part import TextPart, text_of
from tests.core.compacting import (
    LONG_ANSWER,
    fill,
    reads,
    seeded_session,
    step_requests,
    summary_requests,
    talk,
    user,
    words,
    write_big_file,
)
from tests.core.harness import PROTOCOLS, Agent, agent, reopened
from tests.core.test_compaction_shapes import answer, step
from tests.examples import one_of
from tests.server import Call, HttpError, Reply, Request, ScriptedServer, Tokens
from tests.server.reply import AnyReply
from tests.session.build import check_pairs

TOO_LONG = "Your input exceeds the context window of this model. Please adjust your input and try again."
QUOTA = HttpError(429, "You exceeded your current quota, please check your plan and billing details.")


def output_of(request: Request) -> float:
    body = request.body
    return body.get("max_tokens") or body.get("max_completion_tokens") or body.get("max_output_tokens") or math.inf


def at(number: int, failure: AnyReply, otherwise: AnyReply | None = None):
    """Answer steps; the one with this number (from 1) fails."""
    count = 0

    def script(_request: Request) -> AnyReply:
        nonlocal count
        count += 1
        return failure if count == number else otherwise or Reply(LONG_ANSWER)

    return script


def edits(running: Agent) -> list[ViewEditEntry]:
    return [entry for entry in running.session.path() if isinstance(entry, ViewEditEntry)]


def compactions(running: Agent) -> list[CompactionEntry]:
    return [entry for entry in running.session.path() if isinstance(entry, CompactionEntry)]


# --- an overflow where no summary can be had ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_t03_r003_an_overflow_with_the_quota_gone_is_condensed_and_told_once(tmp_path, protocol):
    script = talk(at(8, HttpError(400, TOO_LONG)), QUOTA)
    async with agent(tmp_path, script, model=f"{protocol}/test", options={"listed_window": 200_000}) as running:
        await fill(running, 7)
        settled = await running.ask("GO-NONCE")
        assert settled.outcome == "completed", settled.error
        assert [entry.rung for entry in compactions(running)] == ["digest"]
        assert len(summary_requests(running.server)) <= 2, "a quota that is gone is not asked for again and again"
        told = [event.text for event in running.of(NoticeEvent) if "without a model" in event.text]
        assert len(told) == 1
        assert step_requests(running.server)[-1].raw.count(b"GO-NONCE") == 1
        check_pairs(running.session.get_llm_history())


# --- output budgets ---


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
@pytest.mark.parametrize("text", ["word and ", "4f3a9c2e71", "漢字かな交じり文", '{"a": [1, 2], '])
async def test_r007_no_request_asks_for_more_output_than_its_window_leaves(tmp_path, protocol, text):
    """What is only estimated can be larger than the estimate: the output limit leaves room for that."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_text((text * 12 + "\n") * 1_500)
    calls = [Reply("look", tool_calls=[Call("read", {"path": "big.txt", "offset": 1 + 90 * n})]) for n in range(6)]
    left = list(calls)

    def script(_request: Request) -> AnyReply:
        return left.pop(0) if left else Reply("done")

    options = {"window": 24_000}
    async with agent(tmp_path, talk(script), model=f"{protocol}/test", options=options) as running:
        settled = await running.ask("read all of it", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert not running.server.refusals
        for request in running.server.requests:
            if output_of(request) < math.inf:  # else it asks for nothing, and the server's own limit holds
                assert request.tokens + output_of(request) <= 24_000


# --- the door ---

SMALL = '[models."openai-chat/test-small"]\ncontext_window = 16000\nmax_output_tokens = 2000\n'


async def test_r011_after_a_switch_to_a_smaller_window_shortened_results_can_be_enough(tmp_path):
    """Nothing has to be summarised, no request is over the new window, and the old model is not asked."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(SMALL)
    entries = [user("read it"), *step(0, "FIRST " + words(30_000)), answer("seen")]
    seeded_session(tmp_path, "openai-chat", *entries).close()
    async with ScriptedServer(talk("fine"), listed_window=200_000) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.ask("hello")
            model = ChangeModelOperation(session_id=running.runtime.session_id, model="openai-chat/test-small")
            await running.runtime.submit(model)
            settled = await running.ask("and now?")
            assert settled.outcome == "completed", settled.error
            large, small = server.requests
            assert large.tokens > 30_000
            assert small.tokens + output_of(small) <= 16_000
            assert [entry.reason for entry in edits(running)] == ["model_switch"]
            assert not compactions(running)


async def test_r101_r028_resuming_shortens_nothing_and_the_next_request_is_the_one_it_would_have_been(tmp_path):
    entries = [user("read it"), *step(0, "FIRST " + words(30_000)), answer("seen")]
    seeded_session(tmp_path, "openai-chat", *entries).close()
    async with ScriptedServer(talk("fine"), listed_window=64_000) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert not edits(running)
            assert not running.of(CompactionStartEvent)
            await running.ask("one")
            assert len(edits(running)) == 1
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await running.ask("two")
            assert len(edits(running)) == 1
        assert server.prefix_breaks() == []


# --- R-023 ---


@pytest.mark.parametrize(("share", "reasons"), [(0.02, []), (0.97, ["overflow"])], ids=["2 %", "97 %"])
async def test_t16_r020_a_bare_400_is_an_overflow_only_of_a_nearly_full_window(tmp_path, share, reasons):
    """The request before it tells how full the window is; nothing compacts between them, because that failed before."""
    used = Tokens(input=int(share * 200_000), output=10)
    count = 0

    def script(_request: Request) -> AnyReply:
        nonlocal count
        count += 1
        return HttpError(400) if count == 8 else Reply(LONG_ANSWER, usage=used if count == 7 else None)

    options = {"listed_window": 200_000}
    async with agent(tmp_path, talk(script), model="openai-chat/test", options=options) as running:
        await fill(running, 7)
        running.runtime.live.compaction.automatic.note_failed(int(share * 200_000))
        settled = await running.ask("GO")
        assert [event.reason for event in running.of(CompactionStartEvent)] == reasons
        assert settled.outcome == ("completed" if reasons else "failed"), settled.error
        assert len(step_requests(running.server)) == (9 if reasons else 8)


async def test_t17_r021_an_output_limit_that_is_refused_is_lowered_and_nothing_is_compacted(tmp_path):
    text = (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about 1000135 tokens "
        "(135 of text input, 1000000 in the output). Please reduce the length of either one."
    )
    script = talk(at(1, HttpError(400, text)))
    async with agent(tmp_path, script, options={"listed_window": 200_000}) as running:
        settled = await running.ask("hello")
        assert settled.outcome == "completed", settled.error
        first, second = running.server.requests
        assert output_of(second) < output_of(first)
        assert not running.of(CompactionStartEvent)


async def test_t18_r023_a_stray_number_in_an_overflow_does_not_become_the_window(tmp_path):
    text = "invalid params, context window exceeds limit (2013)"
    script = talk(at(8, HttpError(400, text)))
    async with agent(tmp_path, script, options={"listed_window": 200_000}) as running:
        await fill(running, 7)
        settled = await running.ask("GO")
        assert settled.outcome == "completed", settled.error
        assert [event.reason for event in running.of(CompactionStartEvent)] == ["overflow"]
        assert 8_192 < running.runtime.live.facts.context_window < 200_000, "this session stays under what was refused"
        models = running.runtime.live.models
        assert not models.is_named("openai-chat/test")
        assert models.learned_at("openai-chat/test") is None, "nothing is remembered"


# --- what is sent once stays ---


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r059_results_are_bounded_before_they_are_sent_and_never_changed_afterwards(tmp_path, protocol):
    write_big_file(tmp_path, lines=4_000)
    async with agent(tmp_path, reads(12), model=f"{protocol}/test", options={"window": 250_000}) as running:
        settled = await running.ask("read on", timeout=60)
        assert settled.outcome == "completed", settled.error
        assert len(running.server.requests) == 13
        assert running.server.prefix_breaks() == []
        assert not edits(running)


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS))
async def test_r098_a_compaction_between_steps_leaves_what_was_just_asked_for_as_it_came(tmp_path, protocol):
    """The model reads three files at once while the context is nearly full; it gets them as the tools gave them."""
    work = tmp_path / "work"
    work.mkdir()
    for name in "abc":
        (work / f"{name}.txt").write_text(f"file {name}\n" + "some words in a line of the file\n" * 470)
    calls = [Call("read", {"path": f"{name}.txt"}) for name in "abc"]
    count = 0

    def script(_request: Request) -> AnyReply:
        nonlocal count
        count += 1
        return Reply("look", tool_calls=calls, usage=Tokens(input=34_500, output=50)) if count == 13 else Reply("ok")

    options = {"listed_window": 64_000, "window": 64_000}
    async with agent(tmp_path, talk(script), model=f"{protocol}/test", options=options) as running:
        await fill(running, 12, size=700)

        def steer(event: object) -> None:
            """Say something long at the tool boundary, so that the next step would be over the trigger."""
            if isinstance(event, ToolResultEvent) and len(stored_results()) == 3:
                running.session.append(QueuedEntry(parts=(TextPart(text=words(1_800)),), steer=True))

        def stored_results() -> list[ToolResultMessage]:
            return [one for one in running.session.path() if isinstance(one, ToolResultMessage)]

        running.runtime.subscribe(steer)
        settled = await running.ask("read them")
        assert settled.outcome == "completed", settled.error
        assert [event.reason for event in running.of(CompactionStartEvent)] == ["threshold"]
        (entry,) = compactions(running)
        stored = stored_results()
        assert len(stored) == 3
        shown = [item.text for item in step_requests(running.server)[-1].items if item.kind == "result"]
        assert shown == [text_of(one.parts) for one in stored]
        assert entry.edits == ()


# --- signed thinking ---


@pytest.mark.parametrize("how", ["door", "images"])
async def test_signed_thinking_is_left_out_where_the_view_before_it_was_edited(tmp_path, how):
    """A provider refuses thinking whose prefix changed; nothing is refused here."""
    if how == "images":
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "settings.toml").write_text("[request]\nmax_request_bytes = 120000\n")
    write_big_file(tmp_path, lines=2_000)
    call = Reply("look", thinking="let me see", tool_calls=[Call("read", {"path": "big.txt"})])
    count = 0

    def script(_request: Request) -> AnyReply:
        nonlocal count
        count += 1
        return call if count % 2 else Reply("seen", thinking="aha")

    options = {"listed_window": 200_000, "check_thinking": True}
    async with agent(tmp_path, talk(script), model="anthropic/test", options=options) as running:
        session = running.session
        if how == "images":
            image = session.store.save_image(b"\x89PNG\r\n\x1a\n" + bytes(60_000), "image/png", name="shot.png")
            await running.runtime.submit_prompt((TextPart(text="look"), image))
            await running.runtime.wait_settled()
            await running.runtime.submit_prompt((TextPart(text="look"), image))
            await running.runtime.wait_settled()
        else:
            await running.ask("read it")
            live = running.runtime.live
            live.model.facts = msgspec.structs.replace(live.facts, context_window=18_000)
        settled = await running.ask("and again")
        assert settled.outcome == "completed", settled.error
        assert edits(running)
        assert not running.server.refusals
        assert any(isinstance(entry, AssistantMessage) for entry in running.session.path())
