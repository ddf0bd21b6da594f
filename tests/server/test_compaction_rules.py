"""Compaction by the provider: what the real APIs refuse, this server refuses, with their words."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from tests.server import Reply, ScriptedServer
from tests.server.anthropic_compaction import CLEAR_TOOL_USES, COMPACTION_BETA, EDITING_BETA
from tests.server.openai_compaction import SEAL

USER = {"role": "user", "content": [{"type": "text", "text": "hi"}]}
ANSWER = {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}
USE = {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}}]}
BLOCK = {"type": "compaction", "content": "text", "signature": "sum.x", "tool_changes": []}
SUMMARIZE = {"type": "summarize"}
EDIT = {"type": CLEAR_TOOL_USES, "trigger": {"type": "input_tokens", "value": 1000}}
TRIGGER = {"type": "compaction_trigger"}
SAID = {"role": "user", "content": "hi"}


async def post(path: str, body: Any, beta: str = "", **options: Any) -> tuple[int, str]:
    """Send one request; return the status and the message of the error."""
    headers = {"anthropic-version": "2026-10-21", **({"anthropic-beta": beta} if beta else {})}
    async with ScriptedServer(lambda _: Reply("fine"), **options) as server, httpx.AsyncClient() as client:
        response = await client.post(server.base_url + path, content=json.dumps(body).encode(), headers=headers)
        assert server.faults == []
        return response.status_code, response.json()["error"]["message"] if response.status_code >= 400 else ""


def messages(*given: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "test", "max_tokens": 100, "messages": list(given), **more}


def responses(*items: Any, **more: Any) -> dict[str, Any]:
    return {"model": "test", "store": False, "input": list(items), **more}


ANTHROPIC_REFUSED = {
    "no beta": (messages(USER, compaction=SUMMARIZE), "", "compaction: Extra inputs are not permitted"),
    "a block without the beta": (
        messages({"role": "assistant", "content": [BLOCK]}, USER),
        "",
        "Input tag 'compaction'",
    ),
    "with editing": (
        messages(USER, compaction=SUMMARIZE, context_management={"edits": [EDIT]}),
        f"{COMPACTION_BETA},{EDITING_BETA}",
        "cannot be combined with context_management",
    ),
    "with stop sequences": (
        messages(USER, compaction=SUMMARIZE, stop_sequences=["x"]),
        COMPACTION_BETA,
        "cannot be combined with stop_sequences",
    ),
    "with a forced tool": (
        messages(USER, compaction=SUMMARIZE, tool_choice={"type": "any"}),
        COMPACTION_BETA,
        "cannot be combined with a tool_choice",
    ),
    "an open call": (messages(USER, USE, compaction=SUMMARIZE), COMPACTION_BETA, "not finished"),
    "long instructions": (
        messages(USER, compaction={**SUMMARIZE, "instructions": "x" * 16_385}),
        COMPACTION_BETA,
        "at most 16384 characters",
    ),
    "another type": (messages(USER, compaction={"type": "shorten"}), COMPACTION_BETA, "should be 'summarize'"),
    "a changed block": (
        messages({"role": "assistant", "content": [BLOCK]}, USER),
        COMPACTION_BETA,
        "does not match its `signature`",
    ),
    "not first": (
        messages(USER, {"role": "assistant", "content": [BLOCK]}, USER),
        COMPACTION_BETA,
        "must be sent first",
    ),
    "editing without its beta": (
        messages(USER, context_management={"edits": [EDIT]}),
        COMPACTION_BETA,
        "context_management: Extra inputs are not permitted",
    ),
    "an unknown edit": (
        messages(USER, context_management={"edits": [{"type": "forget"}]}),
        EDITING_BETA,
        "does not match",
    ),
}
RESPONSES_REFUSED = {
    "trigger not last": ("/responses", responses(TRIGGER, SAID), {}, "final input item"),
    "nothing before it": ("/responses", responses(TRIGGER), {}, "nothing to compact"),
    "unknown trigger": (
        "/responses",
        responses(SAID, TRIGGER),
        {"refuse": ("compaction_trigger",)},
        "Invalid value: 'compaction_trigger'",
    ),
    "no such item": (
        "/responses",
        responses({"type": "compaction", "id": "cmp_1", "encrypted_content": f"{SEAL}0-aGk="}, SAID),
        {},
        "could not be verified",
    ),
    "an item without content": (
        "/responses",
        responses({"type": "compaction"}, SAID),
        {},
        "Missing required parameter",
    ),
    "tools at the endpoint": (
        "/responses/compact",
        {"model": "test", "input": [SAID], "tools": []},
        {},
        "Unknown parameter: 'tools'",
    ),
    "no endpoint": (
        "/responses/compact",
        {"model": "test", "input": [SAID]},
        {"refuse": ("/responses/compact",)},
        "Invalid URL",
    ),
}


@pytest.mark.parametrize("case", ANTHROPIC_REFUSED)
async def test_anthropic_refuses(case: str):
    body, beta, words = ANTHROPIC_REFUSED[case]
    status, text = await post("/v1/messages", body, beta)
    assert status == 400
    assert words in text


@pytest.mark.parametrize("case", RESPONSES_REFUSED)
async def test_responses_refuses(case: str):
    path, body, options, words = RESPONSES_REFUSED[case]
    status, text = await post(f"/v1{path}", body, **options)
    assert status in {400, 404}
    assert words in text


@pytest.mark.parametrize("given", [[USER], [USER, ANSWER]])
async def test_a_finished_conversation_can_be_compacted(given: list[dict[str, Any]]):
    status, text = await post("/v1/messages", messages(*given, compaction=SUMMARIZE), COMPACTION_BETA)
    assert (status, text) == (200, "")
    assert await post("/v1/responses", responses(SAID, TRIGGER)) == (200, "")
    assert await post("/v1/responses/compact", {"model": "test", "input": [SAID]}) == (200, "")
