"""Cutting a row to the screen."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.width import cell_width, truncate


def fit(spans: Sequence[Span], width: int) -> Line:
    """Return a line of these spans, cut to `width` cells."""
    fitted: list[Span] = []
    left = width
    for text, style in spans:
        piece = truncate(text, left)
        if piece:
            fitted.append((piece, style))
        left -= cell_width(piece)
    return Line(tuple(fitted))


def fit_lines(lines: Sequence[Line], width: int) -> list[Line]:
    """Return the lines, those cut that are wider than `width` cells."""
    return [line if line.width <= width else fit(line.spans, width) for line in lines]


def filled(line: Line, width: int) -> Line:
    """Return the line with its fill as spaces up to `width` cells: for what is painted but never copied."""
    if not line.fill or line.width >= width:
        return line
    return Line((*line.spans, (" " * (width - line.width), line.fill)))
