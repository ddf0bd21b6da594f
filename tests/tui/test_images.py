"""Images for a prompt: from the clipboard of each system, from pasted paths, and made to fit."""

from __future__ import annotations

import base64
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui import images
from tenuto.tui.images import Clip, ImageProblemError, dropped_images, fit_image, read_clipboard, read_image
from tests.tui.images_of import png

# --- the clipboard: real programs, found by PATH, answer as the real ones do ---


class Tools:
    """A directory of programs that stand for the system's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ = {"PATH": f"{folder}:/usr/bin:/bin"}
        (folder / "image.png").write_bytes(png())

    def add(self, name: str, script: str) -> None:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\ncd '{self.folder}'\n{script}\n")
        path.chmod(0o755)

    def which(self, name: str) -> str | None:
        return shutil.which(name, path=str(self.folder))

    async def read(self, platform: str = "linux", **environ: str) -> Clip:
        return await read_clipboard({**self.environ, **environ}, self.which, platform)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tools:
    found = Tools(tmp_path)
    monkeypatch.setenv("PATH", found.environ["PATH"])
    return found


WL_PASTE = 'case "$*" in *list-types*) {types};; *image/*) cat image.png;; *) printf "a text\\n";; esac'
XCLIP = 'case "$*" in *TARGETS*) {types};; *image/*) cat image.png;; *) printf "a text\\n";; esac'


async def test_wayland(tools: Tools) -> None:
    tools.add("wl-paste", WL_PASTE.format(types="printf 'text/html\\nimage/png\\n'"))
    assert await tools.read(WAYLAND_DISPLAY="wayland-0") == Clip(image=png())
    tools.add("wl-paste", WL_PASTE.format(types="echo text/plain"))
    assert await tools.read(WAYLAND_DISPLAY="wayland-0") == Clip(text="a text\n")


async def test_x11(tools: Tools) -> None:
    tools.add("xclip", XCLIP.format(types="printf 'TARGETS\\nimage/jpeg\\n'"))
    assert await tools.read(DISPLAY=":0") == Clip(image=png())
    tools.add("xclip", "exit 1")
    assert "no image" in (await tools.read(DISPLAY=":0")).problem


async def test_macos(tools: Tools) -> None:
    tools.add("pbpaste", "printf words")
    tools.add("osascript", f"echo '«data PNGf{png().hex().upper()}»'")
    assert await tools.read("darwin") == Clip(image=png())
    tools.add("osascript", "exit 1")
    assert await tools.read("darwin") == Clip(text="words")
    tools.add("pngpaste", "cat image.png")
    assert await tools.read("darwin") == Clip(image=png())


async def test_windows_from_within_linux(tools: Tools) -> None:
    encoded = base64.b64encode(png()).decode()
    tools.add(
        "powershell.exe", f"""case "$*" in *GetImage*) printf '{encoded}\\r\\n';; *) printf 'words\\r\\n';; esac"""
    )
    assert await tools.read() == Clip(image=png())
    tools.add("powershell.exe", """case "$*" in *GetImage*) exit 1;; *) printf 'words\\r\\n';; esac""")
    assert await tools.read() == Clip(text="words\n")


async def test_without_a_tool_it_says_which_one_to_install(tools: Tools) -> None:
    assert "wl-clipboard" in (await tools.read(WAYLAND_DISPLAY="wayland-0")).problem
    assert "xclip" in (await tools.read(DISPLAY=":0")).problem
    assert "No clipboard" in (await tools.read()).problem


async def test_a_program_that_hangs_is_given_up(tools: Tools, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images.run_helper, "__defaults__", (0.2,))
    tools.add("wl-paste", "exec sleep 600")
    assert (await tools.read(WAYLAND_DISPLAY="wayland-0")).problem


# --- pastes that are files ---


HOME = Path.home()


@pytest.mark.parametrize(
    ("text", "paths"),
    [
        ("/tmp/shot.png", ["/tmp/shot.png"]),
        (" /tmp/Shot.PNG \n", ["/tmp/Shot.PNG"]),
        ("'/tmp/my shot.png'", ["/tmp/my shot.png"]),
        ('"/tmp/my shot.png"', ["/tmp/my shot.png"]),
        ("/tmp/my\\ shot.png", ["/tmp/my shot.png"]),
        ("/tmp/my shot.png", ["/tmp/my shot.png"]),
        ("file:///tmp/my%20shot.jpeg", ["/tmp/my shot.jpeg"]),
        ("file://localhost/tmp/a.gif", ["/tmp/a.gif"]),
        ("~/a.webp", [str(HOME / "a.webp")]),
        ("/tmp/a.png /tmp/b.png", ["/tmp/a.png", "/tmp/b.png"]),
        ("'/tmp/a a.png' '/tmp/b.png'", ["/tmp/a a.png", "/tmp/b.png"]),
        ("file:///tmp/a.png\nfile:///tmp/b.png\n", ["/tmp/a.png", "/tmp/b.png"]),
        ("C:\\Users\\me\\shot 1.png", ["/mnt/c/Users/me/shot 1.png"]),
        ("", []),
        ("shot.png", []),
        ("src/shot.png", []),
        ("look at /tmp/shot.png", []),
        ("/tmp/shot.png is broken", []),
        ("/tmp/notes.txt", []),
        ("/tmp/a.png /tmp/notes.txt", []),
        ("file://server/share/a.png", []),
        ("https://example.com/a.png", []),
        ("it's not closed.png", []),
        ("x" * 9_000 + ".png", []),
    ],
)
def test_r099_only_whole_paths_of_images_are_images(text: str, paths: list[str]) -> None:
    assert [str(path) for path in dropped_images(text)] == paths


@given(st.text(max_size=60))
def test_no_text_is_an_error(text: str) -> None:
    for path in dropped_images(f"{text}.png"):
        assert path.suffix.lower() == ".png"


# --- images that are too large, or of another format ---


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
