"""Which pastes are files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.images.images import dropped_images

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
