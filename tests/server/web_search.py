"""A provider's own web search: what it looks like on the wire, and what a real API refuses of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from tests.server.item import Refusal
from tests.server.options import Options
from tests.server.reply import Reply, Search

VERSIONS = ("web_search_20250305", "web_search_20260209", "web_search_20260318")
TOOL_FIELDS = {
    "type", "name", "max_uses", "allowed_callers", "allowed_domains", "blocked_domains", "cache_control",
    "user_location", "response_inclusion",
}  # fmt: skip
SECRET = "EqgfCioIARgBIiQ-test-"
CALL, RESULT = "server_tool_use", "web_search_tool_result"


# --- Anthropic ---


def search_blocks(reply: Reply, number: int) -> list[dict[str, Any]]:
    """Return the blocks of the searches of an answer; the input of a call is still JSON text."""
    blocks: list[dict[str, Any]] = []
    for place, search in enumerate(reply.searches):
        search_id = search.id or f"srvtoolu_{number:04d}{place:02d}"
        if search.part != "found":
            asked = json.dumps({"query": search.query}, ensure_ascii=False)
            blocks.append({"type": CALL, "id": search_id, "name": "web_search", "input": asked})
        if search.part != "begun":
            blocks.append({"type": RESULT, "tool_use_id": search_id, "content": _content(search)})
    return blocks


def _content(search: Search) -> Any:
    if search.error:
        return {"type": "web_search_tool_result_error", "error_code": search.error}
    return [
        {
            "type": "web_search_result",
            "title": title,
            "url": url,
            "encrypted_content": f"{SECRET}{search.query}-{place}-" + "x" * 400,
            "page_age": "April 30, 2026",
        }
        for place, (title, url) in enumerate(search.pages)
    ]


def cited_block(reply: Reply) -> dict[str, Any]:
    """Return the text of an answer with what it cites: every page that was found."""
    pages = [page for search in reply.searches for page in search.pages]
    citations = [
        {
            "type": "web_search_result_location",
            "cited_text": f"{title} says so …",
            "url": url,
            "title": title,
            "encrypted_index": f"{SECRET}index-{place}",
        }
        for place, (title, url) in enumerate(pages)
    ]
    return {"type": "text", "text": reply.text, **({"citations": citations} if citations else {})}


def usage_of(reply: Reply) -> dict[str, Any]:
    """Return what a usage says of searches; nothing where there were none."""
    count = sum(search.part != "begun" for search in reply.searches)
    return {"server_tool_use": {"web_search_requests": count, "web_fetch_requests": 0}} if count else {}


def check_tool(place: int, tool: dict[str, Any], options: Options) -> bool:
    """Say whether a tool is the server's own. Raises `Refusal` for one that this server does not take."""
    kind = str(tool.get("type", ""))
    if not kind or kind == "custom":
        return False
    if kind not in VERSIONS or "web_search" in options.refuse:
        raise Refusal(
            f"tools.{place}: Input tag '{kind}' found using 'type' does not match any of the expected tags: "
            "'bash_20250124', 'custom', 'text_editor_20250728'"
        )
    if tool.get("name") != "web_search":
        raise Refusal(f"tools.{place}.{kind}.name: Input should be 'web_search'")
    for name in tool.keys() - TOOL_FIELDS:
        raise Refusal(f"tools.{place}.{kind}.{name}: Extra inputs are not permitted")
    return True


def check_blocks(body: dict[str, Any]) -> None:
    """Raise `Refusal` for results without search, and for searches without result but in the last answer."""
    open_searches: dict[str, str] = {}
    answers = [message for message in body["messages"] if message.get("role") == "assistant"]
    for place, message in enumerate(answers):
        blocks = message["content"] if isinstance(message["content"], list) else []
        for block in blocks:
            _check_block(block, open_searches)
        has_calls = any(block.get("type") == "tool_use" for block in blocks)
        is_last = place == len(answers) - 1 and (has_calls or message is body["messages"][-1])
        if open_searches and not is_last and not (has_calls and place < len(answers) - 1):
            missing = ", ".join(open_searches)
            raise Refusal(
                f"messages: `web_search` tool use with id `{missing}` was found without a corresponding result"
            )


def _check_block(block: dict[str, Any], open_searches: dict[str, str]) -> None:
    if block.get("type") == CALL:
        open_searches[block["id"]] = block["name"]
    if block.get("type") == RESULT:
        if block["tool_use_id"] not in open_searches:
            raise Refusal(f"messages: unexpected `tool_use_id` found in `{RESULT}` blocks: {block['tool_use_id']}")
        del open_searches[block["tool_use_id"]]
        pages = block["content"] if isinstance(block["content"], list) else []
        if not all(page["encrypted_content"].startswith(SECRET) for page in pages):
            raise Refusal("messages: Invalid `encrypted_content` in search result block")


def is_paused(body: dict[str, Any]) -> bool:
    """Say whether the conversation ends with an answer in which the server searches."""
    content = body["messages"][-1].get("content")
    return isinstance(content, list) and any(block.get("type") in (CALL, RESULT) for block in content)


# --- Responses ---


def search_items(reply: Reply, body: dict[str, Any], number: int) -> list[dict[str, Any]]:
    """Return the items of the searches of an answer; pages only where the request includes them."""
    included = "web_search_call.action.sources" in (body.get("include") or [])
    found: list[dict[str, Any]] = []
    for place, search in enumerate(reply.searches):
        action: dict[str, Any] = {"type": "search", "query": search.query}
        if included:
            action["sources"] = [{"type": "url", "url": url} for _title, url in search.pages]
        status = "failed" if search.error else "completed"
        found.append(
            {"id": f"ws_{number:04d}{place:02d}", "type": "web_search_call", "status": status, "action": action}
        )
    return found


def annotations(reply: Reply) -> list[dict[str, Any]]:
    """Return the pages that the text of an answer cites."""
    pages = [page for search in reply.searches for page in search.pages]
    end = len(reply.text)
    return [
        {"type": "url_citation", "url": url, "title": title, "start_index": 0, "end_index": end} for title, url in pages
    ]


def search_events(stream: Any, index: int, item: dict[str, Any]) -> Iterator[bytes]:
    """Yield the events of one search."""
    yield stream.event("response.output_item.added", output_index=index, item=_begun(item))
    for step in ("in_progress", "searching", "completed"):
        yield stream.event(f"response.web_search_call.{step}", output_index=index, item_id=item["id"])
    yield stream.event("response.output_item.done", output_index=index, item=item)


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    return {**item, "status": "in_progress", "action": {"type": "search", "query": ""}}


def check_hosted(body: dict[str, Any], options: Options) -> None:
    """Raise `Refusal` for a web search that this server does not have, and for a choice among tools that are not."""
    tools = body.get("tools") or []
    if any(tool["type"].startswith("web_search") for tool in tools) and "web_search" in options.refuse:
        raise Refusal(f"Hosted tool 'web_search' is not supported with {body['model']}.", param="tools")
    choice = body.get("tool_choice")
    if not isinstance(choice, dict):
        return
    if "tool_choice" in options.refuse:
        raise Refusal("Unknown parameter: 'tool_choice'.", code="unknown_parameter", param="tool_choice")
    known = [(tool["type"], tool.get("name")) for tool in tools]
    if choice.get("type") != "allowed_tools" or choice.get("mode") not in ("auto", "required"):
        raise Refusal(f"Invalid value: '{choice.get('type')}'.", code="invalid_value", param="tool_choice.type")
    for tool in choice["tools"]:
        if (tool["type"], tool.get("name")) not in known:
            raise Refusal(f"Tool choice '{tool.get('name')}' not found in 'tools' parameter.", param="tool_choice")
