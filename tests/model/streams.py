"""Streams as providers send them, written by hand: one list of events for each case."""

from __future__ import annotations

import json
from typing import Any


def named(kind: str, **fields: Any) -> bytes:
    """An event with its name in both places (Anthropic, Responses)."""
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields}, ensure_ascii=False)}\n\n".encode()


def data(value: Any) -> bytes:
    """A chunk of Chat Completions."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return f"data: {text}\n\n".encode()


# --- Anthropic ---


def anthropic_start(**usage: int) -> bytes:
    usage = {
        "input_tokens": 25,
        "cache_creation_input_tokens": 4,
        "cache_read_input_tokens": 100,
        "output_tokens": 1,
        **usage,
    }
    message = {"id": "msg_01", "type": "message", "role": "assistant", "model": "claude-sonnet-5-5", "content": []}
    return named("message_start", message={**message, "stop_reason": None, "stop_sequence": None, "usage": usage})


def block_start(index: int, **block: Any) -> bytes:
    return named("content_block_start", index=index, content_block=block)


def block_delta(index: int, kind: str, **delta: Any) -> bytes:
    return named("content_block_delta", index=index, delta={"type": kind, **delta})


def block_stop(index: int) -> bytes:
    return named("content_block_stop", index=index)


def anthropic_end(stop_reason: str = "end_turn", **usage: Any) -> list[bytes]:
    delta = {"stop_reason": stop_reason, "stop_sequence": None}
    return [named("message_delta", delta=delta, usage={"output_tokens": 40, **usage}), named("message_stop")]


ANTHROPIC: dict[str, list[bytes]] = {
    "text": [
        anthropic_start(),
        block_start(0, type="text", text=""),
        named("ping"),
        block_delta(0, "text_delta", text="Hello, "),
        block_delta(0, "text_delta", text="wörld \u2028 “quoted” 👋"),
        block_stop(0),
        *anthropic_end(),
    ],
    "thinking, text, two calls": [
        anthropic_start(),
        block_start(0, type="thinking", thinking="", signature=""),
        block_delta(0, "thinking_delta", thinking="Let me "),
        block_delta(0, "thinking_delta", thinking="look."),
        block_delta(0, "signature_delta", signature="EqoBsig=="),
        block_stop(0),
        block_start(1, type="redacted_thinking", data="opaque=="),
        block_stop(1),
        block_start(2, type="text", text=""),
        block_delta(2, "text_delta", text="I look at both."),
        block_stop(2),
        block_start(3, type="tool_use", id="toolu_1", name="read", input={}),
        block_delta(3, "input_json_delta", partial_json=""),
        block_delta(3, "input_json_delta", partial_json='{"path": "a\\u00e4'),
        block_delta(3, "input_json_delta", partial_json='.py", "lines": [1, 2]}'),
        block_stop(3),
        block_start(4, type="tool_use", id="toolu_2", name="todo", input={}),
        block_stop(4),
        *anthropic_end("tool_use", output_tokens_details={"thinking_tokens": 12}),
    ],
    "stop at the output limit": [
        anthropic_start(),
        block_start(0, type="text", text=""),
        block_delta(0, "text_delta", text="Once upon"),
        block_stop(0),
        *anthropic_end("max_tokens"),
    ],
    "refusal": [anthropic_start(), *anthropic_end("refusal")],
    "window exceeded": [
        anthropic_start(),
        block_start(0, type="text", text=""),
        block_delta(0, "text_delta", text="so far"),
        block_stop(0),
        *anthropic_end("model_context_window_exceeded"),
    ],
    "usage changes at the end": [
        anthropic_start(),
        block_start(0, type="text", text=""),
        block_delta(0, "text_delta", text="ok"),
        block_stop(0),
        *anthropic_end(input_tokens=30, cache_read_input_tokens=110, cache_creation_input_tokens=0),
    ],
}
ANTHROPIC_UNKNOWN = [
    anthropic_start(),
    block_start(0, type="server_tool_use", id="srv_1", name="code_execution", input={}),
    block_delta(0, "input_json_delta", partial_json='{"code": "x"}'),
    block_stop(0),
    block_start(1, type="hologram", depth=3, parts=["a"]),
    block_delta(1, "hologram_delta", angle=90),
    block_stop(1),
    named("message_aura", color="blue"),
    block_start(2, type="text", text=""),
    block_delta(2, "text_delta", text="done"),
    block_stop(2),
    *anthropic_end(),
]
ANTHROPIC_OVERLOADED = [
    anthropic_start(),
    block_start(0, type="text", text=""),
    block_delta(0, "text_delta", text="Hel"),
    named("error", error={"type": "overloaded_error", "message": "Overloaded"}),
]

# --- Responses ---


class Numbered:
    """Counts the events of one Responses stream."""

    def __init__(self) -> None:
        self.number = -1

    def __call__(self, kind: str, **fields: Any) -> bytes:
        self.number += 1
        return named(kind, sequence_number=self.number, **fields)


def response(
    status: str, output: list[dict[str, Any]], usage: dict[str, Any] | None = None, **more: Any
) -> dict[str, Any]:
    base = {"id": "resp_1", "object": "response", "created_at": 1790000000, "model": "gpt-6-sol", "status": status}
    rest = {
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
    }
    tail = {"temperature": 1.0, "tool_choice": "auto", "tools": [], "top_p": 1.0, "output": output, "usage": usage}
    return {**base, **rest, **tail, **more}


RESPONSE_USAGE = {
    "input_tokens": 500,
    "input_tokens_details": {"cached_tokens": 300, "cache_write_tokens": 50},
    "output_tokens": 70,
    "output_tokens_details": {"reasoning_tokens": 30},
    "total_tokens": 570,
}
REASONING = {
    "id": "rs_1",
    "type": "reasoning",
    "summary": [{"type": "summary_text", "text": "First."}, {"type": "summary_text", "text": "Then."}],
    "encrypted_content": "gAAAA==",
}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "status": "completed",
    "phase": "commentary",
    "content": [{"type": "output_text", "text": "I read it.", "annotations": [], "logprobs": []}],
}
FUNCTION_CALL = {
    "id": "fc_1",
    "type": "function_call",
    "status": "completed",
    "call_id": "call_1",
    "name": "read",
    "arguments": '{"path":"ä.py"}',
}


def _responses_full() -> list[bytes]:
    event = Numbered()
    begun = {**MESSAGE, "content": [], "status": "in_progress"}
    text_place = {"item_id": "msg_1", "output_index": 1, "content_index": 0}
    summary = {"item_id": "rs_1", "output_index": 0}
    call_place = {"item_id": "fc_1", "output_index": 2}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    output = [REASONING, MESSAGE, FUNCTION_CALL]
    return [
        event("response.created", response=response("in_progress", [])),
        event("response.in_progress", response=response("in_progress", [])),
        event(
            "response.output_item.added", output_index=0, item={**REASONING, "summary": [], "encrypted_content": "part"}
        ),
        event(
            "response.reasoning_summary_part.added",
            **summary,
            summary_index=0,
            part={"type": "summary_text", "text": ""},
        ),
        event("response.reasoning_summary_text.delta", **summary, summary_index=0, delta="First."),
        event(
            "response.reasoning_summary_part.added",
            **summary,
            summary_index=1,
            part={"type": "summary_text", "text": ""},
        ),
        event("response.reasoning_summary_text.delta", **summary, summary_index=1, delta="Then."),
        event("response.output_item.done", output_index=0, item=REASONING),
        event("response.output_item.added", output_index=1, item=begun),
        event("response.content_part.added", **text_place, part=part),
        event("response.output_text.delta", **text_place, delta="I read", logprobs=[]),
        event("response.output_text.delta", **text_place, delta=" it.", logprobs=[]),
        event("response.output_text.done", **text_place, text="I read it.", logprobs=[]),
        event("response.content_part.done", **text_place, part=MESSAGE["content"][0]),
        event("response.output_item.done", output_index=1, item=MESSAGE),
        event(
            "response.output_item.added",
            output_index=2,
            item={**FUNCTION_CALL, "arguments": "", "status": "in_progress"},
        ),
        event("response.function_call_arguments.delta", **call_place, delta='{"path":'),
        event("response.function_call_arguments.delta", **call_place, delta='"ä.py"}'),
        event("response.function_call_arguments.done", **call_place, name="read", arguments=FUNCTION_CALL["arguments"]),
        event("response.output_item.done", output_index=2, item=FUNCTION_CALL),
        event("response.completed", response=response("completed", output, RESPONSE_USAGE)),
    ]


def _responses_incomplete() -> list[bytes]:
    event = Numbered()
    item = {**MESSAGE, "status": "incomplete", "phase": "final_answer"}
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    part = {"type": "output_text", "text": "", "annotations": [], "logprobs": []}
    details = {"incomplete_details": {"reason": "max_output_tokens"}}
    return [
        event("response.created", response=response("in_progress", [])),
        event("response.output_item.added", output_index=0, item={**item, "content": []}),
        event("response.content_part.added", **place, part=part),
        event("response.output_text.delta", **place, delta="I read it.", logprobs=[]),
        event("response.output_item.done", output_index=0, item=item),
        event("response.incomplete", response=response("incomplete", [item], RESPONSE_USAGE, **details)),
    ]


FREEFORM_CALL = {
    "id": "ctc_1",
    "type": "custom_tool_call",
    "status": "completed",
    "call_id": "call_2",
    "name": "apply_patch",
    "input": '*** Begin Patch\n*** Add File: ä.py\n+x = "\\"\n+{}\n*** End Patch\n',
}


def _responses_freeform() -> list[bytes]:
    event = Numbered()
    calls = [FUNCTION_CALL, FREEFORM_CALL, {**FREEFORM_CALL, "id": "ctc_2", "call_id": "call_3", "input": ""}]
    events = [event("response.created", response=response("in_progress", []))]
    for index, call in enumerate(calls):
        given = "input" if "input" in call else "arguments"
        kind = "custom_tool_call_input" if given == "input" else "function_call_arguments"
        place = {"item_id": call["id"], "output_index": index}
        begun = {**call, given: "", "status": "in_progress"}
        events += [
            event("response.output_item.added", output_index=index, item=begun),
            *(event(f"response.{kind}.delta", **place, delta=call[given][at : at + 7]) for at in range(0, 90, 7)),
            event(f"response.{kind}.done", **place, **{given: call[given], "name": call["name"]}),
            event("response.output_item.done", output_index=index, item=call),
        ]
    return [*events, event("response.completed", response=response("completed", calls, RESPONSE_USAGE))]


RESPONSES: dict[str, list[bytes]] = {
    "reasoning, text, call": _responses_full(),
    "stop at the output limit": _responses_incomplete(),
    "a call, two freeform ones": _responses_freeform(),
}
OVERFLOW_ERROR = {"code": "context_length_exceeded", "message": "Your input exceeds the context window of this model."}
RESPONSES_OVERFLOW: dict[str, list[bytes]] = {
    "failed": [
        named("response.created", response=response("in_progress", [])),
        named("response.failed", response=response("failed", [], error=OVERFLOW_ERROR)),
    ],
    "nested": [
        named("error", sequence_number=1, error={"type": "invalid_request_error", "param": "input", **OVERFLOW_ERROR})
    ],
    "flat": [named("error", sequence_number=1, param=None, **OVERFLOW_ERROR)],
}

# --- Chat Completions ---


def chunk(delta: dict[str, Any], finish: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": None}
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return data({**base, "choices": [choice], **more})


def usage_chunk(**more: Any) -> bytes:
    usage = {"prompt_tokens": 120, "completion_tokens": 20, "total_tokens": 140, **more}
    base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1790000000, "model": "m"}
    return data({**base, "choices": [], "usage": usage})


def call(
    index: int | None, call_id: str | None = None, name: str | None = None, arguments: str | None = None
) -> dict[str, Any]:
    function = {key: value for key, value in (("name", name), ("arguments", arguments)) if value is not None}
    fields: dict[str, Any] = {"function": function}
    if index is not None:
        fields["index"] = index
    if call_id is not None:
        fields |= {"id": call_id, "type": "function"}
    return fields


DONE = data("[DONE]")
CHAT: dict[str, list[bytes]] = {
    "text": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "Hello, "}),
        chunk({"content": "wörld \u2028 👋"}),
        chunk({}, "stop"),
        usage_chunk(prompt_tokens_details={"cached_tokens": 100}, completion_tokens_details={"reasoning_tokens": 5}),
        DONE,
    ],
    "two calls in fragments": [
        chunk({"role": "assistant", "content": None}),
        chunk({"content": "I look."}),
        chunk({"tool_calls": [call(0, "call_a", "read", "")]}),
        chunk({"tool_calls": [call(0, arguments='{"path":')]}),
        chunk({"tool_calls": [call(1, "call_b", "grep", "")]}),
        chunk({"tool_calls": [call(0, arguments='"ä.py"}')]}),
        chunk({"tool_calls": [call(1, arguments='{"pattern":"x"}')]}),
        chunk({}, "tool_calls"),
        usage_chunk(),
        DONE,
    ],
    "stop at the output limit": [chunk({"content": "Once"}), chunk({}, "length"), usage_chunk(), DONE],
}
"""Streams that the SDK reads as well."""

TWO_CALLS = [("call_a", "read", '{"path":"a"}'), ("call_b", "grep", '{"pattern":"x"}')]
CHAT_QUIRKS: dict[str, list[bytes]] = {
    "no index, fragments": [
        chunk({"tool_calls": [call(None, "call_a", "read", "")]}),
        chunk({"tool_calls": [call(None, arguments='{"path":"a"}')]}),
        chunk({"tool_calls": [call(None, "call_b", "grep", "")]}),
        chunk({"tool_calls": [call(None, arguments='{"pattern":"x"}')]}),
        chunk({}, "tool_calls"),
        DONE,
    ],
    "index always 0, whole calls": [
        chunk({"tool_calls": [call(0, "call_a", "read", '{"path":"a"}')]}),
        chunk({"tool_calls": [call(0, "call_b", "grep", '{"pattern":"x"}')]}),
        chunk({}, "stop"),
        DONE,
    ],
    "all in one chunk, without index": [
        chunk(
            {
                "tool_calls": [
                    call(None, "call_a", "read", '{"path":"a"}'),
                    call(None, "call_b", "grep", '{"pattern":"x"}'),
                ]
            }
        ),
        chunk({}, "stop"),
        DONE,
    ],
    "id repeated in each fragment": [
        chunk({"tool_calls": [call(0, "call_a", "read", '{"path"')]}),
        chunk({"tool_calls": [call(0, "call_a", "read", ':"a"}')]}),
        chunk({"tool_calls": [call(1, "call_b", "grep", '{"pattern":"x"}')]}),
        chunk({}, "tool_calls"),
        DONE,
    ],
    "no end mark": [
        chunk(
            {"tool_calls": [call(0, "call_a", "read", '{"path":"a"}'), call(1, "call_b", "grep", '{"pattern":"x"}')]}
        ),
        chunk({}, "tool_calls"),
    ],
    "no finish reason": [
        chunk(
            {"tool_calls": [call(0, "call_a", "read", '{"path":"a"}'), call(1, "call_b", "grep", '{"pattern":"x"}')]}
        ),
        DONE,
    ],
    "arguments as an object": [
        data(
            {
                "choices": [
                    {
                        "delta": {
                            "tool_calls": [
                                {"id": "call_a", "function": {"name": "read", "arguments": {"path": "a"}}},
                                {"id": "call_b", "function": {"name": "grep", "arguments": {"pattern": "x"}}},
                            ]
                        },
                        "finish_reason": "tool_calls",
                    }
                ]
            }
        ),
        DONE,
    ],
}
"""Streams of servers with habits of their own; each means `TWO_CALLS`."""


AZURE_CHAT: dict[str, list[bytes]] = {
    "filters said beside everything": [
        data(
            {
                "id": "",
                "object": "",
                "created": 0,
                "model": "",
                "choices": [],
                "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": {"hate": {"filtered": False}}}],
            }
        ),
        chunk({"role": "assistant", "content": "", "refusal": None}),
        data(
            {
                "id": "chatcmpl-1",
                "object": "chat.completion.chunk",
                "created": 1790000000,
                "model": "gpt-6-sol",
                "choices": [
                    {
                        "index": 0,
                        "delta": {"content": "Hello."},
                        "finish_reason": None,
                        "logprobs": None,
                        "content_filter_results": {"hate": {"filtered": False, "severity": "safe"}},
                    }
                ],
                "system_fingerprint": "fp_1",
            }
        ),
        chunk({}, "stop"),
        usage_chunk(prompt_tokens_details={"cached_tokens": 64}),
        DONE,
    ],
    "the filter ends the answer": [
        chunk({"role": "assistant", "content": ""}),
        chunk({"content": "So "}),
        chunk({}, "content_filter"),
        usage_chunk(),
        DONE,
    ],
}
"""What Azure puts beside the protocol's own."""


def gemini(*parts: dict[str, Any], finish: str = "", usage: dict[str, int] | None = None, **more: Any) -> bytes:
    """One chunk of Gemini's."""
    content = {"parts": list(parts), "role": "model"} if parts else {"role": "model"}
    candidate = {"content": content, "index": 0, **({"finishReason": finish} if finish else {})}
    counted = {"promptTokenCount": 120, "totalTokenCount": 120} if usage is None else usage
    fields = {"usageMetadata": counted, "modelVersion": "gemini-3.8-flash", "responseId": "resp-1", **more}
    text = json.dumps({"candidates": [candidate], **fields}, ensure_ascii=False)
    return f"data: {text}\r\n\r\n".encode()


GEMINI_USAGE = {
    "promptTokenCount": 120,
    "cachedContentTokenCount": 100,
    "candidatesTokenCount": 12,
    "thoughtsTokenCount": 30,
    "toolUsePromptTokenCount": 7,
    "totalTokenCount": 169,
}
GEMINI: dict[str, list[bytes]] = {
    "text": [
        gemini({"text": "Hello, "}),
        gemini({"text": "wörld \u2028 “quoted” 👋"}),
        gemini({"text": "", "thoughtSignature": "c2ln"}, finish="STOP", usage=GEMINI_USAGE),
    ],
    "thoughts, text, two calls": [
        gemini({"text": "**Looking**\n", "thought": True}),
        gemini({"text": "At both.", "thought": True}),
        gemini({"text": "I look."}),
        gemini(
            {"functionCall": {"id": "fc1", "name": "read", "args": {"path": "ä.py"}}, "thoughtSignature": "c2ln"},
            {"functionCall": {"id": "fc2", "name": "todo", "args": {}}},
        ),
        gemini(finish="STOP", usage=GEMINI_USAGE),
    ],
    "stop at the output limit": [gemini({"text": "Once"}, finish="MAX_TOKENS", usage=GEMINI_USAGE)],
    "the filter ends the answer": [gemini({"text": "So"}), gemini(finish="SAFETY", usage=GEMINI_USAGE)],
    "the words were somebody's": [gemini({"text": "So"}), gemini(finish="RECITATION", usage=GEMINI_USAGE)],
    "a blocked prompt": [
        data({"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "usageMetadata": {"promptTokenCount": 9}})
    ],
}
