"""From a paste to an image of the draft. Everything here runs beside the loop; what comes of it is an intent."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import os
import re
import shlex
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from msgspec import Struct

from tenuto.protocol.part import ImagePart
from tenuto.text.figures import format_bytes
from tenuto.tool.image import MAX_IMAGE_BYTES, ImageFacts, image_facts
from tenuto.tui.state.intents import ImageAttached, ImageRefused, Intent

SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".webp", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif")
MAX_CHARACTERS = 8_000
MAX_IMAGES = 20
_WINDOWS = re.compile(r"([A-Za-z]):[\\/]")


def dropped_images(text: str) -> list[Path]:
    """Return the images that a pasted text names; empty when it is anything else than whole paths of images.

    Paths are absolute, or begin with `~/` or `file://`; quoted, escaped, or as they are, one or several.
    """
    text = text.strip()
    if not text or len(text) > MAX_CHARACTERS or not text.lower().rstrip("'\"").endswith(SUFFIXES):
        return []
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    paths = [path for line in lines for path in _paths_of(line)]
    good = paths and len(paths) <= MAX_IMAGES and all(path.lower().endswith(SUFFIXES) for path in paths)
    found = [_local(path) for path in paths] if good else []
    return [path for path in found if path is not None] if None not in found else []


def _paths_of(line: str) -> list[str]:
    """Return the words of a line; a line that is one path with bare spaces is one word."""
    if _WINDOWS.match(line):
        return [line]
    bare = "\\" not in line and "'" not in line and '"' not in line
    whole = line.startswith(("/", "~/")) and not any(f"{suffix} " in line.lower() for suffix in SUFFIXES)
    if bare and whole:
        return [line]
    try:
        return shlex.split(line)
    except ValueError:
        return []


def _local(path: str) -> Path | None:
    """Return the path on this machine, `None` for what is none."""
    if path.startswith("file://"):
        parts = urlsplit(path)
        return Path(unquote(parts.path)) if parts.netloc in ("", "localhost") else None
    if drive := _WINDOWS.match(path):
        return Path(f"/mnt/{drive[1].lower()}", *re.split(r"[\\/]", path[3:]))
    if path.startswith("~/"):
        return Path(path).expanduser()
    return Path(path) if path.startswith("/") else None


TIMEOUT = 5.0
"""Seconds that a program has to answer."""


Which = Callable[[str], str | None]
"""What finds a program."""


def find_program(name: str) -> str | None:
    """Return where a program of the system is, `None` where there is none."""
    from shutil import which  # with all that compresses: 2 ms that no start has to wait for

    return which(name)


async def run_helper(command: Sequence[str], environ: Mapping[str, str], timeout: float = TIMEOUT) -> bytes | None:
    """Return what the program printed; `None` when it cannot be run, fails, or takes longer than `timeout` seconds."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(environ),
        )
    except (OSError, ValueError):
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        if isinstance(error, TimeoutError):
            return None
        raise
    return output if process.returncode == 0 else None


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


IMAGE_TYPES = ("image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/tiff")
"""In the order in which they are asked for."""
_POWERSHELL_IMAGE = (
    "Add-Type -AssemblyName System.Windows.Forms,System.Drawing; "
    "$image = [System.Windows.Forms.Clipboard]::GetImage(); if ($image -eq $null) { exit 1 }; "
    "$stream = New-Object System.IO.MemoryStream; $image.Save($stream, [System.Drawing.Imaging.ImageFormat]::Png); "
    "[Convert]::ToBase64String($stream.ToArray())"
)
_POWERSHELL = ("powershell.exe", "-NoProfile", "-NonInteractive", "-STA", "-Command")
_APPLESCRIPT_IMAGE = "the clipboard as «class PNGf»"
_SLOW = 10.0
"""Seconds for programs that take long to start."""


class Clip(Struct, frozen=True):
    """The image's bytes, or the text; neither: `problem` says why, for a user."""

    image: bytes = b""
    text: str = ""
    problem: str = ""


async def read_clipboard(environ: Mapping[str, str], which: Which = find_program, platform: str = sys.platform) -> Clip:
    """Return the image on the clipboard, else its text."""
    if platform == "darwin":
        return await _read_mac(environ, which)
    if environ.get("WAYLAND_DISPLAY") and which("wl-paste"):
        return await _read_typed(
            environ, ("wl-paste", "--list-types"), ("wl-paste", "--no-newline", "--type"), ("wl-paste", "--no-newline")
        )
    if environ.get("DISPLAY") and which("xclip"):
        ask = ("xclip", "-selection", "clipboard", "-o")
        return await _read_typed(environ, (*ask, "-t", "TARGETS"), (*ask, "-t"), ask)
    if which("powershell.exe"):
        return await _read_windows(environ)
    if environ.get("DISPLAY") and which("xsel"):
        text = await run_helper(("xsel", "--clipboard", "--output"), environ)
        return _text_or_nothing(text, "; images need xclip")
    return Clip(problem=_missing_tool(environ))


def _missing_tool(environ: Mapping[str, str]) -> str:
    if environ.get("WAYLAND_DISPLAY"):
        return "To paste images install wl-clipboard (wl-paste); or drop the file here, or name it with @"
    if environ.get("DISPLAY"):
        return "To paste images install xclip; or drop the file here, or name it with @"
    return "No clipboard tool found (xclip, wl-paste); drop the file here, or name it with @"


async def _read_typed(
    environ: Mapping[str, str], types: tuple[str, ...], image: tuple[str, ...], text: tuple[str, ...]
) -> Clip:
    """Ask which types there are, then for the best one."""
    offered = (await run_helper(types, environ) or b"").decode("utf-8", "replace").split()
    for kind in IMAGE_TYPES:
        if kind in offered:
            data = await run_helper((*image, kind), environ)
            if data:
                return Clip(image=data)
    return _text_or_nothing(await run_helper(text, environ) if offered else None)


async def _read_mac(environ: Mapping[str, str], which: Which) -> Clip:
    if which("pngpaste"):
        data = await run_helper(("pngpaste", "-"), environ)
        if data:
            return Clip(image=data)
    else:
        answer = await run_helper(("osascript", "-e", _APPLESCRIPT_IMAGE), environ, _SLOW)
        data = _from_applescript(answer or b"")
        if data:
            return Clip(image=data)
    return _text_or_nothing(await run_helper(("pbpaste",), environ))


def _from_applescript(answer: bytes) -> bytes:
    """Return the bytes in `«data PNGf89504E47…»`."""
    _, found, rest = answer.decode("utf-8", "replace").partition("PNGf")
    try:
        return binascii.unhexlify(rest.strip().rstrip("»")) if found else b""
    except binascii.Error:
        return b""


async def _read_windows(environ: Mapping[str, str]) -> Clip:
    answer = await run_helper((*_POWERSHELL, _POWERSHELL_IMAGE), environ, _SLOW)
    if answer:
        try:
            return Clip(image=base64.b64decode(answer.strip(), validate=True))
        except binascii.Error:
            pass
    return _text_or_nothing(await run_helper((*_POWERSHELL, "Get-Clipboard -Raw"), environ, _SLOW))


def _text_or_nothing(data: bytes | None, remark: str = "") -> Clip:
    text = (data or b"").decode("utf-8", "replace").replace("\r\n", "\n")
    return Clip(text=text) if text else Clip(problem=f"There is no image on the clipboard{remark}")


Insert = Callable[[str], None]


class Attacher:
    """Finds images and hands them to the machine. `spawn` runs work beside everything else.

    `keep` puts an image with its name on the disk; it runs in a thread, and raises `OSError`.
    """

    def __init__(
        self,
        keep: Callable[[bytes, str], ImagePart],
        handle: Callable[[Intent], None],
        spawn: Callable[[Coroutine[Any, Any, None], str], None],
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._keep_image = keep
        self._handle = handle
        self._spawn = spawn
        self._environ = os.environ if environ is None else environ
        self._turn = asyncio.Lock()

    def take_dropped(self, text: str, insert: Insert) -> bool:
        """Attach the images that a pasted text names; `False` when it is text. `insert` gets it if it is, after all."""
        paths = dropped_images(text)
        if paths:
            self._spawn(self._attach_files(paths, text, insert), "image")
        return bool(paths)

    def take_clipboard(self, insert: Insert, otherwise: str = "") -> None:
        """Attach the image on the clipboard, or insert its text; `otherwise` is what was copied here last."""
        self._spawn(self._attach_clipboard(insert, otherwise), "image")

    async def _attach_files(self, paths: list[Path], text: str, insert: Insert) -> None:
        async with self._turn:
            if not await asyncio.to_thread(_all_there, paths):
                insert(text)
                return
            for path in paths:
                try:
                    await self._keep(await read_image(path, self._environ), path.name)
                except OSError as error:
                    self._handle(ImageRefused(f"{path.name} could not be read: {error.strerror or error}"))
                except ImageProblemError as error:
                    self._handle(ImageRefused(str(error)))

    async def _attach_clipboard(self, insert: Insert, otherwise: str) -> None:
        async with self._turn:
            clip = await read_clipboard(self._environ)
            if clip.image:
                await self._attach_clip(clip)
                return
        text = clip.text or otherwise
        if not text:
            self._handle(ImageRefused(clip.problem))
        elif not self.take_dropped(text, insert):
            insert(text)

    async def _attach_clip(self, clip: Clip) -> None:
        try:
            await self._keep(await fit_image(clip.image, "The image on the clipboard", self._environ), "")
        except OSError as error:
            self._handle(ImageRefused(f"The image could not be kept: {error.strerror or error}"))
        except ImageProblemError as error:
            self._handle(ImageRefused(str(error)))

    async def _keep(self, data: bytes, name: str) -> None:
        self._handle(ImageAttached(await asyncio.to_thread(self._keep_image, data, name)))


def _all_there(paths: list[Path]) -> bool:
    """Whether a pasted text can have meant files: what names one that is not there is a text."""
    return all(path.exists() for path in paths)
