"""Everything in a line that could be a command, for rules that ask or deny: rather one too many than one too few."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Sequence

from tenuto.guard.shell.parse import read_line, simple_commands
from tenuto.guard.shell.rules import runs_others

_MOST_LINES = 200
"""Texts inside texts that are looked into."""
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=")
_SUBSTITUTION = re.compile(r"\$\((.*)\)?|`([^`]*)`?|<\((.*)\)?", re.DOTALL)
_SEPARATORS = re.compile(r"[;&|(){}`\n]+")
_KEYWORDS = frozenset({"then", "do", "else", "if", "while", "until", "{", "!"})
_GIT_WITH_VALUE = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


def every_command(line: str) -> Iterator[list[str]]:
    """Yield the words of all that may run: in substitutions, texts for `sh -c`, behind `sudo`, `xargs` and `-exec`.

    Programs are named without their path, git without the options before its subcommand. Some of it is no command.
    """
    pending, seen = [line], 0
    while pending and seen < _MOST_LINES:
        seen += 1
        for words in _commands_in(pending.pop()):
            pending += [inner for word in words for inner in _inner_lines(word)]
            for begin in _beginnings(words):
                program = words[begin].rpartition("/")[2]
                yield [program, *words[begin + 1 :]]
                if program == "git":
                    yield [program, *_without_global_options(words[begin + 1 :])]


def _commands_in(text: str) -> Iterator[list[str]]:
    line = read_line(text)
    if line.problem:
        yield from filter(None, (_words(part) for part in _SEPARATORS.split(text)))
    else:
        yield from ([word.text for word in each.words] for each in simple_commands(line.body) if each.words)


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _inner_lines(word: str) -> list[str]:
    """Return what a word may run: a text of several words is one for `sh -c`, `eval` or `ssh`."""
    found = [next(filter(None, match.groups()), "") for match in _SUBSTITUTION.finditer(word)]
    return [*(text for text in found if text and text != word), *([word] if re.search(r"\s", word) else [])]


def _beginnings(words: Sequence[str]) -> Iterator[int]:
    place = 0
    while place < len(words) and (_ASSIGNMENT.match(words[place]) or words[place] in _KEYWORDS):
        place += 1
    if place >= len(words):
        return
    yield place
    if runs_others(words[place].rpartition("/")[2]):
        yield from range(place + 1, len(words))


def _without_global_options(words: Sequence[str]) -> list[str]:
    rest = list(words)
    while rest and rest[0].startswith("-"):
        rest = rest[2:] if rest[0] in _GIT_WITH_VALUE else rest[1:]
    return rest
