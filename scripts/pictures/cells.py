"""Where cells come from: lines of the render layer, strips of Textual, a terminal emulator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from scripts.pictures.svg import Look, Run

from tenuto.tui.render.line import Line, filled
from tenuto.tui.render.theme import Style, Theme
from tenuto.tui.render.width import cell_width

if TYPE_CHECKING:
    from rich.style import Style as RichStyle
    from textual.strip import Strip

# The sixteen colours of a common terminal; the cube and the greys follow from arithmetic.
_SIXTEEN = (
    "#1d2026", "#d3554c", "#5fae5b", "#c9a23c", "#4f8fd6", "#a974d6", "#45a3b0", "#c8ccd4",
    "#6b7280", "#f28779", "#8fc98b", "#e8c46c", "#79b8ff", "#d2a6ff", "#74c7d4", "#ffffff",
)  # fmt: skip
_LEVELS = (0, 95, 135, 175, 215, 255)
GROUND = Look("#d4d7dd", "#16181d")
"""A terminal without a theme of ours."""


def indexed(number: int) -> str:
    """Return one of a terminal's 256 colours."""
    if number < 16:
        return _SIXTEEN[number]
    if number >= 232:
        grey = 8 + 10 * (number - 232)
        return f"#{grey:02x}{grey:02x}{grey:02x}"
    red, green, blue = ((number - 16) // 36, (number - 16) // 6 % 6, (number - 16) % 6)
    return f"#{_LEVELS[red]:02x}{_LEVELS[green]:02x}{_LEVELS[blue]:02x}"


def ground_of(theme: Theme) -> Look:
    """Return what a theme draws plain text with."""
    return Look(theme.foreground or GROUND.foreground, theme.background or GROUND.background)


def from_lines(lines: Sequence[Line], theme: Theme, columns: int) -> list[list[Run]]:
    """Return the cells of lines of the render layer on a screen of so many columns."""
    ground = ground_of(theme)
    return [
        [
            Run(text, cell_width(text), _look_of(theme.resolve(style), ground))
            for text, style in filled(line, columns).spans
        ]
        for line in lines
    ]


def _look_of(style: Style, ground: Look) -> Look:
    foreground, background = _colour(style.foreground, ground.foreground), _colour(style.background, ground.background)
    if style.reverse:
        foreground, background = background, foreground
    return Look(foreground, background, style.bold, style.italic, style.underline, style.strike, style.dim)


def _colour(value: str | None, otherwise: str) -> str:
    if value is None:
        return otherwise
    return value if value.startswith("#") else indexed(int(value))


def from_strips(strips: Sequence[Strip], ground: Look = GROUND) -> list[list[Run]]:
    """Return the cells of Textual's strips."""
    return [
        [Run(segment.text, cell_width(segment.text), _rich_look(segment.style, ground)) for segment in strip]
        for strip in strips
    ]


def _rich_look(style: RichStyle | None, ground: Look) -> Look:
    if style is None:
        return ground
    foreground = _rich_colour(style.color, ground.foreground)
    background = _rich_colour(style.bgcolor, ground.background)
    if style.reverse:
        foreground, background = background, foreground
    return Look(
        foreground, background, bool(style.bold), bool(style.italic), bool(style.underline), bool(style.strike),
        bool(style.dim),
    )  # fmt: skip


def _rich_colour(colour: object, otherwise: str) -> str:
    triplet = getattr(colour, "triplet", None)
    if triplet is not None:
        return triplet.hex
    number = getattr(colour, "number", None)
    return otherwise if number is None else indexed(number)
