"""A real model in an evaluation: what its provider counted of each request, and questions about what was planted."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from typing import Any

import msgspec

from tenuto.compaction.summary.prompts import SAME_PREFIX
from tenuto.evaluation.stories import Fact, Kind
from tenuto.evaluation.wires import NOTHING, Usage
from tenuto.model.http.transport import Transport
from tenuto.protocol.message import UserMessage
from tenuto.protocol.model import Finished, ModelClient, ModelError, ModelRequest
from tenuto.protocol.part import TextPart, text_of
from tenuto.text.json_access import as_count, as_dict, as_list, decode_object, encode

GAP = "____"
_ASKED_IN_PLACE = encode(SAME_PREFIX)[1:-1]


class Sent(msgspec.Struct, frozen=True, kw_only=True):
    """A request as its provider counted it, in tokens. `refused` is the kind of error that answered it, if one did."""

    is_summary: bool
    in_place: bool
    usage: Usage = NOTHING
    refused: str = ""

    @property
    def prompt(self) -> int:
        """Tokens of the request, cached or not."""
        return self.usage.fresh + self.usage.cached


class RecordingTransport:
    """Passes requests on and keeps what the answers say of them."""

    def __init__(self, inner: Transport, keep: Callable[[Sent], None]) -> None:
        self._inner = inner
        self._keep = keep

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the answer (see `Transport`)."""
        in_place = _ASKED_IN_PLACE in body
        is_summary = in_place or not as_list((decode_object(body) or {}).get("tools"))
        usage, rest = NOTHING, b""
        try:
            async with aclosing(self._inner.post_stream(url, headers, body)) as chunks:
                async for chunk in chunks:
                    *lines, rest = (rest + chunk).split(b"\n")
                    for line in lines:
                        usage = read_usage(line) or usage
                    yield chunk
        except ModelError as error:
            self._keep(Sent(is_summary=is_summary, in_place=in_place, usage=usage, refused=error.kind))
            raise
        usage = read_usage(rest) or usage
        self._keep(Sent(is_summary=is_summary, in_place=in_place, usage=usage))

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Return the JSON object at `url` (see `Transport`)."""
        return await self._inner.get_json(url, headers)

    async def close(self) -> None:
        """Close the connections."""
        await self._inner.close()


def read_usage(line: bytes) -> Usage | None:
    """Return the usage that a line of a stream tells, in the words of any of the protocols."""
    value = decode_object(line.removeprefix(b"data:").strip())
    if value is None:
        return None
    holders = (value, as_dict(value.get("response")), as_dict(value.get("message")))
    usages = [usage for holder in holders if (usage := as_dict(holder.get("usage")))]
    found = usages[0] if usages else dict[str, Any]()
    timings = as_dict(value.get("timings"))
    if timings and not found:
        return Usage(*(as_count(timings.get(name)) for name in ("prompt_n", "cache_n", "predicted_n")))
    details = as_dict(found.get("prompt_tokens_details") or found.get("input_tokens_details"))
    cached = as_count(details.get("cached_tokens")) or as_count(found.get("cache_read_input_tokens"))
    output = as_count(found.get("completion_tokens")) or as_count(found.get("output_tokens"))
    whole = as_count(found.get("prompt_tokens"))
    if not whole:
        whole = as_count(found.get("input_tokens")) + as_count(found.get("cache_creation_input_tokens"))
        whole += cached if "cache_read_input_tokens" in found else 0
    return Usage(max(0, whole - cached), cached, output) if whole else None


class Question(msgspec.Struct, frozen=True):
    """A fact with a gap in it, and what belongs there."""

    kind: Kind
    text: str
    prompt: str
    missing: str


def make_question(fact: Fact) -> Question | None:
    """Return the question about a fact: its last word with a figure in it, or its longest one, is left out.

    `None` for a fact of a single word, of which nothing would be left to ask by.
    """
    words = re.findall(r"[^\s,;:()\"'`]*[^\s,;:()\"'`.!?]", fact.text)
    if len(words) < 2:
        return None
    figures = [word for word in words if any(map(str.isdecimal, word))]
    missing = figures[-1] if figures else max(words, key=len)
    before, _, after = fact.text.rpartition(missing)
    prompt = (
        "Answer from this session alone, without a tool. Which word or figure stands where the gap is? Reply with it "
        f"and nothing else.\n\n{before}{GAP}{after}"
    )
    return Question(fact.kind, fact.text, prompt, missing)


def is_answered(question: Question, answer: str) -> bool:
    """Say whether an answer has what was missing."""
    return question.missing.casefold() in answer.casefold()


async def ask(client: ModelClient, request: ModelRequest, question: Question) -> str:
    """Return a model's answer to a question at the end of a session, which is not appended to it."""
    asked = UserMessage(parts=(TextPart(text=question.prompt),), origin="extension")
    whole = msgspec.structs.replace(request, messages=(*request.messages, asked))
    answer = ""
    async for part in client.stream(whole):
        if isinstance(part, Finished):
            answer = text_of(tuple(one for one in part.message.parts if isinstance(one, TextPart)))
    return answer
