"""Inline Markdown: one paragraph's source becomes spans."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from tenuto.guard.sanitize import sanitize_for_terminal
from tenuto.tui.render.line import Span
from tenuto.tui.render.links import file_in_code, linked_spans

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token
    from markdown_it.utils import EnvType

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
