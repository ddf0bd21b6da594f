"""Which lexer reads a language (pygments, imported at the first fence). Knows no look: callers colour the tokens."""

from __future__ import annotations

from collections.abc import Mapping
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


def look_up_kind(table: Mapping[str, str], kind: _TokenType, otherwise: str) -> str:
    """Return what the table says of a kind of token (`Name.Builtin.Pseudo`), or of the nearest wider kind."""
    name = str(kind).partition(".")[2]
    while name:
        if name in table:
            return table[name]
        name = name.rpartition(".")[0]
    return otherwise
