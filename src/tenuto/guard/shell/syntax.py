"""What a line of shell is made of, as data: words with their pieces, simple commands, and what holds them together."""

from __future__ import annotations

import re
from typing import Literal

import msgspec


class Text(msgspec.Struct, frozen=True):
    """Characters that stand for themselves once their quotes are gone; unquoted ones may be globs, braces, a tilde."""

    text: str
    quoted: bool


class Variable(msgspec.Struct, frozen=True):
    """`$name` or `${name…}`. `changed` says that the value is not taken as it is (`${x%.py}`, `${x:-y}`)."""

    name: str
    quoted: bool
    changed: bool = False


class Substitution(msgspec.Struct, frozen=True):
    """`$(…)` or backquotes: the output of commands."""

    body: Sequence
    quoted: bool


class ProcessSubstitution(msgspec.Struct, frozen=True):
    """`<(…)` or `>(…)`: a name for the output or input of commands."""

    body: Sequence
    reads: bool


class Sum(msgspec.Struct, frozen=True):
    """`$((…))` of numbers alone, which runs nothing."""

    quoted: bool


Piece = Text | Variable | Substitution | ProcessSubstitution | Sum

_GLOB = re.compile(r"[*?]|\[.*\]", re.DOTALL)
_BRACES = re.compile(r"\{.*(?:,|\.\.).*\}", re.DOTALL)
_TILDE = re.compile(r"(?:^|[=:])~")
_QUOTED = "\ufffc"
"""Stands for quoted text and expansions where only what the shell itself would interpret is looked at."""


class Word(msgspec.Struct, frozen=True):
    """One word. `start` and `end` are offsets in the line."""

    pieces: tuple[Piece, ...]
    start: int
    end: int

    @property
    def bare(self) -> str:
        """The unquoted characters; what is quoted or expanded is one placeholder each."""
        if len(self.pieces) == 1 and isinstance(only := self.pieces[0], Text) and not only.quoted:
            return only.text
        return "".join(
            piece.text if isinstance(piece, Text) and not piece.quoted else _QUOTED * bool(not _is_empty(piece))
            for piece in self.pieces
        )

    @property
    def is_text(self) -> bool:
        """Whether the word has no expansions; it may still have globs, braces, a tilde."""
        return all(isinstance(piece, Text) for piece in self.pieces)

    @property
    def has_glob(self) -> bool:
        """Whether the shell looks for files of this pattern."""
        return bool(_GLOB.search(self.bare))

    @property
    def has_braces(self) -> bool:
        """Whether the shell makes several words of this one."""
        return bool(_BRACES.search(self.bare))

    @property
    def has_tilde(self) -> bool:
        """Whether the shell puts a home directory here."""
        return bool(_TILDE.search(self.bare))

    @property
    def text(self) -> str:
        """The characters of the word without its quotes; expansions are left out."""
        return "".join(piece.text for piece in self.pieces if isinstance(piece, Text))

    @property
    def value(self) -> str | None:
        """The word as a program gets it, `None` where the shell would look something up first."""
        if not self.is_text or self.has_glob or self.has_braces or self.has_tilde:
            return None
        return self.text

    @property
    def keyword(self) -> str:
        """The word where none of it is quoted, else nothing: only such a one can be a reserved word."""
        if len(self.pieces) != 1:
            return ""
        only = self.pieces[0]
        return only.text if isinstance(only, Text) and not only.quoted else ""


def _is_empty(piece: Piece) -> bool:
    return isinstance(piece, Text) and not piece.text


RedirectionKind = Literal["<", ">", ">>", ">|", "<>", "<&", ">&", "&>", "&>>", "<<", "<<-", "<<<"]


class Redirection(msgspec.Struct):
    """`fd` is empty where none is written. `body` is the text of a here-document, with its expansions: it is read when
    its line has ended.
    """

    kind: RedirectionKind
    fd: str
    target: Word
    body: Word | None = None


class Assignment(msgspec.Struct, frozen=True):
    """`name=value` before a command, or alone; `appends` with `+=`."""

    name: str
    value: Word
    appends: bool


class Simple(msgspec.Struct, frozen=True):
    """A simple command: assignments, words, redirections; at least one of them. A condition in `[[ … ]]` is one too."""

    assignments: tuple[Assignment, ...]
    words: tuple[Word, ...]
    redirections: tuple[Redirection, ...]
    start: int


class Pipeline(msgspec.Struct, frozen=True):
    """Commands whose outputs are the next one's input; with `!` in front also a single one.

    `loud` has the places of those whose errors go to the next one as well (`|&`).
    """

    items: tuple[Node, ...]
    is_negated: bool = False
    loud: frozenset[int] = frozenset()


class AndOr(msgspec.Struct, frozen=True):
    """`first`, and others that depend on how the one before ended (`&&`, `||`)."""

    first: Node
    rest: tuple[Node, ...]


class Sequence(msgspec.Struct, frozen=True):
    """Commands one after the other; `background` has the places of those that end in `&`."""

    items: tuple[Node, ...]
    background: frozenset[int] = frozenset()


class Group(msgspec.Struct, frozen=True):
    """`{ …; }`, or `( … )` when it is a shell of its own, with redirections for all of it."""

    body: Sequence
    is_subshell: bool
    redirections: tuple[Redirection, ...]


class If(msgspec.Struct, frozen=True):
    """`branches` are conditions and what follows; the last may have none (`else`)."""

    branches: tuple[tuple[Sequence | None, Sequence], ...]
    redirections: tuple[Redirection, ...]


class While(msgspec.Struct, frozen=True):
    """`while`, or `until` when it is negated."""

    is_negated: bool
    condition: Sequence
    body: Sequence
    redirections: tuple[Redirection, ...]


class For(msgspec.Struct, frozen=True):
    """`for name in words`; `words` is `None` for the arguments of the shell."""

    name: str
    words: tuple[Word, ...] | None
    body: Sequence
    redirections: tuple[Redirection, ...]


class CaseBranch(msgspec.Struct, frozen=True):
    """Patterns, and the commands that run when one of them fits; there may be none."""

    patterns: tuple[Word, ...]
    body: Sequence


class Case(msgspec.Struct, frozen=True):
    """`case word in … esac`. How a branch ends, and with it whether others follow, is left out."""

    word: Word
    branches: tuple[CaseBranch, ...]
    redirections: tuple[Redirection, ...]


Node = Simple | Pipeline | AndOr | Sequence | Group | If | While | For | Case


class UnreadableError(Exception):
    """A line, or a part of it, that is not understood; the message says why, to be read behind "because"."""
