"""Running recorded bytes through our decoders."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence

from tenuto.model.anthropic.stream import AnthropicDecoder
from tenuto.model.openai.chat_stream import ChatDecoder
from tenuto.model.openai.responses_stream import ResponsesDecoder
from tenuto.model.wire.stream import StreamDecoder, finished, read_answer
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ModelFacts, StreamPart
from tenuto.protocol.part import ToolCallPart

DECODERS = {"anthropic": AnthropicDecoder, "openai": ResponsesDecoder, "openai-chat": ChatDecoder}
FACTS = ModelFacts(provider="p", name="m", context_window=1_000, input_price=1.0, output_price=2.0)


async def pieces(chunks: Sequence[bytes]) -> AsyncGenerator[bytes]:
    for piece in chunks:
        yield piece


async def decode(
    kind: str, chunks: Sequence[bytes], taken: set[str] | None = None, facts: ModelFacts = FACTS
) -> tuple[list[StreamPart], AssistantMessage]:
    """Return the deltas and the finished message of a stream. Raises `ModelError` as the client would."""
    decoder: StreamDecoder = DECODERS[kind]("p", set() if taken is None else taken)
    deltas = [part async for part in read_answer(pieces(chunks), decoder, "http://model.test/v1")]
    return deltas, finished(decoder.finish(), facts, "").message


def calls_of(message: AssistantMessage) -> list[tuple[str, str, str]]:
    return [(part.id, part.name, part.arguments) for part in message.parts if isinstance(part, ToolCallPart)]
