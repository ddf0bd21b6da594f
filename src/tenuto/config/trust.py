"""What a project's settings may say before its owner has agreed: how things look, and a stricter mode.

Everything else waits, whatever it is: a setting that is added later is the user's alone until it is named here.
"""

from __future__ import annotations

import json
import re
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin

import msgspec

from tenuto.text.bounding import shorten
from tenuto.text.matching import did_you_mean

NAMED = 12
"""Settings of a section that a message about an unknown one names."""
NAME_CHARS = 120
_UNKNOWN = "unknown"
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_WORDS: dict[Any, str] = {bool: "true or false", str: "a text", int: "a whole number", float: "a number"}
_GIVEN = re.compile(r"Invalid enum value '?(.*?)'?$", re.DOTALL)


def keep_fitting(
    values: Mapping[str, Any], settings: type[msgspec.Struct], tell: Callable[[tuple[str, ...], str], None]
) -> dict[str, Any]:
    """Return what of a table fits settings of this type. A bad key costs that key; `tell` gets it, and a line on it."""
    return _fitting(values, settings, (), lambda path, fault: tell(path, _describe(fault, path, settings)))


def name_key(path: Sequence[str]) -> str:
    """Return a key with the tables that it stands in, as it is written in TOML; a long one is cut."""
    parts = (key if _BARE.fullmatch(key) else json.dumps(key, ensure_ascii=False) for key in path)
    return shorten(".".join(parts), NAME_CHARS)


def _fitting(
    values: Mapping[str, Any], kind: Any, path: tuple[str, ...], tell: Callable[[tuple[str, ...], str], None]
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        expected = _member(kind, key)
        if expected is None:
            tell(here, _UNKNOWN)
        elif isinstance(value, dict) and (_is_struct(expected) or get_origin(expected) is dict):
            kept[key] = _fitting(cast("dict[str, Any]", value), expected, here, tell)
        else:
            try:
                msgspec.convert(value, expected, strict=False)
            except msgspec.ValidationError as error:
                tell(here, str(error).partition(" - at ")[0])
            else:
                kept[key] = value
    return kept


def _describe(fault: str, path: Sequence[str], settings: type[msgspec.Struct]) -> str:
    return f"{name_key(path)} is ignored: {_reason(fault, path, settings)}"


def _reason(fault: str, path: Sequence[str], settings: type[msgspec.Struct]) -> str:
    if fault == _UNKNOWN:
        return f"there is no such setting{_known_at(path, settings)}"
    expected = type_at(path, settings)
    choices = _choices(expected)
    given = _GIVEN.match(fault)
    if given is not None and choices:
        word = " ".join(given[1].split())
        return f"“{shorten(word, NAME_CHARS)}” is none of {', '.join(choices)}{did_you_mean(word, choices)}"
    kinds = [*choices, *_kinds(expected)]
    return f"it takes {', '.join(kinds[:-1])}{' or ' if kinds[:-1] else ''}{kinds[-1]}" if kinds else fault


def _known_at(path: Sequence[str], settings: type[msgspec.Struct]) -> str:
    """Return the end of the line on a name that there is not: the nearest one, else those that there are."""
    *section, word = path or [""]
    place = next((arm for arm in _arms(type_at(section, settings)) if _is_struct(arm)), None)
    names = [field.encode_name for field in msgspec.structs.fields(place)] if place is not None else []
    before = f"{name_key(section)}." if section else ""
    hint = did_you_mean(word, names, before.replace("{", "{{").replace("}", "}}") + "{}")
    if hint or not names:
        return hint
    return f"; there are {', '.join(names[:NAMED])}{' and others' if len(names) > NAMED else ''}"


def type_at(path: Sequence[str], kind: Any) -> Any:
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
        arm, limits = plain_type(arm)
        if arm in _WORDS and not (arm is bool and _choices(kind)):
            said.append(_WORDS[arm] + limits)
        elif get_origin(arm) is tuple:
            said.append(f"a list{_members(get_args(arm)[0])}")
        elif get_origin(arm) is dict or _is_struct(arm):
            said.append("a table")
    return said


def _members(kind: Any) -> str:
    """Return what is said of the members of a list, behind "a list"."""
    said = get_args(kind)[1:] if get_origin(kind) is Annotated else ()
    return next((f" of {one.description}" for one in said if isinstance(one, msgspec.Meta) and one.description), "")


def plain_type(kind: Any) -> tuple[Any, str]:
    """Return a type without what is said of it, and its range in words, empty where it has none."""
    if get_origin(kind) is not Annotated:
        return kind, ""
    kind, *said = get_args(kind)
    limits = next(one for one in said if isinstance(one, msgspec.Meta))
    return kind, f" from {_figure(limits.ge)} to {_figure(limits.le)}"


def _figure(number: float | None) -> str:
    return f"{number:,}".replace(",", " ")


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


PROJECT_KEYS = frozenset(
    {
        "mode",
        "ui.diff",
        "ui.inline",
        "ui.progress",
        "ui.reduce_motion",
        "ui.show_thinking",
        "ui.status_items",
        "ui.theme",
        "ui.title",
    }
)
"""What a project may set. `mode` only to a stricter one than the user's."""
STRICTEST_FIRST = ("plan", "ask", "edits", "auto")
MAX_DEPTH = 5
TRUST_NAMED = 8
"""So many keys of a file are named."""


def keep_trusted(
    values: dict[str, Any], settings: type[msgspec.Struct], mode: object
) -> tuple[dict[str, Any], list[str]]:
    """Return what of a project's settings counts where the user's mode is `mode`, and what is to be said of the rest.

    A key that is no setting at all stays, to be named as such. `{own}` in a line is the user's own file.
    """
    waiting: list[str] = []
    kept = _keep(values, settings, (), waiting)
    said: list[str] = []
    if waiting:
        names = ", ".join(waiting[:TRUST_NAMED]) + (
            f" and {len(waiting) - TRUST_NAMED} more" if waiting[TRUST_NAMED:] else ""
        )
        they = "are" if waiting[1:] else "is"
        said.append(f"{_braces(names)} {they} ignored: a project may not set that; put it into {{own}} if you want it")
    wanted = kept.get("mode")
    if wanted in STRICTEST_FIRST and not _is_stricter(str(wanted), mode):
        del kept["mode"]
        if wanted != mode:
            said.append(
                f"mode = {wanted} is ignored: a project may only make the mode stricter than yours, which is {mode}; "
                "put it into {own} if you want it"
            )
    return kept, said


def _is_stricter(wanted: str, present: object) -> bool:
    return present not in STRICTEST_FIRST or STRICTEST_FIRST.index(wanted) < STRICTEST_FIRST.index(str(present))


def _keep(
    values: dict[str, Any], settings: type[msgspec.Struct], path: tuple[str, ...], waiting: list[str]
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in values.items():
        here = (*path, key)
        name = ".".join(here)
        if name in PROJECT_KEYS or type_at(here, settings) is None:
            kept[key] = value
        elif isinstance(value, dict) and any(known.startswith(f"{name}.") for known in PROJECT_KEYS):
            kept[key] = _keep(cast("dict[str, Any]", value), settings, here, waiting)
        else:
            waiting += (name_key(leaf) for leaf in _leaves(cast("object", value), here))
    return kept


def _leaves(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    if isinstance(value, dict) and value and len(path) < MAX_DEPTH:
        for key, inner in cast("dict[str, Any]", value).items():
            yield from _leaves(inner, (*path, key))
    else:
        yield path


def _braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
