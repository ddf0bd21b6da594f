"""What all subcommands share: a parser that answers in one line, and finding the session that is meant."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar, cast

from tenuto.cli.arguments import MOST, working_directory
from tenuto.config.settings import Settings
from tenuto.config.sources import load_settings
from tenuto.exit_codes import BAD_USAGE
from tenuto.guard.terminal import escape_json, sanitize_for_terminal, sanitize_line, write_text
from tenuto.session.errors import SessionAmbiguous
from tenuto.session.library.catalog import find_session
from tenuto.text.bounding import shorten
from tenuto.text.matching import did_you_mean
from tenuto.text.writable import to_json

T = TypeVar("T")


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and where the rest stands."""
        raise SystemExit(complain(f"{message}; {self.prog} --help shows how"))


def complain(message: str, code: int = BAD_USAGE) -> int:
    """Say one line on standard error; returns the exit code."""
    write_text(f"tenuto: {sanitize_line(message)}", to_errors=True)
    return code


def say_json(value: object) -> None:
    """Print a value as one line of JSON; what a terminal would obey is escaped."""
    write_text(escape_json(to_json(value).decode()))


def say(text: str) -> None:
    """Print one line of an answer, free of control characters."""
    write_text(" ".join(sanitize_for_terminal(text).splitlines()))


def agrees(question: str) -> bool:
    """Ask the user on the terminal for a yes; an end of input is a no. Raises KeyboardInterrupt at Ctrl+C."""
    try:
        return input(f"{question} [y/N] ").strip().casefold() in {"y", "yes"}
    except EOFError:
        return False


def parse(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> argparse.Namespace | int:
    """Return what the words say, or the exit code when there is nothing more to do."""
    if "_ARGCOMPLETE" in os.environ:
        from tenuto.cli.completing import complete

        complete(parser)
    try:
        return parser.parse_args(words)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 0


class Asked(NamedTuple):
    """What the words of a subcommand say, and the directory that it is about."""

    options: argparse.Namespace
    cwd: Path


def parse_here(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> Asked | int:
    """Return what the words say of the directory that `--cwd` names, or the exit code when there is no more to do."""
    options = parse(parser, words)
    if isinstance(options, int):
        return options
    cwd = working_directory(options.cwd)
    return complain(cwd) if isinstance(cwd, str) else Asked(options, cwd)


def add_directory(parser: argparse.ArgumentParser, what: str = "the directory to look from") -> None:
    """Let a parser know `-C DIR`, which `parse_here` reads."""
    parser.add_argument("-C", "--cwd", default="", metavar="DIR", help=what)


def settings_for(home: Path, cwd: Path | None, environ: Mapping[str, str]) -> Settings:
    """Return the settings that hold in a directory; what is wrong with them is said."""
    settings, problems = load_settings(home, cwd, environ)
    for problem in problems:
        complain(problem)
    return settings


def find_directory(home: Path, name: str) -> Path | int:
    """Return the folder of the session that is meant, or the exit code after saying why there is none."""
    try:
        found = find_session(home, name)
    except SessionAmbiguous as error:
        return complain(str(error))
    return found if found is not None else complain(f"there is no session {name}; tenuto sessions list shows them")


def read_number(least: int, most: int) -> Callable[[str], int]:
    """Return what reads an option's whole number. It raises `ArgumentTypeError`."""

    def read(word: str) -> int:
        if not (word.isascii() and word.isdigit() and least <= int(word) <= most):
            raise argparse.ArgumentTypeError(f"“{word}” is no number from {least} to {most}")
        return int(word)

    return read


def read_amount(word: str) -> float:
    """Return an option's number of dollars or seconds. Raises `ArgumentTypeError`."""
    try:
        amount = float(word)
    except ValueError:
        amount = 0.0
    if not 0 < amount < MOST:
        raise argparse.ArgumentTypeError(f"“{word}” is no number over 0")
    return amount


def read_one_of(names: Sequence[T]) -> Callable[[str], T]:
    """Return what reads a word that has to be one of these. It raises `ArgumentTypeError`."""

    def read(word: str) -> T:
        for name in names:
            if name == word:
                return name
        raise argparse.ArgumentTypeError(
            f"“{word}” is none of {', '.join(map(str, names))}{did_you_mean(word, map(str, names))}"
        )

    return read


VALUE_CHARS = 48


def shown_value(key: tuple[str, ...], value: object) -> str:
    """Return a setting's value as it can be shown: headers and variables hold keys, and so may addresses."""
    if {"headers", "env"} & set(key):
        return "(set)"
    if key[-1].endswith("url") and isinstance(value, str):
        value = bare_url(value)
    return shorten(toml_text(value), VALUE_CHARS)


_BARE = re.compile(r"[\w-]+", re.ASCII)
"""A name that needs no quotes in TOML."""


def toml_text(value: object) -> str:
    """Return a value as it is written in a file of settings; `unset` for none."""
    match value:
        case None:
            return "unset"
        case dict():
            items = cast("dict[str, object]", value).items()
            names = {name: name if _BARE.fullmatch(name) else json.dumps(name, ensure_ascii=False) for name, _ in items}
            pairs = ", ".join(f"{names[name]} = {toml_text(one)}" for name, one in items)
            return f"{{ {pairs} }}" if pairs else "{}"
        case list() | tuple():
            return f"[{', '.join(map(toml_text, cast('list[object]', value)))}]"
        case _:
            return json.dumps(value, ensure_ascii=False)


def bare_url(url: str) -> str:
    """Return an address without what may be secret in it: a password, a query."""
    scheme, mark, rest = url.strip().rpartition("://")
    return f"{scheme}{mark}{re.split('[?#]', rest)[0].rpartition('@')[2]}"
