"""What kind of image some bytes are, and how large, from their first bytes."""

from __future__ import annotations

import struct

import msgspec

MAX_IMAGE_BYTES = 3_750_000
"""The strictest provider takes 5 MB in base64."""


class ImageFacts(msgspec.Struct, frozen=True):
    """Media type, width and height in pixels (0: unknown)."""

    media_type: str
    width: int = 0
    height: int = 0


def image_facts(data: bytes) -> ImageFacts | None:
    """Return what image `data` is by its content, whatever the file is called; `None` for anything else."""
    try:
        if data.startswith(b"\x89PNG\r\n\x1a\n"):
            return ImageFacts("image/png", *struct.unpack(">II", data[16:24]))
        if data[:6] in {b"GIF87a", b"GIF89a"}:
            return ImageFacts("image/gif", *struct.unpack("<HH", data[6:10]))
        if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
            return ImageFacts("image/webp", *_webp_size(data))
        if data.startswith(b"\xff\xd8\xff"):
            return ImageFacts("image/jpeg", *_jpeg_size(data))
    except (struct.error, IndexError):
        return None
    return None


def _webp_size(data: bytes) -> tuple[int, int]:
    kind = data[12:16]
    if kind == b"VP8X":
        return int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1
    if kind == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    width, height = struct.unpack("<HH", data[26:30])
    return width & 0x3FFF, height & 0x3FFF


def _jpeg_size(data: bytes) -> tuple[int, int]:
    place = 2
    while place + 9 < len(data):
        if data[place] != 0xFF:
            place += 1
            continue
        marker = data[place + 1]
        if 0xC0 <= marker <= 0xCF and marker not in {0xC4, 0xC8, 0xCC}:
            height, width = struct.unpack(">HH", data[place + 5 : place + 9])
            return width, height
        if marker == 0xFF:
            place += 1
        elif marker == 0x01 or 0xD0 <= marker <= 0xD9:
            place += 2
        else:
            place += 2 + struct.unpack(">H", data[place + 2 : place + 4])[0]
    return 0, 0
