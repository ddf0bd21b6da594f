"""Asking the clipboard: real programs, found by PATH, answer as the real ones do."""

from __future__ import annotations

import base64
import shutil
from pathlib import Path

import pytest

from tenuto.tui.images import images
from tenuto.tui.images.images import Clip, read_clipboard
from tests.tui.images_of import png


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
    tools.add("wl-paste", "exec sleep 60")
    assert (await tools.read(WAYLAND_DISPLAY="wayland-0")).problem
