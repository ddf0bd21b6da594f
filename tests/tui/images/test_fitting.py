"""Images that are too large, or of another format: made smaller where something can, else refused with what to do."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tenuto.tui.images.images import ImageProblemError, fit_image, read_image
from tests.tui.images_of import png


def nothing(_name: str) -> None:
    return None


def tool(folder: Path, script: str) -> dict[str, str]:
    path = folder / "magick"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


async def test_what_fits_goes_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(png())
    assert await read_image(tmp_path / "a.png", {}, nothing) == png()


async def test_r054_a_photo_of_30_mb_is_refused_with_what_to_do(tmp_path: Path) -> None:
    photo = tmp_path / "photo.png"
    photo.write_bytes(png(400, 300, noise=30_000_000))
    with pytest.raises(ImageProblemError, match=r"photo\.png is too large to send \(30 MB.*install ImageMagick"):
        await read_image(photo, {}, nothing)


async def test_a_large_photo_is_made_smaller(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "small.png").write_bytes(png(20, 20))
    environ = tool(tmp_path, f"for last; do :; done; cp '{tmp_path}/small.png' \"$last\"")
    monkeypatch.setenv("PATH", environ["PATH"])
    found = await fit_image(png(40, 30, noise=5_000_000), "x.png", environ, lambda n: n if n == "magick" else None)
    assert found == png(20, 20)


async def test_too_many_pixels_are_too_many_whatever_the_bytes() -> None:
    with pytest.raises(ImageProblemError, match="9000 x 1"):
        await fit_image(png(9_000, 1), "wide.png", {}, nothing)


async def test_another_format_is_converted_or_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ImageProblemError, match=r"photo\.heic is no PNG"):
        await fit_image(b"\0\0\0\x18ftypheic", "photo.heic", {}, nothing)
    environ = tool(tmp_path, "exit 1")
    monkeypatch.setenv("PATH", environ["PATH"])
    with pytest.raises(ImageProblemError, match="could not be converted"):
        await fit_image(b"junk", "photo.heic", environ, lambda n: n if n == "magick" else None)


async def test_an_endless_file_is_not_read(tmp_path: Path) -> None:
    huge = tmp_path / "huge.png"
    with huge.open("wb") as file:
        file.truncate(101_000_000)
    with pytest.raises(ImageProblemError, match="too much"):
        await read_image(huge, {}, nothing)


@pytest.mark.skipif(shutil.which("magick") is None, reason="no ImageMagick here")
async def test_imagemagick_itself_makes_a_picture_smaller() -> None:
    found = await fit_image(png(9_000, 60), "wide.png", os.environ)
    assert len(found) < 3_750_000
    assert found.startswith(b"\xff\xd8\xff")
