"""The lines of `stream-json` as structs, both ways: what is written, what is read, and their JSON Schema.

Names and shapes are those that scripts for other agents know. Nothing else says what a line looks like:
`docs/reference/stream-json.schema.json` is made from here by `scripts/schema`.
"""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, cast

import msgspec
from msgspec import UNSET, Struct, UnsetType, field

from tenuto.protocol.entry import Level, Mode
from tenuto.protocol.message import StopReason
from tenuto.protocol.operation import CompactionReason

ResultSubtype: TypeAlias = Literal[
    "success",
    "error_during_execution",
    "error_cut_off",
    "error_limit_reached",
    "error_calls_refused",
    "error_declined",
    "error_interrupted",
]


class Searches(Struct, frozen=True):
    """Web searches of the provider's own."""

    web_search_requests: int


class UsageNumbers(Struct, frozen=True, kw_only=True):
    """Tokens. `input_tokens` leaves out what was read from the provider's cache or written to it."""

    server_tool_use: Searches | UnsetType = UNSET
    input_tokens: int
    output_tokens: int
    cache_read_input_tokens: int
    cache_creation_input_tokens: int


class Page(Struct, frozen=True, kw_only=True):
    """A web page."""

    url: str
    title: str


# --- blocks of a message ---


class TextBlock(Struct, frozen=True, kw_only=True):
    """A text, with the web pages that it cites."""

    type: Literal["text"] = "text"
    text: str
    citations: tuple[Page, ...] | UnsetType = UNSET


class ThinkingBlock(Struct, frozen=True, kw_only=True):
    """Readable reasoning."""

    type: Literal["thinking"] = "thinking"
    thinking: str


class ToolUseBlock(Struct, frozen=True, kw_only=True):
    """A call of a tool. `input` are its arguments as the model wrote them: an object, if it wrote one."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: Any


class WebSearchBlock(Struct, frozen=True, kw_only=True):
    """A web search of the provider's own: what was searched, and what was found."""

    type: Literal["web_search"] = "web_search"
    id: str
    action: str
    query: str
    results: tuple[Page, ...]
    error: str | UnsetType = UNSET


class ImageSource(Struct, frozen=True, kw_only=True):
    """The image's hash, by which the session's folder `blobs` has its bytes."""

    type: Literal["sha256"] = "sha256"
    media_type: str
    data: str


class ImageBlock(Struct, frozen=True, kw_only=True):
    """An image, by its hash."""

    type: Literal["image"] = "image"
    source: ImageSource


class ToolResultBlock(Struct, frozen=True, kw_only=True):
    """What came of a call."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: tuple[Any, ...]
    is_error: bool


# --- what is written ---


class InitLine(Struct, frozen=True, kw_only=True):
    """The session is open."""

    type: Literal["system"] = "system"
    subtype: Literal["init"] = "init"
    cwd: str
    model: str
    permission_mode: Mode = field(name="permissionMode")
    resumed: bool
    session_id: str


class NoticeLine(Struct, frozen=True, kw_only=True):
    """Something to tell the user."""

    type: Literal["system"] = "system"
    subtype: Literal["notice"] = "notice"
    level: Level
    text: str
    session_id: str


class RetryLine(Struct, frozen=True, kw_only=True):
    """A request failed and is sent again in `wait` seconds; `attempt` counts from 1."""

    type: Literal["system"] = "system"
    subtype: Literal["api_retry"] = "api_retry"
    attempt: int
    wait: float
    text: str
    session_id: str


class CompactMetadata(Struct, frozen=True, kw_only=True):
    """Why a compaction was made, and the tokens of the context before and after it."""

    trigger: CompactionReason
    pre_tokens: int | None
    post_tokens: int | None


class CompactLine(Struct, frozen=True, kw_only=True):
    """The context was compacted."""

    type: Literal["system"] = "system"
    subtype: Literal["compact_boundary"] = "compact_boundary"
    compact_metadata: CompactMetadata
    session_id: str


class AssistantBody(Struct, frozen=True, kw_only=True):
    """An answer of the model. `usage` is `null` where the provider counted nothing."""

    role: Literal["assistant"] = "assistant"
    model: str
    content: tuple[Any, ...]
    stop_reason: StopReason
    usage: UsageNumbers | None


class AssistantLine(Struct, frozen=True, kw_only=True):
    """An answer of the model, complete."""

    type: Literal["assistant"] = "assistant"
    message: AssistantBody
    session_id: str


class UserBody(Struct, frozen=True, kw_only=True):
    """What the model was told: a prompt, or what came of a call."""

    role: Literal["user"] = "user"
    content: tuple[Any, ...]


class UserLine(Struct, frozen=True, kw_only=True):
    """A prompt that was sent, or what came of a call."""

    type: Literal["user"] = "user"
    message: UserBody
    session_id: str


class Denial(Struct, frozen=True, kw_only=True):
    """A call that was refused, and why."""

    tool_name: str
    tool_use_id: str
    summary: str
    reason: str


class ResultLine(Struct, frozen=True, kw_only=True):
    """How a prompt ended. docs/headless.md says what each key means."""

    type: Literal["result"] = "result"
    subtype: ResultSubtype
    is_error: bool
    exit_code: int
    result: str
    sources: tuple[Page, ...]
    error: str | None
    stop_reason: StopReason | None
    session_id: str
    num_turns: int
    duration_ms: int
    total_cost_usd: float | None
    usage: UsageNumbers
    permission_denials: tuple[Denial, ...]
    changed_files: tuple[str, ...]
    structured_output: Any = UNSET


class ControlSuccess(Struct, frozen=True, kw_only=True):
    """A control request was heard."""

    subtype: Literal["success"] = "success"
    request_id: str


class ControlResponseLine(Struct, frozen=True, kw_only=True):
    """The answer to a control request."""

    type: Literal["control_response"] = "control_response"
    response: ControlSuccess
    session_id: str


# --- what is read ---


class PromptBody(Struct, frozen=True, kw_only=True):
    """The prompt: a text, or blocks of text."""

    content: Any
    role: Literal["user"] = "user"


class PromptLine(Struct, frozen=True, kw_only=True):
    """A prompt."""

    type: Literal["user"] = "user"
    message: PromptBody


class InterruptRequest(Struct, frozen=True, kw_only=True):
    """Stop what runs."""

    subtype: Literal["interrupt"] = "interrupt"


class ControlRequestLine(Struct, frozen=True, kw_only=True):
    """Stop what runs. With a `request_id` it is answered."""

    type: Literal["control_request"] = "control_request"
    request: InterruptRequest
    request_id: str | UnsetType = UNSET


Block: TypeAlias = TextBlock | ThinkingBlock | ToolUseBlock | WebSearchBlock
Content: TypeAlias = TextBlock | ImageBlock
SystemLine: TypeAlias = InitLine | NoticeLine | RetryLine | CompactLine
OutputLine: TypeAlias = SystemLine | AssistantLine | UserLine | ResultLine | ControlResponseLine
WRITTEN: tuple[type[Struct], ...] = (
    *(InitLine, NoticeLine, RetryLine, CompactLine),
    *(AssistantLine, UserLine, ResultLine, ControlResponseLine),
)
"""Every kind of line that is written."""
READ: tuple[type[Struct], ...] = (PromptLine, ControlRequestLine)
"""Every kind of line that is read."""
_UNIONS: dict[tuple[str, str], tuple[str, ...]] = {
    ("AssistantBody", "content"): ("TextBlock", "ThinkingBlock", "ToolUseBlock", "WebSearchBlock"),
    ("UserBody", "content"): ("TextBlock", "ImageBlock", "ToolResultBlock"),
    ("ToolResultBlock", "content"): ("TextBlock", "ImageBlock"),
    ("PromptBody", "content"): ("TextBlock",),
}
"""Lists of blocks of several kinds, which msgspec has no schema for: `type` tells them apart, as in the lines."""
_REF = "#/$defs/{name}"


def stream_schema() -> dict[str, Any]:
    """Return the JSON Schema of every line: a line that is written fits `output`, one that is read `input`."""
    blocks = (TextBlock, ThinkingBlock, ToolUseBlock, WebSearchBlock, ImageBlock, ToolResultBlock)
    _, made = msgspec.json.schema_components([*WRITTEN, *READ, *blocks], ref_template=_REF)
    kinds = cast("dict[str, dict[str, Any]]", made)
    for kind in kinds.values():
        _require_constants(kind)
    for (name, key), blocks_of in _UNIONS.items():
        kinds[name]["properties"][key] = {"type": "array", "items": _any_of(blocks_of)}
    content = kinds["PromptBody"]["properties"]["content"]
    kinds["PromptBody"]["properties"]["content"] = {"anyOf": [{"type": "string"}, content]}
    kinds["PromptBody"]["required"] = ["content"]
    kinds["ToolUseBlock"]["properties"]["input"] = {}
    kinds["output"] = {"description": "A line on standard output.", **_any_of([one.__name__ for one in WRITTEN])}
    kinds["input"] = {"description": "A line on standard input.", **_any_of([one.__name__ for one in READ])}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "tenuto stream-json",
        "description": "Lines of tenuto -p --input-format stream-json --output-format stream-json. Keys may be added.",
        "anyOf": [{"$ref": "#/$defs/output"}, {"$ref": "#/$defs/input"}],
        "$defs": dict(sorted(kinds.items())),
    }


def _any_of(names: list[str] | tuple[str, ...]) -> dict[str, Any]:
    return {"anyOf": [{"$ref": _REF.format(name=name)} for name in names]}


def _require_constants(kind: dict[str, Any]) -> None:
    """Have the words that tell kinds apart be there: they have defaults only for those who write them in Python."""
    constants = [name for name, one in kind["properties"].items() if len(one.get("enum", ())) == 1]
    kind["required"] = [name for name in kind["properties"] if name in {*kind.get("required", ()), *constants}]
    for name in constants:
        kind["properties"][name].pop("default", None)
