"""Walking the settings: every key that there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import msgspec

from tenuto.config.settings import Settings

NAMED = "x/y"
"""The name of an entry of each table of tables."""


def leaves(kind: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every setting there is, with its type; a table of tables has one entry."""
    for name, inner in get_type_hints(kind, include_extras=True).items():
        if get_origin(inner) is dict and get_args(inner)[1] is Settings:
            continue  # a profile has all settings once more
        if get_origin(inner) is dict and issubclass(get_args(inner)[1], msgspec.Struct):
            yield from leaves(get_args(inner)[1], (*path, name, NAMED))
        elif isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from leaves(inner, (*path, name))
        else:
            yield (*path, name), inner


def nested(path: tuple[str, ...], value: object) -> dict[str, Any]:
    """The tables that lead to a value."""
    return {path[0]: nested(path[1:], value) if path[1:] else value}
