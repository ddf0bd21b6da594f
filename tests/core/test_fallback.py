"""Fallback models (K 3): who answers when one is overloaded, what they are sent, and that the own one is back."""

from __future__ import annotations

import json
import shutil

import pytest

from tenuto.protocol.event import ModelChangedEvent, NoticeEvent, RetryEvent
from tenuto.protocol.message import AssistantMessage
from tests.core.harness import agent
from tests.server import Call, HttpError, Reply, Request

AT_ONCE = {"TENUTO_REQUEST__RETRIES": "0"}
OTHERS = ("anthropic/test-small", "openai/test-small", "openai-chat/test-small", "gemini/test-small")


SAYS = {529: "Overloaded", 429: "slow down", 400: "nonsense", 401: "who are you?", 500: "it broke"}


def falling(*names: str) -> dict[str, str]:
    return {**AT_ONCE, "TENUTO_REQUEST__FALLBACK": json.dumps(list(names))}


def overloaded_when(model: str, *answers: Reply, status: int = 529, seconds: float | None = None):
    """A server whose `model` is overloaded; the others give these answers in turn, then say Done."""
    left = list(answers)

    def answer(request: Request) -> Reply | HttpError:
        if request.body["model"] == model:
            headers = {} if seconds is None else {"retry-after": f"{seconds:g}"}
            return HttpError(status, SAYS[status], headers)
        return left.pop(0) if left else Reply("Done.")

    return answer


def asked(running) -> list[str]:
    return [request.body["model"] for request in running.server.requests]


def said(running) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if event.kind in ("fallback", "terms")]


@pytest.mark.parametrize("own", ["anthropic/test", "openai/test", "openai-chat/test", "gemini/test"])
@pytest.mark.parametrize("other", OTHERS)
async def test_the_next_model_answers_the_rest_of_the_turn_and_the_own_one_the_next(tmp_path, own, other):
    call = Reply(tool_calls=[Call("bash", {"command": "echo one"})])
    script = overloaded_when("test", call, Reply("From the other one."))
    async with agent(tmp_path, script, model=own, environ=falling(other)) as running:
        end = await running.ask("go on")
        assert (end.outcome, asked(running)) == ("completed", ["test", "test-small", "test-small"])
        assert said(running)[0] == f"{own} is overloaded; {other} answers the rest of this turn."
        assert said(running)[-1] == f"{own} answers again."
        assert running.runtime.live.facts.id == own
        assert [event.model for event in running.of(ModelChangedEvent)] == [other, own]
        answers = [entry.model for entry in running.session.path() if isinstance(entry, AssistantMessage)]
        assert answers == [other, other]
        await running.ask("and again")
        assert asked(running)[3] == "test"


async def test_retries_come_first(tmp_path):
    environ = falling(OTHERS[0]) | {"TENUTO_REQUEST__RETRIES": "2"}
    script = overloaded_when("test", seconds=0.01)
    async with agent(tmp_path, script, environ=environ) as running:
        await running.ask("go on")
        assert asked(running) == ["test", "test", "test", "test-small"]
        assert len(running.of(RetryEvent)) == 2


async def test_one_that_asks_for_too_long_a_wait_is_not_waited_for(tmp_path):
    environ = falling(OTHERS[0]) | {"TENUTO_REQUEST__RETRIES": "5"}
    async with agent(tmp_path, overloaded_when("test", status=429, seconds=4_000), environ=environ) as running:
        await running.ask("go on")
        assert asked(running) == ["test", "test-small"]
        assert "has reached a rate limit" in said(running)[0]


@pytest.mark.parametrize("status", [400, 401, 500])
async def test_other_failures_fall_back_to_nobody(tmp_path, status):
    script = overloaded_when("test", status=status)
    async with agent(tmp_path, script, environ=falling(OTHERS[0])) as running:
        assert (await running.ask("go on")).outcome == "failed"
        assert set(asked(running)) == {"test"}
        assert said(running) == []


async def test_where_all_are_overloaded_each_is_asked_once_and_the_own_one_is_back(tmp_path):
    async with agent(
        tmp_path, lambda _: HttpError(529, "Overloaded"), environ=falling(*OTHERS[:2], "openai-chat/test")
    ) as running:
        assert (await running.ask("go on")).outcome == "failed"
        assert asked(running) == ["test", "test-small", "test-small"]
        assert running.runtime.live.facts.id == "openai-chat/test"


async def test_models_that_cannot_be_used_are_named_and_passed_over(tmp_path):
    environ = falling("nobody/model", "nonsense", "anthropic/test:impossible", OTHERS[1])
    async with agent(tmp_path, overloaded_when("test"), environ=environ) as running:
        assert (await running.ask("go on")).outcome == "completed"
        assert asked(running) == ["test", "test-small"]
        assert [text for text in said(running) if "nobody/model cannot answer for openai-chat/test" in text]


async def test_r011_no_model_gets_more_than_its_window_takes(tmp_path):
    """The small one is passed over as it is, without a compaction that nobody asked for."""
    settings = '[models."anthropic/test-small"]\ncontext_window = 20000\n[models."openai/test-small"]\n'
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(f"{settings}context_window = 200000\n")
    async with agent(tmp_path, overloaded_when("test"), environ=falling(*OTHERS[:2])) as running:
        await running.ask("word " * 30_000)
        assert asked(running) == ["test", "test-small"]
        assert running.server.requests[1].path.endswith("/responses")
        assert any("too large for the model anthropic/test-small" in text for text in said(running))


async def test_a_models_own_list_comes_before_that_of_all(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(
        '[models."openai-chat/test"]\nfallback = []\n[models."openai/test"]\nfallback = ["anthropic/test-small"]\n'
    )
    async with agent(tmp_path, overloaded_when("test"), environ=falling(OTHERS[1])) as running:
        assert (await running.ask("go on")).outcome == "failed"
        assert asked(running) == ["test"]
    async with agent(tmp_path, overloaded_when("test"), model="openai/test", environ=falling(OTHERS[1])) as running:
        await running.ask("go on")
        assert running.server.requests[-1].path.endswith("/messages")


async def test_after_a_crash_in_the_turn_the_own_model_answers(tmp_path):
    script = overloaded_when("test", Reply(tool_calls=[Call("bash", {"command": "sleep 600"})]))
    async with agent(tmp_path, script, environ=falling(OTHERS[0])) as running:
        await running.send("go on")
        await running.until(ModelChangedEvent)
        shutil.copytree(tmp_path / "home", tmp_path / "as it was")
    changes = {"home": tmp_path / "as it was", "resume_latest": True, "model": ""}
    async with agent(tmp_path, [Reply("Back.")], **changes) as again:
        await again.ask("still there?")
        assert asked(again) == ["test"]
        assert again.runtime.live.facts.id == "openai-chat/test"


async def test_signed_thinking_of_the_own_model_goes_back_to_it_and_to_nobody_else(tmp_path):
    def answer(request: Request) -> Reply | HttpError:
        if request.body["model"] == "test" and len(running.server.requests) == 2:
            return HttpError(529, "Overloaded")
        return Reply("An answer.", thinking="a thought")

    async with agent(
        tmp_path, answer, model="anthropic/test", environ=falling(OTHERS[1]), options={"check_thinking": True}
    ) as running:
        for text in ("one", "two", "three"):
            assert (await running.ask(text)).outcome == "completed"
        assert asked(running) == ["test", "test", "test-small", "test"]
        assert running.server.refusals == []
