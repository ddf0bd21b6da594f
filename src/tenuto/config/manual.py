"""The manual of the settings, made from `config/settings.py`: types in words, defaults, and the text under each.

Docstrings under attributes are not kept at run time, so the file itself is read.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import types
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from tenuto.config.fitting import plain_type
from tenuto.config.mcp.servers import McpServer
from tenuto.config.settings import Section, Settings
from tenuto.config.settings_writer import Key

SCHEMA = "https://json-schema.org/draft/2020-12/schema"
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "whole number",
    float: "number",
    dict: "table of texts",
    tuple: "list of texts",
}
_NAMED = {"models": '"provider/name"'}
"""What a table of sections has for keys, where it is not a name."""
_LINK = re.compile(r"\[([^\]]+)\]\([^)\s]+\)")


class Setting(msgspec.Struct, frozen=True):
    """One setting: its key, its type in words, its default as it is written in TOML (*unset* where it has none)."""

    name: str
    kind: str
    default: str
    meaning: str


def is_section(kind: Any) -> bool:
    """Return whether a type is a table with settings of its own."""
    return isinstance(kind, type) and issubclass(kind, (Section, McpServer))


def settings_in(section: type[msgspec.Struct]) -> Iterator[Setting]:
    """Yield the settings of a section in their order, without tables that have a part of their own in the manual."""
    hints = get_type_hints(section, include_extras=True)
    texts = _texts(section)
    for field in msgspec.structs.fields(section):
        kind = hints[field.name]
        holds = [*([kind] if is_section(kind) else []), *(one for one in get_args(kind) if is_section(one))]
        if not holds:
            yield Setting(field.name, _kind(kind), _default(field), texts.get(field.name, ""))


def explain(key: Key) -> Setting | None:
    """Return what the manual says of a key, `None` where there is no such setting."""
    section = section_at(key[:-1])
    return None if section is None else next((one for one in settings_in(section) if one.name == key[-1]), None)


def section_at(key: Key) -> type[msgspec.Struct] | None:
    """Return the section that a key names; the second word of `models`, `providers` and `mcp.servers` is a name."""
    kind: Any = Settings
    for name in key:
        if is_section(kind):
            kind = get_type_hints(kind).get(name)
        else:
            kind = get_args(kind)[1] if get_origin(kind) is dict else None
    return kind if is_section(kind) else None


def json_schema() -> dict[str, Any]:
    """Return the JSON schema of `settings.toml`, with the manual in it, for editors that complete from one."""
    schema: dict[str, Any] = msgspec.json.schema(Settings)
    sections = {section.__name__: section for _, section in parts()}
    for name, definition in cast("dict[str, dict[str, Any]]", schema["$defs"]).items():
        section = sections[name]
        definition.pop("title", None)
        texts = _texts(section)
        for key, value in cast("dict[str, dict[str, Any]]", definition.get("properties", {})).items():
            if key in texts:
                value["description"] = plain_text(texts[key])
    return {"$schema": SCHEMA, "title": "Settings of Tenuto", **schema}


def plain_text(meaning: str) -> str:
    """Return a text of the manual without its links."""
    return _LINK.sub(r"\1", meaning)


def parts() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    """Yield the parts of the manual in their order: how the table is named in TOML, empty at the top, and its type.

    A profile has the parts of the whole, which are not told twice.
    """
    waiting: list[tuple[str, type[msgspec.Struct]]] = [("", Settings)]
    while waiting:
        before, section = waiting.pop(0)
        yield before, section
        inner: list[tuple[str, type[msgspec.Struct]]] = []
        for name, kind in get_type_hints(section).items():
            path = f"{before}.{name}" if before else name
            if is_section(kind):
                inner.append((path, kind))
            inner += [
                (f"{path}.{_NAMED.get(path, 'NAME')}", one)
                for one in get_args(kind)
                if is_section(one) and one is not Settings
            ]
        waiting = [*inner, *waiting]


@cache
def _texts(section: type[msgspec.Struct]) -> dict[str, str]:
    """Return the text under each attribute of a class."""
    module = ast.parse(inspect.getsource(inspect.getmodule(section) or section))
    body = next(one.body for one in module.body if isinstance(one, ast.ClassDef) and one.name == section.__name__)
    texts: dict[str, str] = {}
    for attribute, text in pairwise(body):
        match attribute, text:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(said))):
                texts[name] = " ".join(said.split())
            case _:
                pass
    return texts


def _kind(kind: Any) -> str:
    if get_origin(kind) in (types.UnionType, Union):
        return ", ".join(_kind(one) for one in get_args(kind) if one is not type(None))
    if get_origin(kind) is Literal:
        return ", ".join(f'`"{value}"`' for value in get_args(kind))
    if get_origin(kind) is dict and get_args(kind)[1] is Any:
        return "table"
    kind, limits = plain_type(kind)
    return _WORDS[get_origin(kind) or kind] + limits


def _default(field: msgspec.structs.FieldInfo) -> str:
    made = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return "*unset*" if made is None else f"`{json.dumps(made)}`"
