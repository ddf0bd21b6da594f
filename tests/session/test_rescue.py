"""Whole entries in damaged lines are found, and the work grows with the line and not faster (reliability.md S3)."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.message import HistoryEvent
from tenuto.session.log import log
from tenuto.session.log import log as rescue
from tenuto.session.log.log import scan_log
from tenuto.session.log.record import DamagedLine, decode, encode
from tests.session.build import answer, result, user

PIECE = b'{"type":"user","seq":%d,"parts":[{"type":"text","text":"a \\"quoted\\" {text} [of] some \\\\ length"}]}'
INNER = b'{"type":"user","parts":[{"type":"text","text":"a message that was summarised"}]}'

SHAPES = {
    "CR for LF": lambda n: b"\r".join(PIECE % seq for seq in range(1, n)),
    "a torn compaction": lambda n: b'{"type":"compaction","seq":2,"replacement":[' + b",".join([INNER] * n),
    "beginnings alone": lambda n: b'[{"type":' * n,
    "whole and deep": lambda n: b'{"type":' * n + b"1" + b"}" * n,
    "deep in arrays": lambda n: b"[" * n + b'{"type":1},' * n + b"]" * n,
    "small objects": lambda n: b'[{"type":' + b'{"a":1},' * n,
    "small candidates": lambda n: b'[{"type":' + b'{"type":"x"},' * n,
    "glued": lambda n: b"".join(PIECE % seq for seq in range(1, n)),
    "closed wrongly": lambda n: b'{"type":[}' * n,
    "torn strings": lambda n: b'"{"type":' * n,
    "escaped quotes": lambda n: b'{"type":"' + b'a\\"' * n,
    "backslashes": lambda n: b'{"type":"' + b"\\" * n,
    "quotes": lambda n: b'{"type":' + b'"' * n,
    "NULs between": lambda n: b"\0".join(PIECE % seq for seq in range(1, n)),
    "one long text": lambda n: b'{"type":"user","seq":4,"parts":[{"type":"text","text":"' + b"z" * n * 20,
    "no beginning": lambda n: b'{"a":[' * n,
}


class Counting:
    """A pattern that counts the bytes that it looks at."""

    def __init__(self, pattern: re.Pattern[bytes], work: list[int]) -> None:
        self.pattern, self.work = pattern, work

    def search(self, line: bytes, position: int = 0) -> re.Match[bytes] | None:
        return self._count(line, position, self.pattern.search(line, position), len(line))

    def match(self, line: bytes, position: int) -> re.Match[bytes] | None:
        return self._count(line, position, self.pattern.match(line, position), position)

    def _count(self, line: bytes, position: int, found: re.Match[bytes] | None, missed: int) -> re.Match[bytes] | None:
        self.work[0] += 8 + (found.end() if found else missed) - position
        return found


def work_on(line: bytes, monkeypatch: pytest.MonkeyPatch) -> int:
    """Return how many bytes are looked at or parsed for a damaged line."""
    work = [0]
    real = log.decode

    def decode(data: bytes) -> HistoryEvent:
        work[0] += len(data)
        return real(data)

    with monkeypatch.context() as patch:
        patch.setattr(log, "decode", decode)
        for name in ("_START", "_PASSED"):
            patch.setattr(rescue, name, Counting(getattr(rescue, name), work))
        list(scan_log(io.BytesIO(line + b"\n")))
    return work[0]


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_s3_the_work_on_a_damaged_line_grows_with_its_length_alone(monkeypatch, shape):
    for count in (500, 8_000):
        line = shape(count)
        assert work_on(line, monkeypatch) <= 30 * len(line)


@given(st.binary(max_size=300), st.lists(st.sampled_from([b'{"type":', b"[", b"]", b"}", b'"', b"\\", INNER, b"{"])))
def test_s3_the_work_is_bounded_for_any_bytes(noise, pieces):
    line = b"".join([noise, *pieces]).replace(b"\n", b"")
    with pytest.MonkeyPatch.context() as patch:
        assert work_on(line, patch) <= 40 * len(line) + 40


ENTRIES = st.one_of(
    st.text(max_size=30).map(user),
    st.text(max_size=30).map(
        lambda text: answer(text, ("call-1",), provider_id=text) if False else answer(text, ("c",))
    ),
    st.text(max_size=30).map(lambda text: result("c", text)),
    st.sampled_from(['{"type":"user","seq":99}', "\\", '"', '{"', "a\\"]).map(user),
)


def line_of(entry: HistoryEvent, seq: int) -> bytes:
    import msgspec

    return encode(msgspec.structs.replace(entry, seq=seq))[1].rstrip(b"\n")


def is_entry(line: bytes) -> bool:
    try:
        decode(line)
    except DamagedLine:
        return False
    return True


@given(st.data())
def test_s3_every_whole_entry_behind_a_tear_at_any_byte_is_found(data):
    torn = line_of(data.draw(ENTRIES), 3)
    cut = data.draw(st.integers(0, len(torn) - 1))
    between = data.draw(st.sampled_from([b"", b"\0" * 7, b"\r", b"}", b'"', b"\xff\xfe"]))
    whole = [line_of(data.draw(ENTRIES), seq) for seq in range(5, 5 + data.draw(st.integers(1, 4)))]
    glue = data.draw(st.sampled_from([b"", b"\r", b"\0"]))
    line = torn[:cut] + between + glue.join(whole)
    if is_entry(torn[:cut] + between):  # a bracket behind the tear closes what is left: nobody could tell it from one
        whole.insert(0, torn[:cut] + between)
    found = [record.raw.strip() for one in scan_log(io.BytesIO(line + b"\n")) for record in one.records]
    assert found == whole


@given(st.lists(ENTRIES, min_size=1, max_size=4), st.integers(1, 60))
def test_s3_nothing_is_taken_for_an_entry_that_stands_in_one(entries, cut):
    """A message inside a torn compaction is none, unless its seq says that it came later."""
    inner = [line_of(entry, seq) for seq, entry in enumerate(entries, 1)]
    line = b'{"type":"compaction","seq":20,"first_kept_index":1,"replacement":[' + b",".join(inner) + b"],"
    before = b'{"type":"notice","seq":10,"text":"x"}\n'
    records = [record.entry.seq for one in scan_log(io.BytesIO(before + line + b'"usa\n')) for record in one.records]
    assert records == [10]
