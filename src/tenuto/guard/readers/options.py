"""Options of programs: how a grammar of them is written, and how words are read by it.

A grammar is one line: `-abc` are flags, `-n#` an option with a number, `-e:` with a text, `-f@` with a file that is
read, `-x%` with a script, `-i~` with a text that is written right behind it or left out. `--long`, `--long=#` and so
on, `--long[=` where the value may be left out. `-NUM` stands for `-3`. What is not in it is unknown, and an unknown
option asks; long options have to be written whole.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Callable
from functools import cache
from typing import Literal

import msgspec

from tenuto.guard.readers.places import Asks

Operands = Literal["paths", "path", "texts", "none", "pattern", "script", "format", "numbers"]
"""`pattern` and `script` are the first operand where no option gives one; paths come behind them."""
_NUMBER = re.compile(r"[+-]?[0-9]{1,9}[A-Za-z]{0,2}")
_SMALL = r"[+-]?[0-9]{1,5}(?:\.[0-9]{1,5})?"
_KINDS = ":#@%~"
_UNIVERSAL = ("--help", "--version")


class Argument(msgspec.Struct, frozen=True):
    """A word of a command. `texts` are what it can be; none for one of which nothing is known.

    `is_many` says that it can become several words, `may_vanish` that it can become none, `is_pipe` that it names what
    other commands give.
    """

    texts: tuple[str, ...]
    is_many: bool = False
    may_vanish: bool = False
    is_pipe: bool = False

    @property
    def only(self) -> str | None:
        """The text where there is exactly one."""
        return self.texts[0] if len(self.texts) == 1 and not self.is_many else None

    @property
    def may_be_option(self) -> bool:
        """Whether it begins with a `-` and goes on, or whether nobody knows."""
        return not self.texts or any(text.startswith("-") and text != "-" for text in self.texts)


class Grammar(msgspec.Struct, frozen=True):
    """What a program takes. `patterns` are the options that give a pattern or script instead of an operand.

    `compares` says that it opens what is in a directory. `refuses` are texts that no value of a text option may have.
    """

    options: str
    operands: Operands = "paths"
    patterns: tuple[str, ...] = ()
    compares: bool = False
    script: Callable[[str], bool] | None = None
    most: int = 10_000
    refuses: str = ""


class Found(msgspec.Struct):
    """What words turned out to be. `options` are the names that were given."""

    options: list[str]
    paths: list[Argument]
    operands: list[Argument]


class _Table(msgspec.Struct):
    short: dict[str, str]
    long: dict[str, str]
    counts: bool


@cache
def _table(options: str) -> _Table:
    table = _Table({}, {}, counts=False)
    for item in options.split():
        if item == "-NUM":
            table.counts = True
        elif item.startswith("--"):
            name, _, kind = item.partition("=")
            table.long[name.removesuffix("[")] = "?" if name.endswith("[") else kind
        elif item[-1] in _KINDS and len(item) > 2:
            table.short[item[1]] = item[-1]
        else:
            table.short.update(dict.fromkeys(item[1:], ""))
    return table


def read_options(grammar: Grammar, arguments: list[Argument], cwd: str) -> Found:
    """Return options and operands. Raises `Asks` for unknown options, and for words that have two readings."""
    table = _table(grammar.options)
    found = Found([], [], [])
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        index += 1
        if argument.only == "--":
            found.operands += arguments[index:]
            break
        if not argument.may_be_option:
            found.operands.append(argument)
            continue
        word = argument.only
        if word is None:
            if grammar.operands == "texts" and not argument.texts:
                found.operands.append(argument)
                continue
            raise Asks("has a word that may be an option")
        # Elsewhere, and with POSIXLY_CORRECT, an option behind an operand is an operand: the name of a file
        if found.operands and os.path.lexists(os.path.join(cwd, word)):  # noqa: PTH118
            raise Asks(f"has an option that is the name of a file too: {word}")
        following = arguments[index] if index < len(arguments) else None
        index += _read_option(grammar, table, word, following, found)
    return found


def _read_option(grammar: Grammar, table: _Table, word: str, following: Argument | None, found: Found) -> int:
    """Read one word of options; return how many words behind it belong to it."""
    if word.startswith("--"):
        name, equals, value = word.partition("=")
        kind = "" if name in _UNIVERSAL else table.long.get(name)
        if kind is None:
            raise Asks(f"has an option that is not known: {name}")
        found.options.append(name)
        if equals:
            if not kind:
                raise Asks(f"has an option that takes no value: {name}")
            _take(grammar, kind, Argument((value,)), found)
            return 0
        if kind in ("", "?"):
            return 0
        return _take_following(grammar, kind, following, found)
    if table.counts and word[1:].isascii() and word[1:].isdigit() and len(word) < 10:
        return 0
    for place, letter in enumerate(word[1:], 2):
        kind = table.short.get(letter)
        if kind is None:
            raise Asks(f"has an option that is not known: -{letter}")
        found.options.append(f"-{letter}")
        if kind:
            if word[place:] or kind == "~":
                _take(grammar, kind, Argument((word[place:],)), found)
                return 0
            return _take_following(grammar, kind, following, found)
    return 0


def _take_following(grammar: Grammar, kind: str, value: Argument | None, found: Found) -> int:
    if value is None:
        raise Asks("has an option without its value")
    if value.is_many:
        raise Asks("has a pattern of files where an option's value should be")
    _take(grammar, kind, value, found)
    return 1


def _take(grammar: Grammar, kind: str, value: Argument, found: Found) -> None:
    """Check the value of an option."""
    if kind == "@":
        found.paths.append(value)
    elif kind == "#" and (not value.texts or not all(_NUMBER.fullmatch(text) for text in value.texts)):
        raise Asks("has an option whose value is no number")
    elif kind == "%":
        _check_script(grammar, value)
    elif grammar.refuses and (
        not value.texts or any(re.search(grammar.refuses, text, re.IGNORECASE) for text in value.texts)
    ):
        raise Asks("has an option with a value that may run something")


def _check_script(grammar: Grammar, script: Argument) -> None:
    if script.is_many or not script.texts or grammar.script is None or not all(map(grammar.script, script.texts)):
        raise Asks("has a script of which it is not known what it does")


def sort_operands(grammar: Grammar, found: Found) -> None:
    """Put the operands where they belong: among the paths, or nowhere. Raises `Asks`."""
    operands = list(found.operands)
    if len(operands) > grammar.most:
        raise Asks("has more operands than it can read")
    match grammar.operands:
        case "paths" | "path":
            found.paths += operands
        case "none":
            if operands:
                raise Asks("has operands")
        case "pattern" | "script":
            if operands and not set(grammar.patterns) & set(found.options):
                _check_first(grammar, operands.pop(0))
            found.paths += operands
        case "format":
            _check_all(operands, r"\+.*", "has operands that set something")
        case "numbers":
            _check_all(operands, _SMALL, "has operands that are no small numbers")
        case "texts":
            # Patterns of files among texts still name files
            found.paths += [operand for operand in operands if operand.is_many]


def _check_first(grammar: Grammar, first: Argument) -> None:
    if first.is_many:
        raise Asks("has a pattern of files where a text should be")
    if grammar.operands == "script":
        _check_script(grammar, first)


def _check_all(operands: list[Argument], form: str, reason: str) -> None:
    """Raises `Asks` where an operand has another form, or where nobody knows."""
    if not all(re.fullmatch(form, text, re.DOTALL) for operand in operands for text in operand.texts or ("",)):
        raise Asks(reason)
