"""Bodies that come packed: whole, in order, and never more at once than a piece."""

from __future__ import annotations

import asyncio
import tracemalloc
import zlib
from contextlib import aclosing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.model.http.exchange import PIECE_BYTES, BrokenError, Unpacker, UnusableError
from tenuto.model.http.transport import MAX_OBJECT_BYTES, HttpTransport
from tenuto.protocol.model import ModelError
from tests.model.test_transport import endpoint
from tests.model.tiny_server import TinyServer, always, plain

WBITS = {"gzip": 31, "x-gzip": 31, "deflate": 15}
BOMB_MEGABYTES = 300


def packed(data: bytes, coding: str) -> bytes:
    pack = zlib.compressobj(wbits=WBITS[coding])
    return pack.compress(data) + pack.flush()


def unpack(pieces: list[bytes], coding: str) -> list[bytes]:
    unpacker, found = Unpacker(coding), list[bytes]()
    for piece in [*pieces, b""]:
        unpacker.feed(piece)
        while data := unpacker.take():
            found.append(data)
    return found


def bomb() -> bytes:
    pack = zlib.compressobj(9, wbits=31)
    block = b"0" * 1_000_000
    return b"".join([*(pack.compress(block) for _ in range(BOMB_MEGABYTES)), pack.flush()])


@given(
    st.lists(st.tuples(st.binary(min_size=1, max_size=20), st.integers(1, 300_000)), max_size=6),
    st.sampled_from([*WBITS, "identity", ""]),
    st.lists(st.integers(0, 5000), max_size=8),
)
def test_a8_every_byte_comes_in_pieces_of_a_bounded_size(runs: list[tuple[bytes, int]], coding: str, cuts: list[int]):
    data = b"".join(run * count for run, count in runs)[: 4 * PIECE_BYTES]
    sent = packed(data, coding) if coding in WBITS else data
    places = sorted({cut % (len(sent) + 1) for cut in cuts})
    pieces = [sent[a:b] for a, b in zip([0, *places], [*places, len(sent)], strict=True)]
    found = unpack(pieces, coding)
    assert b"".join(found) == data
    if coding in WBITS:
        assert max(map(len, found), default=0) <= PIECE_BYTES


def test_what_is_behind_the_end_is_left_out():
    assert b"".join(unpack([packed(b"hello", "gzip"), b"more", b"and more"], "gzip")) == b"hello"


def test_what_is_not_packed_so_is_broken_and_what_nobody_asked_for_cannot_be_used():
    with pytest.raises(BrokenError):
        unpack([b"this is no gzip"], "gzip")
    with pytest.raises(UnusableError):
        Unpacker("br")


@pytest.mark.parametrize("proxied", [False, True])
async def test_a8_a_bomb_takes_little_memory(monkeypatch: pytest.MonkeyPatch, proxied: bool):
    """300 MB as 300 KB: as a stream that nobody reads further than he likes, and as an object that is too large."""
    body = bomb()
    async with TinyServer(always(plain("200 OK", body, "Content-Encoding: gzip"))) as server:
        if proxied:
            monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{server.port}")
            monkeypatch.delenv("NO_PROXY", raising=False)
            monkeypatch.delenv("no_proxy", raising=False)
        base_url = "http://models.example/v1" if proxied else server.base_url
        transport = HttpTransport(endpoint(base_url))
        size = 0
        async with aclosing(transport.post_stream(f"{base_url}/x", {}, b"{}")) as chunks:
            tracemalloc.start()
            async for chunk in chunks:
                size += len(chunk)
                await asyncio.sleep(0)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
        assert size == BOMB_MEGABYTES * 1_000_000
        assert peak < 10 * PIECE_BYTES
        tracemalloc.start()
        with pytest.raises(ModelError, match="more than 32 MB"):
            await transport.get_json(f"{base_url}/models", {})
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert peak < 2 * MAX_OBJECT_BYTES
        await transport.close()
