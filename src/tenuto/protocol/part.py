"""The parts that messages are made of.

Every part is a frozen msgspec struct tagged by `type`. Parts of a provider that we do not understand travel as
`OpaquePart` and are handed back to the same provider byte for byte.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import msgspec


class Part(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Base of all parts."""


class WebSource(msgspec.Struct, frozen=True, omit_defaults=True):
    """A page of the web that an answer rests on, or that a search found. Both texts are foreign: data to be shown."""

    url: str
    title: str = ""


NO_BLOCK = msgspec.Raw(b"")
"""For a part without a provider's block. Only this very object is left out of the log; another empty one is no JSON."""


class TextPart(Part, frozen=True, kw_only=True, tag="text"):
    """Plain text. `phase` is OpenAI's commentary / final_answer mark, kept because leaving it out costs quality.

    `sources` are the pages that it cites. Where the provider wants its citations back, `block` is its own JSON, sent
    to `provider` unchanged.
    """

    text: str
    phase: str = ""
    sources: tuple[WebSource, ...] = ()
    provider: str = ""
    block: msgspec.Raw = NO_BLOCK


class ImagePart(Part, frozen=True, kw_only=True, tag="image"):
    """An image that lies under `blobs/` by its hash, so that the log stays small.

    `sha256` is the hex digest of the file's bytes, `size` their number; width and height are pixels (0: unknown).
    """

    sha256: str
    media_type: str
    size: int = 0
    width: int = 0
    height: int = 0
    name: str = ""


class ThinkingPart(Part, frozen=True, kw_only=True, tag="thinking"):
    """A model's reasoning.

    `text` is what a user may read (possibly empty: redacted or encrypted). `block` is the provider's own JSON,
    signature or encrypted content included, sent back unchanged or not at all.
    """

    text: str
    provider: str = ""
    block: msgspec.Raw = NO_BLOCK


class ToolCallPart(Part, frozen=True, kw_only=True, tag="tool_call"):
    """A call that the model asks for. `arguments` is JSON text of one object, valid even if the model's was not.

    With `freeform` the model wrote one text, which is the `input` of that object, and no JSON.
    """

    id: str
    name: str
    arguments: str = "{}"
    freeform: bool = False
    fault: str = ""
    """Why the arguments could not be read, if they could not; such a call is never run (R-094)."""
    cut_at: int | None = None
    """Where the output limit ended the answer in the middle of this call: the answer's tokens (0: not counted)."""


class WebSearch(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A look at the web by the provider's own tool, as it is shown. `id` is the provider's.

    `action` says what was done with `query`: searched for it, opened the page with that address, or looked for that
    text in a page. `sources` are the pages that were found, as far as the provider names them; `error` is its word for
    why there are none. `done` is false while it runs; `carried`: an earlier answer began it, and this one ends it.
    """

    id: str
    query: str = ""
    action: Literal["search", "open", "find"] = "search"
    sources: tuple[WebSource, ...] = ()
    error: str = ""
    done: bool = False
    carried: bool = False


class OpaquePart(Part, frozen=True, kw_only=True, tag="opaque"):
    """A provider's block that only it understands, kept as it came. `search` is the web search that it belongs to."""

    provider: str
    block: msgspec.Raw
    search: WebSearch | None = None


AssistantPart = TextPart | ThinkingPart | ToolCallPart | OpaquePart
ContentPart = TextPart | ImagePart


def text_of(parts: tuple[Part, ...]) -> str:
    """Return the text parts joined, everything else left out."""
    return "".join(part.text for part in parts if isinstance(part, TextPart))


def searches_in(parts: Iterable[Part]) -> list[WebSearch]:
    """Return the finished web searches of an answer, in order."""
    found = (part.search for part in parts if isinstance(part, OpaquePart))
    return [search for search in found if search is not None and search.done]


def open_searches(parts: Iterable[Part]) -> list[WebSearch]:
    """Return the web searches that an answer begins and does not end."""
    found = [part.search for part in parts if isinstance(part, OpaquePart) and part.search is not None]
    ended = {search.id for search in found if search.done}
    return [search for search in found if search.id not in ended]


def without_searches(parts: Iterable[AssistantPart], ids: Collection[str]) -> tuple[AssistantPart, ...]:
    """Return an answer's parts without the blocks of these searches. Texts that may cite their pages become plain."""
    if not ids:
        return tuple(parts)
    kept: list[AssistantPart] = []
    for part in parts:
        if isinstance(part, OpaquePart) and part.search is not None and part.search.id in ids:
            continue
        is_cited = isinstance(part, TextPart) and part.provider
        kept.append(msgspec.structs.replace(part, provider="", block=NO_BLOCK) if is_cited else part)
    return tuple(kept)


def cited_in(parts: Iterable[Part]) -> tuple[WebSource, ...]:
    """Return the pages that texts cite, in the order in which they are first cited, each once."""
    sources: dict[str, WebSource] = {}
    for part in parts:
        for source in part.sources if isinstance(part, TextPart) else ():
            sources.setdefault(source.url, source)
    return tuple(sources.values())
