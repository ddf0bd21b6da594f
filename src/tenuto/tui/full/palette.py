"""Lines of the render layer as Textual's strips, in the colours of a theme."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from rich.color import ColorSystem
from rich.console import Console
from rich.segment import Segment
from rich.style import Style as RichStyle
from textual.strip import Strip

from tenuto.tui.paint import Depth, colour_depth, nearest_of
from tenuto.tui.render.line import Line
from tenuto.tui.render.theme import Style, Theme
from tenuto.tui.terminal.colours import has_true_colour
from tenuto.tui.terminal.emulator import Hyperlinks

MAX_STRIPS = 1_500
"""A strip costs some 3 KB; this is a dozen screens of them."""


class Palette:
    """The styles of one theme, and the strips painted with them lately. `links` says which links are sent.

    Of 256 colours the nearest are chosen here: Rich takes dark grounds with a tinge for black.
    """

    def __init__(self, theme: Theme, links: Hyperlinks | None = None, depth: Depth = "true") -> None:
        self.theme = theme
        self.links = links
        self._depth: Depth = depth
        self._styles: dict[str, RichStyle] = {}
        self._strips: OrderedDict[tuple[Line, int], Strip] = OrderedDict()

    def choose(self, theme: Theme) -> None:
        """Paint with another theme from now on."""
        self.theme = theme
        self._styles.clear()
        self._strips.clear()

    def style(self, name: str) -> RichStyle:
        """Return what a style name looks like."""
        style = self._styles.get(name)
        if style is None:
            style = self._styles[name] = self._made(self.theme.resolve(name))
        return style

    def _made(self, style: Style) -> RichStyle:
        target = self.links.target(style.link) if self.links is not None else ""
        return _rich_style(style._replace(link=target), self._depth)

    def start_from(self, directory: str) -> None:
        """Let the paths in links start from a directory."""
        if self.links is not None and self.links.directory != directory:
            self.links.directory = directory
            self.choose(self.theme)

    def strip(self, line: Line, width: int) -> Strip:
        """Return a line as a strip of exactly `width` cells."""
        key = (line, width)
        strip = self._strips.get(key)
        if strip is not None:
            self._strips.move_to_end(key)
            return strip
        fill = self.style(line.fill) if line.fill else None
        strip = Strip(self._segments(line)).adjust_cell_length(width, fill)
        self._strips[key] = strip
        if len(self._strips) > MAX_STRIPS:
            self._strips.popitem(last=False)
        return strip

    def mark(self, strip: Strip, begin: int, end: int, style: str) -> Strip:
        """Return the strip with this style over the cells from `begin` to `end`."""
        return Strip.join(
            [
                strip.crop(0, begin),
                Strip(Segment.apply_style(strip.crop(begin, end), post_style=self.style(style))),
                strip.crop(end),
            ]
        )

    def overlay_right(self, strip: Strip, text: str, style: str, inset: int) -> Strip:
        """Return the strip with `text` over its last cells, `inset` cells from the right edge."""
        piece = Strip([Segment(text, self.style(style))])
        begin = max(0, strip.cell_length - inset - piece.cell_length)
        parts = [strip.crop(0, begin), piece]
        if inset:
            parts.append(strip.crop(strip.cell_length - inset))
        return Strip.join(parts)

    def _segments(self, line: Line) -> Iterable[Segment]:
        return [Segment(text, self.style(name)) for text, name in line.spans if text]


def palette_for(theme: Theme, environ: Mapping[str, str]) -> Palette:
    """Return a theme as this terminal takes it."""
    return Palette(theme, Hyperlinks(environ), colour_depth(environ))


def show_all_colours(console: Console, environ: Mapping[str, str]) -> None:
    """Let a terminal have every colour that it knows: Rich goes by COLORTERM, which neither xterm nor ssh sets."""
    if has_true_colour(environ):
        console._color_system = ColorSystem.TRUECOLOR  # pyright: ignore[reportPrivateUsage]


def _rich_style(style: Style, depth: Depth) -> RichStyle:
    return RichStyle(
        color=_colour(style.foreground, depth),
        bgcolor=_colour(style.background, depth),
        bold=style.bold or None,
        dim=style.dim or None,
        italic=style.italic or None,
        underline=style.underline or None,
        strike=style.strike or None,
        reverse=style.reverse or None,
        link=style.link or None,
    )


def _colour(value: str | None, depth: Depth) -> str | None:
    if not value:
        return None
    if not value.startswith("#"):
        return f"color({value})"
    return value if depth == "true" else f"color({nearest_of(value)})"
