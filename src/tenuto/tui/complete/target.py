"""Which word of a draft asks for completion: `/command` at the start, `@path` anywhere. Pure."""

from __future__ import annotations

import re
from typing import Literal

from msgspec import Struct

from tenuto.command.registry import find_command

WORD_LIMIT = 1_000
"""Characters before the cursor that are looked at."""


_ARGUMENT = re.compile(r"/([A-Za-z?][\w-]*)[ \t]+(.*)\Z")


class Target(Struct, frozen=True):
    """The characters `start` to `end` of a draft, and what to look for there (without `/`, `@` or quotes).

    An "argument" stands behind the `command` of that name.
    """

    kind: Literal["command", "argument", "path"]
    query: str
    start: int
    end: int
    command: str = ""


def find_target(text: str, cursor: int) -> Target | None:
    """Return what the word at the cursor asks for, `None` when it asks for nothing."""
    before = text[:cursor]
    if before.startswith("/") and not any(character.isspace() for character in before[:WORD_LIMIT]):
        if len(before) > WORD_LIMIT or "/" in before[1:]:
            return None
        return Target("command", before[1:], 0, _word_end(text, cursor))
    argument = _ARGUMENT.match(before)
    if argument is not None and argument[2] and len(before) <= WORD_LIMIT:
        command = find_command(argument[1])
        if command is not None and command.completes:
            end = text.find("\n", cursor)
            return Target("argument", argument[2], argument.start(2), len(text) if end < 0 else end, command.name)
    at = before.rfind("@", max(0, cursor - WORD_LIMIT))
    if at < 0 or (at > 0 and not before[at - 1].isspace() and before[at - 1] not in "([{\"'"):
        return None
    query = before[at + 1 :]
    if query.startswith('"'):
        if '"' in query[1:] or "\n" in query:
            return None
        end = cursor + 1 if text[cursor : cursor + 1] == '"' else cursor
        return Target("path", query[1:], at, end)
    if any(character.isspace() for character in query):
        return None
    return Target("path", query, at, _word_end(text, cursor))


def _word_end(text: str, cursor: int) -> int:
    end = cursor
    while end < len(text) and not text[end].isspace():
        end += 1
    return end


def quote_path(path: str) -> str:
    """Return `@path` as it stands in a draft: in quotes when it has spaces."""
    return f'@"{path}"' if any(character.isspace() for character in path) else f"@{path}"
