"""What Anthropic Messages refuses, in its wording."""

from __future__ import annotations

import re
from typing import Any

from tests.server.anthropic_compaction import begins_with_block, check_compaction
from tests.server.anthropic_wire import blocks_of, prefix_digests, sign
from tests.server.item import Refusal
from tests.server.options import Options
from tests.server.web_search import check_blocks, check_tool, is_paused

FIELDS = """
cache_control container context_management diagnostics inference_geo max_tokens mcp_servers messages metadata
model output_config service_tier speed stop_sequences stream system thinking tool_choice tools user_profile_id
workspace_id compaction betas
"""
IDENTIFIER = re.compile(r"^[a-zA-Z0-9_-]+$")
TOOL_NAME = re.compile(r"^[a-zA-Z0-9_-]{1,128}$")
MEDIA_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")


def check(body: dict[str, Any], headers: dict[str, str], options: Options, size: int, *, counting: bool) -> None:
    """Raise `Refusal` for what the real API would refuse; `size` is the prompt in tokens."""
    if "anthropic-version" not in headers:
        raise Refusal("anthropic-version: header is required")
    for name in ("model", "messages", *(() if counting else ("max_tokens",))):
        if name not in body:
            raise Refusal(f"{name}: Field required")
    for name in body:
        if name not in FIELDS.split():
            raise Refusal(f"{name}: Extra inputs are not permitted")
    _check_system(body)
    _check_tools(body, options)
    if isinstance(body["messages"], list):
        check_compaction(body, headers, options)
    _check_messages(body)
    _check_cache_marks(body)
    _check_thinking(body, options)
    _check_size(body, options, size, counting=counting)


def _check_system(body: dict[str, Any]) -> None:
    system = body.get("system")
    if system is None:
        return
    if not isinstance(system, (str, list)):
        raise Refusal("system: Input should be a valid string")
    if isinstance(system, list):
        _check_texts("system", system)


def _check_texts(where: str, blocks: list[dict[str, Any]]) -> None:
    for block in blocks:
        if block.get("type") == "text" and not block.get("text"):
            raise Refusal(f"{where}: text content blocks must be non-empty")
        if block.get("type") == "text" and not block["text"].strip():
            raise Refusal(f"{where}: text content blocks must contain non-whitespace text")


def _check_tools(body: dict[str, Any], options: Options) -> None:
    tools = body.get("tools") or []
    for place, tool in enumerate(tools):
        name = tool.get("name", "")
        if check_tool(place, tool, options):
            continue
        if not TOOL_NAME.match(name):
            raise Refusal(f"tools.{place}.custom.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if (tool.get("input_schema") or {}).get("type") != "object":
            raise Refusal(f"tools.{place}.custom.input_schema.type: Field required")
    if len({tool["name"] for tool in tools}) != len(tools):
        raise Refusal("tools: Tool names must be unique.")


def _check_messages(body: dict[str, Any]) -> None:
    messages = body["messages"]
    if not isinstance(messages, list) or not messages:
        raise Refusal("messages: at least one message is required")
    previous_role = ""
    seen: set[str] = set()
    open_calls: list[str] = []
    for place, message in enumerate(messages):
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            raise Refusal(f"messages.{place}.role: Input should be 'user', 'assistant' or 'system'")
        blocks = _content(place, message)
        _match_results(place, role, blocks, open_calls)
        open_calls = _calls(place, role, blocks, seen)
        if role == "system":
            continue
        if role == previous_role:
            problem = 'messages: roles must alternate between "user" and "assistant", but found multiple'
            raise Refusal(f'{problem} "{role}" roles in a row')
        if not previous_role and role != "user" and not begins_with_block(body):
            raise Refusal('messages: first message must use the "user" role')
        previous_role = role
    if open_calls:
        raise Refusal(_unanswered(len(messages) - 1, open_calls))
    check_blocks(body)
    if previous_role == "assistant" and not body.get("compaction") and not is_paused(body):
        raise Refusal(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )


def _content(place: int, message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message.get("content")
    if not isinstance(content, (str, list)):
        raise Refusal(f"messages.{place}.content: Field required")
    if not content:
        raise Refusal(f"messages.{place}: {message['role']} messages must have non-empty content")
    blocks = blocks_of(content)
    _check_texts("messages", blocks)
    for position, block in enumerate(blocks):
        _check_block(f"messages.{place}.content.{position}", message["role"], block)
    return blocks


def _check_block(where: str, role: str, block: dict[str, Any]) -> None:
    kind = block.get("type")
    if kind in ("image", "document") and role == "assistant":
        raise Refusal(f"{where}: {kind} blocks are not permitted in assistant messages")
    if kind == "image":
        _check_image(where, block)
    if kind == "tool_result" and isinstance(block.get("content"), list):
        _check_texts(where, block["content"])
        for part in block["content"]:
            _check_block(where, role, part)
    if kind == "thinking" and not isinstance(block.get("signature"), str):
        raise Refusal(f"{where}.thinking.signature: Field required")


def _check_image(where: str, block: dict[str, Any]) -> None:
    source = block.get("source") or {}
    if source.get("type") == "base64" and source.get("media_type") not in MEDIA_TYPES:
        expected = "', '".join(MEDIA_TYPES)
        raise Refusal(f"{where}.image.source.base64.media_type: Input should be '{expected}'")
    if source.get("type") == "base64" and not source.get("data"):
        raise Refusal(f"{where}.image.source.base64: image cannot be empty")


def _match_results(place: int, role: str, blocks: list[dict[str, Any]], open_calls: list[str]) -> None:
    """Hold the results at the head of this message against the calls of the one before."""
    leading: list[str] = []
    for block in blocks:
        if block.get("type") != "tool_result":
            break
        leading.append(block.get("tool_use_id", ""))
    results = [block.get("tool_use_id", "") for block in blocks if block.get("type") == "tool_result"]
    for position, call_id in enumerate(results):
        if call_id not in open_calls or role != "user":
            raise Refusal(
                f"messages.{place}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
                f"{call_id}. "
                "Each `tool_result` block must have a corresponding `tool_use` block in the previous message."
            )
        if results.count(call_id) > 1:
            raise Refusal(
                f"messages.{place}.content.{position}: each tool_use must have a single result. "
                f"Found multiple `tool_result` blocks with id: {call_id}"
            )
    missing = [call_id for call_id in open_calls if call_id not in leading]
    if missing:
        raise Refusal(_unanswered(place - 1, missing))


def _unanswered(place: int, missing: list[str]) -> str:
    return (
        f"messages.{place}: `tool_use` ids were found without `tool_result` blocks immediately after: "
        f"{', '.join(missing)}. "
        "Each `tool_use` block must have a corresponding `tool_result` block in the next message."
    )


def _calls(place: int, role: str, blocks: list[dict[str, Any]], seen: set[str]) -> list[str]:
    """Return the ids of the calls in this message."""
    found: list[str] = []
    for position, block in enumerate(blocks):
        if block.get("type") != "tool_use":
            continue
        where = f"messages.{place}.content.{position}"
        call_id = block.get("id", "")
        if role != "assistant":
            raise Refusal(f"{where}: `tool_use` blocks can only be in `assistant` messages")
        if not IDENTIFIER.match(call_id):
            raise Refusal(f"{where}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'")
        if not TOOL_NAME.match(block.get("name", "")):
            raise Refusal(f"{where}.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'")
        if not isinstance(block.get("input"), dict):
            raise Refusal(f"{where}.tool_use.input: Input should be a valid dictionary")
        if call_id in seen:
            raise Refusal("messages: `tool_use` ids must be unique")
        seen.add(call_id)
        found.append(call_id)
    return found


def _check_cache_marks(body: dict[str, Any]) -> None:
    blocks = list(body.get("tools") or [])
    blocks += body["system"] if isinstance(body.get("system"), list) else []
    for message in body["messages"]:
        blocks += blocks_of(message["content"])
    marked = [block for block in blocks if block.get("cache_control")]
    if any(block.get("type") in ("thinking", "redacted_thinking") for block in marked):
        raise Refusal("cache_control cannot be set for thinking blocks")
    count = len(marked) + bool(body.get("cache_control"))
    if count > 4:
        raise Refusal(f"A maximum of 4 blocks with cache_control may be provided. Found {count}.")


def _check_thinking(body: dict[str, Any], options: Options) -> None:
    thinking = body.get("thinking") or {}
    budget = thinking.get("budget_tokens")
    if thinking.get("type") == "enabled" and (not budget or budget < 1024):
        raise Refusal("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
    if budget and budget >= body.get("max_tokens", budget + 1):
        raise Refusal("`max_tokens` must be greater than `thinking.budget_tokens`.")
    if thinking.get("type") == "enabled":
        _check_start_of_turn(body["messages"])
    _check_model(body["model"], thinking.get("type", ""), (body.get("output_config") or {}).get("effort"))
    if not options.check_thinking:
        return
    own = sign(body["model"], "", "", "").split(".")[0]
    for where, block, digest, previous in prefix_digests(body):
        if not block or not block["signature"].startswith(own):
            continue
        expected = sign(body["model"], digest, previous, block["thinking"])
        first = sign(body["model"], digest, "", block["thinking"])
        # Thinking may be dropped from the start: then the oldest left names one before it that is gone.
        dropped = not previous and _without_previous(block["signature"]) == _without_previous(first)
        if block["signature"] != expected and not dropped:
            raise Refusal(f"{where}: Invalid `signature` in `thinking` block")


def _check_start_of_turn(messages: list[dict[str, Any]]) -> None:
    """The turn that goes on has to have begun with thinking: the first answer behind a message of the user's own."""
    turn: list[dict[str, Any]] = []
    for message in reversed(messages):
        kinds = {block.get("type") for block in blocks_of(message["content"])}
        if message["role"] == "user" and "tool_result" not in kinds:
            break
        if message["role"] == "assistant":
            turn = blocks_of(message["content"])
    if turn and turn[0].get("type") not in ("thinking", "redacted_thinking"):
        raise Refusal(
            f"messages: Expected `thinking` or `redacted_thinking`, but found `{turn[0].get('type')}`. When `thinking` "
            "is enabled, a final `assistant` message must start with a thinking block"
        )


BUDGET_ONLY = re.compile(r"claude-(?:haiku|sonnet|opus)-4(?:-[0-5])?(?!-?[6-9])|claude-3")


def _check_model(model: str, thinking: str, effort: str | None) -> None:
    """Models up to 4.5 know no adaptive thinking, and but for Opus 4.5 no effort; newer ones take no budget."""
    if not model.startswith("claude-"):
        return
    is_old = BUDGET_ONLY.match(model) is not None
    if is_old and thinking == "adaptive":
        raise Refusal("adaptive thinking is not supported on this model")
    if is_old and effort and not model.startswith("claude-opus-4-5"):
        raise Refusal("This model does not support the effort parameter.")
    if not is_old and thinking == "enabled":
        raise Refusal("thinking.type: `enabled` is not supported on this model")
    if effort and effort not in ("low", "medium", "high", "xhigh", "max"):
        raise Refusal("output_config.effort: Input should be 'low', 'medium', 'high', 'xhigh' or 'max'")


def _without_previous(signature: str) -> list[str]:
    parts = signature.split(".")
    return parts[:2] + parts[3:]


def _check_size(body: dict[str, Any], options: Options, size: int, *, counting: bool) -> None:
    if counting:
        return
    model, asked = body["model"], body["max_tokens"]
    if not isinstance(asked, int) or asked < 1:
        raise Refusal("max_tokens: Input should be greater than or equal to 1")
    if options.max_output and asked > options.max_output:
        limit = options.max_output
        raise Refusal(
            f"max_tokens: {asked} > {limit}, which is the maximum allowed number of output tokens for {model}"
        )
    if options.window and size > options.window:
        raise Refusal(f"prompt is too long: {size} tokens > {options.window} maximum")
    if options.window and size + asked > options.window:
        raise Refusal(
            f"input length and `max_tokens` exceed context limit: {size} + {asked} > {options.window}, "
            "decrease input length or `max_tokens` and try again"
        )
