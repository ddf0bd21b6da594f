"""The screen: when it is painted.

Another size is painted once: nothing is drawn from its first notice on until all widgets have fitted (R-100). What a
key changed is painted at once: by the way of messages it waits for the next sixtieth of a second after a stream's
rows, and behind everything else that the loop has to do.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.control import Control
from textual._compositor import ChopsUpdate, Compositor, CompositorUpdate, LayoutUpdate
from textual.events import Resize
from textual.geometry import NULL_REGION, Offset, Region
from textual.reactive import Reactive
from textual.screen import Screen
from textual.strip import Strip
from textual.timer import Timer
from textual.widget import Widget

from tenuto.tui.full.composer import Composer
from tenuto.tui.terminal.emoji_width import pin

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


class _Screenful(SparingScreen):
    def render_segments(self, console: Console) -> str:
        return pin(super().render_segments(console))


class _Pieces(SparingPieces):
    def render_segments(self, console: Console) -> str:
        return pin(super().render_segments(console))


class WidgetRows(CompositorUpdate):
    """Rows of one widget that reaches the right edge of the screen, from a place on."""

    def __init__(self, offset: Offset, strips: Sequence[Strip]) -> None:
        self._offset = offset
        self._strips = strips

    def __rich__(self) -> str:
        """Be what can be displayed; it is written as `render_segments` has it."""
        return ""

    def render_segments(self, console: Console) -> str:
        """Return what paints them."""
        x, top = self._offset
        rows = (erase_blanks(erase_blank_end(strip.render(console))) for strip in self._strips)
        return pin("".join([_move(x, y) + row for y, row in enumerate(rows, top)]))


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


# The screen's own steps of laying out and painting have no public names.
# pyright: reportPrivateUsage=false


HOLD_SECONDS = 0.25
"""Nothing is held back longer, whatever comes or does not come meanwhile."""
MOST_ROUNDS = 4
"""Layouts for one size: of the widgets, of what wraps otherwise in them, and two to spare."""


class ResizingScreen(Screen[None]):
    """The screen. Each widget hears of its new size by a message, and may want another height then.

    While it `holds`, layouts go on and what they make dirty is kept; the end of it paints the whole screen, once.
    """

    focused: Reactive[Widget | None] = Reactive(None, repaint=False)
    """What has the focus shows it by itself; Textual's own painted the whole screen."""
    may_hold = False
    """Whether the first frame is out: before it there is nothing to replace, and others wait for what is painted."""

    def __init__(self, show_all: Callable[[], None]) -> None:
        super().__init__(id="_default")
        self._show_all = show_all
        self._compositor = RowCompositor()
        self._hold_end: Timer | None = None
        self._size_number = 0
        self._unheard = 0
        self._in_update = False
        self._is_owed = False

    @property
    def holds(self) -> bool:
        """Whether nothing is painted now."""
        return self._hold_end is not None

    def hold(self) -> None:
        """Paint nothing until the next size is fitted, and for `HOLD_SECONDS` at most."""
        if self.may_hold and self._hold_end is None:
            self._hold_end = self.set_timer(HOLD_SECONDS, self._paint)

    def on_resize(self, event: Resize) -> None:
        """Hold the painting until all have fitted; a later size takes the place of one that is being fitted.

        A size that is overtaken is left alone: a layout sends its size to the screen itself, so that two of them under
        way at once would take turns for ever.
        """
        if event.size != self.app.size:  # pyright: ignore[reportUnknownMemberType]
            event.stop()
            event.prevent_default()
            return
        if not self.may_hold:
            self.call_after_refresh(self._show_all)
            return
        self.hold()
        self._size_number += 1
        self.call_later(self._fit, self._size_number, MOST_ROUNDS)

    # --- a round: all have heard, all are as high as they want to be, all are laid out ---

    def _fit(self, size_number: int, rounds: int) -> None:
        if size_number != self._size_number:
            return
        widgets = list(self.query("*"))
        self._unheard = len(widgets)
        for widget in widgets:
            if not widget.call_later(self._note_heard, size_number, rounds):
                self._note_heard(size_number, rounds)

    def _note_heard(self, size_number: int, rounds: int) -> None:
        if size_number != self._size_number:
            return
        self._unheard -= 1
        if not self._unheard:
            self.call_later(self._settle, size_number, rounds)

    def _settle(self, size_number: int, rounds: int) -> None:
        if size_number != self._size_number:
            return
        composer = self.query_one(Composer)
        composer.fit()
        composer.scroll_cursor_visible()
        self._show_all()
        for widget in self.query("*"):
            widget._check_refresh()  # what it wants is in our queue now, before what follows
        self.call_later(self._lay_out, size_number, rounds)

    def _lay_out(self, size_number: int, rounds: int) -> None:
        if size_number != self._size_number:
            return
        if self._layout_required and rounds:
            self._on_timer_update()
            self.call_later(self._fit, size_number, rounds - 1)
        else:
            self._paint()

    # --- painting ---

    def paint_now(self, widget: Widget) -> None:
        """Paint what has changed in a widget, and that alone; not if there is something to lay out or to hold."""
        waits = self._layout_required or self._scroll_required or self._repaint_required or widget._layout_required
        batched = self.app._batch_count  # pyright: ignore[reportUnknownMemberType]
        if waits or batched or self.holds or not self.is_current or widget not in self._compositor:
            return
        region, clip = self._compositor.visible_widgets.get(widget, (NULL_REGION, NULL_REGION))
        if not region or region not in clip or region.right != self.size.width:
            return
        dirty = widget._exchange_repaint_regions()
        self._dirty_widgets.discard(widget)  # a stream's rows come with its own frame
        rows = Region.from_union([*dirty]).intersection(region.size.region) if dirty else NULL_REGION
        if rows:
            crop = Region(0, rows.y, region.width, rows.height)
            shown = WidgetRows(region.offset + Offset(0, rows.y), widget.render_lines(crop))
            self.app._display(self, shown)  # pyright: ignore[reportUnknownMemberType]

    def _paint(self) -> None:
        """Paint everything, whatever was painted before: the terminal may have cut or wrapped it."""
        if self._hold_end is not None:
            self._hold_end.stop()
            self._hold_end = None
        self.refresh()
        self._on_timer_update()

    def _on_timer_update(self) -> None:
        """Lay out and paint in one frame; by itself it would be one for each."""
        self._in_update = True
        try:
            super()._on_timer_update()
        finally:
            self._in_update = False
        if self._is_owed and not self.holds:
            self._is_owed = False
            self._compositor_refresh()

    def _compositor_refresh(self) -> None:
        """Paint what is dirty, unless it is held: it stays dirty then."""
        if self.holds or self._in_update:
            self._is_owed = True
        else:
            super()._compositor_refresh()
