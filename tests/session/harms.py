"""Sixty and more ways in which a log can be damaged: named functions from its whole lines to bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

Harm = Callable[[list[bytes]], bytes]
LATE = 900
"""A seq that no line of the log has."""


def _joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def _at(place: float, what: Callable[[bytes], bytes]) -> Harm:
    """Change the line at a place (0 the first, 1 the last)."""

    def harm(lines: list[bytes]) -> bytes:
        number = round(place * (len(lines) - 1))
        return _joined([*lines[:number], what(lines[number]), *lines[number + 1 :]])

    return harm


def _insert(what: bytes, place: float = 0.5) -> Harm:
    def harm(lines: list[bytes]) -> bytes:
        number = round(place * len(lines))
        return _joined(lines[:number]) + what + _joined(lines[number:])

    return harm


def _after(what: bytes) -> Harm:
    return lambda lines: _joined(lines) + what


def _entry(kind: str, seq: Any = LATE, **fields: Any) -> bytes:
    return json.dumps({"type": kind, "seq": seq, "ts": 1.0, **fields}).encode() + b"\n"


def _with(**fields: Any) -> Callable[[bytes], bytes]:
    return lambda line: json.dumps({**json.loads(line), **fields}).encode()


def _without(*names: str) -> Callable[[bytes], bytes]:
    return lambda line: json.dumps({name: v for name, v in json.loads(line).items() if name not in names}).encode()


def _half(line: bytes) -> bytes:
    return line[: len(line) // 2]


def _seqs(change: Callable[[int], Any]) -> Harm:
    def harm(lines: list[bytes]) -> bytes:
        fields = [json.loads(line) for line in lines]
        return _joined(
            [json.dumps({**one, "seq": change(one["seq"])} if "seq" in one else one).encode() for one in fields]
        )

    return harm


UNREADABLE: dict[str, Harm] = {
    "NULs of the same length": lambda lines: bytes(len(_joined(lines))),
    "UTF-16": lambda lines: _joined(lines).decode().encode("utf-16"),
    "UTF-16 without a mark": lambda lines: _joined(lines).decode().encode("utf-16-be"),
    "empty": lambda lines: b"",
    "newlines alone": lambda lines: b"\n" * 500,
    "one newline": lambda lines: b"\n",
    "garbage": lambda lines: bytes(byte ^ 0x5A for byte in _joined(lines)),
    "a page of HTML": lambda lines: b"<html><body>" + b"<p>gone</p>\n" * 40,
    "gzip": lambda lines: __import__("gzip").compress(_joined(lines)),
    "base64": lambda lines: __import__("base64").b64encode(_joined(lines)),
    "half of the header": lambda lines: _half(lines[0]),
    "foreign JSON": lambda lines: b'{"a":1}\n[1,2]\n"text"\n7\nnull\n',
}
"""Nothing of what was said can be read."""

TORN: dict[str, Harm] = {
    "last line cut in the middle": lambda lines: _joined(lines[:-1]) + _half(lines[-1]),
    "last line cut by a byte": lambda lines: _joined(lines)[:-2],
    "last line without its end": lambda lines: _joined(lines)[:-1],
    "last line one byte long": lambda lines: _joined(lines[:-1]) + b"{",
    "cut in the middle of a character": lambda lines: _joined(lines) + '{"type":"user","x":"ö'.encode()[:-1],
    "NULs at the end": _after(bytes(4096)),
    "NULs and a newline at the end": _after(bytes(4096) + b"\n"),
    "half a line in the middle": _at(0.5, _half),
    "first half of a line missing": _at(0.5, lambda line: line[len(line) // 2 :]),
    "two lines glued": lambda lines: _joined(lines).replace(lines[4] + b"\n", lines[4], 1),
    "all lines glued": lambda lines: b"".join(lines) + b"\n",
    "half a line glued to a whole one": lambda lines: _joined(lines[:5]) + _half(lines[5]) + _joined(lines[6:]),
    "NULs glued before a whole line": _insert(bytes(300)),
    "NULs in the place of a line": _at(0.5, lambda line: bytes(len(line))),
    "a block of NULs over line ends": lambda lines: _joined(lines[:4]) + bytes(512) + _joined(lines[6:]),
    "a torn compaction with messages": _insert(
        b'{"type":"compaction","seq":900,"replacement":[{"type":"user","parts":[]},{"type":"user","parts":[\n'
    ),
    "beginnings alone": _insert(b'[{"type":' * 3_000 + b"\n"),
    "a long torn line of small objects": _insert(b'[{"type":' + b'{"a":1},' * 20_000 + b"\n"),
    "a torn line of a megabyte": _after(
        b'{"type":"user","seq":900,"parts":[{"type":"text","text":"' + b"z" * 1_000_000
    ),
}

BYTES: dict[str, Harm] = {
    "invalid UTF-8 as a line": _insert(b"\xff\xfe\n"),
    "invalid UTF-8 in a line": _at(0.5, lambda line: line.replace(b"mark", b"m\xffrk")),
    "an overlong form": _insert(b'{"type":"user","seq":900,"parts":[{"type":"text","text":"\xc0\xaf"}]}\n'),
    "a lone surrogate, raw": _insert(b'{"type":"user","seq":900,"parts":[{"type":"text","text":"\xed\xa0\x80"}]}\n'),
    "a lone surrogate, escaped": _insert(b'{"type":"user","seq":900,"parts":[{"type":"text","text":"\\ud800"}]}\n'),
    "CRLF": lambda lines: _joined(lines).replace(b"\n", b"\r\n"),
    "CR for LF": lambda lines: _joined(lines).replace(b"\n", b"\r"),
    "blank lines": lambda lines: _joined(lines).replace(b"\n", b"\n\n  \n\t\n"),
    "a byte order mark": lambda lines: b"\xef\xbb\xbf" + _joined(lines),
    "a byte order mark in the middle": _at(0.5, lambda line: b"\xef\xbb\xbf" + line),
    "a NUL in a text": _at(0.5, lambda line: line.replace(b"mark", b"ma\0rk")),
    "a raw control character": _at(0.5, lambda line: line.replace(b"mark", b"ma\x1brk")),
    "spaces around a line": _at(0.5, lambda line: b"   " + line + b"   "),
    "100 000 brackets": _insert(b"[" * 100_000 + b"\n"),
    "1 000 levels": _insert(b'{"type":' * 1_000 + b"1" + b"}" * 1_000 + b"\n"),
}

ENTRIES: dict[str, Harm] = {
    "no header": lambda lines: _joined(lines[1:]),
    "foreign JSON before the header": lambda lines: b'{"type":"session","version":3,"id":"x"}\n' + _joined(lines),
    "two headers": lambda lines: _joined([lines[0], *lines]),
    "the header last": lambda lines: _joined([*lines[1:], lines[0]]),
    "an unknown type": _insert(_entry("hologram", depth=3)),
    "no type": _insert(b'{"seq":900}\n'),
    "no seq": _insert(b'{"type":"user","parts":[]}\n'),
    "a line twice": lambda lines: _joined([*lines[:5], lines[4], *lines[5:]]),
    "all lines twice": lambda lines: _joined([*lines, *lines]),
    "lines reversed": lambda lines: _joined([lines[0], *lines[:0:-1]]),
    "all seq the same": _seqs(lambda seq: 3),
    "seq huge": _after(_entry("notice", 2**53, text="x")),
    "seq of 63 bits": _after(_entry("notice", 2**63 - 1, text="x")),
    "seq of 200 bits": _insert(_entry("notice", 2**200, text="x")),
    "seq negative": _insert(_entry("notice", -5, text="x")),
    "seq a text": _insert(_entry("notice", "five", text="x")),
    "seq a fraction": _insert(_entry("notice", 1.5, text="x")),
    "seq zero": _insert(_entry("notice", 0, text="x")),
    "a field of another type": _at(0.5, _with(parts=7)),
    "ts a text": _at(0.5, _with(ts="yesterday")),
    "parts missing": _at(0.5, _without("parts")),
    "a branch to nowhere": _after(_entry("branch", parent=77_777)),
    "a branch to itself": _after(_entry("branch", parent=LATE)),
    "a branch below zero": _after(_entry("branch", parent=-3)),
    "a branch without a parent": _after(_entry("branch")),
    "a branch to a text": _after(_entry("branch", parent="root")),
    "branches in a circle": _after(_entry("branch", 900, parent=901) + _entry("branch", 901, parent=900)),
    "an undo of nothing": _after(_entry("undo", target=77_777)),
    "an undo of itself": _after(_entry("undo", target=LATE)),
    "an undo of a message": _after(_entry("undo", target=3)),
    "undos of each other": _after(_entry("undo", 900, target=901) + _entry("undo", 901, target=900)),
    "an undo without a target": _after(_entry("undo")),
    "a compaction that keeps what comes later": _after(
        _entry("compaction", summary="s", first_kept_index=99_999, replacement=[{"type": "system", "text": "s"}])
    ),
    "a compaction that keeps from below zero": _after(_entry("compaction", summary="s", first_kept_index=-1)),
    "a compaction of nothing": _after(_entry("compaction")),
    "a compaction with a bad replacement": _after(
        _entry("compaction", summary="s", first_kept_index=2, replacement=[{"type": "user"}, 5, {"type": "nonsense"}])
    ),
    "edits of what is not there": _after(_entry("view_edit", edits=[{"target": 5_555, "kind": "hidden", "text": ""}])),
    "edits of an unknown kind": _after(_entry("view_edit", edits=[{"target": 2, "kind": "eaten", "text": ""}])),
    "a result without a call": _insert(_entry("tool_result", call_id="none", name="read", parts=[])),
    "a queued text sent twice": _after(
        _entry("user", 900, parts=[], from_queued=1) + _entry("user", 901, parts=[], from_queued=1)
    ),
}
"""Entries that are JSON and make no sense; the rest of the log does."""

READABLE = {**TORN, **BYTES, **ENTRIES}
