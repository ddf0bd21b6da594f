"""Text that strangers wrote: framed as data, and watched when an address could carry something away. Pure.

A page that was read may tell the model to send on what it knows. What can leave by `fetch` is the address itself, so
after foreign text an address with many characters that nobody in the conversation has written asks, in every mode.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from urllib.parse import unquote_plus, urlsplit

from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    PageView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import searches_in, text_of
from tenuto.text.writable import tagged

PAGE_TAG = "web-page"
SERVER_TAG = "mcp-result"
"""Around what a tool of an MCP server answered."""
PROMPT_TAG = "mcp-prompt"
"""Around a prompt of an MCP server that was sent unread, because there is no editor to read it in."""
SERVER_TOOLS = "mcp_"
"""What the names of tools begin with that answer in the words of an MCP server."""
MOST_UNSEEN = 200
"""Characters of one address that may be new after foreign text was read."""
MOST_UNSEEN_TOGETHER = 1_000
"""The same of all addresses of one host in a session: many short ones carry as much as a long one."""
_PIECE = re.compile(r"[\w.~@:+-]+")
_WORD = 3
"""Shorter pieces stand in any text, and tell nothing."""


def frame(text: str, tag: str) -> str:
    """Return foreign text between tags that it cannot end itself, and without notes of the harness."""
    return tagged(tag, disarm_notes(text))


def is_foreign(message: Message) -> bool:
    """Whether a message holds text that a stranger wrote: somebody on the web, or an MCP server."""
    match message:
        case AssistantMessage():
            return bool(searches_in(message.parts))
        case ToolResultMessage():
            is_answer = message.name.startswith(SERVER_TOOLS) and not message.denied
            return is_answer or any(isinstance(view, PageView) for view in message.ui)
        case DeveloperMessage():  # a resource of a server, mentioned
            return f"<{SERVER_TAG}>" in message.text
        case UserMessage(origin="command"):
            return f"<{PROMPT_TAG}>" in text_of(message.parts)
        case _:
            return False


def disarm_notes(text: str) -> str:
    """Return text in which nothing looks like a note of the harness: those stand behind results, never in them."""
    return re.sub(r"<(?=\s*/?\s*harness-note)", r"<\\", text, flags=re.IGNORECASE) if "arness-note" in text else text


def count_unseen(url: str, seen: Sequence[str]) -> int:
    """Return how many characters of an address, its host aside, stand in none of the texts."""
    parts = urlsplit(url)
    given = unquote_plus(f"{parts.username or ''}:{parts.password or ''} {parts.path} {parts.query}")
    host = (parts.hostname or "").split(".")
    pieces = [piece for piece in _PIECE.findall(given) if len(piece) > _WORD or piece.isdigit()]
    sub_domains = [label for label in host[:-2] if len(label) > _WORD]
    return sum(len(piece) for piece in (*pieces, *sub_domains) if not any(piece in text for text in seen))
