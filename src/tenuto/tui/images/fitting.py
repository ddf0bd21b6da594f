"""Making an image one that a model takes: its format, its size in pixels and in bytes.

What fits goes as it is. Everything else is converted by whatever program for that there is; with none, the user is
told what to do.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tenuto.text.figures import format_bytes
from tenuto.tool.image import MAX_IMAGE_BYTES, ImageFacts, image_facts
from tenuto.tui.images.process import Which, find_program, run_helper

MAX_SIDE = 8_000
"""Pixels; providers refuse more."""
GOOD_SIDE = 2_000
"""Pixels that a converted image has at most: more is not looked at."""
MAX_FILE_BYTES = 100_000_000
CONVERT_SECONDS = 20.0

CONVERTERS: tuple[tuple[str, Callable[[str, str], Sequence[str]]], ...] = (
    ("magick", lambda source, target: ("magick", f"{source}[0]", *_MAGICK, target)),
    ("convert", lambda source, target: ("convert", f"{source}[0]", *_MAGICK, target)),
    ("gm", lambda source, target: ("gm", "convert", f"{source}[0]", *_MAGICK, target)),
    ("vipsthumbnail", lambda source, target: ("vipsthumbnail", source, "--size", f"{GOOD_SIDE}>", "-o", target)),
    ("sips", lambda source, target: ("sips", "-s", "format", "jpeg", "-Z", f"{GOOD_SIDE}", source, "--out", target)),
    ("ffmpeg", lambda source, target: ("ffmpeg", *_FFMPEG, "-i", source, "-vf", _SCALE, "-frames:v", "1", target)),
)
_MAGICK = ("-auto-orient", "-resize", f"{GOOD_SIDE}x{GOOD_SIDE}>", "-strip", "-quality", "85")
_FFMPEG = ("-nostdin", "-v", "error", "-y")
_SCALE = f"scale=w='min({GOOD_SIDE},iw)':h='min({GOOD_SIDE},ih)':force_original_aspect_ratio=decrease"


class ImageProblemError(Exception):
    """An image cannot be sent; the text says why, and what to do."""


async def read_image(path: Path, environ: Mapping[str, str], which: Which = find_program) -> bytes:
    """Return the image in a file, fit to be sent. Raises `ImageProblemError`, and `OSError` when it cannot be read."""
    size = (await asyncio.to_thread(path.stat)).st_size
    if size > MAX_FILE_BYTES:
        raise ImageProblemError(f"{path.name} has {format_bytes(size)}: too much for an image")
    return await fit_image(await asyncio.to_thread(path.read_bytes), path.name, environ, which)


async def fit_image(data: bytes, name: str, environ: Mapping[str, str], which: Which = find_program) -> bytes:
    """Return the image as it is when it fits, else a smaller one. Raises `ImageProblemError`."""
    facts = image_facts(data)
    if facts is not None and fits(data, facts):
        return data
    found = [make for program, make in CONVERTERS if which(program)]
    for make in found:
        converted = await _convert(data, make, environ)
        facts_after = image_facts(converted)
        if facts_after is not None and fits(converted, facts_after):
            return converted
    raise ImageProblemError(_explain(data, name, facts, tried=bool(found)))


def fits(data: bytes, facts: ImageFacts) -> bool:
    """Say whether every provider takes an image."""
    return len(data) <= MAX_IMAGE_BYTES and max(facts.width, facts.height) <= MAX_SIDE


async def _convert(data: bytes, make: Callable[[str, str], Sequence[str]], environ: Mapping[str, str]) -> bytes:
    import shutil
    import tempfile

    folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="tenuto-image-"))
    source, target = folder / "source", folder / "target.jpg"
    try:
        await asyncio.to_thread(source.write_bytes, data)
        await run_helper(make(str(source), str(target)), environ, CONVERT_SECONDS)
        with contextlib.suppress(FileNotFoundError):
            return await asyncio.to_thread(target.read_bytes)
        return b""
    finally:
        await asyncio.to_thread(shutil.rmtree, folder, True)


def _explain(data: bytes, name: str, facts: ImageFacts | None, *, tried: bool) -> str:
    shown = name or "The image"
    if facts is None:
        way = "it could not be converted" if tried else "with ImageMagick installed it would be converted"
        return f"{shown} is no PNG, JPEG, GIF or WebP image; {way}"
    if len(data) > MAX_IMAGE_BYTES:
        size = f"{format_bytes(len(data))}, at most {format_bytes(MAX_IMAGE_BYTES)}"
    else:
        size = f"{facts.width} x {facts.height} pixels, at most {MAX_SIDE} a side"
    way = "it could not be made smaller" if tried else "install ImageMagick, or make it smaller yourself"
    return f"{shown} is too large to send ({size}): {way}"
