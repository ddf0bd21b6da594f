"""Images for tests: real PNG files of any size."""

from __future__ import annotations

import os
import struct
import zlib


def png(width: int = 4, height: int = 3, *, noise: int = 0) -> bytes:
    """Return a picture; `noise` is bytes that make the file larger without being seen."""

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    pixels = b"".join(b"\0" + b"\x80\x10\x20" * width for _ in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    extra = chunk(b"teNt", os.urandom(noise)) if noise else b""
    body = chunk(b"IDAT", zlib.compress(pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + extra + body + chunk(b"IEND", b"")
