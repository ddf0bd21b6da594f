"""What a provider's error says: every message and code in it, however deeply it is wrapped (R-018).

Gateways put the provider's own error into theirs: as an object, as JSON in a string (OpenRouter `metadata.raw`), or as
JSON at the end of a sentence (LiteLLM).
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, cast

from tenuto.model.error_grammar import normal

MAX_DEPTH = 24
MAX_OPENINGS = 20
MAX_SHOWN = 500
_TAGS = re.compile(r"<(script|style)\b.*?</\1>|<[^>]+>", re.IGNORECASE | re.DOTALL)
_MESSAGE_KEYS = (
    "message",
    "detail",
    "error_message",
    "msg",
    "reason",
    "title",
    "error_msg",
    "description",
    "status_msg",
)
_CODE_KEYS = ("code", "type", "status", "error_code", "reason")
_INNER_KEYS = (
    "error",
    "errors",
    "metadata",
    "raw",
    "detail",
    "details",
    "response",
    "body",
    "cause",
    "inner_error",
    "base_resp",
)
_LABELS = frozenset({"error", "errors"})


@dataclass(slots=True)
class Said:
    """What was found: messages from the outermost to the innermost, codes in lower case, token numbers, a status.

    `param` is the field of the request that an error object names, or the place that a validator gives.
    """

    messages: list[str] = field(default_factory=list)
    codes: set[str] = field(default_factory=set)
    status: int | None = None
    observed: int | None = None
    limit: int | None = None
    retry_after: float | None = None
    param: str = ""

    @property
    def all_text(self) -> str:
        """Everything in one text, a line each, in the form that patterns and grammar look at."""
        return "\n".join(normal(text) for text in [*self.messages, *sorted(self.codes)])

    @property
    def shown(self) -> str:
        """The innermost message on one line, bounded: what a user should read."""
        best = next((text for text in reversed(self.messages) if " " in text), "")
        best = best or (self.messages[-1] if self.messages else "") or ", ".join(sorted(self.codes))
        line = " ".join(best.split())
        return line if len(line) <= MAX_SHOWN else line[: MAX_SHOWN - 1] + "…"


def read_error(text: str) -> Said:
    """Return what an error body, or any text that holds one, says."""
    said = Said()
    _read_text(text, said, 0)
    return said


def read_error_object(value: Any) -> Said:
    """Return what an error that came as a JSON value says."""
    said = Said()
    _read_value(value, said, 0)
    return said


def _read_text(text: str, said: Said, depth: int) -> None:
    text = text.strip()
    if not text or depth > MAX_DEPTH:
        return
    value = _embedded(text)
    if value is None:
        if text.startswith("<"):
            text = " ".join(_TAGS.sub(" ", text).split())
        _add_message(text, said)
        return
    found, start, end = value
    around = f"{text[:start].rstrip(' -:b' + chr(39) + chr(34))} {text[end:].strip(chr(39) + chr(34))}".strip()
    if len(around) > 2:
        _add_message(around, said)
    _read_value(found, said, depth + 1)


def _embedded(text: str) -> tuple[Any, int, int] | None:
    """Return the JSON object or array in `text` and its place; only what looks like an error is taken."""
    decoder = json.JSONDecoder(strict=False)
    for opening in islice(re.finditer(r'[{\[](?=\s*["{\[])', text), MAX_OPENINGS):
        try:
            value, end = decoder.raw_decode(text, opening.start())
        except (ValueError, RecursionError):
            continue
        return value, opening.start(), end
    return None


def _read_value(value: Any, said: Said, depth: int) -> None:
    if depth > MAX_DEPTH:
        return
    if isinstance(value, str):
        _read_text(value, said, depth + 1)
    elif isinstance(value, list):
        for item in cast("list[Any]", value)[:10]:
            _read_value(item, said, depth + 1)
    elif isinstance(value, dict):
        _read_object(cast("dict[str, Any]", value), said, depth)


def _read_object(value: dict[str, Any], said: Said, depth: int) -> None:
    for key in _CODE_KEYS:
        code = value.get(key)
        if isinstance(code, str) and code and " " not in code and code.lower() not in _LABELS:
            said.codes.add(code.lower())
            if code.isdecimal():
                code = int(code)
        if isinstance(code, int) and 400 <= code < 600:
            said.status = code
    said.observed = _number(value.get("n_prompt_tokens")) or said.observed
    said.limit = _number(value.get("n_ctx")) or said.limit
    delay = value.get("retryDelay") or value.get("retry_after_seconds")
    if isinstance(delay, (str, int, float)):
        said.retry_after = _seconds(str(delay)) or said.retry_after
    for key in _MESSAGE_KEYS:
        if isinstance(value.get(key), str):
            _read_text(value[key], said, depth + 1)
    param = value.get("param")
    if isinstance(param, str) and " " in param:  # some gateways put the sentence there
        _read_text(param, said, depth + 1)
    elif isinstance(param, str):
        said.param = param or said.param
    said.param = _place(value.get("loc")) or said.param
    for key in _INNER_KEYS:
        inner = value.get(key)
        if isinstance(inner, (dict, list)) or (isinstance(inner, str) and key not in _MESSAGE_KEYS):
            _read_value(inner, said, depth + 1)


def _place(loc: Any) -> str:
    """Return the place of a validator's complaint: `["body", "stream_options"]` is `stream_options`."""
    if not isinstance(loc, list):
        return ""
    steps = [str(step) for step in cast("list[Any]", loc)]
    return ".".join(steps[1:] if steps[:1] == ["body"] else steps)


def _add_message(text: str, said: Said) -> None:
    text = text.strip()
    if text and text not in said.messages:
        said.messages.append(text)


def _number(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _seconds(text: str) -> float | None:
    try:
        return float(text.strip().removesuffix("s"))
    except ValueError:
        return None
