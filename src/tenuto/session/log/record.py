"""The codec of `events.jsonl`: one entry, one line of JSON (DESIGN sections 2 and 3).

Writing never fails on what a text holds: lone surrogates are replaced (R-073), broken raw blocks become null. Reading
keeps what it can: an entry of a type that this version does not know stays as its line, a field of a newer version
that does not fit is left out of the entry (and stays in the file).
"""

from __future__ import annotations

import functools
from typing import Any, cast

import msgspec

from tenuto.guard.secrets import KNOWN
from tenuto.protocol.entry import Entry, ExtensionEntry, HeaderEntry, UnknownEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, KnownEntry
from tenuto.text.writable import check_raw, clean

_MOST_REPAIRS = 64
_WITH_RAW = (AssistantMessage, CompactionEntry, ExtensionEntry)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""What an editor may put before the first line."""
_encode = msgspec.json.Encoder().encode


class DamagedLine(ValueError):  # noqa: N818 (it says what the line is)
    """A line that holds no entry; the text says why in a few words."""


@functools.cache
def decoder() -> msgspec.json.Decoder[KnownEntry]:
    """Return the one decoder of entries; made at first use because it looks at every type."""
    return msgspec.json.Decoder(KnownEntry)


@functools.cache
def known_types() -> frozenset[str]:
    """Return the `type` names that this version knows."""
    kinds = cast("tuple[type[Entry], ...]", KnownEntry.__args__)
    return frozenset(str(kind.__struct_config__.tag) for kind in kinds)


def encode(entry: HistoryEvent) -> tuple[HistoryEvent, bytes]:
    """Return the entry as it will be read back, and its line with the newline.

    The entry is the same object unless a text or a raw block in it had to be made writable, or held a known secret.
    """
    try:
        line = _encode(entry)
        if isinstance(entry, _WITH_RAW):
            check_raw(line)
    except (UnicodeError, msgspec.DecodeError):
        entry = clean(entry)
        line = _encode(entry)
    masked = KNOWN.mask_bytes(line)
    if masked is not line:
        entry, line = decode(masked), masked
    return entry, line + b"\n"


def decode(line: bytes) -> HistoryEvent:
    """Return the entry of one line (with or without its newline).

    Raises `DamagedLine` when the line holds none. An entry other than the header without a `seq` counts as damaged,
    because nothing can refer to it.
    """
    try:
        entry = decoder().decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        try:
            entry = _decode_leniently(line.removeprefix(_BYTE_ORDER_MARK))
        except RecursionError:
            raise DamagedLine("nested too deeply") from None
    if entry.seq < 1 and not isinstance(entry, HeaderEntry):
        raise DamagedLine("an entry without a seq")
    return entry


def _decode_leniently(line: bytes) -> HistoryEvent:
    """Read a line that the strict decoder refused: escaped surrogates, newer types, fields that do not fit."""
    import json

    if b"\0" in line:
        raise DamagedLine("NUL bytes")
    try:
        fields: Any = json.loads(line.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        raise DamagedLine("invalid UTF-8") from None
    except (ValueError, RecursionError):
        raise DamagedLine("not valid JSON") from None
    return from_fields(fields, line)


def from_fields(fields: Any, line: bytes) -> HistoryEvent:
    """Return the entry that an already parsed object stands for; `line` is its raw text.

    Raises `DamagedLine` when it is no entry.
    """
    if not isinstance(fields, dict):
        raise DamagedLine("not an object")
    members = cast("dict[str, Any]", clean(fields))
    kind = members.get("type")
    if not isinstance(kind, str):
        raise DamagedLine("an object without a type")
    if kind in known_types():
        for _ in range(_MOST_REPAIRS):
            try:
                return decoder().decode(_encode(members))
            except msgspec.ValidationError as error:
                if not _drop_misfit(members, str(error)):
                    break
    seq, ts = members.get("seq"), members.get("ts")
    return UnknownEntry(
        kind=kind,
        raw=line.strip(),
        seq=seq if isinstance(seq, int) else 0,
        ts=float(ts) if isinstance(ts, (int, float)) else 0.0,
    )


def _drop_misfit(members: dict[str, Any], message: str) -> bool:
    """Take out the member, or the one element of a list, that the decoder's message points to."""
    import re

    found = re.search(r"`\$\.(\w+)(?:\[(\d+)\])?", message)
    if found is None or found[1] not in members or found[1] in ("type", "seq"):
        return False
    value: Any = members[found[1]]
    if found[2] is not None and isinstance(value, list) and int(found[2]) < len(cast("list[Any]", value)):
        del value[int(found[2])]
    else:
        del members[found[1]]
    return True
