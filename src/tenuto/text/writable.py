"""The one door to JSON for texts from outside: a name that is not UTF-8 has lone surrogates, which no encoder takes.

A path that is to be found again goes through `path_text`, which loses nothing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, cast

import msgspec

_encode = msgspec.json.Encoder().encode
_SCHEME = "file://"


def to_json(value: Any) -> bytes:
    """Return a value as one line of JSON, with lone surrogates replaced."""
    try:
        return _encode(value)
    except UnicodeError:
        return _encode(clean(value))


def clean(value: Any) -> Any:
    """Return `value` with every lone surrogate replaced and every raw block as one line of valid JSON.

    Halves of a pair that stand side by side become the character that they stand for. Works on structs, lists,
    tuples, dicts and plain values; what needs no change is returned as the same object.
    """
    if isinstance(value, str):
        return clean_text(value)
    if isinstance(value, msgspec.Raw):
        return _clean_raw(value)
    if isinstance(value, msgspec.Struct):
        old = {name: getattr(value, name) for name in value.__struct_fields__}
        new = {name: clean(item) for name, item in old.items()}
        changed = {name: item for name, item in new.items() if item is not old[name]}
        return msgspec.structs.replace(value, **changed) if changed else value
    if isinstance(value, (list, tuple)):
        items = cast("list[Any] | tuple[Any, ...]", value)
        cleaned = [clean(item) for item in items]
        if all(new is old for new, old in zip(cleaned, items, strict=True)):
            return items
        return type(items)(cleaned)
    if isinstance(value, dict):
        return {clean(key): clean(item) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def clean_text(text: str) -> str:
    """Return a text without lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def check_raw(line: bytes) -> None:
    """Raise `DecodeError` or `UnicodeError` if a raw block that was copied into a line breaks it."""
    if b"\n" in line:
        raise msgspec.DecodeError("a newline in a raw block")
    if not line.isascii():
        line.decode()
    msgspec.json.decode(line, type=msgspec.Raw)


def _clean_raw(raw: msgspec.Raw) -> msgspec.Raw:
    import json

    try:
        check_raw(bytes(raw))
    except (UnicodeError, msgspec.DecodeError):
        try:
            return msgspec.Raw(_encode(clean(json.loads(bytes(raw).decode("utf-8", "surrogatepass")))))
        except (ValueError, RecursionError):
            return msgspec.Raw(b"null")
    return raw


def path_text(path: Path) -> str:
    """Return a path as a text that can be written anywhere and read back by `text_path`.

    One that is not UTF-8 becomes a file URL, in which its bytes stand as they are; all others stay.
    """
    text = str(path)
    try:
        text.encode()
    except UnicodeEncodeError:
        from urllib.parse import quote_from_bytes

        return _SCHEME + quote_from_bytes(os.fsencode(clean_foreign(text)))
    return text


def clean_foreign(text: str) -> str:
    """Return a text in which only such surrogates are left as stand for a byte of a name."""
    return "".join(letter if not _is_foreign(letter) else "\ufffd" for letter in text)


def _is_foreign(letter: str) -> bool:
    return "\ud800" <= letter <= "\udfff" and not "\udc80" <= letter <= "\udcff"


def text_path(text: str) -> Path:
    """Return the path that `path_text` made a text of."""
    if not text.startswith(_SCHEME):
        return Path(text)
    from urllib.parse import unquote_to_bytes

    return Path(os.fsdecode(unquote_to_bytes(text[len(_SCHEME) :])))


def tagged(name: str, text: str) -> str:
    """Return `text` on lines of its own between `<name>` and `</name>`."""
    return f"<{name}>\n{keep_within(text, name)}\n</{name}>"


def keep_within(text: str, *names: str) -> str:
    """Return `text` with the closing tags of these names made harmless, however they are spelled.

    Any other text stays as it is.
    """
    for name in names:
        if "<" in text:
            text = re.sub(rf"<(?=\s*/\s*{re.escape(name)}\b)", r"<\\", text, flags=re.IGNORECASE)
    return text
