"""The clouds of the scripted server are as strict as their protocols are without one, and about their own things."""

from __future__ import annotations

from typing import Any

import pytest

from tests.server import Reply, ScriptedServer
from tests.server.anthropic_wire import sign
from tests.server.cloud_keys import ACCESS_KEY, AZURE_KEY, AZURE_VERSION, PROJECT, REGION, SECRET_KEY, TOKEN

WAYS = ("bedrock", "vertex", "azure chat", "azure responses")
Body = dict[str, Any]


async def send(way: str, base_url: str, body: Body, **client: Any) -> None:
    """Send a body as it is, with the SDK's own address and credentials. Raises what the SDK does."""
    common: dict[str, Any] = {"base_url": base_url, "max_retries": 0}
    match way:
        case "bedrock":
            import anthropic

            keys = {"aws_access_key": ACCESS_KEY, "aws_secret_key": SECRET_KEY, "aws_region": REGION}
            sdk: Any = anthropic.AsyncAnthropicBedrock(**{**keys, **common, **client})
        case "vertex":
            import anthropic

            own = {"region": "europe-west1", "project_id": PROJECT, "access_token": TOKEN}
            sdk = anthropic.AsyncAnthropicVertex(**{**own, **common, **client})
        case _:
            import openai

            own = {"azure_endpoint": base_url, "api_key": AZURE_KEY, "api_version": AZURE_VERSION, "max_retries": 0}
            sdk = openai.AsyncAzureOpenAI(**{**own, **client})
    path = {"azure chat": "/chat/completions", "azure responses": "/responses"}.get(way, "/v1/messages")
    async with sdk:
        await sdk.post(path, body={"model": "test", **body}, cast_to=object)


def anthropic_body(*messages: Body, **more: Any) -> Body:
    return {"max_tokens": 99, "messages": list(messages), **more}


def chat_body(*messages: Body, **more: Any) -> Body:
    return {"messages": list(messages), **more}


def responses_body(*items: Body, **more: Any) -> Body:
    return {"input": list(items), **more}


HI = {"role": "user", "content": "hi"}
GOOD: dict[str, Body] = {
    "bedrock": anthropic_body(HI),
    "vertex": anthropic_body(HI),
    "azure chat": chat_body(HI),
    "azure responses": responses_body(HI),
}
CALL = {"role": "assistant", "content": [{"type": "tool_use", "id": "t1", "name": "f", "input": {}}]}
RESULT = {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t1", "content": "x"}]}
OWN_SIGN = sign("test", "", "", "").split(".")[0]
THOUGHT = {
    "role": "assistant",
    "content": [
        {"type": "thinking", "thinking": "hm", "signature": f"{OWN_SIGN}.b.a.d"},
        {"type": "text", "text": "x"},
    ],
}
CHAT_CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "t1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}


def image(kind: str) -> Body:
    source = {"type": "base64", "media_type": kind, "data": "eA=="}
    return {"role": "user", "content": [{"type": "image", "source": source}]}


ANTHROPIC: list[tuple[Body, str]] = [
    (anthropic_body(HI, effort="high"), "effort: Extra inputs"),
    ({"messages": [HI]}, "max_tokens: Field required"),
    ({"max_tokens": 99}, "messages: Field required"),
    (anthropic_body(HI, HI), "roles must alternate"),
    (anthropic_body({"role": "assistant", "content": "x"}, HI), "first message"),
    (anthropic_body(HI, {"role": "assistant", "content": "x"}), "prefill"),
    (anthropic_body(HI, {"role": "tool", "content": "x"}), "role"),
    (anthropic_body(HI, {"role": "assistant", "content": "x"}, RESULT), "unexpected `tool_use_id`"),
    (anthropic_body(HI, CALL, HI), "without `tool_result`"),
    (anthropic_body(HI, THOUGHT, HI), "Invalid `signature`"),
    (anthropic_body(image("image/tiff")), "media_type"),
    (anthropic_body(HI, max_tokens=2_000), "maximum allowed number of output tokens"),
    (anthropic_body({"role": "user", "content": "long " * 9_000}), "prompt is too long"),
    (anthropic_body(HI, tools=[{"name": "a b", "input_schema": {"type": "object"}}]), "pattern"),
]
OWN: dict[str, list[tuple[Body, str]]] = {
    "bedrock": [({**GOOD["bedrock"], "anthropic_version": "2023-06-01"}, "anthropic_version")],
    "vertex": [({**GOOD["vertex"], "anthropic_version": "bedrock-2023-05-31"}, "anthropic_version")],
    "azure chat": [
        ({"messages": [HI], "thinking": {}}, "thinking"),
        ({}, "messages"),
        (chat_body({"role": "robot", "content": "x"}), "robot"),
        (chat_body(HI, {"role": "tool", "tool_call_id": "t9", "content": "x"}), "tool"),
        (chat_body(HI, CHAT_CALL, HI), "tool_call"),
        (chat_body({"role": "user", "content": "long " * 9_000}), "maximum context length"),
    ],
    "azure responses": [
        (responses_body(HI, effort="high"), "Unknown parameter: 'effort'"),
        ({}, "input"),
        (responses_body({"role": "robot", "content": "x"}), "robot"),
        (responses_body(HI, {"type": "function_call_output", "call_id": "t9", "output": "x"}), "t9"),
        (responses_body(HI, {"type": "function_call", "call_id": "t1", "name": "f", "arguments": "{}"}), "t1"),
        (responses_body({"role": "user", "content": "long " * 9_000}), "context window"),
    ],
}
FAULTS = [
    *((way, *row) for way in ("bedrock", "vertex") for row in ANTHROPIC),
    *((way, *row) for way in WAYS for row in OWN[way]),
]


@pytest.mark.parametrize(("way", "body", "said"), FAULTS, ids=lambda value: value if isinstance(value, str) else "")
async def test_a_cloud_refuses_what_its_protocol_does(way: str, body: Body, said: str):
    async with ScriptedServer([Reply("x")], check_thinking=True, window=8_000, max_output=1_000) as server:
        with pytest.raises(Exception, match="400") as caught:
            await send(way, server.base_url, body)
        assert said in str(caught.value)
        assert server.remaining == 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_cloud_takes_what_is_right(way: str):
    async with ScriptedServer([Reply("x")]) as server:
        await send(way, server.base_url, GOOD[way])
        assert server.refusals == []


CREDENTIALS: list[tuple[str, dict[str, Any], int]] = [
    ("bedrock", {"aws_secret_key": "wrong"}, 403),
    ("bedrock", {"aws_access_key": "AKIAWRONG"}, 403),
    ("bedrock", {"aws_session_token": "not asked for"}, 403),
    ("bedrock", {"aws_region": "us-east-1"}, 403),
    ("vertex", {"access_token": "wrong"}, 401),
    ("azure chat", {"api_key": "wrong"}, 401),
    ("azure chat", {"api_key": None, "azure_ad_token": "token"}, 401),
    ("azure chat", {"api_version": "2020-01-01"}, 404),
    ("azure chat", {"azure_deployment": "another"}, 404),
    ("azure responses", {"api_key": "wrong"}, 401),
    ("azure responses", {"api_version": "2020-01-01"}, 404),
]


@pytest.mark.parametrize(("way", "client", "status"), CREDENTIALS, ids=str)
async def test_a_cloud_knows_whom_it_serves(way: str, client: dict[str, Any], status: int):
    async with ScriptedServer([Reply("x")]) as server:
        with pytest.raises(Exception, match=str(status)):
            await send(way, server.base_url, GOOD[way], **client)
        assert server.remaining == 1
