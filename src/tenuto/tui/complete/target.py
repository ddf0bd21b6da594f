"""Which word of a draft asks for completion: `/command` at the start, `@path` anywhere. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

WORD_LIMIT = 1_000
"""Characters before the cursor that are looked at."""


@dataclass(frozen=True, slots=True)
class Target:
    """The characters `start` to `end` of a draft, and what to look for there (without `/`, `@` or quotes)."""

    kind: Literal["command", "path"]
    query: str
    start: int
    end: int


def find_target(text: str, cursor: int) -> Target | None:
    """Return what the word at the cursor asks for, `None` when it asks for nothing."""
    before = text[:cursor]
    if before.startswith("/") and not any(character.isspace() for character in before[:WORD_LIMIT]):
        if len(before) > WORD_LIMIT or "/" in before[1:]:
            return None
        return Target("command", before[1:], 0, _word_end(text, cursor))
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
