"""The official SDKs, which did not come from here, read the scripted streams as they would the real ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenuto.config.settings import Settings
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.message import AssistantMessage, UserMessage
from tenuto.protocol.model import Finished, ModelFacts, ModelRequest, ToolSchema
from tenuto.protocol.part import OpaquePart, TextPart, cited_in
from tests.server import Call, Reply, ScriptedServer, Search, StreamError, Tokens

TOOL = {"name": "read", "description": "Read a file.", "parameters": {"type": "object", "properties": {}}}
ANSWER = Reply(
    "Grüße: 漢字 🎵. " * 9,
    thinking="First this, then that. " * 5,
    tool_calls=[Call("read", {"path": "a.py"}), Call("read", {"path": 'b "quoted".py'})],
    usage=Tokens(input=100, output=50, cache_read=400, reasoning=20),
)


async def test_anthropic_sdk_accumulates_the_answer() -> None:
    import anthropic

    async with ScriptedServer([ANSWER]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="test", max_retries=0)
        tool: Any = {"name": "read", "description": "Read a file.", "input_schema": TOOL["parameters"]}
        async with client.messages.stream(
            model="test", max_tokens=100, messages=[{"role": "user", "content": "hi"}], tools=[tool]
        ) as stream:
            message = await stream.get_final_message()
        await client.close()
    assert server.faults == []
    thinking, text, first, second = message.content
    assert (thinking.type, text.type, first.type, second.type) == ("thinking", "text", "tool_use", "tool_use")
    assert thinking.thinking == ANSWER.thinking
    assert text.text == ANSWER.text
    assert (first.input, second.input) == ({"path": "a.py"}, {"path": 'b "quoted".py'})
    assert first.id != second.id
    assert message.stop_reason == "tool_use"
    assert (message.usage.input_tokens, message.usage.cache_read_input_tokens, message.usage.output_tokens) == (
        100,
        400,
        50,
    )


async def test_openai_sdk_reads_the_responses_stream() -> None:
    import openai

    async with ScriptedServer([ANSWER]) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test", max_retries=0)
        tool: Any = {"type": "function", **TOOL, "strict": False}
        async with client.responses.stream(model="test", input="hi", tools=[tool], store=False) as stream:
            response = await stream.get_final_response()
        await client.close()
    assert server.faults == []
    assert response.output_text == ANSWER.text
    calls = [item for item in response.output if item.type == "function_call"]
    assert [json.loads(call.arguments) for call in calls] == [{"path": "a.py"}, {"path": 'b "quoted".py'}]
    reasoning = next(item for item in response.output if item.type == "reasoning")
    assert reasoning.summary[0].text == ANSWER.thinking
    assert reasoning.encrypted_content
    assert response.usage is not None
    assert (response.usage.input_tokens, response.usage.input_tokens_details.cached_tokens) == (500, 400)


async def test_openai_sdk_reads_the_chat_stream() -> None:
    import openai

    async with ScriptedServer([ANSWER]) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test", max_retries=0)
        tool: Any = {"type": "function", "function": TOOL}
        async with client.chat.completions.stream(
            model="test",
            messages=[{"role": "user", "content": "hi"}],
            tools=[tool],
            stream_options={"include_usage": True},
        ) as stream:
            completion = await stream.get_final_completion()
        await client.close()
    assert server.faults == []
    message = completion.choices[0].message
    assert message.content == ANSWER.text
    assert [call.function.arguments for call in message.tool_calls or []] == [
        call.arguments for call in ANSWER.tool_calls
    ]
    assert completion.choices[0].finish_reason == "tool_calls"
    assert completion.usage is not None
    assert completion.usage.total_tokens == 550


async def test_b10_the_openai_sdk_reads_the_same_freeform_calls_as_our_decoder() -> None:
    import openai

    patch = '*** Begin Patch\n*** Add File: ü.py\n+x = "\\"\n*** End Patch\n'
    answer = Reply("I patch.", tool_calls=[Call("apply_patch", patch), Call("apply_patch", ""), Call("read", "{}")])
    grammar = {"type": "grammar", "syntax": "lark", "definition": 'start: "*** Begin Patch"'}
    async with ScriptedServer([answer, answer]) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test", max_retries=0)
        custom: Any = {"type": "custom", "name": "apply_patch", "description": "Patch.", "format": grammar}
        plain: Any = {"type": "function", **TOOL, "strict": False}
        async with client.responses.stream(model="test", input="hi", tools=[plain, custom], store=False) as stream:
            kinds = [event.type async for event in stream]
            response = await stream.get_final_response()
        await client.close()
        parameters = msgspec.Raw(b'{"type":"object","properties":{"input":{"type":"string"}}}')
        patching = ToolSchema(name="apply_patch", description="Patch.", parameters=parameters, grammar="start: /x/")
        own = await ask(server, "openai", patching)
    assert server.faults == []
    assert kinds.count("response.custom_tool_call_input.done") == 2
    theirs = [(call.name, call.input) for call in response.output if call.type == "custom_tool_call"]
    ours = [(call.name, json.loads(call.arguments)["input"]) for call in own.tool_calls if call.freeform]
    assert ours == theirs == [("apply_patch", patch), ("apply_patch", "")]
    assert [call.name for call in own.tool_calls if not call.freeform] == ["read"]


async def test_without_streaming_the_answer_is_the_same() -> None:
    import anthropic
    import openai

    async with ScriptedServer([ANSWER, ANSWER, ANSWER]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="test", max_retries=0)
        message = await client.messages.create(
            model="test", max_tokens=100, messages=[{"role": "user", "content": "hi"}]
        )
        await client.close()
        other = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test", max_retries=0)
        response = await other.responses.create(model="test", input="hi")
        chat = await other.chat.completions.create(model="test", messages=[{"role": "user", "content": "hi"}])
        await other.close()
    assert server.faults == []
    assert [block.text for block in message.content if block.type == "text"] == [ANSWER.text]
    assert response.output_text == ANSWER.text
    assert chat.choices[0].message.content == ANSWER.text


@pytest.mark.parametrize(
    ("stop", "anthropic_name", "responses_name", "chat_name"),
    [
        ("max_tokens", "max_tokens", "incomplete", "length"),
        ("window_exceeded", "model_context_window_exceeded", "incomplete", "length"),
        ("refusal", "refusal", "completed", "content_filter"),
    ],
)
async def test_stop_reasons(stop: Any, anthropic_name: str, responses_name: str, chat_name: str) -> None:
    import anthropic
    import openai

    async with ScriptedServer(lambda _: Reply("So far.", stop=stop)) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="test", max_retries=0)
        async with client.messages.stream(
            model="test", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        ) as stream:
            assert (await stream.get_final_message()).stop_reason == anthropic_name
        await client.close()
        other = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test", max_retries=0)
        statuses = [event async for event in await other.responses.create(model="test", input="hi", stream=True)]
        assert statuses[-1].response.status == responses_name  # type: ignore[union-attr]
        chat = await other.chat.completions.create(model="test", messages=[{"role": "user", "content": "hi"}])
        assert chat.choices[0].finish_reason == chat_name
        await other.close()


async def test_the_anthropic_sdk_raises_a_stream_error() -> None:
    import anthropic

    async with ScriptedServer([StreamError(4, "overloaded_error")]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="test", max_retries=0)
        with pytest.raises(anthropic.APIStatusError) as caught:
            async with client.messages.stream(
                model="test", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
            ) as stream:
                await stream.get_final_message()
        await client.close()
    assert "verloaded" in str(caught.value)


PAGES = (("A page", "https://a.example/1"), ("Another", "https://b.example/2?x=y&z"))
SEARCHED = Reply("It is so. " * 9, thinking="I look it up.", searches=[Search("what is so", PAGES, id="srvtoolu_1")])


async def test_b15_the_anthropic_sdk_accumulates_the_same_blocks_as_our_decoder() -> None:
    import anthropic
    from pydantic import TypeAdapter

    from tenuto.model.anthropic.web_search import search_tool

    own = {place: json.loads(search_tool(is_vendors_own=place)) for place in (True, False)}
    TypeAdapter(anthropic.types.WebSearchTool20260318Param).validate_python(own[True])
    TypeAdapter(anthropic.types.WebSearchTool20250305Param).validate_python(own[False])
    async with ScriptedServer([SEARCHED, SEARCHED]) as server:
        client = anthropic.AsyncAnthropic(base_url=server.base_url, api_key="test", max_retries=0)
        async with client.messages.stream(
            model="test", max_tokens=100, messages=[{"role": "user", "content": "hi"}], tools=[own[True]]
        ) as stream:
            message = await stream.get_final_message()
        await client.close()
        answer = await ask(server, "anthropic")
    assert server.faults == []
    assert message.usage.server_tool_use is not None
    assert message.usage.server_tool_use.web_search_requests == 1 == (answer.usage.searches if answer.usage else 0)
    theirs = [block.model_dump(exclude_none=True, mode="json") for block in message.content if block.type != "thinking"]
    assert [json.loads(bytes(block)) for block in blocks_in(answer)] == theirs


async def test_b15_the_openai_sdk_reads_the_same_search_as_our_decoder() -> None:
    import openai

    async with ScriptedServer([SEARCHED, SEARCHED]) as server:
        client = openai.AsyncOpenAI(base_url=server.openai_url, api_key="test", max_retries=0)
        async with client.responses.stream(
            model="test",
            input="hi",
            tools=[{"type": "web_search"}],
            include=["web_search_call.action.sources"],
            store=False,
        ) as stream:
            response = await stream.get_final_response()
        await client.close()
        answer = await ask(server, "openai")
    assert server.faults == []
    call = next(item for item in response.output if item.type == "web_search_call")
    part = next(part for part in answer.parts if isinstance(part, OpaquePart))
    theirs = call.model_dump(exclude_none=True, mode="json")
    assert {**json.loads(bytes(part.block)), "id": ""} == {**theirs, "id": ""}
    said = next(item for item in response.output if item.type == "message").content[0]
    assert said.type == "output_text"
    cited = [(note.title, note.url) for note in said.annotations if note.type == "url_citation"]
    assert [(source.title, source.url) for source in cited_in(answer.parts)] == cited == list(PAGES)


def blocks_in(answer: AssistantMessage) -> list[msgspec.Raw]:
    """The provider's own blocks of an answer in order."""
    return [part.block for part in answer.parts if isinstance(part, OpaquePart | TextPart)]


async def ask(server: ScriptedServer, provider: str, *more: ToolSchema) -> AssistantMessage:
    """Ask by our own client, with the web search and `more` among the tools."""
    tool = ToolSchema(name="read", description="Read.", parameters=msgspec.Raw(b'{"type":"object","properties":{}}'))
    models = ModelRegistry(Settings(), Path("/nonexistent"), server.environ())
    request = ModelRequest(
        model=ModelFacts(provider=provider, name="test"),
        messages=(UserMessage(parts=(TextPart(text="hi"),)),),
        tools=(tool, *more),
        web_search="on",
    )
    end = [part async for part in models.client(provider).stream(request)][-1]
    await models.close()
    assert isinstance(end, Finished)
    return end.message
