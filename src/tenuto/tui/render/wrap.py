"""Wrapping by cells (R-100): words, wide scripts, long words; spans keep their styles, copying joins the rows."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.tui.render.line import EMPTY, Line, Span, indent
from tenuto.tui.render.width import cell_width, split_graphemes

TAB = 4
# Closing marks never begin a row and opening ones never end one (the small set of kinsoku that matters in chat).
_NO_START = frozenset("、。，．：；！？）」』】》〉〕…—ー々,.:;!?)]}%")
_NO_END = frozenset("（「『【《〈〔([{$")


def break_text(text: str, width: int) -> list[tuple[int, int]]:
    """Return (start, end) of each row of one logical line; what lies between two rows is the space that they lost.

    What leaves no cell is wrapped as if it left one: a frame takes its margins off whatever width the terminal has.
    """
    width = max(width, 1)
    if len(text) <= width and text.isascii():
        return [(0, len(text))]
    return _break_ascii(text, width) if text.isascii() else _break_wide(text, width)


def _break_ascii(text: str, width: int) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    position, size = 0, len(text)
    while size - position > width:
        space = text.rfind(" ", position, position + width + 1)
        if space > position and not text[position:space].isspace():
            end, following = space, space + 1
            while text[end - 1] == " ":
                end -= 1
            while following < size and text[following] == " ":
                following += 1
        else:
            end = following = position + width
        rows.append((position, end))
        position = following
    if position < size or not rows:
        rows.append((position, size))
    return rows


def _break_wide(text: str, width: int) -> list[tuple[int, int]]:
    rows: list[tuple[int, int]] = []
    line = used = since = 0
    break_end = break_next = -1
    previous, previous_wide = "", False
    for start, end, cells in split_graphemes(text):
        character = text[start]
        if character == " " and end == start + 1:
            if previous == " " and break_next == start:
                break_next, since = end, 0
            elif not text[line:start].isspace() and start > line:
                break_end, break_next, since = start, end, 0
            elif used + 1 > width:
                rows.append((line, start))
                line, used = start, 0
            used += 1
            previous, previous_wide = character, False
            continue
        if (
            (cells == 2 or previous_wide)
            and start > line
            and previous != " "
            and character not in _NO_START
            and previous not in _NO_END
        ):
            break_end, break_next, since = start, start, 0
        if used + cells > width and start > line:
            if break_end > line:
                rows.append((line, break_end))
                line, used = break_next, since
            if used + cells > width and start > line:
                rows.append((line, start))
                line, used = start, 0
            break_end = break_next = -1
        used += cells
        since += cells
        previous, previous_wide = character, cells == 2
    if used > width and break_end > line:
        rows.append((line, break_end))
    elif line < len(text) or not rows:
        rows.append((line, len(text)))
    return rows


def break_code(text: str, width: int) -> list[tuple[int, int]]:
    """Return (start, end) of each row of one line of code: cut by cells alone, no space is lost."""
    width = max(width, 1)
    if len(text) <= width and text.isascii():
        return [(0, len(text))]
    if text.isascii():
        return [(start, min(start + width, len(text))) for start in range(0, len(text), width)]
    rows: list[tuple[int, int]] = []
    line = used = 0
    for start, _end, cells in split_graphemes(text):
        if used + cells > width and start > line:
            rows.append((line, start))
            line, used = start, 0
        used += cells
    rows.append((line, len(text)))
    return rows


def slice_spans(spans: Sequence[Span], rows: Sequence[tuple[int, int]]) -> list[tuple[Span, ...]]:
    """Return the spans of each of the rows, which are given in ascending order as indices into the joined text."""
    if len(rows) == 1 and rows[0] == (0, sum([len(text) for text, _style in spans])):
        return [tuple([span for span in spans if span[0]])]
    sliced: list[tuple[Span, ...]] = []
    index, offset = 0, 0
    for start, end in rows:
        while index < len(spans) and offset + len(spans[index][0]) <= start:
            offset += len(spans[index][0])
            index += 1
        row: list[Span] = []
        at, before = index, offset
        while at < len(spans) and before < end:
            text, style = spans[at]
            piece = text[max(start - before, 0) : end - before]
            if piece:
                row.append(spans[at] if piece is text else (piece, style))
            before += len(text)
            at += 1
        sliced.append(tuple(row))
    return sliced


def split_lines(spans: Sequence[Span]) -> list[list[Span]]:
    """Split spans at the newlines in them."""
    lines: list[list[Span]] = [[]]
    for span in spans:
        text, style = span
        if "\n" not in text:
            lines[-1].append(span)
            continue
        first, *others = text.split("\n")
        if first:
            lines[-1].append((first, style))
        lines.extend([(other, style)] if other else [] for other in others)
    return lines


def wrap(spans: Sequence[Span], width: int, hanging: int = 0) -> list[Line]:
    """Wrap text at words to `width` cells; rows after the first of a logical line are indented by `hanging` cells."""
    wrapped: list[Line] = []
    for line in split_lines(spans):
        text = "".join([piece for piece, _style in line])
        if "\t" in text:
            line, _origins = expand_tabs(line)
            text = "".join([piece for piece, _style in line])
        rows = break_text(text, width)
        if len(rows) == 1:
            wrapped.append(Line(tuple(slice_spans(line, rows)[0])) if line else EMPTY)
        elif hanging:
            wrapped.extend(_hang(line, text, rows[0], width, hanging))
        else:
            wrapped.extend(_joined(line, text, rows))
    return wrapped


def _joined(line: Sequence[Span], text: str, rows: Sequence[tuple[int, int]]) -> list[Line]:
    last = len(rows) - 1
    return [
        Line(row, index < last, 0, text[rows[index][1] : rows[index + 1][0]] if index < last else "")
        for index, row in enumerate(slice_spans(line, rows))
    ]


def _hang(line: Sequence[Span], text: str, first: tuple[int, int], width: int, hanging: int) -> list[Line]:
    rest = len(text) - len(text[first[1] :].lstrip(" "))
    head, tail = slice_spans(line, [first, (rest, len(text))])
    below = wrap(tail, max(width - hanging, 1))
    blank = (" " * hanging, "text")
    return [Line(head, bool(below), 0, text[first[1] : rest]), *indent(below, blank, blank)]


def wrap_code(spans: Sequence[Span], width: int) -> list[Line]:
    """Wrap one line of code to `width` cells: every space stays, tabs are shown as spaces and copied as tabs."""
    text = "".join([piece for piece, _style in spans])
    if "\t" not in text:
        rows = break_code(text, width)
        return _joined(spans, text, rows) if text else [EMPTY]
    shown, origins = expand_tabs(spans)
    expanded = "".join([piece for piece, _style in shown])
    rows = break_code(expanded, width)
    last = len(rows) - 1
    return [
        Line(row, index < last, 0, "", text[origins[rows[index][0]] : origins[rows[index][1]]])
        for index, row in enumerate(slice_spans(shown, rows))
    ]


def expand_tabs(spans: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """Return the spans with tabs as spaces, and for each index of the result (and its end) where it comes from."""
    shown: list[Span] = []
    origins: list[int] = []
    cells = offset = 0
    for text, style in spans:
        pieces: list[str] = []
        for index, part in enumerate(text.split("\t")):
            if index:
                step = TAB - cells % TAB
                pieces.append(" " * step)
                origins.extend([offset] * step)
                cells += step
                offset += 1
            pieces.append(part)
            origins.extend(range(offset, offset + len(part)))
            cells += cell_width(part)
            offset += len(part)
        shown.append(("".join(pieces), style))
    origins.append(offset)
    return shown, origins
