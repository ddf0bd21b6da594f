"""A change to a model with a smaller window: compacted first, with the model that still reads the whole (R-011)."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.protocol.entry import ModelEntry
from tenuto.protocol.event import CompactionProgressEvent, ModelChangedEvent, NoticeEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.operation import ChangeModelOperation
from tests.core.compacting import (
    LONG_ANSWER,
    SUMMARY,
    compactions,
    fill,
    interrupt,
    is_in_place,
    is_summary_request,
    log_of,
    step_requests,
    summary_requests,
    talk,
)
from tests.core.harness import PROTOCOLS, Agent, agent
from tests.requirements.compaction.support import ends, starts, write_settings
from tests.server import Call, Hang, HttpError, Reply, Request

WIDE = {"listed_window": 128_000}


def small(protocol: str = "openai-chat", window: int = 16_000) -> str:
    return f'[models."{protocol}/test-small"]\ncontext_window = {window}\n'


def limit_small(request: Request) -> HttpError | None:
    """The refusal of what does not fit the small model."""
    if request.body["model"] != "test-small" or request.tokens <= 16_000:
        return None
    text = f"maximum context length is 16000 tokens. However, your messages resulted in {request.tokens} tokens."
    return HttpError(400, f"This model's {text}")


def answer(request: Request):
    return limit_small(request) or Reply(LONG_ANSWER)


async def begin_change(running: Agent, model: str) -> str:
    operation = ChangeModelOperation(session_id=running.runtime.session_id, model=model)
    return await running.runtime.submit(operation)


async def change(running: Agent, model: str):
    return await asyncio.wait_for(running.runtime.wait_for(await begin_change(running, model)), 60)


def order(running: Agent) -> list[str]:
    """Compactions and changes of the model as the log has them, without the session's first model."""
    kinds = {CompactionEntry: "compaction", ModelEntry: "model"}
    return [kinds[type(entry)] for entry in running.session.entries() if type(entry) in kinds][1:]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_r011_the_old_model_summarises_in_place_before_the_model_entry_is_written(tmp_path, protocol):
    write_settings(tmp_path, small(protocol))
    async with agent(tmp_path, talk(answer), model=f"{protocol}/test", options=WIDE) as running:
        await fill(running, 14)
        before = running.server.requests[-1]
        finished = await change(running, f"{protocol}/test-small")
        assert (finished.kind, finished.outcome) == ("compaction", "completed")
        (asked,) = summary_requests(running.server)
        assert asked.body["model"] == "test"
        assert asked.continues(before)
        assert order(running) == ["compaction", "model"]
        (entry,) = compactions(running)
        assert (entry.reason, entry.rung) == ("model_switch", "same prefix")
        assert entry.tokens_after <= entry.trigger == running.runtime.live.budget().trigger < 16_000
        assert [start.reason for start in starts(running)] == ["model_switch"]
        kinds = [type(event) for event in running.events]
        assert kinds.index(type(ends(running)[0])) < kinds.index(ModelChangedEvent)
        assert (await running.ask("and now?")).outcome == "completed"
        last = running.server.requests[-1]
        assert (last.body["model"], last.tokens < 16_000) == ("test-small", True)
        assert len(compactions(running)) == 1
        assert not running.server.refusals


async def test_r011_esc_cancels_the_change_with_the_compaction(tmp_path):
    write_settings(tmp_path, small())
    async with agent(tmp_path, talk(answer, lambda _request: Hang()), options=WIDE) as running:
        await fill(running, 14)
        before = log_of(running)
        submission = await begin_change(running, "openai-chat/test-small")
        await running.until(CompactionProgressEvent)
        await interrupt(running)
        finished = await asyncio.wait_for(running.runtime.wait_for(submission), 30)
        assert finished.outcome == "interrupted"
        assert log_of(running) == before
        assert ends(running)[0].aborted
        assert any("model stays openai-chat/test:" in event.text for event in running.of(NoticeEvent))
        assert not running.of(ModelChangedEvent)
        assert running.runtime.live.facts.id == "openai-chat/test"
        await running.ask("go on")
        assert step_requests(running.server)[-1].body["model"] == "test"


async def test_r011_with_the_old_model_gone_the_new_one_summarises_in_pieces_before_the_change(tmp_path):
    write_settings(tmp_path, small())

    def summary(request: Request):
        gone = request.body["model"] == "test"
        return HttpError(404, "The model `test` does not exist") if gone else limit_small(request) or Reply(SUMMARY)

    async with agent(tmp_path, talk(answer, summary), options=WIDE) as running:
        await fill(running, 24)
        await change(running, "openai-chat/test-small")
        asked = summary_requests(running.server)
        assert asked[0].body["model"] == "test"
        assert is_in_place(asked[0])
        assert {request.body["model"] for request in asked[1:]} == {"test-small"}
        assert len(asked) > 2
        (entry,) = compactions(running)
        assert (entry.reason, entry.rung) == ("model_switch", "serialised")
        assert order(running) == ["compaction", "model"]
        assert (await running.ask("and now?")).outcome == "completed"


async def test_r003_with_no_model_at_all_the_digest_makes_it_fit(tmp_path):
    write_settings(tmp_path, small())
    broke = HttpError(429, "You exceeded your current quota, please check your plan and billing details.")
    async with agent(tmp_path, talk(answer, broke), options=WIDE) as running:
        await fill(running, 14)
        await change(running, "openai-chat/test-small")
        (entry,) = compactions(running)
        assert (entry.reason, entry.rung) == ("model_switch", "digest")
        assert running.runtime.live.facts.name == "test-small"
        assert (await running.ask("and now?")).outcome == "completed"


async def test_what_is_typed_meanwhile_goes_to_the_new_model(tmp_path):
    write_settings(tmp_path, small())
    async with agent(tmp_path, talk(answer, Reply(SUMMARY, delay=0.4)), options=WIDE) as running:
        await fill(running, 14)
        await begin_change(running, "openai-chat/test-small")
        await running.until(CompactionProgressEvent)
        await running.send("typed meanwhile")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        last = step_requests(running.server)[-1]
        assert last.body["model"] == "test-small"
        assert "typed meanwhile" in last.items[-1].text
        assert b"typed meanwhile" not in summary_requests(running.server)[0].raw, "R-045"


@pytest.mark.parametrize("why", ["it fits", "switched off", "a larger window", "the same window"])
async def test_nothing_is_compacted_where_nothing_has_to_be(tmp_path, why):
    window = {"a larger window": 200_000, "the same window": 128_000}.get(why, 16_000)
    write_settings(tmp_path, small(window=window))
    environ = {"TENUTO_COMPACTION__ENABLED": "false"} if why == "switched off" else {}
    async with agent(tmp_path, talk(answer), options=WIDE, environ=environ) as running:
        await fill(running, 3 if why == "it fits" else 14)
        assert await change(running, "openai-chat/test-small") is None
        assert not starts(running)
        assert order(running) == ["model"]
        assert running.runtime.live.facts.name == "test-small"


async def test_where_nothing_can_be_made_smaller_the_change_is_made_and_it_is_said(tmp_path):
    write_settings(tmp_path, small())
    async with agent(tmp_path, talk(Reply("ok")), options=WIDE, extra_prompt="word " * 12_000) as running:
        await running.ask("hello")
        finished = await change(running, "openai-chat/test-small")
        assert finished.outcome == "completed"
        assert ends(running)[0].error
        assert not compactions(running)
        assert running.runtime.live.facts.name == "test-small"
        assert [event.level for event in running.of(NoticeEvent) if "may not fit" in event.text] == ["warning"]


async def test_while_a_task_runs_the_change_is_made_at_once_and_the_old_model_is_asked_between_the_steps(tmp_path):
    write_settings(tmp_path, small())
    taken = 0

    def work(request: Request):
        nonlocal taken
        if "DO-IT" not in request.last_user:
            return answer(request)
        taken += 1
        refusal = limit_small(request)
        if refusal or taken > 3:
            return refusal or Reply("done")
        return Reply(f"step {taken}", tool_calls=[Call("bash", {"command": "sleep 0.4"})])

    async with agent(tmp_path, talk(work), options=WIDE) as running:
        await fill(running, 14)
        await running.send("DO-IT")
        while not any("DO-IT" in request.last_user for request in running.server.requests):
            await asyncio.sleep(0.01)
        assert await change(running, "openai-chat/test-small") is None
        await asyncio.wait_for(running.runtime.wait_settled(), 30)
        assert running.runtime.live.task.last_outcome == "completed"
        assert [entry.reason for entry in compactions(running)] == ["threshold"]
        asked = [request for request in running.server.requests if is_summary_request(request)]
        assert {request.body["model"] for request in asked} == {"test"}


async def test_after_a_restart_the_change_and_the_compaction_hold(tmp_path):
    from tests.core.harness import reopened
    from tests.server import ScriptedServer

    write_settings(tmp_path, small())
    async with ScriptedServer(talk(answer), **WIDE) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running, 14)
            await change(running, "openai-chat/test-small")
            view = list(running.session.get_llm_history())
        async with reopened(tmp_path, server, model="", resume_latest=True) as running:
            assert list(running.session.get_llm_history()) == view
            assert running.runtime.live.facts.name == "test-small"
            assert (await running.ask("and now?")).outcome == "completed"
            assert server.requests[-1].body["model"] == "test-small"
