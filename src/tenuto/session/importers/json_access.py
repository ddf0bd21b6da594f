"""Reading parsed JSON of strangers, and the report of what an import took along and what it left out.

Whatever a field holds, asking for it never raises. Pure.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Literal, cast

import msgspec

from tenuto.protocol.part import ContentPart, ImagePart, TextPart
from tenuto.protocol.usage import Usage
from tenuto.session.log.log import Damage
from tenuto.text.json_access import as_dict, as_list
from tenuto.text.writable import clean, to_json

MAX_LISTED = 20
"""Damaged lines that are listed; all of them are counted."""

Kind = Literal[
    "sidechain", "repeated", "orphan", "interrupted", "context", "unknown", "image", "unread_summary", "lost_parent"
]
PHRASES: dict[Kind, tuple[str, str]] = {
    "sidechain": ("line of a sub-agent left out", "lines of sub-agents left out"),
    "repeated": ("repeated line left out", "repeated lines left out"),
    "orphan": ("result without its call kept out of the view", "results without their calls kept out of the view"),
    "interrupted": ("call without a result marked as interrupted", "calls without results marked as interrupted"),
    "context": (
        "text that the other agent added kept out of the view",
        "texts that the other agent added kept out of the view",
    ),
    "unknown": ("piece of an unknown kind kept as it was", "pieces of unknown kinds kept as they were"),
    "image": ("image that could not be read", "images that could not be read"),
    "unread_summary": (
        "summary that only its provider can read; what it stood for is in the view again",
        "summaries that only their provider can read; what they stood for is in the view again",
    ),
    "lost_parent": ("entry whose place in the tree was lost", "entries whose places in the tree were lost"),
}


class Report(msgspec.Struct, kw_only=True):
    """Counts of one import. `damaged` is how many lines could not be read; `damages` are the first of them."""

    lines: int = 0
    prompts: int = 0
    answers: int = 0
    calls: int = 0
    compactions: int = 0
    branches: int = 0
    damaged: int = 0
    damages: list[Damage] = msgspec.field(default_factory=list[Damage])
    counts: dict[Kind, int] = msgspec.field(default_factory=dict[Kind, int])

    def add_damage(self, damage: Damage) -> None:
        """Count a damaged line."""
        self.damaged += 1
        if len(self.damages) < MAX_LISTED:
            self.damages.append(damage)

    def count(self, kind: Kind) -> None:
        """Count something that is not as it was in the source."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    @property
    def taken(self) -> str:
        """What was taken along, in a few words."""
        parts = [
            _number(self.prompts, "prompt", "prompts"),
            _number(self.answers, "answer", "answers"),
            _number(self.calls, "tool call", "tool calls"),
        ]
        if self.compactions:
            parts.append(_number(self.compactions, "compaction", "compactions"))
        if self.branches:
            parts.append(_number(self.branches, "branch", "branches"))
        return ", ".join(parts)

    @property
    def remarks(self) -> list[str]:
        """What is not as it was in the source, one line each."""
        found: list[str] = []
        if self.damaged:
            listed = "; ".join(str(damage) for damage in self.damages[:3])
            more = "; …" if self.damaged > 3 else ""
            found.append(f"{_number(self.damaged, 'damaged line', 'damaged lines')} skipped: {listed}{more}")
        for kind, (one, many) in PHRASES.items():
            if self.counts.get(kind):
                found.append(_number(self.counts[kind], one, many))
        return found


def _number(count: int, one: str, many: str) -> str:
    return f"{count:,} {one if count == 1 else many}"


Fields = dict[str, Any]
KeepImage = Callable[[bytes, str], ImagePart]
"""Stores an image's bytes of a media type and returns the part that stands for it."""

MAX_TOKENS = 1 << 50
MAX_SECONDS = 32_503_680_000.0
"""The year 3000; what is beyond is milliseconds."""
LOST_IMAGE = TextPart(text="[an image that could not be read]")
_IMAGE_TYPES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})


def field(fields: Fields, *names: str) -> Fields:
    """Return the object that lies under these names, one in the other; an empty one where there is none."""
    for name in names:
        fields = as_dict(fields.get(name))
    return fields


def text(fields: Fields, name: str) -> str:
    """Return a member that is a text, else an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""


def items(fields: Fields, name: str) -> list[Any]:
    """Return a member that is a list, else an empty one."""
    return as_list(fields.get(name))


def texts(fields: Fields, name: str) -> tuple[str, ...]:
    """Return the texts of a list."""
    return tuple(item for item in items(fields, name) if isinstance(item, str))


def tokens(fields: Fields, name: str) -> int:
    """Return a member that is a sensible count, else 0."""
    value = fields.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < MAX_TOKENS:
        return int(value)
    return 0


def cost(fields: Fields, name: str) -> float | None:
    """Return a member that is a sensible price in dollars, else `None`."""
    value = fields.get(name)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e9:
        return float(value)
    return None


def seconds(value: Any) -> float:
    """Return a time (ISO text, seconds or milliseconds since the epoch) as seconds since the epoch, 0 for none."""
    if isinstance(value, str):
        try:
            stamp = datetime.fromisoformat(value).timestamp()
        except (ValueError, OverflowError, OSError):
            return 0.0
    elif isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        stamp = value / 1000 if value > MAX_SECONDS else float(value)
    else:
        return 0.0
    return stamp if 0 < stamp < MAX_SECONDS else 0.0


def usage_or_none(usage: Usage) -> Usage | None:
    """Return the usage if it says anything."""
    return usage if usage.sent or usage.output else None


def raw_json(value: Any) -> msgspec.Raw:
    """Return a parsed value as the JSON that it stands for."""
    try:
        return msgspec.Raw(to_json(value))
    except (TypeError, ValueError, OverflowError, RecursionError):
        return msgspec.Raw(b"null")


def arguments_text(value: Any) -> str:
    """Return a call's arguments, an object or its JSON text, as JSON text; the codecs of requests check it again."""
    if isinstance(value, str):
        return value or "{}"
    if not isinstance(value, dict):
        return "{}" if value is None else bytes(raw_json({"value": value})).decode()
    return bytes(raw_json(value)).decode()


def data_image(url: str, keep_image: KeepImage) -> ImagePart | None:
    """Return the image of a `data:` URL, stored; `None` for any other URL and for what is no image."""
    head, comma, body = url.partition(",")
    if not comma or not head.startswith("data:") or not head.endswith(";base64"):
        return None
    return base64_image(body, head[5:-7], keep_image)


def base64_image(body: str, media_type: str, keep_image: KeepImage) -> ImagePart | None:
    """Return an image in base64, stored; `None` for what providers do not take as one."""
    kind = media_type.partition(";")[0].strip().lower().replace("image/jpg", "image/jpeg")
    if kind not in _IMAGE_TYPES:
        return None
    try:
        data = base64.b64decode(body, validate=True)
    except (binascii.Error, ValueError):
        return None
    return keep_image(data, kind) if data else None


def image_type(data: bytes) -> str:
    """Return the media type of an image by its first bytes; empty for what providers do not take as one."""
    if data.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if data.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if data[:6] in (b"GIF87a", b"GIF89a"):
        return "image/gif"
    return "image/webp" if data[:4] == b"RIFF" and data[8:12] == b"WEBP" else ""


def plain_text(content: Any) -> str:
    """Return what a content says, be it a text or a list of parts, each with a text or none."""
    if isinstance(content, str):
        return content
    return "\n".join(said for part in as_list(content) if (said := text(as_dict(part), "text"))).strip()


def plain_parts(value: str) -> tuple[ContentPart, ...]:
    """Return a text as parts; an empty one as none."""
    return (TextPart(text=value),) if value else ()


IsLine = Callable[[Fields], bool]
MAX_ATTEMPTS = 256
"""How often an object is looked for in one damaged line; a line of nothing but braces ends there."""


def read_lines(lines: Iterable[bytes], is_line: IsLine, report: Report) -> Iterator[Fields]:
    """Yield the objects of the lines. Raises only what reading the lines raises.

    `is_line` tells an object of the format from one that merely stands inside of a torn line.
    """
    for number, line in enumerate(lines, 1):
        report.lines = number
        fields = parse_object(line)
        if fields is not None:
            yield fields
            continue
        bare = line.strip()
        if not bare:
            continue
        reason = _reason(line)
        report.add_damage(Damage(line=number, size=len(line.rstrip(b"\n")), reason=reason))
        yield from _salvage(line, is_line)


def parse_object(line: bytes) -> Fields | None:
    """Return the object of a line, `None` when it holds none."""
    try:
        value: Any = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            value = clean(json.loads(line.decode("utf-8", "surrogatepass")))
        except (ValueError, RecursionError):
            return None
    return cast("Fields", value) if isinstance(value, dict) else None


def _reason(line: bytes) -> str:
    if b"\0" in line:
        return "NUL bytes"
    try:
        line.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return "invalid UTF-8"
    return "not a JSON object" if line.endswith(b"\n") else "cut off"


def _salvage(line: bytes, is_line: IsLine) -> Iterator[Fields]:
    text = line.decode("utf-8", "replace")
    parse = json.JSONDecoder().raw_decode
    place, attempts = text.find('{"'), 0
    while place >= 0 and attempts < MAX_ATTEMPTS:
        attempts += 1
        after = place + 1
        try:
            value, end = parse(text, place)
            value = clean(value)
        except (ValueError, RecursionError):
            value, end = None, after
        if isinstance(value, dict) and is_line(cast("Fields", value)):
            after = end
            yield cast("Fields", value)
        place = text.find('{"', after)
