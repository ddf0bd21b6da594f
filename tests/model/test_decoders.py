"""What our decoders make of streams, well-behaved and not."""

from __future__ import annotations

import json

import msgspec
import pytest

from tenuto.protocol.model import ModelError, ModelFacts, TextDelta, ThinkingDelta, ToolCallDelta
from tenuto.protocol.part import OpaquePart, TextPart, ThinkingPart, ToolCallPart, text_of
from tests.model.decoding import calls_of, decode
from tests.model.streams import (
    ANTHROPIC,
    ANTHROPIC_OVERLOADED,
    ANTHROPIC_UNKNOWN,
    CHAT,
    CHAT_QUIRKS,
    DONE,
    RESPONSES,
    RESPONSES_OVERFLOW,
    TWO_CALLS,
    anthropic_end,
    anthropic_start,
    block_delta,
    block_start,
    block_stop,
    call,
    chunk,
    data,
    named,
    response,
    usage_chunk,
)

ALL = [
    (kind, name, chunks)
    for kind, cases in (("anthropic", ANTHROPIC), ("openai", RESPONSES), ("openai-chat", CHAT))
    for name, chunks in cases.items()
]


# --- R-092, T-40: a cut stream is an error, never an answer ---


@pytest.mark.parametrize(("kind", "name", "chunks"), ALL, ids=[f"{kind}-{name}" for kind, name, _ in ALL])
async def test_t40_a_stream_cut_after_any_event_gives_no_answer(kind: str, name: str, chunks: list[bytes]):
    whole = (await decode(kind, chunks))[1]
    answers = []
    for length in range(len(chunks)):
        try:
            answers.append((await decode(kind, chunks[:length]))[1])
        except ModelError as error:
            assert error.kind == "broken_stream"
    for answer in answers:
        # Chat servers may leave out what follows the finish reason, usage and end mark: the answer is whole then.
        assert kind == "openai-chat"
        assert answer.parts == whole.parts
    assert len(answers) <= 2


@pytest.mark.parametrize(("kind", "name", "chunks"), ALL, ids=[f"{kind}-{name}" for kind, name, _ in ALL])
async def test_t40_a_stream_cut_inside_an_event_gives_no_answer(kind: str, name: str, chunks: list[bytes]):
    body = b"".join(chunks)
    last = len(b"".join(chunks[:-1])) if kind != "openai-chat" else len(b"".join(chunks[:-3]))
    for end in range(0, last, max(1, last // 97)):
        with pytest.raises(ModelError) as caught:
            await decode(kind, [body[:end]])
        assert caught.value.kind == "broken_stream"


@pytest.mark.parametrize(("kind", "name", "chunks"), ALL, ids=[f"{kind}-{name}" for kind, name, _ in ALL])
async def test_the_answer_does_not_depend_on_the_chunks(kind: str, name: str, chunks: list[bytes]):
    body = b"".join(chunks)
    whole = (await decode(kind, [body]))[1]
    for size in (1, 7, 64, 1000):
        cut = [body[place : place + size] for place in range(0, len(body), size)]
        deltas, message = await decode(kind, cut)
        assert message == whole
        assert "".join(part.text for part in deltas if isinstance(part, TextDelta)) == text_of(message.parts)


async def test_r092_a_stream_without_stop_reason_is_broken():
    chunks = [
        anthropic_start(),
        block_start(0, type="text", text=""),
        block_delta(0, "text_delta", text="x"),
        block_stop(0),
        named("message_stop"),
    ]
    with pytest.raises(ModelError) as caught:
        await decode("anthropic", chunks)
    assert caught.value.kind == "broken_stream"


@pytest.mark.parametrize("kind", ["anthropic", "openai", "openai-chat"])
async def test_r092_an_empty_body_is_broken(kind: str):
    with pytest.raises(ModelError) as caught:
        await decode(kind, [])
    assert caught.value.kind == "broken_stream"


# --- errors inside the stream ---


async def test_r093_an_overloaded_event_inside_the_stream_is_one_to_retry():
    with pytest.raises(ModelError) as caught:
        await decode("anthropic", ANTHROPIC_OVERLOADED)
    assert caught.value.kind == "overloaded"


@pytest.mark.parametrize("shape", RESPONSES_OVERFLOW)
async def test_r019_every_form_of_overflow_in_a_responses_stream(shape: str):
    with pytest.raises(ModelError) as caught:
        await decode("openai", RESPONSES_OVERFLOW[shape])
    assert caught.value.kind == "overflow"


async def test_r019_an_error_chunk_of_a_chat_stream():
    error = {
        "message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens."
    }
    with pytest.raises(ModelError) as caught:
        await decode("openai-chat", [chunk({"content": "He"}), data({"error": error})])
    assert (caught.value.kind, caught.value.observed, caught.value.limit) == ("overflow", 9000, 8192)


async def test_an_error_that_comes_as_plain_json_with_status_200():
    body = json.dumps({"error": {"message": "Rate limit exceeded, please slow down", "code": 429}}).encode()
    with pytest.raises(ModelError) as caught:
        await decode("openai-chat", [body])
    assert caught.value.kind == "rate_limit"


async def test_a_chat_answer_that_ends_with_an_error_is_none():
    with pytest.raises(ModelError) as caught:
        await decode("openai-chat", [chunk({"content": "x"}), chunk({}, "error"), DONE])
    assert caught.value.kind == "server"


@pytest.mark.parametrize(
    ("kind", "junk"),
    [("anthropic", b"data: {nope\n\n"), ("openai", b"data: 7\n\n"), ("openai-chat", b"data: <html>\n\n")],
)
async def test_an_event_that_is_no_json_breaks_the_stream_or_is_no_answer_from_the_beginning(kind: str, junk: bytes):
    for before, error in ([], "invalid"), (next(chunks for one, _, chunks in ALL if one == kind)[:1], "broken_stream"):
        with pytest.raises(ModelError) as caught:
            await decode(kind, [*before, junk])
        assert caught.value.kind == error


# --- silent overflow ---


async def test_r022_no_output_with_a_full_window_is_an_overflow():
    chunks = [chunk({"content": ""}), chunk({}, "length"), usage_chunk(prompt_tokens=995, completion_tokens=0), DONE]
    with pytest.raises(ModelError) as caught:
        await decode("openai-chat", chunks)
    assert (caught.value.kind, caught.value.observed) == ("overflow", 995)
    _, message = await decode("openai-chat", chunks, facts=ModelFacts(provider="p", name="m"))
    assert message.stop_reason == "max_tokens"


# --- Anthropic ---


async def test_anthropic_deltas_and_parts():
    deltas, message = await decode("anthropic", ANTHROPIC["thinking, text, two calls"])
    assert [part for part in deltas if isinstance(part, ThinkingDelta)] == [
        ThinkingDelta("Let me "),
        ThinkingDelta("look."),
    ]
    assert next(part.name for part in deltas if isinstance(part, ToolCallDelta) and not part.fragment) == "read"
    assert {part.index for part in deltas if isinstance(part, ToolCallDelta)} == {0, 1}
    thinking, redacted, text, read, todo = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert msgspec.json.decode(thinking.block) == {
        "type": "thinking",
        "thinking": "Let me look.",
        "signature": "EqoBsig==",
    }
    assert isinstance(redacted, ThinkingPart)
    assert msgspec.json.decode(redacted.block) == {"type": "redacted_thinking", "data": "opaque=="}
    assert text == TextPart(text="I look at both.")
    assert isinstance(read, ToolCallPart)
    assert json.loads(read.arguments) == {"path": "aä.py", "lines": [1, 2]}
    assert todo == ToolCallPart(id="toolu_2", name="todo")
    assert message.usage is not None
    assert message.usage.reasoning == 12
    assert message.usage.cost == pytest.approx((25 + 100 + 4) * 1e-6 + 40 * 2e-6)


async def test_a_signature_replaces_the_one_before_it():
    chunks = [
        anthropic_start(),
        block_start(0, type="thinking", thinking="", signature=""),
        block_delta(0, "signature_delta", signature="first"),
        block_delta(0, "signature_delta", signature="second"),
        block_stop(0),
        *anthropic_end(),
    ]
    part = (await decode("anthropic", chunks))[1].parts[0]
    assert isinstance(part, ThinkingPart)
    assert msgspec.json.decode(part.block)["signature"] == "second"


async def test_unknown_blocks_are_kept_and_unknown_events_do_no_harm():
    parts = (await decode("anthropic", ANTHROPIC_UNKNOWN))[1].parts
    search, hologram, text = parts
    assert isinstance(search, OpaquePart)
    assert msgspec.json.decode(search.block) == {
        "type": "server_tool_use",
        "id": "srv_1",
        "name": "code_execution",
        "input": {"code": "x"},
    }
    assert isinstance(hologram, OpaquePart)
    assert msgspec.json.decode(hologram.block) == {"type": "hologram", "depth": 3, "parts": ["a"], "angle": 90}
    assert text == TextPart(text="done")


# --- Responses ---


async def test_reasoning_is_taken_from_the_finished_item():
    deltas, message = await decode("openai", RESPONSES["reasoning, text, call"])
    thinking, text, tool = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert msgspec.json.decode(thinking.block)["encrypted_content"] == "gAAAA=="
    assert thinking.text == "First.\n\nThen."
    assert "".join(part.text for part in deltas if isinstance(part, ThinkingDelta)) == "First.\n\nThen."
    assert text == TextPart(text="I read it.", phase="commentary")
    assert tool == ToolCallPart(id="call_1", name="read", arguments='{"path":"ä.py"}')
    assert message.stop_reason == "tool_use"
    assert message.usage is not None
    assert message.usage.unsent_reasoning == 0


async def test_reasoning_without_its_encrypted_content_is_not_sent_back():
    item = {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}
    usage = {"input_tokens": 9, "output_tokens": 5, "output_tokens_details": {"reasoning_tokens": 4}}
    chunks = [
        named("response.output_item.done", output_index=0, item=item),
        named("response.completed", response=response("completed", [item], usage)),
    ]
    message = (await decode("openai", chunks))[1]
    assert message.parts == (ThinkingPart(text="hm", provider="p"),)
    assert message.usage is not None
    assert message.usage.unsent_reasoning == 4


async def test_a_server_that_sends_no_items_but_the_response():
    item = {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]}
    message = (await decode("openai", [named("response.completed", response=response("completed", [item]))]))[1]
    assert message.parts == (TextPart(text="hi"),)


async def test_a_refusal_of_responses():
    item = {"type": "message", "role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]}
    message = (await decode("openai", [named("response.completed", response=response("completed", [item]))]))[1]
    assert (text_of(message.parts), message.stop_reason) == ("No.", "refusal")


# --- Chat Completions ---


@pytest.mark.parametrize("name", CHAT_QUIRKS)
async def test_calls_of_servers_with_habits_of_their_own(name: str):
    message = (await decode("openai-chat", CHAT_QUIRKS[name]))[1]
    assert calls_of(message) == TWO_CALLS
    assert message.stop_reason == "tool_use"


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
async def test_reasoning_fields(field: str):
    chunks = [chunk({field: "hm "}), chunk({field: "so"}), chunk({"content": "Yes."}), chunk({}, "stop"), DONE]
    deltas, message = await decode("openai-chat", chunks)
    assert deltas[:2] == [ThinkingDelta("hm "), ThinkingDelta("so")]
    thinking, text = message.parts
    assert isinstance(thinking, ThinkingPart)
    assert (thinking.text, bytes(thinking.block), text) == ("hm so", b"", TextPart(text="Yes."))


async def test_reasoning_content_goes_back_with_tool_calls_only():
    chunks = [
        chunk({"reasoning_content": "hm"}),
        chunk({"tool_calls": [call(0, "c", "read", "{}")]}),
        chunk({}, "tool_calls"),
        DONE,
    ]
    part = (await decode("openai-chat", chunks))[1].parts[0]
    assert isinstance(part, ThinkingPart)
    assert msgspec.json.decode(part.block) == {"reasoning_content": "hm"}


async def test_reasoning_details_are_put_together_and_kept():
    def details(**fields: object) -> bytes:
        return chunk({"reasoning_details": [{"type": "reasoning.text", "index": 0, "format": "f", **fields}]})

    chunks = [
        details(text="hm "),
        details(text="so"),
        details(signature="sig"),
        chunk({"reasoning_details": [{"type": "reasoning.encrypted", "index": 1, "data": "xx"}]}),
        chunk({"content": "Yes."}),
        chunk({}, "stop"),
        DONE,
    ]
    part = (await decode("openai-chat", chunks))[1].parts[0]
    assert isinstance(part, ThinkingPart)
    assert part.text == "hm so"
    assert msgspec.json.decode(part.block) == {
        "reasoning_details": [
            {"type": "reasoning.text", "index": 0, "format": "f", "text": "hm so", "signature": "sig"},
            {"type": "reasoning.encrypted", "index": 1, "data": "xx"},
        ]
    }


@pytest.mark.parametrize("size", [1, 2, 3, 5, 100])
@pytest.mark.parametrize(
    ("said", "thinking", "answer"),
    [
        ("<think>\nhm <b>\n</think>\n\nYes.", "hm <b>", "Yes."),
        ("\n<think></think>Yes.", "", "Yes."),
        ("I use <think> tags.", "", "I use <think> tags."),
        ("<thin", "", "<thin"),
        ("<think>never closed", "never closed", ""),
        ("hm\n</think>\n\nYes.", "hm", "Yes."),
        ("No tags </think> here", "", "No tags </think> here"),
    ],
)
async def test_think_tags_in_the_text(said: str, thinking: str, answer: str, size: int):
    chunks = [chunk({"content": said[place : place + size]}) for place in range(0, len(said), size)]
    message = (await decode("openai-chat", [*chunks, chunk({}, "stop"), DONE]))[1]
    assert text_of(message.parts) == answer
    assert "".join(part.text for part in message.parts if isinstance(part, ThinkingPart)) == thinking


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({"prompt_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 5}}, (15, 100, 5)),
        ({"prompt_cache_hit_tokens": 90, "prompt_cache_miss_tokens": 30}, (30, 90, 0)),
        ({"prompt_tokens_details": None}, (120, 0, 0)),
        ({"prompt_tokens_details": {"cached_tokens": 500}}, (0, 500, 0)),
    ],
)
async def test_usage_in_normal_form(usage: dict[str, object], expected: tuple[int, int, int]):
    found = (await decode("openai-chat", [chunk({"content": "x"}), chunk({}, "stop"), usage_chunk(**usage), DONE]))[
        1
    ].usage
    assert found is not None
    assert (found.input, found.cache_read, found.cache_write) == expected


async def test_usage_in_the_last_normal_chunk():
    chunks = [chunk({"content": "x"}), chunk({}, "stop", usage={"prompt_tokens": 7, "completion_tokens": 3}), DONE]
    usage = (await decode("openai-chat", chunks))[1].usage
    assert usage is not None
    assert (usage.input, usage.output) == (7, 3)


# --- what comes in broken is stored whole ---


@pytest.mark.parametrize("kind", ["anthropic", "openai-chat"])
async def test_r073_lone_surrogates_of_the_provider_are_replaced(kind: str):
    if kind == "anthropic":
        chunks = [
            anthropic_start(),
            block_start(0, type="text", text=""),
            b'data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a\\ud83d b"}}\n\n',
            *anthropic_end(),
        ]
    else:
        chunks = [b'data: {"choices":[{"delta":{"content":"a\\ud83d b"}}]}\n\n', chunk({}, "stop"), DONE]
    text = text_of((await decode(kind, chunks))[1].parts)
    assert text == "a\ufffd b"
    text.encode()
