"""Bodies that come packed: undone in pieces of a bounded size, however small the packed bytes are."""

from __future__ import annotations

import zlib

from tenuto.model.exchange import BrokenError, UnusableError

PIECE_BYTES = 1_000_000
"""The most that one `take` returns."""
ACCEPTED = "gzip"
"""What a request asks for at most, for the header `Accept-Encoding`."""
_PACKED = frozenset({"gzip", "x-gzip", "deflate"})
_GZIP_OR_ZLIB = 32 + zlib.MAX_WBITS


class Unpacker:
    """`feed` takes bytes of a body, `take` gives what they mean. `coding` is the header `Content-Encoding`.

    Raises `UnusableError` for a coding that nobody asked for.
    """

    def __init__(self, coding: str) -> None:
        coding = coding.strip().lower()
        if coding not in _PACKED | {"identity", ""}:
            raise UnusableError(f"the answer is encoded as {coding!r}, which was not asked for")
        self._packed = zlib.decompressobj(_GZIP_OR_ZLIB) if coding in _PACKED else None
        self._waiting = b""
        self._goes_on = False
        """Whether the last piece was full, so that there may be more in what was fed."""

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; what was fed before has been taken."""
        self._waiting = data

    def take(self) -> bytes:
        """Return a piece, empty when more has to be fed first. Raises `BrokenError`."""
        data, self._waiting = self._waiting, b""
        if self._packed is None:
            return data
        if self._packed.eof or not (data or self._goes_on):
            return b""
        try:
            piece = self._packed.decompress(data, PIECE_BYTES)
        except zlib.error as error:
            raise BrokenError(f"the answer cannot be unpacked: {error}") from error
        self._waiting = self._packed.unconsumed_tail
        self._goes_on = len(piece) == PIECE_BYTES
        return piece
