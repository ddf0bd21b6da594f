"""Mentions of files in a prompt: how `@path` is written, so that it is read as that path."""

from __future__ import annotations

import re
from collections.abc import Iterator

MENTION = re.compile(r"(?:^|(?<=[\s(\[{\"']))@(?:\"([^\"\n]+)\"|([^\s\"]+))")
"""A mention in a text: what stands in quotes, or the word behind the `@`."""
CLOSING = ".,;:!?)]}'\"…"
"""What may end a sentence and not the mention in it, unless that stands in quotes."""


def write_mention(path: str) -> str:
    """Return `@path`: in quotes where spaces, or an end as sentences have it, would be read otherwise."""
    is_bare = path[-1:] not in CLOSING and not any(character.isspace() for character in path)
    return f"@{path}" if is_bare else f'@"{path}"'


def is_mentionable(path: str) -> bool:
    """Whether a mention can name the path: no quotes, no line break, no escape sequence."""
    return path.isprintable() and '"' not in path


def find_written(text: str) -> Iterator[tuple[str, bool]]:
    """Yield what stands behind each `@`, and whether in quotes."""
    for match in MENTION.finditer(text):
        yield match[1] or match[2], bool(match[1])
