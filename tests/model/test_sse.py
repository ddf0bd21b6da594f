"""The reader of server-sent events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.wire.stream import EventReader, ServerEvent, is_event_stream
from tenuto.text.json_access import as_count

STREAM = (
    '\ufeff: a comment\n\nevent: first\ndata: {"a": "ä\u2028\u0085\x0b👋"}\n\n'
    "data:one\ndata: two\nid: 7\nretry: 100\n\n"
    "event: empty\n\n:keep-alive\n\ndata\n\ndata: last\n\ndata: cut off"
).encode()
EVENTS = [
    ServerEvent("first", '{"a": "ä\u2028\u0085\x0b👋"}'.encode()),
    ServerEvent("", b"one\ntwo"),
    ServerEvent("", b""),
    ServerEvent("", b"last"),
]


def read(chunks: list[bytes]) -> list[ServerEvent]:
    reader = EventReader()
    return [event for chunk in chunks for event in reader.feed(chunk)]


def split(stream: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({place % (len(stream) + 1) for place in places})
    starts = [0, *ends]
    return [stream[start:end] for start, end in zip(starts, [*ends, len(stream)], strict=True)]


@given(st.lists(st.integers(min_value=0, max_value=500), max_size=20), st.sampled_from([b"\n", b"\r", b"\r\n"]))
def test_events_are_the_same_wherever_the_chunks_end(places: list[int], line_end: bytes):
    stream = STREAM.replace(b"\n", line_end)
    assert read(split(stream, places)) == EVENTS


def test_every_byte_alone():
    for line_end in (b"\n", b"\r", b"\r\n"):
        stream = STREAM.replace(b"\n", line_end)
        assert read([bytes([byte]) for byte in stream]) == EVENTS


def test_an_event_that_nothing_closes_is_none():
    assert read([b"data: half\n"]) == []


def test_the_name_does_not_stick_to_the_next_event():
    assert read([b"event: a\ndata: 1\n\ndata: 2\n\n"]) == [ServerEvent("a", b"1"), ServerEvent("", b"2")]


def test_one_line_of_megabytes_arrives_whole():
    text = b"x" * 3_000_000
    stream = b"data: " + text + b"\n\n"
    assert read([stream[place : place + 1000] for place in range(0, len(stream), 1000)]) == [ServerEvent("", text)]


@pytest.mark.parametrize(
    ("opening", "verdict"),
    [
        (b"data: x", True),
        (b"\xef\xbb\xbf: hello\n\nmeta: 1\nevent:a", True),
        (b"data\n", True),
        (b"", None),
        (b"\xef\xbb", None),
        (b"da", None),
        (b"data", None),
        (b": comment", None),
        (b"meta: 1\n", None),
        (b"<", False),
        (b"\n\n  {", False),
        (b"Not Found", False),
        (b": comment\n<html>", False),
        ("找不到".encode(), False),
    ],
)
def test_a3_what_a_body_is_shows_in_its_first_lines(opening: bytes, verdict: bool | None):
    assert is_event_stream(opening) is verdict
    assert is_event_stream(STREAM)


@given(st.binary(max_size=60), st.binary(max_size=60))
def test_a3_a_verdict_on_a_body_stays(opening: bytes, more: bytes):
    verdict = is_event_stream(opening)
    assert verdict is None or is_event_stream(opening + more) is verdict


@pytest.mark.parametrize("count", [float("inf"), float("nan"), -1, True, "7", None])
def test_what_is_no_count_is_none(count: object):
    assert as_count(count) == 0
