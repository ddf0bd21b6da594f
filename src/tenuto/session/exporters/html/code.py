"""Code with colours: classes by kind of token (pygments, imported at the first fence)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from tenuto.session.exporters.html.markup import EMPTY, Markup, element, join, text
from tenuto.text.lexer import find_lexer, look_up_kind

if TYPE_CHECKING:
    from pygments.token import _TokenType  # pyright: ignore[reportPrivateUsage]

MAX_CHARACTERS = 20_000
MAX_LINES = 1_000
MAX_LINE = 2_000
"""Beyond these a text stays plain: some lexers cost the square of what they are given."""

_CLASSES = {
    "Keyword": "ck",
    "Keyword.Constant": "cn",
    "Name.Function": "cf",
    "Name.Class": "ct",
    "Name.Builtin": "cb",
    "Name.Exception": "ct",
    "Name.Decorator": "cb",
    "Name.Tag": "ck",
    "Name.Attribute": "cf",
    "Name.Constant": "cn",
    "Literal.String": "cs",
    "Literal.Number": "cn",
    "Comment": "cc",
    "Operator.Word": "ck",
    "Generic.Inserted": "ca",
    "Generic.Deleted": "cr",
    "Generic.Heading": "cc",
    "Generic.Subheading": "cc",
    "Generic.Prompt": "cc",
}


def code_block(code: str, language: str) -> Markup:
    """Return a block of code, coloured where its language is known."""
    code = code.removesuffix("\n")
    name = language.lower()[:40]
    return element("pre", Markup("\n"), element("code", highlight(code, name)), class_="code")


def highlight(code: str, language: str) -> Markup:
    """Return code as spans; an unknown language, or more than a user reads, gives plain text."""
    lexer = find_lexer(language) if language and _is_readable(code) else None
    if lexer is None:
        return text(code)
    spans: list[Markup] = []
    pending, style = "", ""
    for _index, kind, value in lexer.get_tokens_unprocessed(code):
        found = _class_of(kind)
        if found != style and not value.isspace():
            spans.append(_span(pending, style))
            pending, style = "", found
        pending += value
    return join(*spans, _span(pending, style))


def _is_readable(code: str) -> bool:
    lines = code.split("\n") if len(code) <= MAX_CHARACTERS else []
    return 0 < len(lines) <= MAX_LINES and all(len(line) <= MAX_LINE for line in lines)


def _span(value: str, style: str) -> Markup:
    if not value:
        return EMPTY
    return element("span", text(value), class_=style) if style else text(value)


@lru_cache(maxsize=512)
def _class_of(kind: _TokenType) -> str:
    return look_up_kind(_CLASSES, kind, "")
