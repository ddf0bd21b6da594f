"""What Gemini refuses, in its wording."""

from __future__ import annotations

import base64
import re
from typing import Any

from tests.server.gemini_wire import inner, is_signing, signature_of
from tests.server.item import Refusal
from tests.server.options import Options

FIELDS = """
contents systemInstruction tools toolConfig generationConfig safetySettings cachedContent labels serviceTier store
"""
CONFIG = """
candidateCount enableEnhancedCivicAnswers frequencyPenalty logprobs maxOutputTokens mediaResolution presencePenalty
responseFormat responseJsonSchema responseLogprobs responseMimeType responseModalities responseSchema seed
speechConfig stopSequences temperature thinkingConfig topK topP
"""
DATA = {"text", "inlineData", "functionCall", "functionResponse", "fileData", "executableCode", "codeExecutionResult"}
FUNCTION = {"name", "description", "parameters", "parametersJsonSchema", "response", "responseJsonSchema", "behavior"}
PARTS = {
    "inlineData": {"mimeType", "data", "displayName"},
    "functionCall": {"id", "name", "args"},
    "functionResponse": {"id", "name", "response", "parts", "willContinue", "scheduling"},
}
"""What the parts with fields have."""
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/heic", "image/heif")
THINKING = {"includeThoughts", "thinkingBudget", "thinkingLevel"}
BUDGETS = {"gemini-2.5-pro": (128, 32_768), "gemini-2.5-flash-lite": (512, 24_576), "gemini-2.5-flash": (1, 24_576)}
"""Tokens of thinking, from and to; Pro cannot do without."""
NAME = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}$")
SKIPS = ("skip_thought_signature_validator", "context_engineering_is_the_way_to_go")
LEVELS = ("MINIMAL", "LOW", "MEDIUM", "HIGH")


def _known(where: str, given: dict[str, Any], names: set[str]) -> None:
    if unknown := set(given) - names:
        raise Refusal(
            f"Invalid JSON payload received. Unknown name \"{min(unknown)}\" at '{where}': Cannot find field."
        )


def check(body: dict[str, Any], headers: dict[str, str], options: Options, size: int, *, counting: bool) -> None:
    """Raise `Refusal` for what the real API would refuse; `size` is the prompt in tokens."""
    del headers
    model, body = body["model"], {key: value for key, value in inner(body).items() if key not in ("model", "stream")}
    for name in body:
        if name not in FIELDS.split():
            raise Refusal(f'Invalid JSON payload received. Unknown name "{name}": Cannot find field.')
    _check_config(body.get("generationConfig") or {}, model, options)
    _check_tools(body)
    _check_instruction(body.get("systemInstruction"))
    contents = body.get("contents")
    if not contents:
        raise Refusal("* GenerateContentRequest.contents: contents is not specified\n")
    for place, content in enumerate(contents):
        _check_content(place, content)
    _check_turns(contents)
    _check_signatures(contents, model)
    if not counting and options.window and size > options.window:
        raise Refusal(
            f"The input token count ({size}) exceeds the maximum number of tokens allowed ({options.window})."
        )


def _check_config(config: dict[str, Any], model: str, options: Options) -> None:
    for name in config:
        if name not in CONFIG.split():
            where = "at 'generation_config'"
            raise Refusal(f'Invalid JSON payload received. Unknown name "{name}" {where}: Cannot find field.')
        if name in options.refuse:
            raise Refusal(f"{name} is not supported for this model.")
    asked = config.get("maxOutputTokens")
    if asked is not None and asked < 1:
        raise Refusal(
            "* GenerateContentRequest.generation_config.max_output_tokens: max_output_tokens must be positive."
        )
    if options.max_output and asked is not None and asked > options.max_output:
        raise Refusal(
            f"Unable to submit request because it has a maxOutputTokens value of {asked} but the supported range is "
            f"from 1 (inclusive) to {options.max_output + 1} (exclusive). Update the value and try again."
        )
    for name, most in (("temperature", 2), ("topP", 1)):
        if not 0 <= config.get(name, 0) <= most:
            raise Refusal(f"* GenerateContentRequest.generation_config.{name}: must be in the range [0.0, {most}.0].")
    thinking = config.get("thinkingConfig") or {}
    _known("generation_config.thinking_config", thinking, THINKING)
    _check_budget(thinking.get("thinkingBudget"), model)
    if "thinkingLevel" in thinking and "thinkingBudget" in thinking:
        raise Refusal("You can only set only one of thinking budget and thinking level.")
    if "thinkingLevel" in thinking and thinking["thinkingLevel"] not in LEVELS:
        value = thinking["thinkingLevel"]
        raise Refusal(f"Invalid value at 'generation_config.thinking_config.thinking_level', \"{value}\"")
    if "thinkingLevel" in thinking and not is_signing(model):
        raise Refusal("Thinking level is not supported for this model.")


def _check_budget(budget: int | None, model: str) -> None:
    if budget is None or budget == -1:
        return
    least, most = next((sizes for name, sizes in BUDGETS.items() if model.startswith(name)), (0, 10**9))
    if budget == 0 and model.startswith("gemini-2.5-pro"):
        raise Refusal("Budget 0 is invalid. This model only works in thinking mode.")
    if budget and not least <= budget <= most:
        raise Refusal(f"The thinking budget {budget} is invalid. Please choose a value between {least} and {most}.")


def _check_instruction(instruction: dict[str, Any] | None) -> None:
    if instruction is None:
        return
    _known("system_instruction", instruction, {"parts", "role"})
    if not instruction.get("parts"):
        raise Refusal("* GenerateContentRequest.system_instruction.parts: must not be empty.")
    if any(set(part) != {"text"} or not part["text"] for part in instruction["parts"]):
        raise Refusal("Developer instruction can only contain text.")


def _check_tools(body: dict[str, Any]) -> None:
    seen: set[str] = set()
    for place, tool in enumerate(body.get("tools") or []):
        if len(tool) != 1:
            raise Refusal(
                f"* GenerateContentRequest.tools[{place}].tool_type: required one_of 'tool_type' must have one"
            )
        for index, function in enumerate(tool.get("functionDeclarations") or []):
            where = f"GenerateContentRequest.tools[{place}].function_declarations[{index}]"
            if not NAME.match(str(function.get("name"))):
                raise Refusal(f"* {where}.name: Invalid function name. Must start with a letter or an underscore.")
            _known(f"tools[{place}].function_declarations[{index}]", function, FUNCTION)
            if function["name"] in seen:
                raise Refusal(f"Duplicate function declaration found: {function['name']}")
            seen.add(function["name"])
            schema = function.get("parametersJsonSchema") or {"type": "object"}
            if schema.get("type") != "object":
                raise Refusal(f"* {where}.parameters: schema type should be OBJECT")


def _check_content(place: int, content: dict[str, Any]) -> None:
    if content.get("role") not in ("user", "model"):
        raise Refusal("Please use a valid role: user, model.")
    _known(f"contents[{place}]", content, {"role", "parts"})
    if not content.get("parts"):
        raise Refusal(f"* GenerateContentRequest.contents[{place}].parts: contents.parts must not be empty.")
    for index, part in enumerate(content["parts"]):
        where = f"GenerateContentRequest.contents[{place}].parts[{index}]"
        if len(DATA & set(part)) != 1:
            raise Refusal(f"* {where}.data: required oneof field 'data' must have one initialized field")
        if unknown := set(part) - DATA - {"thought", "thoughtSignature"}:
            raise Refusal(
                f"Invalid JSON payload received. Unknown name \"{min(unknown)}\" at '{where}': Cannot find field."
            )
        _check_part(f"contents[{place}].parts[{index}]", content["role"], part)
        if part.get("text") == "" and "thoughtSignature" not in part:
            raise Refusal("Unable to submit request because it must have a text parameter.")
        if "functionResponse" in part and not isinstance(part["functionResponse"].get("response"), dict):
            raise Refusal(f"* {where}.function_response.response: must be an object")


def _check_part(where: str, role: str, part: dict[str, Any]) -> None:
    for name, fields in PARTS.items():
        if name in part:
            _known(f"{where}.{name}", part[name], fields)
    if "functionCall" in part and role != "model":
        raise Refusal("Please ensure that function calls come with the role model.")
    if "functionResponse" in part and role != "user":
        raise Refusal("Please ensure that function responses come with the role user.")
    for name in ("functionCall", "functionResponse"):
        if name in part and not NAME.match(str(part[name].get("name", ""))):
            raise Refusal(f"* GenerateContentRequest.{where}.{name}.name: [FIELD_INVALID]")
    if "functionCall" in part and not isinstance(part["functionCall"].get("args", {}), dict):
        raise Refusal(f"Invalid value at '{where}.function_call.args' (type.googleapis.com/google.protobuf.Struct)")
    if (image := part.get("inlineData")) is not None:
        if image.get("mimeType") not in IMAGES:
            raise Refusal(f"Unsupported MIME type: {image.get('mimeType')}")
        try:
            if not base64.b64decode(image.get("data", ""), validate=True):
                raise Refusal("Unable to process input image. Please retry or report in the forum.")
        except ValueError as error:
            raise Refusal(
                f"Invalid value at '{where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed"
            ) from error


def _calls(content: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [part[name] for part in content["parts"] if name in part]


def _check_turns(contents: list[dict[str, Any]]) -> None:
    before: dict[str, Any] = {"role": "user", "parts": []}
    for place, content in enumerate(contents):
        calls, results = _calls(content, "functionCall"), _calls(content, "functionResponse")
        if calls and (before["role"] != "user" or place == 0):
            raise Refusal(
                "Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        owed = _calls(before, "functionCall")
        if results and not owed:
            raise Refusal("Please ensure that function response turn comes immediately after a function call turn.")
        if owed and len(results) != len(owed):
            raise Refusal(
                "Please ensure that the number of function response parts is equal to the number of function call "
                "parts of the function call turn."
            )
        if [one.get("id") for one in owed] != [one.get("id") for one in results]:
            raise Refusal("The id of a function response does not match that of its function call.")
        before = content
    if contents[-1]["role"] != "user":
        raise Refusal("Please ensure that single turn requests end with a user role or the role field is empty.")


def _check_signatures(contents: list[dict[str, Any]], model: str) -> None:
    """Signatures have to fit their parts; the first call of each step of the current turn has to have one."""
    turn = max(
        (place for place, one in enumerate(contents) if one["role"] == "user" and not _calls(one, "functionResponse")),
        default=0,
    )
    for place, content in enumerate(contents):
        parts = content["parts"]
        for part in parts:
            signature = part.get("thoughtSignature")
            if signature is not None and signature not in (*SKIPS, signature_of(model, part)):
                raise Refusal("Corrupted thought signature.")
        first = next((part for part in parts if "functionCall" in part), None)
        if place > turn and first is not None and is_signing(model) and "thoughtSignature" not in first:
            raise Refusal(
                f"Function call is missing a thought_signature in functionCall parts. This is required for tools to "
                f"work correctly. Function call `{first['functionCall']['name']}`, position {place}."
            )
