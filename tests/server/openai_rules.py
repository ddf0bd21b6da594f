"""What OpenAI Responses and Chat Completions refuse, in their wording."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Any

from tests.server.item import Refusal
from tests.server.openai_compaction import check_item, check_trigger, input_items
from tests.server.options import Options
from tests.server.responses_wire import ENCRYPTED
from tests.server.web_search import check_hosted

RESPONSES_FIELDS = """
background context_management conversation include input instructions max_output_tokens max_tool_calls metadata
model parallel_tool_calls previous_response_id prompt prompt_cache_key prompt_cache_options
prompt_cache_retention reasoning safety_identifier service_tier store stream stream_options temperature text
tool_choice tools top_logprobs top_p truncation user
"""
ITEM_TYPES = """
message reasoning function_call function_call_output custom_tool_call custom_tool_call_output web_search_call
compaction compaction_trigger configuration_update item_reference additional_tools
"""
PREFIXES = {
    "reasoning": "rs", "function_call": "fc", "message": "msg", "function_call_output": "fc",
    "custom_tool_call": "ctc", "custom_tool_call_output": "ctc", "web_search_call": "ws",
}  # fmt: skip
OUTPUTS = {"function_call_output": "function_call", "custom_tool_call_output": "custom_tool_call"}
CALL_ID_LIMIT = 64
NAME = re.compile(r"^[a-zA-Z0-9_-]{1,64}$")


def require(body: dict[str, Any], *names: str) -> None:
    """Refuse a body without these fields."""
    for name in names:
        if body.get(name) is None:
            message = f"Missing required parameter: '{name}'."
            raise Refusal(message, code="missing_required_parameter", param=name)


def check_name(name: Any, where: str) -> None:
    """Refuse a tool name that the API does not take."""
    if not (isinstance(name, str) and NAME.match(name)):
        raise Refusal(
            f"Invalid '{where}': string does not match pattern. "
            "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
            code="invalid_value",
            param=where,
        )


def check_functions(functions: list[tuple[str, dict[str, Any]]]) -> None:
    """Refuse tools with bad names or schemas; each comes with the path that the message names."""
    for where, function in functions:
        check_name(function.get("name"), f"{where}.name")
        kind = (function.get("parameters") or {"type": "object"}).get("type")
        if kind != "object":
            raise Refusal(
                f"Invalid schema for function '{function['name']}': schema must be a JSON Schema of "
                f"'type: \"object\"', got 'type: \"{kind}\"'.",
                code="invalid_function_parameters",
                param=f"{where}.parameters",
            )


# --- Responses ---


def check_responses(
    body: dict[str, Any], headers: dict[str, str], options: Options, size: int, *, counting: bool
) -> None:
    """Raise `Refusal` for what the Responses API would refuse; `size` is the prompt in tokens."""
    del headers
    require(body, "model", "input")
    for name in body:
        if name not in RESPONSES_FIELDS.split():
            raise Refusal(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)
    check_functions(
        [(f"tools[{n}]", tool) for n, tool in enumerate(body.get("tools") or []) if tool["type"] == "function"]
    )
    for place, tool in enumerate(body.get("tools") or []):
        if tool["type"] == "custom":
            _check_custom_tool(f"tools[{place}]", tool, options)
    check_hosted(body, options)
    given = input_items(body)
    for place, item in enumerate(given):
        _check_item(place, item, stored=body.get("store", True), check_thinking=options.check_thinking)
        if item.get("type") == "compaction":
            check_item(f"input[{place}]", item, body, options)
    check_trigger(body, options)
    _match_outputs(given)
    _check_reasoning_order(given)
    asked = body.get("max_output_tokens")
    if not counting and asked is not None and asked < 16:
        raise Refusal(
            "Invalid 'max_output_tokens': integer below minimum value. "
            f"Expected a value >= 16, but got {asked} instead.",
            code="integer_below_min_value",
            param="max_output_tokens",
        )
    if not counting and options.window and size > options.window:
        raise Refusal(
            "Your input exceeds the context window of this model. Please adjust your input and try again.",
            code="context_length_exceeded",
            param="input",
        )


def _check_item(place: int, item: dict[str, Any], *, stored: bool, check_thinking: bool) -> None:
    kind = item.get("type", "message")
    where = f"input[{place}]"
    if kind not in ITEM_TYPES.split():
        raise Refusal(f"Invalid value: '{kind}'.", code="invalid_value", param=where)
    identifier = item.get("id")
    if identifier is not None and kind in PREFIXES and not identifier.startswith(PREFIXES[kind]):
        raise Refusal(
            f"Invalid '{where}.id': '{identifier}'. Expected an ID that begins with '{PREFIXES[kind]}'.",
            code="invalid_value",
            param=f"{where}.id",
        )
    for name in ("id", "call_id"):
        value = item.get(name) or ""
        if len(value) > CALL_ID_LIMIT:
            raise Refusal(
                f"Invalid '{where}.{name}': string too long. Expected a string with maximum length {CALL_ID_LIMIT}, "
                f"but got a string with length {len(value)} instead.",
                code="string_above_max_length",
                param=f"{where}.{name}",
            )
    match kind:
        case "message":
            _check_message(where, item)
        case "reasoning":
            _check_reasoning(where, item, stored=stored, check_thinking=check_thinking)
        case "function_call":
            check_name(item.get("name"), f"{where}.name")
            _require_item(where, item, "call_id", "arguments")
        case "custom_tool_call":
            check_name(item.get("name"), f"{where}.name")
            _require_item(where, item, "call_id", "input")
        case "function_call_output" | "custom_tool_call_output":
            _require_item(where, item, "call_id", "output")
        case _:
            pass


def _check_custom_tool(where: str, tool: dict[str, Any], options: Options) -> None:
    if "custom" in options.refuse:
        supported = "'function', 'file_search', and 'web_search_preview'"
        message = f"Invalid value: 'custom'. Supported values are: {supported}."
        raise Refusal(message, code="invalid_value", param=f"{where}.type")
    check_name(tool.get("name"), f"{where}.name")
    form = tool.get("format") or {"type": "text"}
    if form["type"] == "grammar" and (form.get("syntax") not in ("lark", "regex") or not form.get("definition")):
        raise Refusal("Invalid grammar.", code="invalid_value", param=f"{where}.format")
    unknown = tool.keys() - {"type", "name", "description", "format"}
    if unknown:
        name = f"{where}.{min(unknown)}"
        raise Refusal(f"Unknown parameter: '{name}'.", code="unknown_parameter", param=name)


def _require_item(where: str, item: dict[str, Any], *names: str) -> None:
    for name in names:
        allowed = (str, list) if name == "output" else str
        if not isinstance(item.get(name), allowed):
            message = f"Missing required parameter: '{where}.{name}'."
            raise Refusal(message, code="missing_required_parameter", param=f"{where}.{name}")


def _check_message(where: str, item: dict[str, Any]) -> None:
    role = item.get("role")
    if role not in ("user", "assistant", "system", "developer"):
        supported = "'assistant', 'system', 'developer', and 'user'"
        message = f"Invalid value: '{role}'. Supported values are: {supported}."
        raise Refusal(message, code="invalid_value", param=f"{where}.role")
    content = item.get("content")
    if not isinstance(content, (str, list)):
        message = f"Missing required parameter: '{where}.content'."
        raise Refusal(message, code="missing_required_parameter", param=f"{where}.content")
    if isinstance(content, str):
        return
    allowed = ("output_text", "refusal") if role == "assistant" else ("input_text", "input_image", "input_file")
    for position, part in enumerate(content):
        if part.get("type") not in allowed:
            supported = "' and '".join(allowed)
            raise Refusal(
                f"Invalid value: '{part.get('type')}'. Supported values are: '{supported}'.",
                code="invalid_value",
                param=f"{where}.content[{position}]",
            )


def _check_reasoning(where: str, item: dict[str, Any], *, stored: bool, check_thinking: bool) -> None:
    secret = item.get("encrypted_content")
    if not isinstance(item.get("summary"), list):
        message = f"Missing required parameter: '{where}.summary'."
        raise Refusal(message, code="missing_required_parameter", param=f"{where}.summary")
    if not stored and not secret:
        raise Refusal(
            f"Item with id '{item.get('id')}' not found. Items are not persisted when `store` is set to false. "
            "Try again with `store` set to true, or remove this item from your input.",
            status=404,
            param="input",
        )
    if check_thinking and secret != f"{ENCRYPTED}{item.get('id', '').removeprefix('rs_')}":
        raise Refusal(
            f"The encrypted content for item {item.get('id')} could not be verified.",
            code="invalid_encrypted_content",
        )


def _match_outputs(given: list[dict[str, Any]]) -> None:
    """Each call has one output after it, each output one call before it."""
    open_calls: dict[str, str] = {}
    closed: set[str] = set()
    for item in given:
        call_id = item.get("call_id", "")
        kind = item.get("type", "")
        if kind in OUTPUTS.values():
            open_calls[call_id] = kind
        elif kind in OUTPUTS:
            if call_id in closed:
                raise Refusal(f"Duplicate tool output found for function call {call_id}.", param="input")
            if open_calls.get(call_id) != OUTPUTS[kind]:
                raise Refusal(f"No tool call found for function call output with call_id {call_id}.", param="input")
            del open_calls[call_id]
            closed.add(call_id)
    for call_id in open_calls:
        raise Refusal(f"No tool output found for function call {call_id}.", param="input")


def _check_reasoning_order(given: list[dict[str, Any]]) -> None:
    for place, item in enumerate(given):
        if item.get("type") != "reasoning":
            continue
        after = given[place + 1] if place + 1 < len(given) else {}
        calls = ("function_call", "custom_tool_call", "reasoning", "web_search_call")
        own = after.get("type") in calls or after.get("role") == "assistant"
        if not own:
            raise Refusal(
                f"Item '{item.get('id')}' of type 'reasoning' was provided without its required following item.",
                param="input",
            )


# --- Chat Completions ---


def check_chat(body: dict[str, Any], headers: dict[str, str], options: Options, size: int, *, counting: bool) -> None:
    """Raise `Refusal` for what a Chat Completions server would refuse; `size` is the prompt in tokens."""
    del headers, counting
    require(body, "model", "messages")
    functions = [(f"tools[{n}].function", tool.get("function") or {}) for n, tool in enumerate(body.get("tools") or [])]
    check_functions(functions)
    if body.get("tools") == []:
        raise Refusal("Invalid 'tools': empty array. Expected an array with minimum length 1.", param="tools")
    messages = body["messages"]
    if not messages:
        raise Refusal(
            "Invalid 'messages': empty array. Expected an array with minimum length 1, but got an empty array instead.",
            code="empty_array",
            param="messages",
        )
    for place, message in enumerate(messages):
        _check_chat_message(f"messages.[{place}]", message)
    _match_tool_messages(messages)
    _check_template(messages, options)
    _check_chat_size(body, options, size)


def _check_chat_message(where: str, message: dict[str, Any]) -> None:
    role, content = message.get("role"), message.get("content")
    if role not in ("system", "developer", "user", "assistant", "tool"):
        supported = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"
        problem = f"Invalid value: '{role}'. Supported values are: {supported}."
        raise Refusal(problem, code="invalid_value", param=f"{where}.role")
    if content is None and not (role == "assistant" and message.get("tool_calls")):
        raise Refusal("Invalid value for 'content': expected a string, got null.", param=f"{where}.content")
    if role == "assistant" and message.get("tool_calls") == []:
        problem = f"Invalid '{where}.tool_calls': empty array. Expected an array with minimum length 1."
        raise Refusal(problem, code="empty_array", param=f"{where}.tool_calls")
    for call in message.get("tool_calls") or []:
        function = call.get("function") or {}
        check_name(function.get("name"), f"{where}.tool_calls.function.name")
        if not isinstance(function.get("arguments"), str) or call.get("type") != "function" or not call.get("id"):
            raise Refusal(f"Missing required parameter: '{where}.tool_calls.function.arguments'.", param=where)


def _match_tool_messages(messages: list[dict[str, Any]]) -> None:
    """The tool messages right after an assistant message answer its calls, each once."""
    waiting: list[str] = []
    answered: set[str] = set()
    for message in [*messages, {"role": "end"}]:
        if message["role"] == "tool":
            call_id = message.get("tool_call_id")
            if call_id in answered:
                raise Refusal(f"Duplicate value for 'tool_call_id' of '{call_id}'", param="messages")
            if call_id not in waiting:
                raise Refusal(
                    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with "
                    "'tool_calls'.",
                    param="messages",
                )
            waiting.remove(call_id)
            answered.add(call_id)
            continue
        if waiting:
            raise Refusal(
                "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
                f"'tool_call_id'. The following tool_call_ids did not have response messages: {', '.join(waiting)}",
                param="messages",
            )
        waiting = [call["id"] for call in message.get("tool_calls") or []]
        answered = set()


def _check_template(messages: list[dict[str, Any]], options: Options) -> None:
    """What the chat templates of local servers refuse."""
    roles = ["system" if message["role"] == "developer" else message["role"] for message in messages]
    if options.one_system and "system" in roles[1:]:
        raise Refusal("System message must be at the beginning.")
    if options.alternate:
        spoken = [role for role in roles if role in ("user", "assistant")]
        pairs = pairwise(roles)
        if any(first == second and first in ("user", "assistant") for first, second in pairs) or spoken[:1] != ["user"]:
            raise Refusal("Conversation roles must alternate user/assistant/user/assistant/...")


def _check_chat_size(body: dict[str, Any], options: Options, size: int) -> None:
    asked = body.get("max_completion_tokens") or body.get("max_tokens") or 0
    if options.max_output and asked > options.max_output:
        raise Refusal(
            f"max_tokens is too large: {asked}. This model supports at most {options.max_output} completion tokens, "
            f"whereas you provided {asked}.",
            code="invalid_value",
            param="max_tokens",
        )
    if not options.window or size + asked <= options.window:
        return
    if size > options.window:
        text = f"your messages resulted in {size} tokens. Please reduce the length of the messages."
    else:
        text = (
            f"you requested {size + asked} tokens ({size} in the messages, {asked} in the completion). "
            "Please reduce the length of the messages or completion."
        )
    limit = f"This model's maximum context length is {options.window} tokens. However, "
    raise Refusal(limit + text, code="context_length_exceeded", param="messages")
