"""Whole sessions over HTTP against a server as strict as the real ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.config.settings import Settings
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.message import AssistantMessage, DeveloperMessage, Message, SystemMessage
from tenuto.protocol.model import Finished, ModelError, ModelFacts, ModelRequest
from tenuto.protocol.part import ThinkingPart, ToolCallPart, text_of
from tests.model.views import PROVIDERS, TOOLS, result, user
from tests.server import Call, Cut, HttpError, Reply, ScriptedServer, StreamError

STEPS = [
    Reply("I look.", thinking="Where is it?", tool_calls=[Call("read", {"path": "a"}), Call("grep", {"path": "b"})]),
    Reply("", thinking="Not there.", tool_calls=[Call("read", {"path": "ü"})]),
    Reply("Found it.", thinking="There."),
    Reply("", tool_calls=[Call("read", '{"path": "cut'), Call("read", "", id="dup"), Call("read", "{}", id="dup")]),
    Reply("Done."),
    Reply("Bye."),
]


class Talk:
    """A conversation as the core leads it, over a real client."""

    def __init__(self, server: ScriptedServer, home: Path, provider: str) -> None:
        self.models = ModelRegistry(Settings(), home, server.environ())
        self.provider = provider
        self.view: list[Message] = [SystemMessage(text="You are careful. " * 40), user("start")]

    async def ask(self, **fields: object) -> AssistantMessage:
        facts: ModelFacts = await self.models.refresh(f"{self.provider}/test")
        asked = ModelRequest(model=facts, messages=tuple(self.view), tools=TOOLS, cache_key="s", **fields)  # pyright: ignore
        async for part in self.models.client(self.provider).stream(asked):
            if isinstance(part, Finished):
                return part.message
        raise AssertionError("no answer")

    def go_on(self, message: AssistantMessage, number: int) -> None:
        self.view.append(message)
        calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
        self.view += [result(call.id, f"output {number}", is_error=bool(call.fault)) for call in calls]
        if not calls:
            self.view.append(user(f"go on {number}"))
        self.view.append(DeveloperMessage(text=f"note {number}"))


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_session_that_no_strict_server_refuses(tmp_path: Path, provider: str):
    options = {"check_thinking": True, "one_system": True, "alternate": True}
    async with ScriptedServer(STEPS, **options) as server:
        talk = Talk(server, tmp_path, provider)
        answers: list[AssistantMessage] = []
        for number in range(len(STEPS)):
            answers.append(await talk.ask())
            talk.go_on(answers[-1], number)
            if number == 2:
                talk.view[1:1] = [SystemMessage(text="A summary.")]
        assert [request.refused for request in server.requests] == [""] * len(STEPS)
        assert [text_of(answer.parts) for answer in answers] == [step.text for step in STEPS]
        cut, first, second = (part for part in answers[3].parts if isinstance(part, ToolCallPart))
        assert cut.fault
        assert first.id != second.id
        assert all(answer.usage and answer.usage.cache_read for answer in answers[1:3])
        await talk.models.close()


async def test_thinking_before_a_compaction_stays_out_of_the_requests_after_it(tmp_path: Path):
    async with ScriptedServer(
        [Reply("a", thinking="t1"), Reply("b", thinking="t2"), Reply("c", thinking="t3")], check_thinking=True
    ) as server:
        talk = Talk(server, tmp_path, "anthropic")
        for number in range(2):
            talk.go_on(await talk.ask(), number)
        talk.view[1:1] = [SystemMessage(text="A summary.")]
        message = await talk.ask()
        assert [item.text for item in server.requests[1].items if item.kind == "thinking"] == ["t1"]
        assert [item.text for item in server.requests[2].items if item.kind == "thinking"] == []
        assert any(isinstance(part, ThinkingPart) for part in message.parts)
        await talk.models.close()


@pytest.mark.parametrize("how", ["drop", "clean"])
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_t40_a_stream_cut_after_each_event_over_http(tmp_path: Path, provider: str, how: str):
    reply = Reply("Yes.", thinking="hm", tool_calls=[Call("read", {"path": "a"})])
    answers: list[AssistantMessage] = []
    for events in range(40):
        async with ScriptedServer([Cut(reply, after_events=events, how=how)]) as server:  # pyright: ignore
            talk = Talk(server, tmp_path / str(events), provider)
            try:
                answers.append(await talk.ask())
            except ModelError as error:
                assert error.kind == "broken_stream"
            await talk.models.close()
        if len(answers) > 4:
            break
    assert answers
    for answer in answers:
        (call,) = (part for part in answer.parts if isinstance(part, ToolCallPart))
        assert (call.arguments, call.fault) == ('{"path": "a"}', "")


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (HttpError(503, "Overloaded"), "overloaded"),
        (HttpError(429, "Rate limit reached", headers={"retry-after": "3"}), "rate_limit"),
        (HttpError(400), "ambiguous"),
        (HttpError(401, "invalid x-api-key"), "auth"),
        (HttpError(500, "boom"), "server"),
        (StreamError(error="overloaded_error"), "overloaded"),
        (StreamError(error="context_length_exceeded"), "overflow"),
        (StreamError(error="context_length_exceeded", shape="flat"), "overflow"),
        (StreamError(error="context_length_exceeded", shape="error"), "overflow"),
    ],
    ids=lambda value: str(value)[:40],
)
async def test_r019_errors_of_every_shape(tmp_path: Path, provider: str, reply: HttpError | StreamError, kind: str):
    async with ScriptedServer([reply]) as server:
        talk = Talk(server, tmp_path, provider)
        with pytest.raises(ModelError) as caught:
            await talk.ask()
        assert caught.value.kind == kind
        await talk.models.close()


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_server_s_own_refusals_are_understood(tmp_path: Path, provider: str):
    async with ScriptedServer([Reply("x")] * 3, window=2_000, max_output=1_000) as server:
        talk = Talk(server, tmp_path, provider)
        if provider != "openai":
            with pytest.raises(ModelError) as caught:
                await talk.ask(max_output_tokens=1_900)
            assert (caught.value.kind, caught.value.limit) == ("output_budget", 1_000)
        talk.view.append(user("many words " * 2_000))
        with pytest.raises(ModelError) as caught:
            await talk.ask(max_output_tokens=500)
        assert caught.value.kind == "overflow"
        await talk.models.close()


async def test_a_chat_server_that_knows_no_stream_options(tmp_path: Path):
    async with ScriptedServer([Reply("one"), Reply("two")], refuse=("stream_options",)) as server:
        talk = Talk(server, tmp_path, "openai-chat")
        assert text_of((await talk.ask()).parts) == "one"
        assert text_of((await talk.ask()).parts) == "two"
        assert [bool(request.refused) for request in server.requests] == [True, False, False]
        await talk.models.close()


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_the_provider_counts(tmp_path: Path, provider: str):
    async with ScriptedServer([]) as server:
        talk = Talk(server, tmp_path, provider)
        facts = talk.models.facts(f"{provider}/test")
        counted = await talk.models.client(provider).count(ModelRequest(model=facts, messages=tuple(talk.view)))
        assert counted is not None
        assert counted > 100
        await talk.models.close()
