"""Markdown to lines. Blocks are parsed by markdown-it, inline text only when its block is rendered.

What a block looks like depends on its own source lines and on link definitions, on nothing else: that is what lets
`live.py` freeze blocks and list items while the text still grows. So a list has no looseness of its own: there is a
blank row between two siblings inside a container where the source has one, and always between top-level blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast

from msgspec import Struct, field

from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.text.lexer import highlight
from tenuto.tui.render.line import EMPTY, Line, Span, file_in_code, indent, linked_spans, wrap, wrap_code
from tenuto.tui.render.options import (
    DEFAULT,
    GUTTER,
    MEASURE,
    Glyphs,
    RenderOptions,
    glyphs_for,
    text_width,
    wide_width,
)
from tenuto.tui.render.width import cell_width, pad

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.utils import EnvType


CODE_INDENT = 2
MAX_LINE = 4_000
"""Characters; code with a longer line is data, which nobody reads: it stays plain."""
CACHED_CHARACTERS = 4_000
PIECE_CHARACTERS = 800
PIECE_TRIES = 4
"""A longer paragraph is read in pieces of so many characters, or of up to so many times that."""
_HALVES = frozenset("*_~`[]<")
"""What begins or ends something; in plain text it has not found its other half."""
WRAPPED_FROM = 60
"""Characters of a line from which on its end is taken for an editor's wrap at 72 or 80 columns and joined as Markdown
says. A shorter line was ended on purpose: models write addresses, verses and `Name: value` rows so, and no reader wants
those run together (docs/decisions.md).
"""


@lru_cache(maxsize=1)
def parser() -> MarkdownIt:
    """Return the one Markdown parser: CommonMark with tables, strikethrough and task lists, raw HTML as text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "tasklists": True})
    return parser.enable(["table", "strikethrough"]).disable(["html_block", "html_inline"])


def inline_spans(content: str, style: str, env: EnvType) -> Sequence[Span]:
    """Return the spans of a paragraph's source; `style` is what plain text in it looks like."""
    if env.get("references"):
        return _Inline(style).render(_tokens(content, env))
    return _cached_spans(content, style) if len(content) <= CACHED_CHARACTERS else _long_spans(content, style)


@lru_cache(maxsize=512)
def _cached_spans(content: str, style: str) -> Sequence[Span]:
    return _Inline(style).render(_tokens(content, {}))


def _tokens(content: str, env: EnvType) -> list[Token]:
    tokens: list[Token] = []
    markdown = parser()
    markdown.inline.parse(content, markdown, env, tokens)
    return tokens


# --- very long lines: only the end of one that grows is read again ---


def _long_spans(content: str, style: str) -> list[Span]:
    """Return the spans of a long paragraph piece by piece, each of which is remembered: the same as of the whole."""
    spans: list[Span] = []
    begin = 0
    while len(content) - begin > CACHED_CHARACTERS and (piece := _next_piece(content, begin, style)) is not None:
        _join(spans, piece.spans)
        begin += piece.length
    rest = _Inline(style, WRAPPED_FROM if begin else 0)
    _join(spans, rest.render(_tokens(content[begin:], {})))
    return spans


class _Piece(NamedTuple):
    """A part of a line. A `closed` one is read alike whatever follows: nothing in it waits for its other half."""

    length: int
    spans: Sequence[Span]
    closed: bool


def _next_piece(content: str, begin: int, style: str) -> _Piece | None:
    """Return the first closed piece from `begin` on that ends behind a space, if there is one soon."""
    end = begin
    for _ in range(PIECE_TRIES):
        end = content.find(" ", end + PIECE_CHARACTERS, begin + CACHED_CHARACTERS) + 1
        if not end or "\n" in content[begin:end]:
            return None
        piece = _piece(content[begin:end], style)
        if piece.closed:
            return piece
    return None


@lru_cache(maxsize=256)
def _piece(source: str, style: str) -> _Piece:
    tokens = _tokens(source, {})
    closed = not any(token.type == "text" and _HALVES & set(token.content) for token in tokens)
    return _Piece(len(source), _Inline(style, WRAPPED_FROM).render(tokens), closed)


def _join(spans: list[Span], more: Sequence[Span]) -> None:
    """Add spans, the first of them to the last one if they have one style."""
    if spans and more and spans[-1][1] == more[0][1]:
        spans[-1] = (spans[-1][0] + more[0][0], more[0][1])
        more = more[1:]
    spans.extend(more)


class _Inline:
    """Walks the inline tokens of one paragraph, keeping the styles that are open."""

    def __init__(self, style: str, line_length: int = 0) -> None:
        self._open = [style]
        self._link = ""
        self._link_text = ""
        self._line_length = line_length
        self._spans: list[Span] = []

    def render(self, tokens: Sequence[Token]) -> list[Span]:
        for token in tokens:
            self._token(token)
        return self._spans

    def _token(self, token: Token) -> None:
        match token.type:
            case "text" | "text_special":
                self._add(token.content, "")
            case "softbreak" | "hardbreak":
                wrapped = token.type == "softbreak" and self._line_length >= WRAPPED_FROM
                self._spans.append((" " if wrapped else "\n", self._open[0]))
                self._line_length = 0
            case "code_inline":
                self._add(token.content, "code.inline")
            case "strong_open":
                self._open.append("bold")
            case "em_open":
                self._open.append("italic")
            case "s_open":
                self._open.append("strike")
            case "strong_close" | "em_close" | "s_close":
                self._open.pop()
            case "link_open":
                self._link = str(token.attrs.get("href", "")).replace(" ", "%20")
                self._link_text = ""
                self._open.append("link")
            case "link_close":
                self._close_link()
            case "image":
                self._image(token)
            case _:
                self._add(token.content, "")

    def _add(self, text: str, style: str) -> None:
        if not (text.isascii() and text.isprintable()):
            # Character references (`&#13;`, `&#x202e;`) bring back what the source was rid of.
            text = sanitize_for_terminal(text).replace("\n", " ")
        if not text:
            return
        self._line_length += len(text)
        words = [*self._open, style] if style else self._open
        if self._link:
            self._link_text += text
            words = [*words, f"@{self._link}"]
        elif style == "code.inline" and (link := file_in_code(text)):
            words = [*words, link]
        elif "://" in text:
            self._spans.extend(linked_spans(text, " ".join(words)))
            return
        self._spans.append((text, " ".join(words)))

    def _close_link(self) -> None:
        target, self._link = self._link, ""
        self._open.pop()
        if target and self._link_text not in (target, target.removeprefix("mailto:")):
            self._spans.append((f" ({target})", f"link.target @{target}"))

    def _image(self, token: Token) -> None:
        target = str(token.attrs.get("src", "")).replace(" ", "%20")
        self._add(f"[image: {token.content}]" if token.content else "[image]", "dim")
        if target:
            self._spans.append((f" ({target})", f"link.target @{target}"))


Alignment = Literal["left", "right", "center"]
MIN_COLUMN = 4


class Cell(NamedTuple):
    """One cell of a table; its spans have no newline."""

    spans: Sequence[Span]
    alignment: Alignment = "left"

    @property
    def width(self) -> int:
        """Cells of its text on one row."""
        return sum(cell_width(text) for text, _style in self.spans)


def table_lines(header: Sequence[Cell], rows: Sequence[Sequence[Cell]], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a table's rows within `width` cells; cell by cell where columns have no room, or would not be seen."""
    columns = len(header)
    if not glyphs.column or columns * MIN_COLUMN + 3 * (columns - 1) > width:
        return _records(header, rows, width)
    natural = [max(1, *(row[index].width for row in [header, *rows])) for index in range(columns)]
    widths = fit_columns(natural, width - 3 * (columns - 1))
    if widths != natural:
        least = [max(_longest_word(row[index]) for row in [header, *rows]) for index in range(columns)]
        widths = keep_words_whole(widths, least)
    lines = _row(header, widths, glyphs)
    rule = f"{glyphs.rule}{glyphs.cross}{glyphs.rule}".join(glyphs.rule * column for column in widths)
    lines.append(Line(((rule, "rule"),)))
    drawn = [_row(row, widths, glyphs) for row in rows]
    # Rows of several lines would run into each other.
    between = [Line(((rule, "rule"),))] if any(len(row) > 1 for row in drawn) else []
    for place, row in enumerate(drawn):
        lines.extend([*between, *row] if place else row)
    return lines


def fit_columns(natural: Sequence[int], available: int) -> list[int]:
    """Return column widths whose sum is at most `available`: narrow columns keep theirs, wide ones share the rest."""
    if sum(natural) <= available:
        return list(natural)
    widths = list(natural)
    left, open_columns = available, sorted(range(len(natural)), key=lambda index: natural[index])
    while open_columns:
        share = left // len(open_columns)
        index = open_columns[0]
        if natural[index] > share:
            break
        left -= natural[index]
        open_columns.pop(0)
    for position, index in enumerate(open_columns):
        share = left // (len(open_columns) - position)
        widths[index] = share
        left -= share
    return widths


def keep_words_whole(widths: Sequence[int], least: Sequence[int]) -> list[int]:
    """Return the widths with cells moved to where a word of `least` cells has none, from where they can be spared."""
    moved = list(widths)
    for index in sorted(range(len(moved)), key=lambda index: least[index]):
        spare = [max(0, width - words) for width, words in zip(moved, least, strict=True)]
        lacking = least[index] - moved[index]
        if not 0 < lacking <= sum(spare):
            continue
        moved[index] += lacking
        while lacking:
            giver = max(range(len(moved)), key=lambda place: spare[place] if place != index else 0)
            moved[giver] -= 1
            spare[giver] -= 1
            lacking -= 1
    return moved


def _longest_word(cell: Cell) -> int:
    return max((cell_width(word) for word in "".join(text for text, _style in cell.spans).split()), default=0)


def _row(cells: Sequence[Cell], widths: Sequence[int], glyphs: Glyphs) -> list[Line]:
    wrapped = [wrap(cell.spans, column) for cell, column in zip(cells, widths, strict=True)]
    lines: list[Line] = []
    rule = (f" {glyphs.column} ", "rule")
    for height in range(max(len(lines_of_cell) for lines_of_cell in wrapped)):
        spans: list[Span] = []
        for index, column in enumerate(widths):
            line = wrapped[index][height] if height < len(wrapped[index]) else EMPTY
            if index:
                spans.append(rule)
            _align(spans, line, column, cells[index].alignment)
        while spans and not spans[-1][0].strip():
            spans.pop()
        lines.append(Line(tuple(spans)))
    return lines


def _align(spans: list[Span], line: Line, column: int, alignment: Alignment) -> None:
    space = column - line.width
    before = {"left": 0, "right": space, "center": space // 2}[alignment]
    if before > 0:
        spans.append(_blank(before))
    spans.extend(line.spans)
    if space - before > 0:
        spans.append(_blank(space - before))


@lru_cache(maxsize=256)
def _blank(cells: int) -> Span:
    """Return one object for each width: a long table has thousands."""
    return " " * cells, "text"


def _records(header: Sequence[Cell], rows: Sequence[Sequence[Cell]], width: int) -> list[Line]:
    lines: list[Line] = []
    for row in rows:
        if lines:
            lines.append(EMPTY)
        for name, cell in zip(header, row, strict=True):
            lines.extend(wrap([*name.spans, (": ", "dim"), *cell.spans], width, 2 if width > 8 else 0))
    return lines or wrap([span for name in header for span in (*name.spans, (" ", "text"))], width)


References = dict[str, Any]
Extent = tuple[int, int]
"""(index of the first token, index after the last) of one block."""
LIST_TYPES = ("bullet_list_open", "ordered_list_open")
MIN_TEXT = 8
"""Containers that would leave their text less than this are drawn without further indentation."""


class Document(Struct):
    """Parsed blocks. `source` are the lines that the tokens' maps count."""

    tokens: list[Token]
    source: list[str]
    references: References
    blocks: list[Extent] = field(default_factory=list[Extent])

    def first_line(self, extent: Extent) -> int:
        """Return the source line on which a block begins."""
        lines = self.tokens[extent[0]].map
        return lines[0] if lines else 0


def parse(text: str, references: References) -> Document:
    """Parse the blocks of a cleaned text; link definitions that are known already hold in it."""
    env: dict[str, Any] = {"references": dict(references)}
    tokens: list[Token] = []
    markdown = parser()
    markdown.block.parse(text, markdown, env, tokens)
    found = cast("References", env["references"])
    document = Document(tokens, text.split("\n"), found)
    document.blocks = siblings(tokens, 0, len(tokens))
    return document


def siblings(tokens: Sequence[Token], begin: int, end: int) -> list[Extent]:
    """Return the extents of the blocks that lie side by side between two tokens."""
    extents: list[Extent] = []
    while begin < end:
        depth, index = tokens[begin].nesting, begin + 1
        while depth > 0:
            depth += tokens[index].nesting
            index += 1
        extents.append((begin, index))
        begin = index
    return extents


class BlockRenderer(Struct, frozen=True):
    """Renders the blocks of one document. `text` and `wide` are cells: for running text, and for code and tables."""

    document: Document
    text: int
    wide: int
    glyphs: Glyphs
    depth: int = 0

    def render(self, extent: Extent) -> list[Line]:
        """Return the lines of one block."""
        token = self.document.tokens[extent[0]]
        match token.type:
            case "paragraph_open":
                return wrap(self._inline(extent, "text"), self.text)
            case "heading_open":
                return wrap(self._inline(extent, f"heading.{min(int(token.tag[1:]), 3)}"), self.text)
            case "fence":
                return self.code(token.content.removesuffix("\n"), token.info)
            case "code_block":
                return self.code(token.content.removesuffix("\n"), "")
            case _ if token.type in LIST_TYPES:
                return self._list(extent)
            case "blockquote_open":
                return self._quote(extent)
            case "table_open":
                return self._table(extent)
            case "hr":
                return [Line(((self.glyphs.rule * min(self.text, 40), "rule"),))]
            case _:
                return wrap([(token.content, "text")], self.text)

    def code(self, code: str, info: str) -> list[Line]:
        """Return the lines of code; the first word of `info` names its language."""
        words = info.replace("{", " ").replace(",", " ").split()
        language = words[0] if words and all(len(line) <= MAX_LINE for line in code.split("\n")) else ""
        room = max(self.wide - CODE_INDENT, 4)
        blank, mark = (" " * CODE_INDENT, "code"), (pad(self.glyphs.continued, CODE_INDENT), "faint")
        return [row for spans in highlight(code, language) for row in indent(wrap_code(spans, room), blank, mark)]

    def items(self, extent: Extent) -> list[Extent]:
        """Return the extents of a list's items."""
        return siblings(self.document.tokens, extent[0] + 1, extent[1] - 1)

    def item(self, extent: Extent, marker: str) -> list[Line]:
        """Return the lines of one list item behind its marker."""
        token = self.document.tokens[extent[0]]
        if "checked" in token.meta:
            marker = self.glyphs.checked if token.meta["checked"] else self.glyphs.unchecked
        first = (f"{marker} ", "list.marker")
        inner = self._inside(len(first[0]))
        lines = inner.container((extent[0] + 1, extent[1] - 1)) or [EMPTY]
        if not self._fits(len(first[0])):
            return lines
        return indent(lines, first, (" " * len(first[0]), "text"), visible=True)

    def marker(self, extent: Extent, index: int) -> str:
        """Return the marker of a list's item, which counts from 0."""
        token = self.document.tokens[extent[0]]
        if token.type == "bullet_list_open":
            return self.glyphs.bullets[self.depth % len(self.glyphs.bullets)]
        return f"{self.number(extent, index)}{token.markup or '.'}"

    def number(self, extent: Extent, index: int) -> int:
        """Return the number of a list's item, which counts from 0."""
        return int(self.document.tokens[extent[0]].attrs.get("start", 1)) + index

    def blank_before(self, extent: Extent) -> bool:
        """Say whether the source has an empty line before a block, whatever quotes it stands in."""
        line = self.document.first_line(extent)
        return line > 0 and not self.document.source[line - 1].strip(" \t>")

    def container(self, extent: Extent) -> list[Line]:
        """Return the lines of all blocks inside a container."""
        lines: list[Line] = []
        for block in siblings(self.document.tokens, *extent):
            rendered = self.render(block)
            if lines and rendered and self.blank_before(block):
                lines.append(EMPTY)
            lines.extend(rendered)
        return lines

    def _fits(self, cells: int) -> bool:
        return self.text - cells >= MIN_TEXT

    def _inside(self, cells: int) -> BlockRenderer:
        taken = cells if self._fits(cells) else 0
        return BlockRenderer(self.document, self.text - taken, self.wide - taken, self.glyphs, self.depth + 1)

    def _inline(self, extent: Extent, style: str) -> Sequence[Span]:
        content = self.document.tokens[extent[0] + 1].content
        return inline_spans(content, style, {"references": self.document.references})

    def _list(self, extent: Extent) -> list[Line]:
        lines: list[Line] = []
        for index, item in enumerate(self.items(extent)):
            if lines and self.blank_before(item):
                lines.append(EMPTY)
            lines.extend(self.item(item, self.marker(extent, index)))
        return lines

    def _quote(self, extent: Extent) -> list[Line]:
        lines = self._inside(2).container((extent[0] + 1, extent[1] - 1)) or [EMPTY]
        if not self._fits(2):
            return lines
        bar = (f"{self.glyphs.bar} ", "quote.bar")
        return indent(lines, bar, bar)

    def _table(self, extent: Extent) -> list[Line]:
        rows: list[list[Cell]] = []
        for index in range(*extent):
            token = self.document.tokens[index]
            if token.type == "tr_open":
                rows.append([])
            elif token.type in ("th_open", "td_open"):
                rows[-1].append(self._cell(index, "table.head" if token.type == "th_open" else "text"))
        return table_lines(rows[0], rows[1:], self.wide, self.glyphs)

    def _cell(self, index: int, style: str) -> Cell:
        alignment = str(self.document.tokens[index].attrs.get("style", "")).removeprefix("text-align:")
        content = self.document.tokens[index + 1].content
        spans = inline_spans(content, style, {"references": self.document.references})
        return Cell(spans, cast("Alignment", alignment) if alignment else "left")


def renderer_for(document: Document, width: int, options: RenderOptions) -> BlockRenderer:
    """Return the renderer of a document on a screen of `width` cells, the item's gutter taken off."""
    return BlockRenderer(document, text_width(width), wide_width(width), glyphs_for(options))


GUTTER_SPAN: Span = (" " * GUTTER, "text")


def render_markdown(text: str, width: int, options: RenderOptions = DEFAULT) -> list[Line]:
    """Return the lines of a Markdown text on a screen of `width` cells, each behind the item's gutter."""
    return indent(render_blocks(text, wide_width(width), glyphs_for(options)), GUTTER_SPAN, GUTTER_SPAN)


def render_blocks(text: str, width: int, glyphs: Glyphs) -> list[Line]:
    """Return the lines of a Markdown text within `width` cells."""
    document = parse(sanitize_for_terminal(text), {})
    renderer = BlockRenderer(document, min(width, MEASURE), width, glyphs)
    lines: list[Line] = []
    for block in document.blocks:
        rendered = renderer.render(block)
        if lines and rendered:
            lines.append(EMPTY)
        lines.extend(rendered)
    return lines
