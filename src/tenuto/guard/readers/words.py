"""What a word of a line can be: the texts that its variables, braces and patterns can make of it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product

from tenuto.guard.readers.options import Argument
from tenuto.guard.readers.places import Asks, GlobPart, Place, matches
from tenuto.guard.readers.programs import is_own_name
from tenuto.guard.shell.braces import expand_braces
from tenuto.guard.shell.forms import is_tame
from tenuto.guard.shell.syntax import (
    Piece,
    ProcessSubstitution,
    Substitution,
    Sum,
    Text,
    UnreadableError,
    Variable,
    Word,
)

Directories = frozenset[str] | None
"""Where the shell can be, as real paths; `None` where nobody knows."""
NUMBERS = frozenset({"?", "#", "$", "!"})
"""Variables that the shell itself sets, to numbers."""
_MAX_ALTERNATIVES = 500
_SPLIT = re.compile(r"[ \t\n*?\[\\]")
_SHOWN_VARIABLES = frozenset({"HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "TERM", "HOSTNAME", "VIRTUAL_ENV"})
"""Variables of the user's that hold no secret."""
_NAMES_OPTION = re.compile(r"--(?:include|exclude|exclude-dir|ignore|hide|glob|iglob)=")
"""An option whose value is itself a pattern of names: without it nothing else in a command changes its meaning."""


def known_directories(at: Directories) -> frozenset[str]:
    """Return where the shell can be. Raises `Asks` where nobody knows."""
    if at is None:
        raise Asks("works in a directory that is not known")
    return at


class Words:
    """The words of one line, with the values that its own variables can have. Values only grow."""

    def __init__(self, place: Place) -> None:
        self.values: dict[str, set[str] | None] = {}
        """The texts that a variable can be; `None` where nobody knows."""
        self.unset: set[str] = set()
        """Variables that were looked up when nothing had set them."""
        self.has_news = False
        """Whether a value has come since this was last set to false."""
        self._place = place

    def remember(self, name: str, texts: set[str] | None) -> None:
        """Add what a variable can be; `None`: anything."""
        known = self.values.get(name, set())
        merged = None if known is None or texts is None else known | texts
        if name not in self.values or merged != known:
            self.values[name] = merged
            self.has_news = True

    def arguments(self, words: Iterable[Word], at: Directories) -> list[Argument]:
        """Return what each word can be, braces taken apart. Raises `Asks`."""
        try:
            return [self.argument(each, at) for word in words for each in expand_braces(word)]
        except UnreadableError as error:
            raise Asks(f"cannot be understood: {error}") from None

    def argument(self, word: Word, at: Directories) -> Argument:
        """Return what a word can be. Raises `Asks` where it could be anything, or several words."""
        if word.has_braces:
            raise Asks("has braces that become several words")
        if any(isinstance(piece, ProcessSubstitution) for piece in word.pieces):
            if len(word.pieces) > 1 or not all(
                isinstance(piece, ProcessSubstitution) and piece.reads for piece in word.pieces
            ):
                raise Asks("writes to another command")
            return Argument(("/dev/fd/63",), is_pipe=True)
        if word.has_tilde:
            home = self._home(word)
            return Argument((home,))
        pieces = self.pieces(word, at)
        if pieces is None:
            return Argument(())
        if not word.has_glob:
            texts = tuple("".join(chosen) for chosen in pieces)
            vanishes = "" in texts and not any(_is_quoted(piece) for piece in word.pieces)
            return Argument(tuple(filter(None, texts)) if vanishes else texts, is_many=vanishes, may_vanish=vanishes)
        found: dict[str, None] = {}
        for texts in pieces:
            parts: list[GlobPart] = [
                (text, isinstance(piece, Text) and not piece.quoted)
                for text, piece in zip(texts, word.pieces, strict=True)
            ]
            for cwd in known_directories(at):
                found.update(dict.fromkeys(matches(parts, cwd)))
        # Where no file has such a name, `--include=*.py` stays as it is
        is_itself = len(found) == 1 and bool(_NAMES_OPTION.match(word.bare))
        return Argument(tuple(found), is_many=not is_itself)

    def _home(self, word: Word) -> str:
        bare = word.bare
        home = self._place.environ.get("HOME", "")
        if not word.is_text or word.has_glob or not re.match(r"~(?:/|$)", bare) or not home.startswith("/"):
            raise Asks("has a “~” of which it is not known where it leads")
        return home + word.text[1:]

    def pieces(self, word: Word, at: Directories) -> list[tuple[str, ...]] | None:
        """Return the texts that the pieces of a word can have together, `None` where nobody knows. Raises `Asks`."""
        choices: list[tuple[str, ...]] = []
        is_known = True
        for piece in word.pieces:
            match piece:
                case Text():
                    choices.append((piece.text,))
                case Variable():
                    values = self._variable(piece, at)
                    is_known &= values is not None
                    choices.append(values or ("",))
                case Substitution():
                    if not piece.quoted and not is_tame(piece.body):
                        raise Asks("has the output of a command among its words, without quotes")
                    is_known = False
                case Sum():
                    is_known = False
                case ProcessSubstitution():
                    raise Asks("has a substitution where it is not expected")
        if not is_known:
            return None
        found = list(product(*choices))
        if len(found) > _MAX_ALTERNATIVES:
            raise Asks("has a word that can be very many things")
        return found

    def _variable(self, piece: Variable, at: Directories) -> tuple[str, ...] | None:
        name = piece.name
        if name in NUMBERS:
            return None
        if name == "PWD" and not piece.changed:
            known: set[str] | None = set(known_directories(at))
        elif name in self.values:
            known = self.values[name]
        elif name in _SHOWN_VARIABLES and not piece.changed:
            known = {self._place.environ.get(name, "")}
        elif is_own_name(name) and name not in self._place.environ:
            self.unset.add(name)
            known = {""}
        else:
            raise Asks(f"shows the variable {name}")
        if known is None or piece.changed:
            if not piece.quoted:
                raise Asks(f"has ${name} among its words, without quotes")
            return None
        if not piece.quoted and any(_SPLIT.search(text) for text in known):
            raise Asks(f"has ${name} among its words, without quotes")
        return tuple(sorted(known))


def _is_quoted(piece: Piece) -> bool:
    return not isinstance(piece, ProcessSubstitution) and piece.quoted
