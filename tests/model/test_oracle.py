"""The official SDKs read the same bytes and must come to the same answer (DESIGN section 7).

They are imported where they are used: that takes seconds, which only the worker that runs these tests should spend.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.part import TextPart, ThinkingPart, ToolCallPart
from tests.model.decoding import decode
from tests.model.streams import ANTHROPIC, CHAT, RESPONSES

if TYPE_CHECKING:
    import httpx2

STOPS = {
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "tool_use": "tool_use",
    "end_turn": "end_turn",
    "model_context_window_exceeded": "window_exceeded",
}


def serving(body: bytes) -> httpx2.AsyncClient:
    import httpx2

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, content=body)

    return httpx2.AsyncClient(transport=httpx2.MockTransport(answer))


def parts_of(message: AssistantMessage) -> list[Any]:
    """The answer in words that every SDK's answer can be put into."""
    found: list[Any] = []
    for part in message.parts:
        if isinstance(part, TextPart):
            found.append(("text", part.text))
        elif isinstance(part, ToolCallPart) and part.freeform:
            found.append(("freeform call", part.id, part.name, json.loads(part.arguments)["input"]))
        elif isinstance(part, ToolCallPart):
            found.append(("call", part.id, part.name, json.loads(part.arguments)))
        elif isinstance(part, ThinkingPart):
            found.append(("thinking", msgspec.json.decode(part.block)))
    return found


@pytest.mark.parametrize("case", ANTHROPIC)
async def test_anthropic_agrees_with_its_sdk(case: str):
    import anthropic

    body = b"".join(ANTHROPIC[case])
    client = anthropic.AsyncAnthropic(api_key="k", base_url="http://test", http_client=serving(body), max_retries=0)
    async with client.messages.stream(model="m", max_tokens=10, messages=[{"role": "user", "content": "x"}]) as stream:
        theirs = await stream.get_final_message()
    _, ours = await decode("anthropic", [body])
    expected: list[Any] = []
    for block in theirs.content:
        match block.type:
            case "text":
                expected.append(("text", block.text))
            case "tool_use":
                expected.append(("call", block.id, block.name, block.input))
            case _:
                expected.append(("thinking", block.model_dump(exclude_none=True)))
    assert parts_of(ours) == expected
    assert ours.response_id == theirs.id
    assert ours.stop_reason == STOPS[theirs.stop_reason]
    usage = ours.usage
    assert usage is not None
    assert (usage.input, usage.output) == (theirs.usage.input_tokens, theirs.usage.output_tokens)
    assert usage.cache_read == theirs.usage.cache_read_input_tokens
    assert usage.cache_write == theirs.usage.cache_creation_input_tokens


@pytest.mark.parametrize("case", RESPONSES)
async def test_responses_agrees_with_its_sdk(case: str):
    import openai

    body = b"".join(RESPONSES[case])
    client = openai.AsyncOpenAI(api_key="k", base_url="http://test", http_client=serving(body), max_retries=0)
    final: Any = None
    texts: list[str] = []
    async for event in await client.responses.create(model="m", input="x", stream=True):
        if event.type in ("response.completed", "response.incomplete"):
            final = event.response
        elif event.type == "response.output_text.delta":
            texts.append(event.delta)
    deltas, ours = await decode("openai", [body])
    expected: list[Any] = []
    for item in final.output:
        match item.type:
            case "message":
                expected.append(("text", "".join(part.text for part in item.content)))
            case "function_call":
                expected.append(("call", item.call_id, item.name, json.loads(item.arguments)))
            case "custom_tool_call":
                expected.append(("freeform call", item.call_id, item.name, item.input))
            case _:
                expected.append(("thinking", item.model_dump(exclude_none=True)))
    assert parts_of(ours) == expected
    assert "".join(part.text for part in ours.parts if isinstance(part, TextPart)) == "".join(texts)
    assert ours.response_id == final.id
    usage = ours.usage
    assert usage is not None
    assert usage.sent == final.usage.input_tokens
    assert usage.sent + usage.output == final.usage.total_tokens
    assert usage.reasoning == final.usage.output_tokens_details.reasoning_tokens
    assert deltas


@pytest.mark.parametrize("case", CHAT)
async def test_chat_agrees_with_its_sdk(case: str):
    import openai

    body = b"".join(CHAT[case])
    client = openai.AsyncOpenAI(api_key="k", base_url="http://test", http_client=serving(body), max_retries=0)
    async with client.chat.completions.stream(
        model="m", messages=[{"role": "user", "content": "x"}], stream_options={"include_usage": True}
    ) as stream:
        try:
            async for _ in stream:
                pass
        except openai.LengthFinishReasonError:
            pass
        theirs = stream.current_completion_snapshot
    _, ours = await decode("openai-chat", [body])
    message = theirs.choices[0].message
    expected: list[Any] = [("text", message.content)] if message.content else []
    for call in message.tool_calls or []:
        expected += [("call", call.id, call.function.name, json.loads(call.function.arguments))]
    assert parts_of(ours) == expected
    assert ours.response_id == theirs.id
    usage = ours.usage
    assert usage is not None
    assert theirs.usage is not None
    assert (usage.sent, usage.output) == (theirs.usage.prompt_tokens, theirs.usage.completion_tokens)
