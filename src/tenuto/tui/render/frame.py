"""The ruled space that an item's lines are drawn in, and the few shapes that all items share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from tenuto.guard.terminal import sanitize_line, sanitize_output
from tenuto.protocol.part import ImagePart
from tenuto.text.figures import format_bytes
from tenuto.tool.output import read_notice
from tenuto.tui.render.line import (
    EMPTY,
    Line,
    Span,
    ansi_lines,
    expand_tabs,
    indent,
    plain,
    slice_spans,
    split_lines,
    wrap,
    wrap_code,
)
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
from tenuto.tui.state.item import BaseItem

BODY_INDENT = 2
FOLDED_LINES = 4
WORDS_ROWS = 3
"""Rows of words that matter, while they are folded."""
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


def wrapped_rows(text: str, width: int) -> int:
    """Return about how many rows a text takes: no word and no wide character is looked at."""
    room = max(width, 1)
    return sum([max(1, -(-len(line) // room)) for line in text.split("\n")])


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


def last_lines(content: str, count: int, *, unfolded: bool) -> Output:
    """Return the last lines of what a running command has written so far, all of them when unfolded."""
    tail = content if unfolded else "\n".join(content.rstrip("\n").split("\n")[-count:])
    return Output(tail, 0, count)


def _rows(line: Sequence[Span], frame: Frame) -> list[Line]:
    return wrap_code(line, max(frame.body, 4)) if frame.unfolded else [one_row(line, frame, max(frame.body, 4))]


class Part(Protocol):
    """A stretch of what stands below a head."""

    @property
    def text(self) -> str:
        """Everything that it shows unfolded, as its source has it: for search and copy."""
        ...

    def lines(self, frame: Frame) -> list[Line]:
        """Return its rows."""
        ...

    def height(self, frame: Frame) -> int:
        """Return about how many rows that are, at the cost of counting line ends."""
        ...


class Output(Struct, frozen=True):
    """What a program wrote: folded, its `first` and its `last` lines, and how many there are between.

    `is_cut`: a notice in it stands for lines that were left out before; they are counted with the others.
    """

    content: str
    first: int = FOLDED_LINES
    last: int = 0
    is_cut: bool = False
    style: str = "output"

    @property
    def text(self) -> str:
        """The output as a terminal would have left it."""
        return sanitize_output(self.content)

    def lines(self, frame: Frame) -> list[Line]:
        """Return its rows, in its own colours."""
        lines, first, last = self.spans(), self.first, self.last
        end = len(lines)
        while end and not lines[end - 1]:
            end -= 1
        lines = lines[:end]
        if frame.unfolded:
            first, last = MAX_ROWS // 2, MAX_ROWS // 2
        if len(lines) <= first + last + (0 if frame.unfolded else 1):
            return [row for line in lines for row in _rows(line, frame)]
        rows = [row for line in lines[:first] for row in _rows(line, frame)]
        rows.append(more_row(_count(lines[first : len(lines) - last], is_cut=self.is_cut), frame))
        rows.extend(row for line in lines[len(lines) - last :] for row in _rows(line, frame))
        return rows

    def spans(self) -> Sequence[Sequence[Span]]:
        """Return its lines."""
        return ansi_lines(self.content, self.style)

    def height(self, frame: Frame) -> int:
        """Return about how many rows it has."""
        shown = self.content.rstrip("\n")
        if not shown:
            return 0
        if not frame.unfolded:
            return min(shown.count("\n") + 1, self.first + self.last + 1)
        return min(wrapped_rows(shown, frame.body), MAX_ROWS + 1)


class Words(Struct, frozen=True):
    """Words that matter, wrapped: folded, the first rows of them."""

    content: str
    label: str = ""
    """What stands before them; then they are one line."""
    style: str = "text"

    @property
    def text(self) -> str:
        """The words behind their label."""
        return f"{self.label}{sanitize_line(self.content)}" if self.label else sanitize_output(self.content)

    def lines(self, frame: Frame) -> list[Line]:
        """Return their rows."""
        one_line = [[(self.label, "dim"), (sanitize_line(self.content), self.style)]]
        lines = one_line if self.label else ansi_lines(self.content, self.style)
        rows = [row for line in lines for row in wrap(line, max(frame.body, 4)) or [EMPTY]]
        while rows and not rows[-1].spans:
            rows.pop()
        if frame.unfolded or len(rows) <= WORDS_ROWS + 1:
            return rows
        return [*rows[:WORDS_ROWS], more_row(f"{len(rows) - WORDS_ROWS} rows", frame)]

    def height(self, frame: Frame) -> int:
        """Return about how many rows they have."""
        rows = wrapped_rows(shown, frame.body) if (shown := self.text.rstrip("\n")) else 0
        return rows if frame.unfolded else min(rows, WORDS_ROWS + 1)


NAME_CELLS = 40


def image_words(image: ImagePart, number: int, middle: str = "·") -> str:
    """Return an image in one line: `[image 1 shot.png 820x600 · 120 KB]`; `number` counts from 1 in its prompt."""
    name = f" {truncate_middle(sanitize_line(image.name), NAME_CELLS)}" if image.name else ""
    size = f" {image.width}x{image.height}" if image.width else ""
    weight = f" {middle} {format_bytes(image.size)}" if image.size else ""
    return f"[image {number}{name}{size}{weight}]"
