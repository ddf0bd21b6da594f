"""Frames in fewer bytes: over a slow line each one counts, and most of a frame was blanks up to the screen's edge.

Blanks of the terminal's own ground are erased instead: to the end of the row (EL), or so many (ECH) and stepped over.
Whoever copies by the terminal's own means gets no trailing blanks either.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.control import Control
from textual._compositor import ChopsUpdate, LayoutUpdate

if TYPE_CHECKING:
    from rich.console import Console

RESET, ERASE = "\x1b[0m", "\x1b[K"
_INTRODUCER = "\x1b["
_UNSEEN = re.compile(r"(?:(?:[0-3]|22|23|3[0-79]|9[0-7]|49|38;5;\d+|38;2;\d+;\d+;\d+)(?:;|\Z))+")
"""Attributes that a blank does not show: colours of the text, its weight and its slant."""
LONG = 12
"""From so many blanks on it takes fewer bytes to erase them."""
_PLAIN = re.compile(r"(?:\A|(?<=\x1b\[0m))[^\x1b]+")
_BLANKS = re.compile(f" {{{LONG},}}")


class SparingScreen(LayoutUpdate):
    """All rows of the screen."""

    def render_segments(self, console: Console) -> str:
        """Return what paints them."""
        left, top = self.region.x, self.region.y
        rows = ("".join([strip.render(console) for strip in line]) for line in self.strips)
        return "".join([_move(left, top + y) + erase_blanks(erase_blank_end(row)) for y, row in enumerate(rows)])


class SparingPieces(ChopsUpdate):
    """Pieces of rows that have changed."""

    def render_segments(self, console: Console) -> str:
        """Return what paints them: whole pieces from their beginning, up to where they have changed."""
        written: list[str] = []
        for y, first, last in self.spans:
            ends = self.chop_ends[y]
            for end, (x, strip) in zip(ends, self.chops[y].items(), strict=False):
                if strip is None or x > last or end <= first:
                    continue
                stop = min(end, last)
                text = (strip if stop == end else strip.crop(0, stop - x)).render(console)
                written += _move(x, y), erase_blanks(erase_blank_end(text) if stop == ends[-1] else text)
        return "".join(written)


def erase_blank_end(row: str) -> str:
    """Return a row that reaches the screen's edge, each of its pieces reset at its end, without blanks at its end."""
    kept = row
    while kept:
        styled = kept.endswith(RESET)
        body = kept[: -len(RESET)] if styled else kept
        bare = body.rstrip(" ")
        if bare == body:
            break
        if not styled:
            kept = bare
            continue
        begin = bare.rfind(_INTRODUCER)
        attributes, _, text = bare[begin + len(_INTRODUCER) :].partition("m")
        if begin < 0 or not _is_unseen(attributes):
            break
        if text:
            kept = bare + RESET
            break
        kept = bare[:begin]
    return kept + ERASE if len(kept) + len(ERASE) < len(row) else row


def erase_blanks(row: str) -> str:
    """Return a row, or a piece of one, each of its pieces reset at its end, without long blanks of no style."""
    return _PLAIN.sub(_erase_in, row) if " " * LONG in row else row


def _erase_in(plain: re.Match[str]) -> str:
    return _BLANKS.sub(lambda blanks: "\x1b[{0}X\x1b[{0}C".format(len(blanks[0])), plain[0])


@lru_cache(256)
def _is_unseen(attributes: str) -> bool:
    return _UNSEEN.fullmatch(attributes) is not None


def _move(x: int, y: int) -> str:
    return Control.move_to(x, y).segment.text
