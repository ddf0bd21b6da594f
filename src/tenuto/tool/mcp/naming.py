"""The names under which a model calls the tools of servers: `mcp__server__tool`, at most 64 characters, each once.

Pure, and independent of the order in which servers answer: a name depends on its own server and its tools alone.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

from tenuto.guard.subject import MCP_PREFIX

JOINT = "__"
MOST_CHARS = 64
_SERVER_CHARS = 24
_DIGEST_CHARS = 8
_UNSAFE = re.compile(r"[^A-Za-z0-9_-]+")


def server_word(name: str) -> str:
    """Return a server's name as a part of its tools' names: what no provider refuses, and without a joint in it."""
    word = re.sub(r"_{2,}", "_", _UNSAFE.sub("_", name)).strip("_")
    return word if word == name and len(word) <= _SERVER_CHARS else _marked(word, name, _SERVER_CHARS)


def tool_names(server: str, tools: Iterable[str]) -> dict[str, str]:
    """Return the public name of each tool of a server, and which of its tools that is. A name twice is one tool."""
    head = f"{MCP_PREFIX}{server_word(server)}{JOINT}"
    most = MOST_CHARS - len(head)
    named: dict[str, str] = {}
    for tool in dict.fromkeys(tools):
        word = _UNSAFE.sub("_", tool)
        is_plain = word == tool and 0 < len(word) <= most
        named[head + (word if is_plain else _marked(word, tool, most))] = tool
    return named


def server_prefix(server: str) -> str:
    """Return what the public names of a server's tools begin with; as a rule's tool it means all of them."""
    return f"{MCP_PREFIX}{server_word(server)}"


def server_of(public: str) -> str:
    """Return the server's part of a public name, empty for a name of another kind."""
    if not public.startswith(MCP_PREFIX):
        return ""
    return public.removeprefix(MCP_PREFIX).partition(JOINT)[0]


def _marked(word: str, whole: str, most: int) -> str:
    """Return a word that was changed or is too long, with a mark that keeps it apart from others like it."""
    digest = hashlib.sha256(whole.encode("utf-8", "surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    return f"{word[: most - _DIGEST_CHARS - 1].rstrip('_')}-{digest}".lstrip("-")
