"""The colours of the full screen on terminals that have not all of them."""

from __future__ import annotations

import pytest
from rich.color import ColorSystem

from tenuto.tui.full.palette import palette_for
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import Line
from tenuto.tui.render.theme import THEME_NAMES, find_theme

OVER_SSH = {"TERM": "xterm-256color"}
STYLES = ("user.text", "user.bar", "diff.added", "diff.removed", "diff.added.sign", "context.user")


def sgr(theme: str, style: str) -> set[str]:
    """The attributes that the full screen sends."""
    palette = palette_for(find_theme(theme), OVER_SSH)
    ansi = palette.style(style).render("x", color_system=ColorSystem.EIGHT_BIT)
    return set(ansi.removeprefix("\x1b[").partition("m")[0].split(";")) if ansi.startswith("\x1b[") else set()


@pytest.mark.parametrize("theme", THEME_NAMES)
def test_of_256_colours_both_screens_take_the_same(theme):
    paint = Paint(find_theme(theme), "256")
    for style in STYLES:
        inline = paint.row(Line((("x", style),)))
        codes = set(inline.removeprefix("\x1b[").partition("m")[0].split(";")) if inline.startswith("\x1b[") else set()
        assert sgr(theme, style) == codes, style


def test_over_ssh_a_dark_ground_is_not_black():
    assert "16" not in sgr("dark", "user.text")
