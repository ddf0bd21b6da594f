"""What we send: accepted by the SDKs' types, laid out as the design says, valid whatever is in it."""

from __future__ import annotations

import functools
import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter, ValidationError, with_config

from tenuto.protocol.message import AssistantMessage, DeveloperMessage, SystemMessage
from tenuto.protocol.model import ModelError, ToolSchema
from tenuto.protocol.part import OpaquePart, TextPart, ToolCallPart
from tenuto.tool.run.registry import ToolRegistry
from tests.model.bodies import Recording
from tests.model.views import PROVIDERS, answer, facts, load_blob, request, result, rich_view, thinking, user


@functools.cache
def checks(provider: str) -> tuple[TypeAdapter[Any], dict[str, TypeAdapter[Any]]]:
    """The SDK's type of a body, where fields that it does not know are refused, and the types of what it lists.

    The SDKs are imported here: that takes seconds, which only the worker that runs these tests should spend.
    """
    if provider == "anthropic":
        from anthropic.types import MessageParam, TextBlockParam, ToolParam
        from anthropic.types.message_create_params import MessageCreateParamsStreaming as Body

        items: dict[str, Any] = {"tools": ToolParam, "system": TextBlockParam, "messages": MessageParam}
    elif provider == "openai":
        from openai.types.responses import CustomToolParam, FunctionToolParam, ResponseInputItemParam
        from openai.types.responses.response_create_params import ResponseCreateParamsStreaming as Body

        items = {"tools": FunctionToolParam | CustomToolParam, "input": ResponseInputItemParam}
    else:
        from openai.types.chat import ChatCompletionFunctionToolParam, ChatCompletionMessageParam
        from openai.types.chat.completion_create_params import CompletionCreateParamsStreaming as Body

        items = {"tools": ChatCompletionFunctionToolParam, "messages": ChatCompletionMessageParam}
    strict = with_config(ConfigDict(extra="forbid"))(Body)
    return TypeAdapter(strict), {name: TypeAdapter(kind) for name, kind in items.items()}


@functools.cache
def block_check() -> TypeAdapter[Any]:
    from anthropic.types import ContentBlockParam

    return TypeAdapter(ContentBlockParam)


def check_types(provider: str, body: dict[str, Any]) -> None:
    """Hold a body against the SDK's types; fields that the SDK does not know are refused.

    The SDK types lists as iterables, which pydantic checks only while they are read: so each item by itself.
    """
    whole, items = checks(provider)
    whole.validate_python(body)
    for name, check in items.items():
        for item in body.get(name, []):
            check.validate_python(item)
    if provider == "anthropic":
        for message in body["messages"]:
            for block in message["content"]:
                block_check().validate_python(block)


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_b10_calls_that_hold_one_text_fit_the_types_of_the_sdk(provider: str):
    patch = "*** Begin Patch\n*** Delete File: a.py\n*** End Patch\n"
    arguments = json.dumps({"input": patch})
    part = ToolCallPart(id="call_1", name="apply_patch", arguments=arguments, freeform=True)
    view = [SystemMessage(text="s"), user("go"), answer(provider, part), result("call_1", "D a.py")]
    body = await Recording(provider).body(request(provider, view, tools=ToolRegistry().schemas("gpt")))
    check_types(provider, body)
    text = json.dumps(body)
    assert ('"custom_tool_call_output"' in text) == (provider == "openai")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_the_check_of_types_finds_faults(provider: str):
    body = await Recording(provider).body(request(provider, rich_view(provider)))
    conversation = body.get("messages") or body["input"]
    for fault in ({"temperatura": 1}, {"tools": [{"name": 7}]}):
        with pytest.raises(ValidationError):
            check_types(provider, {**body, **fault})
    conversation[1]["content"] = 7
    with pytest.raises(ValidationError):
        check_types(provider, body)


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("effort", ["", "high"])
async def test_bodies_fit_the_types_of_the_sdk(provider: str, effort: str):
    model = facts(provider, thinking=True, efforts=("low", "high"))
    body = await Recording(provider).body(request(provider, rich_view(provider), model=model, effort=effort))
    check_types(provider, body)


# --- layout (DESIGN section 3) ---


async def test_anthropic_layout():
    body = await Recording("anthropic").body(request("anthropic", rich_view("anthropic")))
    mark = {"type": "ephemeral"}
    assert body["system"] == [
        {"type": "text", "text": "You are careful.", "cache_control": mark},
        {"type": "text", "text": "Summary of what came before.", "cache_control": mark},
    ]
    first, called, results, said, last = body["messages"]
    assert [block["type"] for block in first["content"]] == ["text", "image", "text"]
    assert first["content"][2]["text"] == "<harness-note>\nmode: ask\n</harness-note>"
    assert [block["type"] for block in called["content"]] == ["text", "tool_use", "tool_use"]
    assert called["content"][2]["name"] == "bad_name_"
    assert [block["type"] for block in results["content"]] == ["tool_result", "tool_result", "text"]
    assert results["content"][0] == {"type": "tool_result", "tool_use_id": "call_1", "content": "text of a.py"}
    assert results["content"][1]["tool_use_id"] == called["content"][2]["id"]
    assert results["content"][1]["is_error"] is True
    assert results["content"][2]["cache_control"] == mark
    assert said == {"role": "assistant", "content": [{"type": "text", "text": "Both read."}]}
    assert [block["text"].split("\n")[0] for block in last["content"]] == ["Thanks, go on", "<harness-note>"]
    assert last["content"][-1]["cache_control"] == mark
    assert "mode: auto" in last["content"][-1]["text"]


async def test_anthropic_never_has_more_than_four_marks():
    view = rich_view("anthropic")
    for messages in (view, view[:1] + view[2:], view[2:], view[:3]):
        sent = await Recording("anthropic").send(request("anthropic", messages))
        assert 1 <= sent.count(b'"cache_control"') <= 4


async def test_responses_layout():
    body = await Recording("openai").body(request("openai", rich_view("openai")))
    assert body["store"] is False
    assert body["prompt_cache_key"] == "session"
    assert body["instructions"] == "You are careful."
    items = body["input"]
    assert items[0] == {
        "type": "message",
        "role": "developer",
        "content": [{"type": "input_text", "text": "Summary of what came before."}],
    }
    assert [part["type"] for part in items[1]["content"]] == ["input_text", "input_image", "input_text"]
    assert items[2] == {"role": "assistant", "content": "I read.", "phase": "commentary"}
    assert [item.get("type") for item in items[3:7]] == [
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
    ]
    assert items[3]["call_id"] == items[5]["call_id"]
    assert items[4]["call_id"] == items[6]["call_id"]
    assert items[6]["output"][-1]["text"].startswith("<harness-note>\na file changed")
    assert items[-1]["content"][0] == {"type": "input_text", "text": "Thanks, go on"}
    assert "date: today" in items[-1]["content"][1]["text"]


async def test_chat_layout():
    body = await Recording("openai-chat").body(request("openai-chat", rich_view("openai-chat")))
    messages = body["messages"]
    assert [message["role"] for message in messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "tool",
        "user",
        "assistant",
        "user",
    ]
    assert messages[0]["content"] == "You are careful.\n\nSummary of what came before."
    assert messages[1]["content"][1]["image_url"]["url"].startswith("data:image/png;base64,")
    assert messages[4]["content"].endswith("<harness-note>\na file changed\n</harness-note>")
    assert messages[5]["content"][0]["type"] == "image_url"
    assert messages[7]["content"].startswith("Thanks, go on\n\n<harness-note>\ndate: today")


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_developer_text_without_a_message_in_its_gap_is_a_user_message(provider: str):
    view = [SystemMessage(text="s"), user("hi"), answer(provider, TextPart(text="yes")), DeveloperMessage(text="note")]
    body = await Recording(provider).body(request(provider, view))
    last = (body.get("messages") or body.get("input"))[-1]
    assert last["role"] == "user"
    assert "note" in json.dumps(last)


async def test_anthropic_roles_alternate_whatever_the_view():
    for messages in (
        [answer("anthropic", TextPart(text="first"))],
        [user("a"), answer("anthropic", thinking("anthropic")), user("b")],
        [user("a"), answer("anthropic", TextPart(text="x")), answer("anthropic", TextPart(text="y"))],
        [],
    ):
        body = await Recording("anthropic").body(request("anthropic", messages))
        roles = [message["role"] for message in body["messages"]]
        assert roles[0] == roles[-1] == "user"
        assert all(one != other for one, other in pairwise(roles))
        assert all(message["content"] for message in body["messages"])


# --- thinking, effort, opaque blocks ---


async def test_anthropic_thinking_and_effort():
    model = facts("anthropic", thinking=True, efforts=("low", "medium", "high"))
    body = await Recording("anthropic").body(request("anthropic", [user("x")], model=model, effort="high"))
    assert body["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body["output_config"] == {"effort": "high"}
    body = await Recording("anthropic").body(request("anthropic", [user("x")], model=model, effort="none"))
    assert body["thinking"] == {"type": "disabled"}
    body = await Recording("anthropic").body(request("anthropic", [user("x")], effort="high"))
    assert "thinking" not in body
    assert body["output_config"] == {"effort": "high"}, "the server decides where no list says what it has"


async def test_responses_reasoning():
    model = facts("openai", thinking=True, efforts=("low", "high"))
    body = await Recording("openai").body(request("openai", [user("x")], model=model, effort="high"))
    assert body["reasoning"] == {"effort": "high", "summary": "auto"}
    assert body["include"] == ["reasoning.encrypted_content"]
    body = await Recording("openai").body(request("openai", [user("x")], effort="high"))
    assert body["reasoning"] == {"effort": "high"}
    assert "include" not in body
    body = await Recording("openai").body(request("openai", [user("x")]))
    assert not {"reasoning", "include"} & body.keys()


@pytest.mark.parametrize("provider", ["anthropic", "openai"])
async def test_opaque_blocks_go_back_to_their_provider_only(provider: str):
    import msgspec

    block = msgspec.Raw(b'{"type":"hologram","depth":3}')
    view = [
        user("x"),
        answer(
            provider,
            OpaquePart(provider=provider, block=block),
            OpaquePart(provider="other", block=msgspec.Raw(b'{"type":"secret"}')),
            TextPart(text="y"),
        ),
        user("z"),
    ]
    sent = await Recording(provider).send(request(provider, view))
    assert bytes(block) in sent
    assert b"secret" not in sent


async def test_r051_encrypted_reasoning_of_another_model_is_dropped_and_the_text_kept():
    view = [
        user("x"),
        AssistantMessage(parts=(thinking("openai"), TextPart(text="kept")), model="openai/other", prefix="00.0"),
        user("y"),
    ]
    sent = await Recording("openai").send(request("openai", view))
    assert b"enc-hm" not in sent
    assert b"kept" in sent


# --- R-073, T-30 ---

HOSTILE = "a\ud800b\udc00c\x00d\ud83d\ude00e\u2028f\x7f"


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_t30_hostile_text_makes_a_valid_body(provider: str):
    view = [
        SystemMessage(text=HOSTILE),
        user(HOSTILE),
        DeveloperMessage(text=HOSTILE),
        answer(
            provider,
            TextPart(text=HOSTILE),
            ToolCallPart(id=HOSTILE, name=HOSTILE, arguments='{"a": "\\ud800\\u0000"}'),
            ToolCallPart(id="x", name="read", arguments="not json"),
        ),
        result(HOSTILE, HOSTILE),
        result("x", HOSTILE),
    ]
    tools = (ToolSchema(name="read", description=HOSTILE, parameters=request(provider, []).tools[0].parameters),)
    sent = await Recording(provider).send(request(provider, view, tools=tools))
    text = sent.decode("utf-8", "strict")
    assert "\\u0000" not in text
    assert "\\ud8" not in text.lower()
    check_types(provider, json.loads(text))
    assert "d\U0001f600e" in text


@given(text=st.text(alphabet=st.characters(codec=None), max_size=30), provider=st.sampled_from(PROVIDERS))
async def test_r073_any_text_makes_a_valid_body(text: str, provider: str):
    sent = await Recording(provider).send(
        request(provider, [SystemMessage(text=text), user(text), answer(provider, TextPart(text=text)), user(text)])
    )
    assert isinstance(json.loads(sent.decode("utf-8", "strict")), dict)


# --- images ---


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_model_without_eyes_gets_a_word_for_each_image(provider: str):
    sent = await Recording(provider).send(request(provider, rich_view(provider), model=facts(provider, images=False)))
    assert b"base64" not in sent
    assert sent.count(b"shot.png left out: this model cannot see images") == 2


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_lost_image_breaks_nothing(provider: str):
    def lost(sha256: str) -> bytes:
        raise FileNotFoundError(sha256)

    sent = await Recording(provider, lost).send(request(provider, rich_view(provider)))
    assert sent.count(b"its file is missing") == 2


async def test_r053_a_body_over_the_byte_limit_is_not_sent():
    recording = Recording("anthropic", max_request_bytes=1_000)
    with pytest.raises(ModelError) as caught:
        async for _ in recording.client.stream(request("anthropic", [user("x" * 2_000)])):
            pass
    assert caught.value.kind == "too_many_bytes"
    assert not recording.recorder.calls


# --- authentication ---


async def test_the_official_api_gets_a_bearer_token_and_a_gateway_both_headers():
    official = Recording("anthropic")
    await official.send(request("anthropic", [user("x")]))
    assert official.headers["authorization"] == "Bearer KEY"
    assert "x-api-key" not in official.headers
    assert official.headers["anthropic-version"] == "2026-10-21"
    gateway = Recording("anthropic", base_url="https://gateway.example/anthropic", headers={"x-team": "a"})
    await gateway.send(request("anthropic", [user("x")]))
    assert gateway.headers["authorization"] == "Bearer KEY"
    assert gateway.headers["x-api-key"] == "KEY"
    assert gateway.headers["x-team"] == "a"
    assert gateway.url == "https://gateway.example/anthropic/v1/messages"


async def test_call_ids_stay_within_what_a_server_takes():
    view = [user("x"), answer("openai-chat", ToolCallPart(id="c" * 90, name="read")), result("c" * 90)]
    body = await Recording("openai-chat").body(request("openai-chat", view))
    assert len(body["messages"][2]["tool_call_id"]) <= 40
    assert body["messages"][1]["tool_calls"][0]["id"] == body["messages"][2]["tool_call_id"]
    body = await Recording("openai-chat", base_url="https://api.mistral.ai/v1").body(request("openai-chat", view))
    assert len(body["messages"][2]["tool_call_id"]) == 9


def test_the_fixture_has_its_image():
    assert load_blob("ab" * 32)
