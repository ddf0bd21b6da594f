"""What is on the system's clipboard: an image or a text, asked of whatever program there is for it."""

from __future__ import annotations

import base64
import binascii
import sys
from collections.abc import Mapping

from msgspec import Struct

from tenuto.tui.images.process import Which, find_program, run_helper

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
