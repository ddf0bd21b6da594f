"""Textual's compositor, asked for a few rows: it rendered every widget whole, whatever had changed.

A key changes one row of the editor; all other widgets went through their caches row by row with it (half of what a
key cost). What lies behind a widget that covers all that is to be painted is not asked either: the screen and the box
around the editor have the same rows, and nobody sees them.

What it paints has each character in the cells that Textual counts, whatever the terminal counts (`tui/emoji_width.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip

from tenuto.tui.emoji_width import pin
from tenuto.tui.full.frame_encoding import SparingPieces, SparingScreen

if TYPE_CHECKING:
    from rich.console import Console


class _Screenful(SparingScreen):
    def render_segments(self, console: Console) -> str:
        return pin(super().render_segments(console))


class _Pieces(SparingPieces):
    def render_segments(self, console: Console) -> str:
        return pin(super().render_segments(console))


class RowCompositor(Compositor):
    """Renders of each widget the rows that are to be painted; those without such a row, or behind, are left alone."""

    def _get_renders(self, crop: Region | None = None) -> Iterable[tuple[Region, Region, list[Strip]]]:
        if crop is None:
            yield from super()._get_renders(crop)
            return
        for widget, (region, clip) in self.visible_widgets.items():
            shown = region.intersection(clip)
            rows = shown.intersection(Region(shown.x, crop.y, shown.width, crop.height))
            if rows:
                yield region, rows, widget.render_lines(rows.translate(-region.offset))
                if rows.contains_region(crop):
                    return  # front to back: it is as opaque as all widgets

    def render_full_update(self, simplify: bool = False) -> LayoutUpdate:
        """Return all rows."""
        update = super().render_full_update(simplify)
        return _Screenful(update.strips, update.region)

    def render_partial_update(self) -> ChopsUpdate | None:
        """Return what has changed, if something has."""
        update = super().render_partial_update()
        return _Pieces(update.chops, update.spans, update.chop_ends) if update is not None else None
