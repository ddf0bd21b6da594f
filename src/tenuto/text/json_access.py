"""JSON with others: what we send always parses, what we receive is read even where it is not quite right (R-073)."""

from __future__ import annotations

import math
from typing import Any, cast

import msgspec

REPLACEMENT = "\ufffd"
MAX_QUOTED = 200
"""Characters of a server's words in an error."""


def clean_text(text: str) -> str:
    """Return `text` as valid Unicode without NUL: halves of a pair are joined, lone ones replaced."""
    if "\x00" in text:
        text = text.replace("\x00", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def clean_value(value: Any) -> Any:
    """Return a JSON value with every text in it cleaned, keys included."""
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, list):
        return [clean_value(item) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {clean_text(str(key)): clean_value(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def encode(value: Any) -> bytes:
    """Return `value` as JSON bytes that every strict parser accepts."""
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return msgspec.json.encode(clean_value(value))
    return msgspec.json.encode(clean_value(value)) if b"\\u0000" in data else data


def decode_object(data: bytes | str) -> dict[str, Any] | None:
    """Return the JSON object that `data` is, `None` when it is anything else. Lone surrogates do no harm."""
    try:
        value: Any = msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, UnicodeEncodeError):
        try:
            import json

            text = data if isinstance(data, str) else data.decode("utf-8", "replace")
            value = clean_value(json.loads(text))
        except (ValueError, RecursionError):
            return None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else None


def as_dict(value: Any) -> dict[str, Any]:
    """Return `value` if it is an object, else an empty one."""
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return `value` if it is an array, else an empty one."""
    return cast("list[Any]", value) if isinstance(value, list) else []


def as_text(value: Any) -> str:
    """Return `value` if it is a text, else an empty one."""
    return value if isinstance(value, str) else ""


def as_count(value: Any) -> int:
    """Return `value` if it is a number above zero, else 0; no count is infinite."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        return 0
    return max(0, int(value))
