"""In which line of a TOML file a key stands, and where one is broken. Pure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from typing import Any, cast

MAX_STATEMENT = 500
"""Lines of one key with its value; of what is longer no line is known, nor of what follows it."""


def find_lines(text: str) -> dict[tuple[str, ...], int]:
    """Return the line, from 1, of each key and table of a file, by the way to it. A broken file gives what is whole.

    A statement is as many lines as it takes until they are TOML: a header, or a key with its value.
    """
    found: dict[tuple[str, ...], int] = {}
    header, pending, begin = "", "", 0
    for number, line in enumerate(text.split("\n"), 1):
        if not pending and (not line.strip() or line.lstrip().startswith("#")):
            continue
        if not pending:
            begin = number
        pending += line + "\n"
        is_header = pending.lstrip().startswith("[")
        values = _parse(pending if is_header else f"{header}\n{pending}")
        if values is None:
            if number - begin >= MAX_STATEMENT:
                break
            continue
        for path in _paths(values, ()):
            found.setdefault(path, begin)
        if is_header:
            header = pending
        pending = ""
    return found


def _parse(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _paths(values: Mapping[str, Any], before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    for key, value in values.items():
        yield (*before, key)
        if isinstance(value, dict):
            yield from _paths(cast("dict[str, Any]", value), (*before, key))


def describe_fault(error: Exception, text: str) -> str:
    """Return why a file with this text could not be read: with the line, without a number of errno."""
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return str(error).replace("at end of document", f"at line {len(text.splitlines())}, the end of the file")
