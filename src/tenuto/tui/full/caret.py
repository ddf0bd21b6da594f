"""The caret on a character of several code points covers all of it. Pure.

Textual's editor gives the caret to one code point: the rest of an emoji was a piece of its own, which terminals painted
into the next cell, and the row changed its width as the caret went by.
"""

from __future__ import annotations

from bisect import bisect_left

from rich.segment import Segment
from textual.strip import Strip

from tenuto.tui.render.width import split_graphemes


def keep_whole(strip: Strip) -> Strip:
    """Return the strip with each character in the style that its beginning has."""
    text = strip.text
    if text.isascii():
        return strip
    bounds = [*(start for start, _end, _cells in split_graphemes(text)), len(text)]
    segments: list[Segment] = []
    begin = end = 0
    for piece, style, _control in strip:
        end += len(piece)
        to = bounds[bisect_left(bounds, end)]
        if to > begin:
            segments.append(Segment(text[begin:to], style))
        begin = max(begin, to)
    return Strip(segments).adjust_cell_length(strip.cell_length)
