"""Markdown to lines. Blocks are parsed by markdown-it, inline text only when its block is rendered.

What a block looks like depends on its own source lines and on link definitions, on nothing else: that is what lets
`stream.py` freeze blocks and list items while the text still grows. So a list has no looseness of its own: there is a
blank row between two siblings inside a container where the source has one, and always between top-level blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, cast

from msgspec import Struct, field

from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.tui.render.code import code_lines
from tenuto.tui.render.inline import inline_spans, parser
from tenuto.tui.render.line import EMPTY, Line, Span, indent
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
from tenuto.tui.render.table import Alignment, Cell, table_lines
from tenuto.tui.render.wrap import wrap

if TYPE_CHECKING:
    from markdown_it.token import Token

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
        return code_lines(code, words[0] if words else "", self.wide, self.glyphs.continued)

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
