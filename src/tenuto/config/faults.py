"""What is wrong with a setting, in words: what was given, what is allowed, and the nearest of it. Pure."""

from __future__ import annotations

import re
import types
from collections.abc import Sequence
from typing import Any, Literal, Union, get_args, get_origin

import msgspec

from tenuto.text.nearest import did_you_mean

NAMED = 12
"""So many settings of a section are named to whoever writes one that there is not."""
_WORDS: dict[Any, str] = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}
_GIVEN = re.compile(r"Invalid enum value '?(.*?)'?$", re.DOTALL)


def describe_fault(fault: str, path: Sequence[str], settings: type[msgspec.Struct]) -> str:
    """Return a line on what is wrong at `path` of settings of this type, where `fault` is what msgspec says of it.

    `*` in the path stands for any key of a table, or place of a list.
    """
    return f"{'.'.join(path) or 'all of it'} is ignored: {_reason(fault, path, settings)}"


def _reason(fault: str, path: Sequence[str], settings: type[msgspec.Struct]) -> str:
    if "unknown field" in fault:
        return f"there is no such setting{_known_at(path, settings)}"
    expected = _type_at(path, settings)
    choices = _choices(expected)
    given = _GIVEN.match(fault)
    if given is not None and choices:
        word = " ".join(given[1].split())
        return f"“{word}” is none of {', '.join(choices)}{did_you_mean(word, choices)}"
    kinds = [*choices, *_kinds(expected)]
    return f"it takes {', '.join(kinds[:-1])}{' or ' if kinds[:-1] else ''}{kinds[-1]}" if kinds else fault


def _known_at(path: Sequence[str], settings: type[msgspec.Struct]) -> str:
    """Return the end of the line on a name that there is not: the nearest one, else those that there are."""
    *section, word = path or [""]
    place = next((arm for arm in _arms(_type_at(section, settings)) if _is_struct(arm)), None)
    names = [field.encode_name for field in msgspec.structs.fields(place)] if place is not None else []
    before = "".join(f"{key}." for key in section)
    hint = did_you_mean(word, names, f"{before}{{}}")
    if hint or not names:
        return hint
    return f"; there are {', '.join(names[:NAMED])}{' and others' if len(names) > NAMED else ''}"


def _type_at(path: Sequence[str], kind: Any) -> Any:
    """Return the type of what stands at a path, `None` where nothing can."""
    for key in path:
        kind = next((member for arm in _arms(kind) if (member := _member(arm, key)) is not None), None)
    return kind


def _member(kind: Any, key: str) -> Any:
    if _is_struct(kind):
        return next((field.type for field in msgspec.structs.fields(kind) if field.encode_name == key), None)
    inner = get_args(kind)
    if get_origin(kind) is dict:
        return inner[1]
    return inner[0] if get_origin(kind) is tuple else None


def _arms(kind: Any) -> tuple[Any, ...]:
    return get_args(kind) if get_origin(kind) in (Union, types.UnionType) else (kind,)


def _choices(kind: Any) -> list[str]:
    """Return the words that a setting can be; `true` and `false` among them where it has others."""
    words = [word for arm in _arms(kind) if get_origin(arm) is Literal for word in get_args(arm)]
    return [*words, *(("true", "false") if words and bool in _arms(kind) else ())]


def _kinds(kind: Any) -> list[str]:
    """Return what else it can be, in words."""
    said: list[str] = []
    for arm in _arms(kind):
        if arm in _WORDS and not (arm is bool and _choices(kind)):
            said.append(_WORDS[arm])
        elif get_origin(arm) is tuple:
            said.append("a list")
        elif get_origin(arm) is dict or _is_struct(arm):
            said.append("a table")
    return said


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)
