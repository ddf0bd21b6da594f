"""Code as spans by kind of token (pygments, imported at the first fence), for screens and exports.

A style name (`code.keyword`) is a meaning; what it looks like is said by a theme or a style sheet.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pygments.lexer import Lexer
    from pygments.token import _TokenType  # pyright: ignore[reportPrivateUsage]


@lru_cache(maxsize=64)
def find_lexer(language: str) -> Lexer | None:
    """Return the lexer for a fence's info word, `None` when nobody knows it."""
    from pygments.lexers import find_lexer_class_by_name
    from pygments.util import ClassNotFound

    try:
        return find_lexer_class_by_name(language)()
    except ClassNotFound:
        return None


@lru_cache(maxsize=256)
def language_of(path: str) -> str:
    """Return the name of the language that a file's name suggests, empty when it suggests none."""
    from pygments.lexers import find_lexer_class_for_filename

    found = find_lexer_class_for_filename(path)
    return found.aliases[0] if found is not None and found.aliases else ""


MAX_CHARACTERS = 400_000
"""A longer text is data, not code that somebody reads: it stays plain."""
Span = tuple[str, str]
"""(text, style name)"""

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
    """Return the style of a kind of token (`Name.Builtin.Pseudo`), or of the nearest wider kind."""
    name = str(kind).partition(".")[2]
    while name:
        if name in _STYLES:
            return _STYLES[name]
        name = name.rpartition(".")[0]
    return "code"


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
