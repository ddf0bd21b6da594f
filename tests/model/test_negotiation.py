"""Which field a refusal is about: real refusals, and texts that only mention a field (seeds-001-002-004.md F3)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tenuto.model.anthropic.client import OPTIONAL as ANTHROPIC
from tenuto.model.errors import classify
from tenuto.model.openai.chat import OPTIONAL as CHAT
from tenuto.model.openai.responses import OPTIONAL as RESPONSES
from tenuto.model.wire.client import Negotiation
from tenuto.protocol.model import Finished, ModelError, ModelFacts
from tests.model.test_remote_compaction import Talk, view
from tests.server import HttpError, Reply, Request, ScriptedServer

FIELDS = {"anthropic": ANTHROPIC, "openai": RESPONSES, "openai-chat": CHAT}


def body(message: str, param: str | None = None, code: str | None = None) -> str:
    return json.dumps({"error": {"message": message, "type": "invalid_request_error", "param": param, "code": code}})


def forbidden(*loc: str) -> str:
    detail = {"type": "extra_forbidden", "loc": list(loc), "msg": "Extra inputs are not permitted", "input": True}
    return json.dumps({"detail": [detail]})


CUSTOM = "custom tools"
REFUSALS = [
    # tools that take one text: OpenAI, Azure, gateways and validators of servers that speak Responses
    (
        "openai",
        body(
            "Invalid value: 'custom'. Supported values are: 'function', 'file_search', and 'web_search_preview'.",
            "tools[1].type",
            "invalid_value",
        ),
        {CUSTOM},
    ),
    ("openai", body("Custom tools are not supported with this model."), {CUSTOM}),
    ("openai", "Unsupported tool type: custom", {CUSTOM}),
    ("openai", "Tool type 'custom' is not supported", {CUSTOM}),
    (
        "openai",
        json.dumps(
            {
                "detail": [
                    {"type": "literal_error", "loc": ["body", "tools", 1, "type"], "msg": "Input should be 'function'"}
                ]
            }
        ),
        {CUSTOM},
    ),
    ("openai", body("Unknown parameter: 'tools[1].format'.", "tools[1].format", "unknown_parameter"), {CUSTOM}),
    # generative-computing/mellea#270
    ("openai-chat", body("Unrecognized request argument supplied: reasoning_effort"), {"reasoning_effort"}),
    # decolua/9router#846
    (
        "openai-chat",
        body(
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' "
            "instead.",
            "max_tokens",
            "unsupported_parameter",
        ),
        {"max_tokens"},
    ),
    # the same where a gateway drops the parts of the object
    (
        "openai-chat",
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        {"max_tokens"},
    ),
    # BerriAI/litellm#11696 (without the wrapping): a validator names the place
    ("openai-chat", forbidden("body", "stream_options", "include_usage"), {"stream_options"}),
    # voideditor/void#128
    ("openai-chat", forbidden("body", "max_completion_tokens"), {"max_completion_tokens"}),
    ("openai-chat", "property 'stream_options' is unsupported", {"stream_options"}),
    ("openai-chat", "Argument not supported on this model: reasoning_effort", {"reasoning_effort"}),
    ("openai-chat", "This model does not support reasoning_effort.", {"reasoning_effort"}),
    # BerriAI/litellm#14225, with a field that we send
    (
        "openai-chat",
        "unknown field `prompt_cache_key`, expected one of `messages`, `stream_options`",
        {"prompt_cache_key"},
    ),
    (
        "openai",
        body("Unknown parameter: 'prompt_cache_key'.", "prompt_cache_key", "unknown_parameter"),
        {"prompt_cache_key"},
    ),
    (
        "openai",
        body(
            "Your organization must be verified to generate reasoning summaries. Please go to: https://platform.openai.com",
            "reasoning.summary",
            "unsupported_value",
        ),
        {"reasoning.summary"},
    ),
    # NousResearch/hermes-agent#24234
    ("openai", body("Encrypted content is not supported with this model.", "include"), {"include"}),
    ("openai", "Encrypted content is not supported with this model", {"include"}),
    (
        "openai",
        body(
            "Unsupported parameter: 'reasoning.effort' is not supported with this model.",
            "reasoning.effort",
            "unsupported_parameter",
        ),
        {"reasoning"},
    ),
    ("anthropic", "context_management: Extra inputs are not permitted", {"context_management"}),
    ("anthropic", "adaptive thinking is not supported on this model", {"thinking"}),
    ("anthropic", "output_config: Extra inputs are not permitted", {"output_config"}),
    (
        "anthropic",
        "Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header.",
        {"context_management"},
    ),
]
MENTIONS = [
    (
        "openai",
        body(
            "Invalid value: 'compaction_trigger'. Supported values are: 'message', 'function_call', 'reasoning', and "
            "'include'.",
            "input[5].type",
            "invalid_value",
        ),
    ),
    ("openai", "Invalid value: 'compaction_trigger'. Supported values are: 'message', 'item_reference', 'reasoning'."),
    # continuedev/continue#8933
    (
        "openai",
        body(
            "Item 'rs_0c38' of type 'reasoning' was provided without its required following item.",
            "input",
        ),
    ),
    # lobehub/lobehub#8116
    (
        "openai",
        body(
            "Unsupported parameter: 'reasoning_effort'. In the Responses API, this parameter has moved to "
            "'reasoning.effort'. Try again with the new parameter.",
            None,
            "unsupported_parameter",
        ),
    ),
    ("openai", body("Unknown parameter: 'input[3].reasoning'.", "input[3].reasoning", "unknown_parameter")),
    # router-for-me/CLIProxyAPI#5068
    (
        "openai",
        body("prompt_cache_retention is not supported on this model", "prompt_cache_retention", "invalid_parameter"),
    ),
    # experientiallabs/experiential#538
    (
        "openai",
        body("Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 8."),
    ),
    # HKUDS/nanobot#2548
    (
        "openai-chat",
        "The parameter max_tokens specified in the request are not valid: max_tokens and max_completion_tokens cannot "
        "be set at the same time.",
    ),
    # anthropics/claude-code#8756
    ("anthropic", "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation"),
    # esengine/DeepSeek-Reasonix#1299
    ("openai-chat", "Unrecognized request argument supplied: extra_body"),
    # mistralai/platform-docs-public#7
    ("openai-chat", forbidden("body", "frequency_penalty")),
    # partITech/php-mistral#76
    ("openai-chat", forbidden("body", "tools")),
    # anthropics/claude-code#4378
    ("anthropic", "messages.65.content.1.tool_use.text: Extra inputs are not permitted"),
    ("anthropic", "messages.3.content.0.thinking: Field required"),
    ("openai-chat", "Unknown parameter: 'tools[0].function.strict'. The stream_options of this request are fine."),
    ("openai-chat", "The model `x` does not exist; reasoning_effort was ignored"),
]


def named(provider: str, text: str) -> set[str]:
    return set(Negotiation(FIELDS[provider]).learn(classify(provider, 400, text)))


@pytest.mark.parametrize(("provider", "text", "fields"), REFUSALS, ids=lambda value: str(value)[:60])
def test_f3_a_refusal_names_its_field(provider: str, text: str, fields: set[str]):
    assert named(provider, text) == fields


@pytest.mark.parametrize(("provider", "text"), MENTIONS, ids=lambda value: str(value)[:60])
def test_f3_a_field_that_is_only_mentioned_is_not_dropped(provider: str, text: str):
    assert named(provider, text) == set()


async def test_f3_a_refused_trigger_leaves_reasoning_in_later_requests(tmp_path: Path):
    """The words that OpenAI uses: its list of what is supported has `reasoning` in it."""
    said = (
        "Invalid value: 'compaction_trigger'. Supported values are: 'message', 'function_call', "
        "'function_call_output', and 'reasoning'."
    )

    def script(request: Request) -> Reply | HttpError:
        if b"compaction_trigger" in request.raw:
            return HttpError(400, body=body(said, "input[3].type", "invalid_value"))
        return Reply("fine")

    async with ScriptedServer(script) as server:
        talk = Talk(server, tmp_path, "openai")
        talk.facts = ModelFacts(
            provider="openai", name="test", context_window=200_000, thinking=True, efforts=("high",)
        )
        await talk.compact("request", view("openai"))  # at the endpoint, after the refusal
        end = await talk.ask(view("openai")[:2], effort="high")
        assert server.requests[-1].body["reasoning"]["effort"] == "high"
        assert end.dropped == ()
        triggers = [request for request in server.all_requests if b"compaction_trigger" in request.raw]
        assert len(triggers) == 1, "the same bytes are not sent twice"
        await talk.models.close()


async def test_f3_what_was_dropped_is_told(tmp_path: Path):
    async with ScriptedServer([Reply("one"), Reply("two")], refuse=("stream_options",)) as server:
        talk = Talk(server, tmp_path, "openai-chat")
        ends: list[Finished] = [await talk.ask(view("openai-chat")[:2]) for _ in range(2)]
        assert [end.dropped for end in ends] == [("stream_options",)] * 2
        await talk.models.close()


async def test_polish_c_a_server_without_the_compaction_beta_is_asked_once(tmp_path: Path):
    """seeds-001-002-004.md, polish c."""
    async with ScriptedServer([], refuse=("compaction",)) as server:
        talk = Talk(server, tmp_path, "anthropic")
        client = talk.models.client("anthropic")
        assert client.ways  # pyright: ignore
        with pytest.raises(ModelError):
            await talk.compact("request", view("anthropic"))
        assert not client.ways  # pyright: ignore
        await talk.models.close()
