"""A grid of terminal cells as an SVG that looks the same everywhere: no web font, every run as wide as its cells."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import NamedTuple

CELL_WIDTH, CELL_HEIGHT, FONT_SIZE = 8.4, 18, 14
BASELINE = 13.5
PADDING = 12
FONTS = "ui-monospace,SFMono-Regular,Menlo,Consolas,'DejaVu Sans Mono',monospace"
# Drawn as rectangles (left, top, width, height, in parts of a cell), so that no font leaves gaps between rows.
Rectangle = tuple[float, float, float, float]
_THIN, _UPRIGHT = (0.0, 0.475, 1.0, 0.06), (0.43, 0.0, 0.14, 1.0)
BLOCKS: dict[str, tuple[Rectangle, ...]] = {
    "█": ((0, 0, 1, 1),), "▌": ((0, 0, 0.5, 1),), "▐": ((0.5, 0, 0.5, 1),), "▎": ((0, 0, 0.25, 1),),
    "▏": ((0, 0, 0.125, 1),), "▀": ((0, 0, 1, 0.5),), "▄": ((0, 0.5, 1, 0.5),), "━": ((0, 0.45, 1, 0.12),),
    "─": (_THIN,), "│": (_UPRIGHT,), "┃": ((0.4, 0, 0.2, 1),), "┼": (_THIN, _UPRIGHT),
    "┿": ((0, 0.45, 1, 0.12), (0.43, 0.2, 0.14, 0.6)),
    **{character: ((0, 1 - eighths / 8, 1, eighths / 8),) for eighths, character in enumerate("▁▂▃▄▅▆▇", 1)},
}  # fmt: skip


class Look(NamedTuple):
    """How a run is drawn: colours as `#rrggbb`."""

    foreground: str
    background: str
    bold: bool = False
    italic: bool = False
    underline: bool = False
    strike: bool = False
    dim: bool = False

    @property
    def css(self) -> str:
        """The declarations for the text."""
        lines = " ".join(name for name, on in (("underline", self.underline), ("line-through", self.strike)) if on)
        parts = [f"fill:{self.foreground}"]
        parts += ["font-weight:bold"] if self.bold else []
        parts += ["font-style:italic"] if self.italic else []
        parts += [f"text-decoration:{lines}"] if lines else []
        parts += ["opacity:.6"] if self.dim else []
        return ";".join(parts)


@dataclass(frozen=True, slots=True)
class Run:
    """Text of one look on one row; `cells` is its width."""

    text: str
    cells: int
    look: Look


@dataclass(slots=True)
class _Sheet:
    """The classes that the runs use, in the order of their first use."""

    names: dict[str, str]

    def name(self, css: str) -> str:
        return self.names.setdefault(css, f"s{len(self.names)}")


def picture(rows: Sequence[Sequence[Run]], columns: int, background: str, title: str = "") -> str:
    """Return the SVG of the rows; `title` is what a reader who cannot see it is told."""
    width = columns * CELL_WIDTH + 2 * PADDING
    height = len(rows) * CELL_HEIGHT + 2 * PADDING
    sheet = _Sheet({})
    body = "\n".join(
        row
        for number, runs in enumerate(rows)
        if (row := _row(runs, PADDING + number * CELL_HEIGHT, sheet, background))
    )
    classes = "".join(f".{name}{{{css}}}" for css, name in sheet.names.items())
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_number(width)} {_number(height)}" '
        f'width="{_number(width)}" height="{_number(height)}" role="img">\n<title>{escape(title)}</title>\n'
        f"<style>text{{font:{FONT_SIZE}px {FONTS};white-space:pre}}{classes}</style>\n"
        f'<rect width="100%" height="100%" rx="8" fill="{background}"/>\n{body}\n</svg>\n'
    )


def _row(runs: Sequence[Run], top: float, sheet: _Sheet, background: str) -> str:
    column = 0
    behind: list[str] = []
    before: list[str] = []
    for run in _joined(runs):
        left = PADDING + column * CELL_WIDTH
        if run.look.background != background:
            behind.append(_rectangle(left, top, run.cells * CELL_WIDTH, CELL_HEIGHT, run.look.background))
        before.extend(_marks(run, left, top, sheet))
        column += run.cells
    return "".join([*behind, *before])


def _joined(runs: Sequence[Run]) -> Iterable[Run]:
    """Yield the runs, neighbours of one look as one."""
    last: Run | None = None
    for run in runs:
        if last is not None and last.look == run.look:
            last = Run(last.text + run.text, last.cells + run.cells, last.look)
            continue
        if last is not None:
            yield last
        last = run
    if last is not None:
        yield last


def _marks(run: Run, left: float, top: float, sheet: _Sheet) -> Iterable[str]:
    """Yield what is drawn of a run: pieces of text, and rectangles for block characters."""
    text, cells = run.text, run.cells
    if len(text) != cells:  # wide characters: one piece, stretched to its cells
        if text.strip():
            yield _text(text, cells, left, top, sheet.name(run.look.css))
        return
    begin = 0
    while begin < len(text):
        end = begin + 1
        if text[begin] in BLOCKS:
            while end < len(text) and text[end] == text[begin]:
                end += 1
            yield _block(text[begin], end - begin, left + begin * CELL_WIDTH, top, run.look.foreground)
        else:
            while end < len(text) and text[end] not in BLOCKS:
                end += 1
            yield from _words(text[begin:end], left + begin * CELL_WIDTH, top, run.look, sheet)
        begin = end


def _words(text: str, left: float, top: float, look: Look, sheet: _Sheet) -> Iterable[str]:
    if not look.underline and not look.strike:
        left += (len(text) - len(text.lstrip())) * CELL_WIDTH
        text = text.strip()
    if text:
        yield _text(text, len(text), left, top, sheet.name(look.css))


def _text(text: str, cells: int, left: float, top: float, style: str) -> str:
    return (
        f'<text class="{style}" x="{_number(left)}" y="{_number(top + BASELINE)}" '
        f'textLength="{_number(cells * CELL_WIDTH)}">{escape(text, quote=False)}</text>'
    )


def _block(character: str, count: int, left: float, top: float, colour: str) -> str:
    pieces: list[str] = []
    for x, y, width, height in BLOCKS[character]:
        # What reaches from edge to edge is one long rectangle.
        places, long = (range(1), count) if width == 1 else (range(count), 1)
        pieces.extend(
            _rectangle(
                left + (place + x) * CELL_WIDTH,
                top + y * CELL_HEIGHT,
                long * width * CELL_WIDTH,
                height * CELL_HEIGHT,
                colour,
            )
            for place in places
        )
    return "".join(pieces)


def _rectangle(left: float, top: float, width: float, height: float, colour: str) -> str:
    # Crisp edges: neighbouring rows must not show a seam.
    return (
        f'<rect x="{_number(left)}" y="{_number(top)}" width="{_number(width)}" height="{_number(height)}" '
        f'fill="{colour}" shape-rendering="crispEdges"/>'
    )


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
