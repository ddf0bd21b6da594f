"""The ruled space that an item's lines are drawn in, and the few shapes that all items share."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.part import ImagePart
from tenuto.text.figures import format_bytes
from tenuto.tool.output import read_notice
from tenuto.tui.machine.item import BaseItem
from tenuto.tui.render.line import EMPTY, Line, Span, indent, plain
from tenuto.tui.render.options import (
    ASCII,
    GUTTER,
    MIN_WIDTH,
    UNICODE,
    DiffLayout,
    Glyphs,
    RenderOptions,
    glyphs_for,
    more_text,
)
from tenuto.tui.render.width import cell_width, take_cells, truncate_middle
from tenuto.tui.render.wrap import expand_tabs, slice_spans, split_lines, wrap, wrap_code

BODY_INDENT = 2
MAX_ROWS = 2_000
"""An unfolded output shows at most so many of its lines; the whole of it is in the file that the item names."""


class Frame(Struct, frozen=True):
    """`width` is the cells right of the item's gutter; `unfolded` says that everything is to be shown."""

    width: int
    glyphs: Glyphs
    now: float
    unfolded: bool
    show_thinking: bool = True
    diff_layout: DiffLayout = "auto"
    expand_key: str = ""

    @property
    def body(self) -> int:
        """Cells of what stands below a head, further in."""
        return self.width - BODY_INDENT


def frame_for(item: BaseItem, width: int, options: RenderOptions) -> Frame:
    """Return the frame of an item on a screen of `width` cells."""
    unfolded = options.detail == "expanded" or not item.folded
    room = max(width, MIN_WIDTH) - GUTTER
    return Frame(
        room, glyphs_for(options), options.now, unfolded, options.show_thinking, options.diff, options.expand_key
    )


def head(mark: str, mark_style: str, spans: Sequence[Span], frame: Frame, *, whole: bool = False) -> list[Line]:
    """Return an item's first row behind its mark: cut to one row, or `whole` over as many as it takes."""
    lines = _whole(spans, frame.width) if whole else [one_row(spans, frame)]
    blank = (" " * GUTTER, "text")
    return indent(lines, (f"{mark:<{GUTTER}}"[:GUTTER], mark_style), blank)


def _whole(spans: Sequence[Span], width: int) -> list[Line]:
    """Return all of a head: what goes on below its first row, wrapped or in lines of its own, stands further in."""
    hanging = min(4, width // 4)
    first, *others = split_lines(spans)
    blank = (" " * hanging, "text")
    lines = wrap(first, width, hanging)
    for line in others:
        lines.extend(indent(wrap(line, width - hanging), blank, blank))
    return lines


def below(lines: Sequence[Line]) -> list[Line]:
    """Return an item's body under its head: further in, the indentation left out by copying."""
    blank = (" " * (GUTTER + BODY_INDENT), "text")
    return indent(lines, blank, blank)


def one_row(spans: Sequence[Span], frame: Frame, room: int | None = None) -> Line:
    """Return spans on one row of `room` cells; what does not fit is cut and still copied."""
    cells = frame.width if room is None else room
    text = "".join([part for part, _style in spans])
    if "\t" not in text and len(text) <= cells and cell_width(text) <= cells:
        return Line(tuple(spans)) if text else EMPTY
    shown, _origins = expand_tabs(spans) if "\t" in text else (list(spans), [])
    whole = "".join([part for part, _style in shown])
    ellipsis = frame.glyphs.ellipsis
    if cell_width(whole) <= cells:
        return Line(tuple(shown), source=text)
    cut = take_cells(whole, cells - len(ellipsis))
    row = slice_spans(shown, [(0, cut)])[0]
    return Line((*row, (ellipsis, "dim")), source=text)


def rows_of(
    lines: Sequence[Sequence[Span]], frame: Frame, first: int, last: int, *, is_cut: bool = False
) -> list[Line]:
    """Return output as rows: folded, the `first` and `last` lines with a count between; unfolded, all of them.

    `is_cut`: a notice in it stands for lines that were left out before; they are counted with the others.
    """
    end = len(lines)
    while end and not lines[end - 1]:
        end -= 1
    lines = lines[:end]
    if frame.unfolded:
        first, last = MAX_ROWS // 2, MAX_ROWS // 2
    if len(lines) <= first + last + (0 if frame.unfolded else 1):
        return [row for line in lines for row in _rows(line, frame)]
    rows = [row for line in lines[:first] for row in _rows(line, frame)]
    rows.append(more_row(_count(lines[first : len(lines) - last], is_cut=is_cut), frame))
    rows.extend(row for line in lines[len(lines) - last :] for row in _rows(line, frame))
    return rows


def folded_rows(lines: Sequence[Sequence[Span]], frame: Frame, most: int) -> list[Line]:
    """Return words that matter as rows, wrapped: folded, the first `most` rows and how many more there are."""
    rows = [row for line in lines for row in wrap(line, max(frame.body, 4)) or [EMPTY]]
    while rows and not rows[-1].spans:
        rows.pop()
    if frame.unfolded or len(rows) <= most + 1:
        return rows
    return [*rows[:most], more_row(f"{len(rows) - most} rows", frame)]


def more_row(count: str, frame: Frame, style: str = "dim") -> Line:
    """Return the row that stands for what is folded away."""
    return plain(more_text(count, frame.body, frame.glyphs, frame.expand_key), style)


def _count(hidden: Sequence[Sequence[Span]], *, is_cut: bool) -> str:
    """Return how many lines are not shown, those included that a notice among them stands for."""
    count, at_least = len(hidden), is_cut
    for line in hidden if is_cut else ():
        left_out = read_notice("".join([text for text, _style in line]))
        if left_out is not None:
            count, at_least = count - 1 + left_out, not left_out
    return f"{count:,} lines{' at least' if at_least else ''}"


def tells_of_more(line: Line) -> bool:
    """Say whether a row stands for what is folded away."""
    return line.text.lstrip().startswith(tuple(f"{glyphs.ellipsis} +" for glyphs in (UNICODE, ASCII)))


def _rows(line: Sequence[Span], frame: Frame) -> list[Line]:
    return wrap_code(line, max(frame.body, 4)) if frame.unfolded else [one_row(line, frame, max(frame.body, 4))]


NAME_CELLS = 40


def image_words(image: ImagePart, number: int, middle: str = "·") -> str:
    """Return an image in one line: `[image 1 shot.png 820x600 · 120 KB]`; `number` counts from 1 in its prompt."""
    name = f" {truncate_middle(sanitize_line(image.name), NAME_CELLS)}" if image.name else ""
    size = f" {image.width}x{image.height}" if image.width else ""
    weight = f" {middle} {format_bytes(image.size)}" if image.size else ""
    return f"[image {number}{name}{size}{weight}]"
