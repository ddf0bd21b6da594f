"""What an entry must have to be found: texts, folded in a way that no search is finer than.

Words are compared by `str.casefold`, expressions by the rules of `re.IGNORECASE`. Two texts that either takes for the
same are the same here, letter by letter; so whatever has a match has the needs, and the rest is left to whoever looks.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterable, Iterator
from typing import Any

_SAME = str.maketrans({"\0": "\x01", "\u0131": "i", "\u0307": None})
"""SQLite ends a text at NUL; `re` takes İ and ı for i, `casefold` makes two letters of the one and keeps the other."""
_FIRST_TEXT = b'"text":"'
_LETTERS = re.compile("[a-z_]{2,}")
SHORTEST = 2
"""Characters of the shortest text that narrows a search."""


def fold(text: str) -> str:
    """Return a text as the index has it."""
    folded = text.casefold()
    if folded.isascii():
        return folded.replace("\0", "\x01")
    return folded.translate(_SAME).encode("utf-8", "replace").decode("utf-8")


def letters_of(texts: Iterable[str]) -> frozenset[bytes]:
    """Return the runs of plain letters in folded texts: they look the same in a text and in the JSON that has it."""
    return frozenset(run.encode() for text in texts for run in _LETTERS.findall(text))


def has_letters(line: bytes, letters: Iterable[bytes]) -> bool:
    """Say whether a line of JSON in lower case has all of these, and has them behind where its first text begins.

    What stands before that is names of fields: `result` and `parts` are in every line of a result.
    """
    if not all(run in line for run in letters):
        return False
    texts = line[line.find(_FIRST_TEXT) + 1 :]
    return all(run in texts for run in letters)


def words_needed(words: Iterable[str]) -> tuple[str, ...]:
    """Return what a text with all of the words has."""
    folded = (fold(word) for word in words)
    return tuple(dict.fromkeys(word for word in folded if len(word) >= SHORTEST))


def expression_needs(pattern: str) -> tuple[str, ...]:
    """Return what every line has that the expression finds; nothing where that cannot be said."""
    try:
        parser: Any = importlib.import_module("re._parser")
        parsed: Any = parser.parse(pattern, re.IGNORECASE)
        runs = list(_runs(parsed))
    except (ImportError, AttributeError, TypeError, ValueError, re.error, RecursionError, OverflowError):
        return ()
    return words_needed("".join(run) for run in runs)


def _runs(parsed: Any) -> Iterator[list[str]]:
    """Yield the runs of letters that stand side by side in every match."""
    run: list[str] = []
    for operation, argument in parsed:
        name = str(operation)
        if name == "LITERAL" and _is_plain(chr(argument)):
            run.append(chr(argument))
            continue
        yield run
        run = []
        if name == "SUBPATTERN":
            yield from _runs(argument[3])
        elif name in {"MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"} and argument[0] > 0:
            yield from _runs(argument[2])
        elif name == "ATOMIC_GROUP":
            yield from _runs(argument)
    yield run


def _is_plain(letter: str) -> bool:
    """Say whether all that stands for this letter is known: it is ASCII, or has no case."""
    return letter.isascii() or (letter.lower() == letter == letter.upper())
