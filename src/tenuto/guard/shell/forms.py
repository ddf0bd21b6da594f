"""What can be told of parts of a line by their form alone."""

from __future__ import annotations

import msgspec

from tenuto.guard.shell.syntax import Pipeline, Sequence, Simple, Substitution, Sum, Text, Variable, Word

_TAME = frozenset({"date", "pwd", "whoami", "hostname", "uname", "id", "nproc", "wc", "seq", "arch"})
"""What these print has no blanks and patterns in it that lead anywhere."""
_TAME_GIT = frozenset({"rev-parse", "rev-list", "branch", "describe", "merge-base"})


def not_split(word: Word) -> Word:
    """Return a word for a place where nothing is split and no files are looked for, as behind `x=`."""
    quoted = tuple(msgspec.structs.replace(piece, quoted=True) if _can_split(piece) else piece for piece in word.pieces)
    return Word(quoted, word.start, word.end)


def _can_split(piece: object) -> bool:
    return isinstance(piece, Text | Variable | Substitution | Sum)


def plain_pipe(node: Pipeline, end: int) -> tuple[Simple, ...] | None:
    """Return the commands of a pipe in front of a place, if each is simple and only its output goes to the next one."""
    before = node.items[:end]
    plain = tuple(item for item in before if isinstance(item, Simple) and item.words and not item.assignments)
    is_quiet = all(
        redirection.kind == ">" and redirection.fd == "2" for item in plain for redirection in item.redirections
    )
    return plain if is_quiet and len(plain) == len(before) and not any(place < end for place in node.loud) else None


def ends_by_itself(condition: Sequence) -> bool:
    """Whether a loop reads its input to the end."""
    last = condition.items[-1]
    return isinstance(last, Simple) and bool(last.words) and last.words[0].value == "read"


def is_tame(body: Sequence) -> bool:
    """Whether the output of a substitution has no blanks and patterns in it that lead anywhere."""
    if len(body.items) != 1 or not isinstance(body.items[0], Simple):
        return False
    values = [word.value for word in body.items[0].words]
    return (
        values[:1] != [None]
        and (values[0] in _TAME or (values[0] == "git" and values[1:2] != [None] and values[1] in _TAME_GIT))
        if values
        else False
    )
