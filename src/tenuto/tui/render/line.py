"""Rows of styled text, which both screens paint: wrapping by cells, links, colours of a program's output.

A style name is one or more words, applied from left to right: a name of the theme (`code.keyword`), a modifier
(`bold`, `italic`, …), a colour (`fg=2`, `bg=#102030`) and, last, a link target (`@https://…`). See `theme.py`. A link
is the word `@` and its target: an address, or `path:` and a file's path as it was written, with `#` and a line;
`tui/terminal/emulator.py` makes of it what is sent. Pure; nothing is looked up on the disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from msgspec import Struct

from tenuto.guard.terminal import sanitize_keeping_colour
from tenuto.tui.render.width import cell_width, split_graphemes, take_cells, truncate

Span = tuple[str, str]
"""(text, style name)"""


class Line(msgspec.Struct, frozen=True, gc=False):
    """One row. Thousands of them are alive: keep it small.

    `gutter` is how many leading cells copying leaves out. `soft` says that the next line continues this one; `join` is
    what the wrap swallowed between the two. `source` is what the row stands for where that is not what it shows
    (a tab that was expanded). `fill` is the style of the screen's row to the right of the text.
    """

    spans: tuple[Span, ...]
    soft: bool = False
    gutter: int = 0
    join: str = ""
    source: str | None = None
    fill: str = ""

    @property
    def text(self) -> str:
        """The row as painted, gutter included."""
        if len(self.spans) == 1:
            return self.spans[0][0]
        return "".join([text for text, _style in self.spans])

    @property
    def width(self) -> int:
        """Cells of the whole row, gutter included."""
        return sum([cell_width(text) for text, _style in self.spans])


EMPTY = Line(())


class Position(NamedTuple):
    """A place in a range of lines: the row, and the cell in it."""

    row: int
    cell: int


def plain(text: str, style: str = "text") -> Line:
    """Return a line of one style."""
    return Line(((text, style),))


def with_fill(line: Line, style: str) -> Line:
    """Return the line with a style for the screen's row to the right of its text."""
    return Line(line.spans, line.soft, line.gutter, line.join, line.source, style)


def indent(lines: Iterable[Line], first: Span, rest: Span, *, visible: bool = False) -> list[Line]:
    """Put `first` before the first line and `rest`, of the same width, before all others.

    The prefix becomes gutter. With `visible` it is content (a list's bullet, the indentation of its paragraphs),
    except where a line continues a soft wrap or already begins with a gutter.
    """
    prefixed: list[Line] = []
    prefix, width = first, cell_width(first[0])
    continues = False
    for line in lines:
        hidden = not visible or continues or line.gutter > 0
        if line.spans or prefix[0].strip():
            gutter = line.gutter + width if hidden else 0
            shown = _shown(line, prefix, hidden)
            prefixed.append(Line((prefix, *line.spans), line.soft, gutter, line.join, shown, line.fill))
        else:
            prefixed.append(line)
        continues = line.soft
        prefix = rest
    return prefixed


def _shown(line: Line, prefix: Span, hidden: bool) -> str | None:
    if line.source is None or hidden:
        return line.source
    return prefix[0] + line.source


def copy_text(lines: Sequence[Line], start: Position | None = None, end: Position | None = None) -> str:
    """Return the logical text of `lines` between two positions (`end` exclusive): no gutter, soft wraps joined."""
    first = start or Position(0, 0)
    last = end or Position(len(lines), 0)
    pieces: list[str] = []
    stop = min(last.row + (1 if last.cell > 0 else 0), len(lines))
    for row in range(max(first.row, 0), stop):
        line = lines[row]
        begin = first.cell if row == first.row else 0
        finish = last.cell if row == last.row else None
        pieces.append(_copied(line, begin, finish))
        if row + 1 < stop:
            pieces.append(line.join if line.soft else "\n")
    return "".join(pieces)


def _copied(line: Line, begin: int, finish: int | None) -> str:
    whole = begin <= line.gutter and (finish is None or finish >= line.width)
    if whole and line.source is not None:
        return line.source
    text = line.text
    from_index = take_cells(text, begin) if begin > line.gutter else text_start(line)
    to_index = len(text) if finish is None else take_cells(text, finish)
    return text[from_index:to_index]


def text_start(line: Line) -> int:
    """Return the index at which the gutter of a row ends; a mark without width right behind it is text."""
    cells = index = 0
    for text, _style in line.spans:
        if cells >= line.gutter:
            break
        cells += cell_width(text)
        index += len(text)
    return index


def last_row(lines: Sequence[Line], row: int) -> int:
    """Return the last row of the logical line that a row belongs to."""
    while lines[row].soft and row + 1 < len(lines):
        row += 1
    return row


def logical_lines(lines: Sequence[Line]) -> Iterator[tuple[int, int]]:
    """Yield the first and the last row of each logical line."""
    first = 0
    while first < len(lines):
        last = last_row(lines, first)
        yield first, last
        first = last + 1


def fit(spans: Sequence[Span], width: int) -> Line:
    """Return a line of these spans, cut to `width` cells."""
    fitted: list[Span] = []
    left = width
    for text, style in spans:
        piece = truncate(text, left)
        if piece:
            fitted.append((piece, style))
        left -= cell_width(piece)
    return Line(tuple(fitted))


def fit_lines(lines: Sequence[Line], width: int) -> list[Line]:
    """Return the lines, those cut that are wider than `width` cells."""
    return [line if line.width <= width else fit(line.spans, width) for line in lines]


def filled(line: Line, width: int) -> Line:
    """Return the line with its fill as spaces up to `width` cells: for what is painted but never copied."""
    if not line.fill or line.width >= width:
        return line
    return Line((*line.spans, (" " * (width - line.width), line.fill)))


_COLOUR = re.compile(r"\x1b\[([0-9;:]*)m")
_OVERSTRUCK = re.compile(r"[^\b\n]\x08")
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}
_ENDS = {22: ("bold", "dim"), 23: ("italic",), 24: ("underline",), 27: ("reverse",), 29: ("strike",)}
_MAX_PARAMETERS = 64


class _Pen(Struct):
    foreground: str = ""
    background: str = ""
    attributes: tuple[str, ...] = ()

    def style(self, base: str) -> str:
        """Return the style name that the pen draws with."""
        if not (self.foreground or self.background or self.attributes):
            return base
        return " ".join(filter(None, (base, self.foreground, self.background, *self.attributes)))

    def select(self, parameters: str) -> None:
        """Apply one SGR sequence; what it does not know it leaves out."""
        codes = iter(_codes(parameters))
        for code in codes:
            if code == 0:
                self.foreground, self.background, self.attributes = "", "", ()
            elif code in _ATTRIBUTES:
                if _ATTRIBUTES[code] not in self.attributes:
                    self.attributes = (*self.attributes, _ATTRIBUTES[code])
            elif code in _ENDS:
                self.attributes = tuple(name for name in self.attributes if name not in _ENDS[code])
            elif code in (38, 48):
                self._colour(code == 38, _extended(codes))
            elif 30 <= code <= 37 or 90 <= code <= 97:
                self.foreground = f"fg={code - 30 if code < 90 else code - 82}"
            elif 40 <= code <= 47 or 100 <= code <= 107:
                self.background = f"bg={code - 40 if code < 100 else code - 92}"
            elif code == 39:
                self.foreground = ""
            elif code == 49:
                self.background = ""

    def _colour(self, is_foreground: bool, colour: str) -> None:
        if colour and is_foreground:
            self.foreground = f"fg={colour}"
        elif colour:
            self.background = f"bg={colour}"


def _codes(parameters: str) -> list[int]:
    codes: list[int] = []
    for group in parameters.split(";")[:_MAX_PARAMETERS]:
        fields = group.split(":")
        if len(fields) >= 6 and fields[0] in ("38", "48") and fields[1] == "2":
            fields.pop(2)  # the colour space, which only the colon form has
        if len(fields) > 1 and fields[0] not in ("38", "48"):
            fields = ["24"] if fields == ["4", "0"] else fields[:1]
        codes.extend(int(field) if field.isdecimal() and len(field) < 4 else 0 for field in fields)
    return codes


def _extended(codes: Iterator[int]) -> str:
    kind = next(codes, 0)
    if kind == 5:
        return str(min(next(codes, 0), 255))
    if kind == 2:
        red, green, blue = (min(next(codes, 0), 255) for _ in range(3))
        return f"#{red:02x}{green:02x}{blue:02x}"
    return ""


def ansi_lines(text: str, style: str = "output") -> list[list[Span]]:
    """Return the rows of a program's output; tabs stay, and of a row written over by carriage returns the last."""
    if "\b" in text:
        text = _OVERSTRUCK.sub("", text)
    if "\r" in text:
        text = "\n".join([_last_written(line) for line in text.split("\n")])
    pen = _Pen()
    return [_row(line, pen, style) for line in sanitize_keeping_colour(text).split("\n")]


def _last_written(line: str) -> str:
    before, _return, last = line.rstrip("\r").rpartition("\r")
    return "".join(match[0] for match in _COLOUR.finditer(before)) + last


def _row(line: str, pen: _Pen, style: str) -> list[Span]:
    spans: list[Span] = []
    position = 0
    for match in _COLOUR.finditer(line):
        if match.start() > position:
            spans.append((line[position : match.start()], pen.style(style)))
        position = match.end()
        pen.select(match[1])
    if position < len(line):
        spans.append((line[position:], pen.style(style)))
    return spans


PATH = "path:"
_ADDRESS = re.compile(r"https?://[^\s<>\"'`\x00-\x1f|│\\^{}]+")
_FILE = re.compile(
    r"(?P<path>(?:~/|/|\.{1,2}/)?(?:[\w.@+-]+/)*[\w.@+-]*\.[A-Za-z]\w{0,9})(?::(?P<line>\d+)(?:[:-]\d+)?)?\Z"
)
_TRAILING = ".,;:!?*_…"
_CLOSING = {")": "(", "]": "["}
LONGEST_PATH = 200
"""Characters; what is longer in code is no name of a file."""


def address_spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where the web addresses in a text begin and end, without the punctuation of the sentence."""
    if "://" not in text:
        return
    for found in _ADDRESS.finditer(text):
        end = found.end()
        while end > found.start():
            last = text[end - 1]
            within = text[found.start() : end]
            unopened = last in _CLOSING and within.count(last) > within.count(_CLOSING[last])
            if last not in _TRAILING and not unopened:
                break
            end -= 1
        if end > found.start() + len("https://"):
            yield found.start(), end


def file_link(path: str, line: int = 0) -> str:
    """Return the style word that links to a file."""
    return f"@{PATH}{quote(path)}{f'#{line}' if line else ''}"


def file_in_code(text: str) -> str:
    """Return the style word for code that names a file (`src/app.py`, `app.py:12`), empty for other code."""
    found = _FILE.match(text) if len(text) <= LONGEST_PATH and "." in text else None
    if found is None or not ("/" in found["path"] or found["line"]):
        return ""
    return file_link(found["path"], int(found["line"] or 0))


def linked_spans(text: str, style: str) -> list[Span]:
    """Return a text of one style as spans, the addresses in it as links."""
    spans: list[Span] = []
    done = 0
    for begin, end in address_spans(text):
        spans += [(text[done:begin], style)] if begin > done else []
        spans.append((text[begin:end], f"{style} link @{text[begin:end]}"))
        done = end
    return [*spans, (text[done:], style)] if done < len(text) or not spans else spans


def link_addresses(lines: Sequence[Line]) -> list[Line]:
    """Return an item's rows with the addresses in them as links, whole where they are wrapped over several rows."""
    linked: list[Line] = []
    for first, last in logical_lines(lines):
        rows = lines[first : last + 1]
        linked += _link_rows(rows) if any(":/" in row.text or row.soft for row in rows) else rows
    return linked


def _link_rows(rows: Sequence[Line]) -> Sequence[Line]:
    starts = [text_start(row) for row in rows]
    texts = [row.text[start:] for row, start in zip(rows, starts, strict=True)]
    joined = "".join([text + row.join * row.soft for row, text in zip(rows, texts, strict=True)])
    found = [(begin, end, joined[begin:end]) for begin, end in address_spans(joined)]
    if not found:
        return rows
    changed: list[Line] = []
    offset = 0
    for row, start, text in zip(rows, starts, texts, strict=True):
        here = [(begin - offset + start, end - offset + start, target) for begin, end, target in found]
        spans = _with_links(row.spans, here, start)
        changed.append(Line(tuple(spans), row.soft, row.gutter, row.join, row.source, row.fill))
        offset += len(text) + (len(row.join) if row.soft else 0)
    return changed


def _with_links(spans: Sequence[Span], found: Sequence[tuple[int, int, str]], start: int) -> list[Span]:
    """Return a row's spans, those parts that lie in one of the links (indices into the row) with its target."""
    made: list[Span] = []
    at = 0
    for text, style in spans:
        end = at + len(text)
        cuts = sorted({at, end, *(cut for link in found for cut in link[:2] if at < cut < end)})
        for begin, stop in pairwise(cuts):
            target = next((link[2] for link in found if link[0] <= begin and stop <= link[1] and begin >= start), "")
            piece = text[begin - at : stop - at]
            made.append((piece, f"{style} @{target}" if target and "@" not in style else style))
        at = end
    return made


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
