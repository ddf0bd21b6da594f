"""How a scripted server counts tokens.

`WORDS` counts as tokenizers do: words, digits, marks and scripts each at their own price, roughly that of the byte pair
encodings of today (a common word is one token, digits go in threes, wide scripts cost nearly one a character, what is
not made of words is cut every other character). What is counted is what a model reads, not the JSON around it.
`CHARACTERS` is a quarter of the characters of the JSON: round numbers for tests that are about something else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from tenuto.model.json_access import as_dict, as_list

IMAGE_TOKENS = 1_200
FRAME = 4
"""What role and separators of one item cost."""
CALL = 8
"""What a call costs beside its arguments."""
_PIECES = re.compile(r" ?[A-Za-z]+| ?[^\W\d_A-Za-z]+|\d{1,3}| ?[^\s\w]+|_+|\s*[\r\n]+|\s+")
_WORD_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]")
_VOWELS = frozenset("aeiouyAEIOUY")
_UNREAD = frozenset({"type", "role", "id", "call_id", "tool_use_id", "tool_call_id", "signature"}) | frozenset(
    {"encrypted_content", "status", "cache_control", "phase", "detail"}
)
_IMAGES = frozenset({"image", "image_url", "input_image"})


def count_text(text: str) -> int:
    """Return the tokens of a text."""
    return sum(_count_piece(piece) for piece in _PIECES.findall(text))


@lru_cache(maxsize=20_000)
def _count_piece(piece: str) -> int:
    bare = piece.strip()
    if not bare:
        return 1
    if bare.isascii() and bare.isalpha():
        return sum(_count_word(part) for part in _WORD_PARTS.findall(bare))
    if bare[0].isdecimal():
        return 1
    if bare[0].isalpha():
        wide = len(_WIDE.findall(bare))
        return max(1, -(-wide * 4 // 5) + -(-(len(bare) - wide) * 2 // 5))
    wide = sum(ord(character) > 0xFFFF for character in bare)
    narrow = len(bare) - wide
    return 2 * wide + (-(-narrow // 8) if len(set(bare)) == 1 else -(-narrow // 2))


def _count_word(word: str) -> int:
    length = len(word)
    if length > 2 and not _VOWELS.intersection(word):
        return -(-length // 2)
    if word.isupper():
        return -(-length // 3)
    return 1 if length <= 8 else -(-length // 6)


@lru_cache(maxsize=8_192)
def count_item(item: str) -> int:
    """Return the tokens of one prefix item: the JSON of a tool or of a block, maybe with a role before it."""
    start = next((place for place, character in enumerate(item) if character in '{["'), None)
    try:
        value = json.loads(item[start:]) if start is not None else item
    except ValueError:
        value = item
    if isinstance(value, dict) and ("parameters" in value or "input_schema" in value or "function" in value):
        return CALL + count_text(item)
    return FRAME + _count_value(value)


def _count_value(value: Any) -> int:
    match value:
        case str():
            return count_text(value)
        case list():
            return sum(map(_count_value, as_list(value)))
        case dict():
            return _count_object(as_dict(value))
        case _:
            return 1 if value else 0


def _count_object(value: dict[str, Any]) -> int:
    if value.get("type") in _IMAGES:
        return min(IMAGE_TOKENS, len(json.dumps(value)) // 4)
    if value.get("type") == "compaction" and value.get("encrypted_content"):
        return len(value["encrypted_content"]) * 3 // 16  # base64 of a text
    if value.get("type") == "tool_use":
        return CALL + count_text(json.dumps(value["input"], ensure_ascii=False))
    if value.get("type") in {"function", "function_call"}:
        return CALL + count_text(value.get("function", value)["arguments"])
    return sum(_count_value(inner) for key, inner in value.items() if key not in _UNREAD)


@dataclass(frozen=True, slots=True)
class Counter:
    """One way of counting: the items of a prompt together, and a text of an answer."""

    prompt: Callable[[Iterable[str]], int]
    text: Callable[[str], int]


def _quarter(items: Iterable[str]) -> int:
    """Return characters / 4, at most 1 200 tokens for an item with an image."""
    most = 4 * IMAGE_TOKENS
    return sum(min(len(item), most) if '"base64' in item or "data:image" in item else len(item) for item in items) // 4


WORDS = Counter(lambda items: sum(map(count_item, items)), count_text)
CHARACTERS = Counter(_quarter, lambda text: len(text) // 4)
