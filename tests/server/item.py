"""One step of a conversation in normal form, the same for all protocols, and what all wires share."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, Literal


@dataclass(slots=True)
class Item:
    """A text of `system`, `user` or `assistant`, a `thinking`, a `call`, or a `result`. `images` counts pictures."""

    kind: Literal["system", "user", "assistant", "thinking", "call", "result"]
    text: str = ""
    call_id: str = ""
    name: str = ""
    arguments: str = ""
    is_error: bool = False
    images: int = 0


class Refusal(Exception):
    """A request that the real API would refuse."""

    def __init__(self, message: str, *, status: int = 400, code: str | None = None, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.code = code
        self.param = param


def without_marks(value: Any) -> Any:
    """Return the JSON value without any `cache_control`."""
    if isinstance(value, dict):
        return {key: without_marks(inner) for key, inner in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [without_marks(inner) for inner in value]
    return value


def canonical(value: Any) -> str:
    """Return the JSON text of a value, cache marks left out, key order kept."""
    return json.dumps(without_marks(value), ensure_ascii=False, separators=(",", ":"))


def wire_json(value: Any) -> str:
    """Return JSON as providers write it: characters as they are, halves of one as escapes."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return re.sub("[\ud800-\udfff]", lambda half: f"\\u{ord(half[0]):04x}", text)


def texts_of(content: Any) -> str:
    """Return the text of a content that is a string or a list of parts."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or [] if isinstance(part, dict))


def count_images(content: Any) -> int:
    """Count the image parts of a content."""
    if not isinstance(content, list):
        return 0
    return sum(isinstance(part, dict) and "image" in str(part.get("type", "")) for part in content)


def slices(text: str, size: int) -> list[str]:
    """Cut a text into pieces of `size` characters; nothing for an empty one."""
    return [text[start : start + size] for start in range(0, len(text), max(1, size))]
