"""Braces that become several words (`{a,b}`, `{1..5}`), as bash expands them before anything else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product

from tenuto.guard.shell.lexer import joined
from tenuto.guard.shell.syntax import Piece, Text, UnreadableError, Word

_MOST_WORDS = 200
_NUMBERS = re.compile(r"(-?(?:0|[1-9][0-9]{0,3}))\.\.(-?(?:0|[1-9][0-9]{0,3}))")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])|([A-Z])\.\.([A-Z])")
_EMPTY = (Text("", quoted=False),)

Part = tuple[Piece, ...]


def expand_braces(word: Word) -> list[Word]:
    """Return the words that bash makes of one, itself where it has no braces.

    Raises `UnreadableError` for braces in braces, for those that are not closed, and for what stays as it is.
    """
    if not word.has_braces:
        return [word]
    choices: list[list[Part]] = [[()]]
    inside: list[list[Piece]] | None = None
    for piece in _atoms(word):
        char = piece.text if isinstance(piece, Text) and not piece.quoted else ""
        if char == "{":
            if inside is not None:
                raise UnreadableError("it has braces in braces")
            inside = [[]]
        elif char == "}":
            if inside is None:
                raise UnreadableError("it closes a brace that is not open")
            choices.append(_alternatives(inside))
            inside = None
        elif inside is None:
            choices.append([(piece,)])
        elif char == ",":
            inside.append([])
        else:
            inside[-1].append(piece)
    if inside is not None:
        raise UnreadableError("a brace is not closed")
    return _words(choices, word)


def _words(choices: list[list[Part]], word: Word) -> list[Word]:
    count = 1
    for each in choices:
        count *= len(each)
    if count > _MOST_WORDS:
        raise UnreadableError("its braces become very many words")
    return [
        Word(tuple(joined([piece for part in chosen for piece in part])) or _EMPTY, word.start, word.end)
        for chosen in product(*choices)
    ]


def _atoms(word: Word) -> list[Piece]:
    """Return the pieces of a word, unquoted text as single characters."""
    atoms: list[Piece] = []
    for piece in word.pieces:
        if isinstance(piece, Text) and not piece.quoted:
            atoms += [Text(char, quoted=False) for char in piece.text]
        else:
            atoms.append(piece)
    return atoms


def _alternatives(inside: list[list[Piece]]) -> list[Part]:
    if len(inside) > 1:
        return [tuple(part) for part in inside]
    text = "".join(piece.text if isinstance(piece, Text) and not piece.quoted else "\0" for piece in inside[0])
    numbers, letters = _NUMBERS.fullmatch(text), _LETTERS.fullmatch(text)
    if numbers:
        return [(Text(str(each), quoted=False),) for each in _steps(int(numbers[1]), int(numbers[2]))]
    if letters:
        first, last = (ord(each) for each in letters.groups() if each)
        return [(Text(chr(each), quoted=False),) for each in _steps(first, last)]
    raise UnreadableError("it has braces that are no list")


def _steps(first: int, last: int) -> Sequence[int]:
    if abs(first - last) > _MOST_WORDS:
        raise UnreadableError("its braces become very many words")
    return range(first, last + 1) if first <= last else range(first, last - 1, -1)
