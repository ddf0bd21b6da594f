"""Diffs as lines: numbers and signs in the gutter, the code's own colours, two columns on a wide screen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.message import DiffView
from tenuto.session.diff_rows import DIFF_SIGNS, DiffRow, parse_diff
from tenuto.session.results import change_words
from tenuto.text.lexer import highlight, language_of
from tenuto.tui.render.line import Line, Span, plain, wrap_code
from tenuto.tui.render.options import DiffLayout, Glyphs, more_text
from tenuto.tui.render.width import truncate

SPLIT_WIDTH = 136
"""Cells that a diff has on a screen of 140: from there on "auto" shows two columns."""
MIN_SPLIT_WIDTH = 60
FOLDED_ROWS = 20
FOLDED_PARTS = 3
"""Rows that one very long line takes at most while the diff is folded."""
ESTIMATED_GUTTER = 6
_UNSEEN = ("\\", "diff --git ", "index ", "--- ", "+++ ", "similarity index ")
"""How lines of a diff begin that have no row."""
_HIGHLIGHTED_CHARACTERS = 60_000


def diff_summary(views: Sequence[DiffView], glyphs: Glyphs) -> tuple[Span, ...]:
    """Return "+12 −3" as spans, for all files together."""
    added, removed = sum(view.added for view in views), sum(view.removed for view in views)
    return (f"+{added}", "diff.plus"), (" ", "dim"), (f"{glyphs.minus}{removed}", "diff.minus")


def diff_head(view: DiffView, glyphs: Glyphs) -> tuple[Span, ...]:
    """Return which file changes, by how much, and whether it is new, goes or moves, as spans."""
    path: Span = (sanitize_line(view.path), "path")
    words = change_words(view)
    more: tuple[Span, ...] = ((f" {words}", "dim"),) if words else ()
    return (path, (" ", ""), *diff_summary([view], glyphs), *more)


def diff_lines(
    view: DiffView,
    width: int,
    glyphs: Glyphs,
    limit: int | None = None,
    layout: DiffLayout = "auto",
    *,
    expand_key: str = "",
) -> list[Line]:
    """Return the rows of a diff within `width` cells, at most `limit` lines of it and then how many more there are.

    Without a limit nothing is left out, however long a line is.
    """
    rows = parse_diff(view.diff, limit)
    shown = rows if limit is None or len(rows) <= limit else rows[:limit]
    digits = len(str(max((max(row.old, row.new) for row in rows), default=1)))
    drawn = _Drawing(width, digits, glyphs, None if limit is None else FOLDED_PARTS)
    colours = _coloured(shown, view.path)
    if _in_two_columns(rows, width, layout):
        lines = drawn.side_by_side(shown, colours)
    else:
        lines = [line for row, spans in zip(shown, colours, strict=True) for line in drawn.row(row, spans)]
    if len(shown) < len(rows):
        lines.append(plain(more_text(f"{len(rows) - len(shown)} lines", width, glyphs, expand_key), "dim"))
    return lines


def diff_height(view: DiffView, width: int, limit: int | None, layout: DiffLayout) -> int:
    """Return about how many lines `diff_lines` would give, at the cost of looking at each line's first characters."""
    rows = [row for row in view.diff.removesuffix("\n").split("\n") if not row.startswith(_UNSEEN)]
    rows = rows[1:] if rows and rows[0].startswith("@@ -") else rows
    is_split = bool(view.removed) and width >= _split_width(width, layout)
    room = max((width // 2 if is_split else width) - ESTIMATED_GUTTER, 1)
    most = FOLDED_PARTS if limit is not None else len(view.diff) + 1
    total = old = new = 0
    for row in rows[:limit]:
        height = min(max(1, -(-(len(row) - 1) // room)), most)
        if is_split and row[:1] in ("+", "-"):
            old, new = old + height * (row[0] == "-"), new + height * (row[0] == "+")
        else:
            total, old, new = total + max(old, new) + height, 0, 0
    return total + max(old, new) + (limit is not None and len(rows) > limit)


def _split_width(width: int, layout: DiffLayout) -> int:
    return {"auto": SPLIT_WIDTH, "split": MIN_SPLIT_WIDTH, "unified": width + 1}[layout]


def _in_two_columns(rows: Sequence[DiffRow], width: int, layout: DiffLayout) -> bool:
    """Return whether old and new stand side by side; what only adds has nothing to stand beside."""
    return width >= _split_width(width, layout) and any(row.kind == "removed" for row in rows)


def _coloured(rows: Sequence[DiffRow], path: str) -> list[list[Span]]:
    """Return each row's text in the colours of its language, both sides of a hunk read as they stand in their files."""
    plain_rows = [[(row.text, "code")] if row.text else [] for row in rows]
    if sum(len(row.text) for row in rows) > _HIGHLIGHTED_CHARACTERS:
        return plain_rows
    language = language_of(path)
    if not language:
        return plain_rows
    coloured: list[list[Span]] = plain_rows
    for begin, end in _hunks(rows):
        for kinds in (("removed", "context"), ("added", "context")):
            places = [place for place in range(begin, end) if rows[place].kind in kinds]
            for place, spans in zip(
                places, highlight("\n".join(rows[place].text for place in places), language), strict=False
            ):
                coloured[place] = spans
    return coloured


def _hunks(rows: Sequence[DiffRow]) -> Iterator[tuple[int, int]]:
    begin = 0
    for place, row in enumerate(rows):
        if row.kind in ("hunk", "note"):
            yield begin, place
            begin = place + 1
    yield begin, len(rows)


class _Drawing(Struct, frozen=True):
    """`digits` is how wide the widest number is; `parts` how many rows one line may take (`None`: all)."""

    width: int
    digits: int
    glyphs: Glyphs
    parts: int | None

    @property
    def gutter(self) -> int:
        return self.digits + 3

    def row(self, row: DiffRow, spans: Sequence[Span]) -> list[Line]:
        """Return one line of the diff, wrapped; its background reaches to the right edge."""
        if row.kind in ("hunk", "note"):
            return [self._said(row)]
        base = f"diff.{row.kind}"
        fill = "" if row.kind == "context" else base
        body = self._body(row, spans, base)
        number = (f"{row.new or row.old:>{self.digits}} ", f"diff.number {base}")
        sign = (f"{DIFF_SIGNS[row.kind]} ", f"{base}.sign")
        below = (" " * self.gutter, base)
        return [
            Line(
                (*((below,) if index else (number, sign)), *line.spans),
                line.soft, self.gutter, line.join, line.source, fill,
            )
            for index, line in enumerate(body)
        ]  # fmt: skip

    def _said(self, row: DiffRow) -> Line:
        mark = f"{self.glyphs.ellipsis} " if row.kind == "hunk" else ""
        text = truncate(f"{mark}{row.text}".rstrip(), max(self.width - self.digits - 1, 4), self.glyphs.ellipsis)
        return plain(f"{'':{self.digits + 1}}{text}", "dim")

    def _body(self, row: DiffRow, spans: Sequence[Span], base: str) -> list[Line]:
        body = wrap_code(_styled(row, spans, base), max(self.width - self.gutter, 4))
        if self.parts is not None and len(body) > self.parts:
            kept = body[: self.parts]
            rest = "".join(line.source if line.source is not None else line.text for line in body[self.parts - 1 :])
            last, ellipsis = kept[-1], self.glyphs.ellipsis
            kept[-1] = Line((*_shortened(last.spans, len(ellipsis)), (ellipsis, f"dim {base}")), source=rest)
            body = kept
        if row.ending:
            body[-1] = self._with_ending(body[-1], row.ending, base)
        return body

    def _with_ending(self, line: Line, ending: str, base: str) -> Line:
        text = f" {self.glyphs.left_arrow} {ending}"
        if line.width + len(text) > max(self.width - self.gutter, 4):
            return line
        source = line.text if line.source is None else line.source
        return Line((*line.spans, (text, f"dim {base}")), source=source)

    def side_by_side(self, rows: Sequence[DiffRow], colours: Sequence[Sequence[Span]]) -> list[Line]:
        """Return old on the left, new on the right. Copying takes the right side: what the file says now."""
        half = (self.width - 3) // 2
        column = _Drawing(half, self.digits, self.glyphs, self.parts)
        lines: list[Line] = []
        for left, right in _pairs(rows):
            if left is not None and rows[left].kind in ("hunk", "note"):
                lines.append(self._said(rows[left]))
                continue
            # The left column counts the old file's lines.
            old = column.row(rows[left]._replace(new=0), colours[left]) if left is not None else []
            new = column.row(rows[right], colours[right]) if right is not None else []
            lines.extend(self._joined(old, new, half))
        return lines

    def _joined(self, old: Sequence[Line], new: Sequence[Line], half: int) -> Iterator[Line]:
        for index in range(max(len(old), len(new))):
            left = old[index] if index < len(old) else Line(())
            right = new[index] if index < len(new) else Line(())
            spans = (
                *left.spans,
                (" " * (half - left.width), left.fill or "text"),
                (f" {self.glyphs.column} ", "rule"),
                *right.spans,
            )
            yield Line(spans, right.soft, half + 3 + right.gutter, right.join, right.source, right.fill)


def _styled(row: DiffRow, spans: Sequence[Span], base: str) -> list[Span]:
    """Return a row's spans in the diff's own style over the code's, its changed words marked."""
    edges = [(start, end) for start, end in row.marks if start < end]
    styled: list[Span] = []
    offset = 0
    for text, style in spans:
        code = "" if style == "code" else f"{style} "
        position = 0
        for start, end in edges:
            first, last = max(start - offset, position), min(end - offset, len(text))
            if first >= last:
                continue
            styled.append((text[position:first], f"{code}{base}"))
            styled.append((text[first:last], f"{code}{base}.word"))
            position = last
        styled.append((text[position:], f"{code}{base}"))
        offset += len(text)
    return [span for span in styled if span[0]]


def _shortened(spans: Sequence[Span], cells: int) -> list[Span]:
    """Return the spans without so many cells at their end."""
    kept = list(spans)
    while kept and cells > 0:
        text, style = kept.pop()
        short = text[:-cells]
        cells -= len(text) - len(short)
        if short:
            kept.append((short, style))
    return kept


def _pairs(rows: Sequence[DiffRow]) -> Iterator[tuple[int | None, int | None]]:
    """Yield which rows stand side by side, as places."""
    index = 0
    while index < len(rows):
        if rows[index].kind not in ("removed", "added"):
            yield index, index
            index += 1
            continue
        old: list[int] = []
        new: list[int] = []
        while index < len(rows) and rows[index].kind in ("removed", "added"):
            (old if rows[index].kind == "removed" else new).append(index)
            index += 1
        for position in range(max(len(old), len(new))):
            yield (old[position] if position < len(old) else None), (new[position] if position < len(new) else None)
