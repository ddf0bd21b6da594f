"""What a real API refuses, this one refuses, with its words; what it takes, this one takes."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.server import Reply, ScriptedServer

HEADERS = {"anthropic-version": "2026-10-21"}
USE = {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a"}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "text"}
USER = {"role": "user", "content": "hi"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": "{}"}}
ITEM = {"type": "function_call", "call_id": "call_1", "name": "read", "arguments": "{}"}
OUTPUT = {"type": "function_call_output", "call_id": "call_1", "output": "text"}


async def post(path: str, body: Any, **options: Any) -> tuple[int, str, ScriptedServer]:
    """Send one request; return the status, the message of the error and the server."""
    async with ScriptedServer(lambda _: Reply("fine"), **options) as server, httpx.AsyncClient() as client:
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        response = await client.post(server.base_url + path, content=raw, headers=HEADERS)
        assert server.faults == []
        text = response.json()["error"]["message"] if response.status_code >= 400 else ""
        return response.status_code, text, server


def messages(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    """An Anthropic body."""
    return {"model": "test", "max_tokens": 100, "messages": list(given), **more}


def assistant(*blocks: dict[str, Any]) -> dict[str, Any]:
    """An assistant message with these blocks."""
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    """A user message with these blocks."""
    return {"role": "user", "content": list(blocks)}


TEXT = {"type": "text", "text": "hi"}
THINKING = {"type": "thinking", "thinking": "hm"}

ANTHROPIC_REFUSED = {
    "no result": (messages(USER, assistant(USE)), "`tool_use` ids were found without `tool_result`"),
    "result too late": (
        messages(USER, assistant(USE), user(TEXT), assistant(TEXT), user(RESULT)),
        "`tool_use` ids were found without `tool_result`",
    ),
    "text before the result": (messages(USER, assistant(USE), user(TEXT, RESULT)), "without `tool_result` blocks"),
    "no call": (messages(user(RESULT)), "unexpected `tool_use_id` found in `tool_result` blocks: toolu_1"),
    "twice": (messages(USER, assistant(USE), user(RESULT, RESULT)), "each tool_use must have a single result"),
    "same id again": (
        messages(USER, assistant(USE), user(RESULT), assistant(USE), user(RESULT)),
        "`tool_use` ids must be unique",
    ),
    "two users": (messages(USER, USER), "roles must alternate"),
    "assistant first": (messages(assistant(TEXT), USER), "first message must use"),
    "prefill": (messages(USER, assistant(TEXT)), "must end with a user message"),
    "no messages": (messages(), "at least one message"),
    "empty text": (messages(user({"type": "text", "text": ""})), "must be non-empty"),
    "blank text": (messages(user({"type": "text", "text": " \n"})), "non-whitespace"),
    "empty content": (messages({"role": "user", "content": ""}), "must have non-empty content"),
    "empty system": (messages(USER, system=[{"type": "text", "text": ""}]), "must be non-empty"),
    "unsigned thinking": (messages(USER, assistant(THINKING), USER), "signature: Field required"),
    "a turn without thinking": (
        messages(
            USER, assistant(USE), user(RESULT), max_tokens=4_000, thinking={"type": "enabled", "budget_tokens": 2_000}
        ),
        "must start with a thinking block",
    ),
    "adaptive": (
        messages(USER, model="claude-haiku-4-5", thinking={"type": "adaptive"}),
        "adaptive thinking is not supported",
    ),
    "effort": (
        messages(USER, model="claude-haiku-4-5", output_config={"effort": "low"}),
        "does not support the effort parameter",
    ),
    "budget of a model that needs none": (
        messages(
            USER,
            model="claude-opus-5-5",
            max_tokens=4_000,
            thinking={"type": "enabled", "budget_tokens": 2_000},
        ),
        "`enabled` is not supported",
    ),
    "input no object": (messages(USER, assistant({**USE, "input": "x"}), user(RESULT)), "valid dictionary"),
    "id": (messages(USER, assistant({**USE, "id": "a b"})), "String should match pattern"),
    "temperature": (messages(USER, temperature=1), "temperature: Extra inputs are not permitted"),
    "max_tokens": ({"model": "test", "messages": [USER]}, "max_tokens: Field required"),
    "five marks": (
        messages(user(*[{**TEXT, "cache_control": {"type": "ephemeral"}}] * 5)),
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    "budget": (messages(USER, thinking={"type": "enabled", "budget_tokens": 2000}), "must be greater than"),
    "tool schema": (messages(USER, tools=[{"name": "read", "input_schema": {}}]), "input_schema.type: Field required"),
}
ANTHROPIC_TAKEN = {
    "plain": messages(USER),
    "a step": messages(USER, assistant(TEXT, USE), user(RESULT, TEXT)),
    "parallel": messages(
        USER,
        assistant(USE, {**USE, "id": "toolu_2"}),
        user({**RESULT, "tool_use_id": "toolu_2"}, {**RESULT, "content": [], "is_error": True}),
    ),
    "system in the middle": messages(USER, assistant(TEXT), USER, {"role": "system", "content": "mode: plan"}),
    "emoji": messages({"role": "user", "content": "🎵"}),
}


@pytest.mark.parametrize("case", ANTHROPIC_REFUSED)
async def test_anthropic_refuses(case: str) -> None:
    body, expected = ANTHROPIC_REFUSED[case]
    status, text, server = await post("/v1/messages", body)
    assert (status, expected in text) == (400, True), text
    assert server.refusals == [text]


@pytest.mark.parametrize("case", ANTHROPIC_TAKEN)
async def test_anthropic_takes(case: str) -> None:
    status, text, _ = await post("/v1/messages", ANTHROPIC_TAKEN[case])
    assert (status, text) == (200, "")


CHAT_REFUSED = {
    "no result": ([USER, {"role": "assistant", "tool_calls": [CALL]}, USER], "must be followed by tool messages"),
    "open at the end": ([USER, {"role": "assistant", "tool_calls": [CALL]}], "call_1"),
    "no call": ([USER, {"role": "tool", "tool_call_id": "call_1", "content": "x"}], "must be a response to"),
    "twice": (
        [
            USER,
            {"role": "assistant", "tool_calls": [CALL]},
            *[{"role": "tool", "tool_call_id": "call_1", "content": "x"}] * 2,
        ],
        "Duplicate value for 'tool_call_id'",
    ),
    "nothing said": ([USER, {"role": "assistant"}, USER], "expected a string, got null"),
    "empty calls": ([USER, {"role": "assistant", "content": "x", "tool_calls": []}], "empty array"),
    "no messages": ([], "empty array"),
    "role": ([{"role": "robot", "content": "x"}], "Invalid value: 'robot'"),
}


@pytest.mark.parametrize("case", CHAT_REFUSED)
async def test_chat_refuses(case: str) -> None:
    given, expected = CHAT_REFUSED[case]
    status, text, _ = await post("/v1/chat/completions", {"model": "test", "messages": given})
    assert (status, expected in text) == (400, True), text


async def test_chat_takes_a_step_and_a_template_may_be_narrower() -> None:
    results = [{"role": "tool", "tool_call_id": "call_1", "content": ""}]
    step = [USER, {"role": "assistant", "content": None, "tool_calls": [CALL]}, *results]
    assert (await post("/chat/completions", {"model": "test", "messages": step}))[0] == 200
    late = {"model": "test", "messages": [USER, {"role": "system", "content": "x"}, USER]}
    assert (await post("/chat/completions", late))[0] == 200
    assert "beginning" in (await post("/chat/completions", late, one_system=True))[1]
    assert "alternate" in (await post("/chat/completions", {"model": "t", "messages": [USER, USER]}, alternate=True))[1]
    wanted = {"model": "test", "messages": [USER], "stream_options": {"include_usage": True}}
    assert "stream_options" in (await post("/chat/completions", wanted, refuse=("stream_options",)))[1]


REASONING = {"type": "reasoning", "id": "rs_000001", "summary": [], "encrypted_content": "gAAAAA-test-000001"}
RESPONSES_REFUSED = {
    "no output": ([USER, ITEM], "No tool output found for function call call_1."),
    "no call": ([USER, OUTPUT], "No tool call found for function call output with call_id call_1."),
    "output first": ([USER, OUTPUT, ITEM], "No tool call found"),
    "twice": ([USER, ITEM, OUTPUT, OUTPUT], "Duplicate tool output"),
    "reasoning alone": ([USER, REASONING, USER], "without its required following item"),
    "reasoning without content": ([USER, {**REASONING, "encrypted_content": None}, ITEM, OUTPUT], "not found"),
    "part type": ([{"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}], "'input_text'"),
    "id": ([{**ITEM, "id": "call_1"}, OUTPUT], "begins with 'fc'"),
    "long id": ([{**ITEM, "call_id": "c" * 65}], "maximum length 64"),
}


@pytest.mark.parametrize("case", RESPONSES_REFUSED)
async def test_responses_refuses(case: str) -> None:
    given, expected = RESPONSES_REFUSED[case]
    status, text, _ = await post("/v1/responses", {"model": "test", "input": given, "store": False})
    assert (status in (400, 404), expected in text) == (True, True), text


async def test_responses_takes_steps_and_names_unknown_fields() -> None:
    body = {"model": "test", "input": [USER, REASONING, ITEM, OUTPUT], "store": False}
    assert (await post("/responses", body, check_thinking=True))[0] == 200
    forged = {**body, "input": [USER, {**REASONING, "encrypted_content": "gAAAAA-else"}, ITEM, OUTPUT]}
    assert "could not be verified" in (await post("/responses", forged, check_thinking=True))[1]
    assert "Unknown parameter: 'messages'" in (await post("/responses", {**body, "messages": []}))[1]


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/responses", "/v1/chat/completions"])
async def test_bodies_that_are_not_json_or_hold_lone_surrogates_are_refused(path: str) -> None:
    assert (await post(path, b'{"model": '))[0] == 400
    assert (await post(path, b'{"model": "\xff"}'))[0] == 400
    raw = rb'{"model":"t","max_tokens":9,"input":"\ud800","messages":[{"role":"user","content":"\ud800"}]}'
    status, text, _ = await post(path, raw)
    assert (status, "surrogate" in text) == (400, True)


async def test_overflow_has_the_providers_text() -> None:
    long = {"role": "user", "content": "word " * 4000}
    _, text, _ = await post("/messages", messages(long), window=2000)
    assert text.startswith("prompt is too long: 50")
    assert text.endswith("tokens > 2000 maximum")
    _, text, _ = await post("/messages", {**messages(USER), "max_tokens": 1999}, window=2000)
    assert "exceed context limit" in text
    _, text, _ = await post("/chat/completions", {"model": "test", "messages": [long]}, window=2000)
    assert "maximum context length is 2000 tokens. However, your messages resulted in 50" in text
    _, text, _ = await post("/responses", {"model": "test", "input": [long]}, window=2000)
    assert "exceeds the context window" in text


async def test_a_wrong_key_gets_a_401() -> None:
    status, text, _ = await post("/messages", messages(USER), api_key="secret")
    assert (status, text) == (401, "x-api-key header is required")
    status, text, _ = await post("/chat/completions", {"model": "test", "messages": [USER]}, api_key="secret")
    assert (status, "API key" in text) == (401, True)


class TestThinking:
    """Signatures hold for the exact prefix (anchors: preserved thinking)."""

    async def grow(self, server: ScriptedServer, client: httpx.AsyncClient, rounds: int) -> list[dict[str, Any]]:
        """Talk for some rounds with thinking in each; return the messages, the last by the user."""
        history: list[dict[str, Any]] = [USER]
        for _ in range(rounds):
            response = await client.post(server.base_url + "/messages", json=messages(*history), headers=HEADERS)
            assert response.status_code == 200, response.text
            history += [{"role": "assistant", "content": response.json()["content"]}, user(TEXT)]
        return history

    async def test_unchanged_stripped_from_the_start_or_wholly_it_is_valid_else_not(self) -> None:
        script = [Reply(f"text {number}", thinking=f"thought {number}") for number in range(20)]
        async with ScriptedServer(script, check_thinking=True) as server, httpx.AsyncClient() as client:
            history = await self.grow(server, client, 3)

            def strip(*places: int) -> list[dict[str, Any]]:
                return [
                    {**message, "content": message["content"][1:]} if place in places else message
                    for place, message in enumerate(history)
                ]

            async def status(given: list[dict[str, Any]], **more: Any) -> int:
                body = messages(*given, **more)
                return (await client.post(server.base_url + "/messages", json=body, headers=HEADERS)).status_code

            marked = [*history[:-1], user({**TEXT, "cache_control": {"type": "ephemeral"}})]
            assert await status(marked) == 200
            assert await status(strip(1)) == 200
            assert await status(strip(1, 3)) == 200
            assert await status(strip(1, 3, 5)) == 200
            assert await status(strip(3)) == 400
            assert await status([user({"type": "text", "text": "other"}), *history[1:]]) == 400
            assert await status(history, system="new") == 400
            altered = json.loads(json.dumps(history).replace("thought 1", "thought X"))
            assert await status(altered) == 400
            assert "Invalid `signature` in `thinking` block" in server.refusals[-1]
