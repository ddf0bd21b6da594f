"""Code: spans by kind of token (pygments, imported at the first fence), and its rows."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tenuto.text.lexer import find_lexer, look_up_kind
from tenuto.tui.render.line import Line, Span, indent
from tenuto.tui.render.width import pad
from tenuto.tui.render.wrap import wrap_code

if TYPE_CHECKING:
    from pygments.token import _TokenType  # pyright: ignore[reportPrivateUsage]

CODE_INDENT = 2
MAX_CHARACTERS = 400_000
MAX_LINE = 4_000
"""Beyond these a text is data, not code that somebody reads: it stays plain."""

_STYLES = {
    "Keyword": "code.keyword",
    "Keyword.Constant": "code.number",
    "Name.Function": "code.function",
    "Name.Class": "code.type",
    "Name.Builtin": "code.builtin",
    "Name.Builtin.Pseudo": "code.builtin",
    "Name.Exception": "code.type",
    "Name.Decorator": "code.decorator",
    "Name.Tag": "code.keyword",
    "Name.Attribute": "code.function",
    "Name.Constant": "code.number",
    "Literal.String": "code.string",
    "Literal.Number": "code.number",
    "Comment": "code.comment",
    "Operator.Word": "code.keyword",
    "Generic.Inserted": "diff.plus",
    "Generic.Deleted": "diff.minus",
    "Generic.Heading": "code.comment",
    "Generic.Subheading": "code.comment",
    "Generic.Prompt": "code.comment",
}


@lru_cache(maxsize=512)
def _style_of(kind: _TokenType) -> str:
    return look_up_kind(_STYLES, kind, "code")


def highlight(code: str, language: str) -> list[list[Span]]:
    """Return the spans of each line of `code`; an unknown language gives plain code."""
    lexer = find_lexer(language.lower()) if language and len(code) <= MAX_CHARACTERS else None
    if lexer is None:
        return [[(line, "code")] if line else [] for line in code.split("\n")]
    lines: list[list[Span]] = [[]]
    # Many a lexer knows a comment or a changed line by the line end behind it.
    for _index, kind, value in lexer.get_tokens_unprocessed(f"{code}\n"):
        style = _style_of(kind)
        first, *others = value.split("\n")
        if first:
            _append(lines[-1], first, style)
        lines.extend([_span(other, style)] if other else [] for other in others)
    return lines[:-1]


def _append(line: list[Span], text: str, style: str) -> None:
    if line and line[-1][1] == style:
        line[-1] = _span(line[-1][0] + text, style)
    else:
        line.append(_span(text, style))


@lru_cache(maxsize=4_096)
def _span(text: str, style: str) -> Span:
    """Return one object for all spans that are the same: most of what code is made of comes again and again."""
    return text, style


def code_lines(code: str, language: str, width: int, continued: str) -> list[Line]:
    """Return the rows of a block of code, indented by `CODE_INDENT` cells that copying leaves out.

    `continued` is the mark that stands in those cells where a row goes on with the line of the one above.
    """
    if any(len(line) > MAX_LINE for line in code.split("\n")):
        language = ""
    room = max(width - CODE_INDENT, 4)
    blank, mark = (" " * CODE_INDENT, "code"), (pad(continued, CODE_INDENT), "faint")
    rows: list[Line] = []
    for spans in highlight(code, language):
        rows.extend(indent(wrap_code(spans, room), blank, mark))
    return rows
