"""Anthropic's own web search: the tool in a request, the blocks and citations of an answer.

A search is a block `server_tool_use` and later a block `web_search_tool_result`. Where a call of ours stands between
the two, or the provider pauses, the second one comes first of all in the next answer.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from tenuto.protocol.message import AssistantMessage, Message, StopReason
from tenuto.protocol.model import WEB_SEARCH
from tenuto.protocol.part import (
    AssistantPart,
    OpaquePart,
    TextPart,
    WebSearch,
    WebSource,
    open_searches,
    without_searches,
)
from tenuto.text import json_access
from tenuto.text.json_access import as_dict, as_list, as_text

CALL, RESULT = "server_tool_use", "web_search_tool_result"
MOST_SEARCHES = 8
"""In one request. The provider refuses further ones within the answer, and the model reads that."""
NEWEST, WIDEST = "web_search_20260318", "web_search_20250305"
"""The tool's newest version, and the one that servers know which speak this protocol for others."""
REFUSAL = r"web[_ ]search(?:_\d+)?(?: tool)?"
"""How a refusal names the tool."""


def search_tool(*, is_vendors_own: bool) -> bytes:
    """Return the tool as it stands in a request. The model calls it itself, not from code that the provider runs."""
    fields = {"type": NEWEST if is_vendors_own else WIDEST, "name": WEB_SEARCH, "max_uses": MOST_SEARCHES}
    return json_access.encode({**fields, "allowed_callers": ["direct"]} if is_vendors_own else fields)


def read_call(block: Mapping[str, Any]) -> WebSearch | None:
    """Return the search that a `server_tool_use` block begins; `None` for another tool of the server."""
    if block.get("name") != WEB_SEARCH:
        return None
    return WebSearch(id=as_text(block.get("id")), query=as_text(as_dict(block.get("input")).get("query")))


def read_result(block: Mapping[str, Any], query: str, *, carried: bool) -> WebSearch:
    """Return the search that a result block ends; its content is a list of pages, or an error with a code.

    `carried`: an earlier answer began it.
    """
    content = block.get("content")
    pages = [as_dict(page) for page in as_list(content)]
    sources = tuple(_source(page) for page in pages if as_text(page.get("url")))
    error = as_text(as_dict(content).get("error_code"))
    return WebSearch(
        id=as_text(block.get("tool_use_id")), query=query, sources=sources, error=error, done=True, carried=carried
    )


def cited(block: Mapping[str, Any]) -> tuple[WebSource, ...]:
    """Return the pages that a text block cites, each once."""
    citations = [as_dict(citation) for citation in as_list(block.get("citations"))]
    return tuple(dict.fromkeys(_source(citation) for citation in citations if as_text(citation.get("url"))))


def _source(fields: Mapping[str, Any]) -> WebSource:
    return WebSource(as_text(fields.get("url")), as_text(fields.get("title")))


def text_part(block: Mapping[str, Any], provider: str) -> TextPart | None:
    """Return a text block as a part, `None` for an empty one. One with citations goes back as it came."""
    text = as_text(block.get("text"))
    if not text:
        return None
    if not as_list(block.get("citations")):
        return TextPart(text=text)
    raw = msgspec.Raw(json_access.encode(dict(block)))
    return TextPart(text=text, sources=cited(block), provider=provider, block=raw)


def open_queries(messages: Sequence[Message]) -> dict[str, str]:
    """Return by its id what the last answer of a conversation began to search for and has no result of yet."""
    last = next((message for message in reversed(messages) if isinstance(message, AssistantMessage)), None)
    return {search.id: search.query for search in open_searches(last.parts if last is not None else ())}


def is_paused_search(messages: Sequence[Message]) -> bool:
    """Say whether a conversation ends with an answer that the provider paused while it searched."""
    last = messages[-1] if messages else None
    if not isinstance(last, AssistantMessage) or last.stop_reason != "pause":
        return False
    return any(isinstance(part, OpaquePart) and part.search is not None for part in last.parts)


def drop_unanswered(parts: Sequence[AssistantPart], stop_reason: StopReason) -> tuple[AssistantPart, ...]:
    """Return an answer without searches that will get no result: of one that was cut off, the API refuses them."""
    if stop_reason in {"pause", "tool_use"}:
        return tuple(parts)
    return without_searches(parts, {search.id for search in open_searches(parts)})
