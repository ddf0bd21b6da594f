"""Textual's compositor, asked for a few rows: it rendered every widget whole, whatever had changed.

A key changes one row of the editor; all other widgets went through their caches row by row with it (half of what a
key cost). What lies behind a widget that covers all that is to be painted is not asked either: the screen and the box
around the editor have the same rows, and nobody sees them.
"""

from __future__ import annotations

from collections.abc import Iterable

from textual._compositor import Compositor
from textual.geometry import Region
from textual.strip import Strip


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
