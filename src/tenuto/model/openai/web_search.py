"""OpenAI's own web search (Responses): the tool in a request, how it is switched off, the items of an answer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import msgspec

from tenuto.protocol.model import WEB_SEARCH
from tenuto.protocol.part import AssistantPart, OpaquePart, WebSearch, WebSource
from tenuto.text import json_access
from tenuto.text.json_access import as_dict, as_list, as_text

CALL = "web_search_call"
TOOL = json_access.encode({"type": WEB_SEARCH})
SOURCES = "web_search_call.action.sources"
"""What `include` names so that an answer tells which pages a search found."""
REFUSAL = r"web[_ ]search(?:_\w+)?(?: tool)?"
"""How a refusal names the tool."""
ALLOWED_REFUSAL = r"tool_choice|allowed_tools"
_ACTIONS: dict[str, Literal["search", "open", "find"]] = {"open_page": "open", "find_in_page": "find"}
_QUERY_FIELDS = {"search": "query", "open": "url", "find": "pattern"}


def allow_others(tools: bytes) -> bytes:
    """Return a `tool_choice` that allows every tool but the web search. `tools` stays, and so does the cache."""
    listed = [as_dict(tool) for tool in msgspec.json.decode(tools)]
    others = [{"type": tool["type"], "name": tool["name"]} for tool in listed if "name" in tool]
    return json_access.encode({"type": "allowed_tools", "mode": "auto", "tools": others})


def read_call(item: Mapping[str, Any], *, done: bool = True) -> WebSearch:
    """Return the look at the web that an item stands for; while it runs it may not say what is looked for."""
    fields = as_dict(item.get("action"))
    action = _ACTIONS.get(as_text(fields.get("type")), "search")
    queries = ", ".join(as_text(query) for query in as_list(fields.get("queries")))
    query = as_text(fields.get(_QUERY_FIELDS[action])) or queries
    found = [as_text(as_dict(source).get("url")) for source in as_list(fields.get("sources"))]
    failed = as_text(item.get("status")) in {"failed", "incomplete"}
    return WebSearch(
        id=as_text(item.get("id")),
        query=query,
        action=action,
        sources=tuple(WebSource(url) for url in found if url),
        error=as_text(item.get("status")) if failed else "",
        done=done,
    )


def cited(content: Sequence[Mapping[str, Any]]) -> tuple[WebSource, ...]:
    """Return the pages that a message cites, each once."""
    notes = [as_dict(note) for part in content for note in as_list(part.get("annotations"))]
    pages = [note for note in notes if note.get("type") == "url_citation" and as_text(note.get("url"))]
    return tuple(dict.fromkeys(WebSource(as_text(page.get("url")), as_text(page.get("title"))) for page in pages))


def count_searches(parts: Iterable[AssistantPart]) -> int:
    """Return how many searches an answer has; opening a page and looking into one cost nothing by themselves."""
    found = (part.search for part in parts if isinstance(part, OpaquePart))
    return sum(search is not None and search.action == "search" for search in found)
