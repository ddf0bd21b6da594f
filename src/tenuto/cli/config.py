"""`tenuto config`: settings shown with their places, changed with comments kept, and their JSON schema."""

from __future__ import annotations

import argparse
import asyncio
import json
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, add_directory, complain, parse, say, say_json, shown_value
from tenuto.config.fitting import keep_fitting, name_key, type_at
from tenuto.config.manual import Setting, explain, json_schema, parts, plain_text, settings_in
from tenuto.config.project import project_root
from tenuto.config.settings import Settings
from tenuto.config.settings_writer import Key, SettingNotKept, drop_value, keep_value, read_key
from tenuto.config.sources import PROJECT_FILE, Made, Source, made_settings, read_sources, settings_of
from tenuto.exit_codes import FAILED, OK
from tenuto.guard.terminal import write_text

KEY_HELP = "as ui.theme, or 'models.\"openai/gpt-6.1\".effort'"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto config`."""
    parser = Parser(prog="tenuto config", description="Show and change settings.")
    acts = parser.add_subparsers(dest="act", metavar="{show,get,set,unset,edit,schema}", parser_class=Parser)
    show = acts.add_parser("show", help="the settings that are made, with file and line (default)")
    show.add_argument("--all", action="store_true", help="all settings, those at their defaults too")
    get = acts.add_parser("get", help="one setting: its value, where it comes from, what it means")
    put = acts.add_parser("set", help="change one setting; comments stay")
    unset = acts.add_parser("unset", help="take one setting out, so that its default holds")
    edit = acts.add_parser("edit", help="open the file in your editor, then check it")
    acts.add_parser("schema", help="the JSON schema of settings.toml, for editors")
    for each in (get, put, unset):
        each.add_argument("key", metavar="KEY", help=KEY_HELP)
    put.add_argument("value", metavar="VALUE", help="as in TOML; a text needs no quotes")
    for each in (show, get):
        each.add_argument("--json", action="store_true", help="as JSON")
    for each in (put, unset, edit):
        each.add_argument("--project", action="store_true", help="in .tenuto/settings.toml of this project")
    for each in (show, get, put, unset, edit):
        add_directory(each, "in this directory")
    return parser


def run_config(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto config …`; returns the exit code: 0 done, 1 not done, 2 bad usage."""
    parsed = parse(build_parser(), arguments or ("show",))
    if isinstance(parsed, int):
        return parsed
    if parsed.act == "schema":
        write_text(json.dumps(json_schema(), indent=2, ensure_ascii=False))
        return OK
    cwd = working_directory(parsed.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    if parsed.act == "show":
        return _show(read_sources(home, cwd, environ), every=parsed.all, as_json=parsed.json)
    file = project_root(cwd) / PROJECT_FILE if getattr(parsed, "project", False) else home / "settings.toml"
    if parsed.act == "edit":
        return _edit(file, home, cwd, environ)
    try:
        key = read_key(parsed.key)
    except ValueError as error:
        return complain(str(error))
    setting = explain(key)
    if setting is None:
        return complain(_unknown(key))
    match parsed.act:
        case "get":
            return _get(key, setting, read_sources(home, cwd, environ), as_json=parsed.json)
        case "set":
            code = _set(file, key, parsed.value, lambda: read_sources(home, cwd, environ))
            if code == OK and (doubt := _doubt(key, home, environ)):
                complain(doubt)
            return code
        case _:
            return _unset(file, key)


def _show(sources: Sequence[Source], *, every: bool, as_json: bool) -> int:
    for problem in (problem for source in sources for problem in source.problems):
        complain(problem)
    made = made_settings(sources)
    if every:
        known = {one.key for one in made}
        made += [Made(key, value, "default", None) for key, value in _defaults() if key not in known]
    if as_json:
        say_json([_plain(one) for one in made])
        return OK
    for one in made:
        over = "; overruled" if one.overruled else ""
        say(f"{name_key(one.key)} = {shown_value(one.key, one.value)}  ({one.place}{over})")
    if not made:
        say("No settings are made; the defaults hold. tenuto config show --all lists them.")
    return OK


def _plain(one: Made) -> dict[str, object]:
    return {
        "key": name_key(one.key),
        "value": one.value if shown_value(one.key, one.value) != "(set)" else None,
        "source": one.source,
        "line": one.line,
        "overruled": one.overruled,
    }


def _defaults() -> list[tuple[Key, object]]:
    """Return all settings that stand in no table of the user's naming, with their defaults."""
    values = cast("dict[str, Any]", msgspec.to_builtins(Settings()))
    found: list[tuple[Key, object]] = []
    for name, section in parts():
        if "NAME" not in name and '"' not in name:
            path = tuple(name.split(".")) if name else ()
            found += [((*path, one.name), _value_at(values, (*path, one.name))) for one in settings_in(section)]
    return found


def _value_at(values: object, key: Key) -> object:
    for name in key:
        values = cast("dict[str, object]", values).get(name) if isinstance(values, dict) else None
    return values


def _get(key: Key, setting: Setting, sources: Sequence[Source], *, as_json: bool) -> int:
    value = _value_at(msgspec.to_builtins(settings_of(sources)), key)
    place = next((one for one in made_settings(sources) if one.key == key and not one.overruled), None)
    shown = shown_value(key, value)
    if as_json:
        answer = _plain(place or Made(key, value, "default", None)) | {"value": None if shown == "(set)" else value}
        say_json(answer | {"type": setting.kind, "default": setting.default.strip("`"), "meaning": setting.meaning})
        return OK
    say(f"{name_key(key)} = {shown}  ({place.place if place else 'default'})")
    say(f"{setting.kind.replace('`', '')}; default {setting.default.replace('`', '').replace('*', '')}")
    say(plain_text(setting.meaning))
    return OK


def _set(file: Path, key: Key, word: str, read: Callable[[], Sequence[Source]]) -> int:
    """Set a key in a file; `read` reads all sources again, to say whether it holds."""
    fitting = _read_value(key, word)
    if isinstance(fitting, str):
        return complain(fitting)
    try:
        keep_value(file, key, fitting[0])
    except SettingNotKept as error:
        return complain(str(error), FAILED)
    say(f"{name_key(key)} = {shown_value(key, fitting[0])}  ({file})")
    sources = read()
    for problem in (problem for source in sources if source.name == str(file) for problem in source.problems):
        complain(problem)
    in_force = next((one for one in made_settings(sources) if one.key == key and not one.overruled), None)
    if in_force and in_force.source != str(file):
        say(f"{in_force.place} sets it too, and wins.")
    return OK


def _doubt(key: Key, home: Path, environ: Mapping[str, str]) -> str:
    """Return what a start would say of a name that fits its setting, empty where there is something of that name."""
    settings = settings_of(read_sources(home, None, environ))
    value = _value_at(msgspec.to_builtins(settings), key)
    match (key, value):
        case (("ui", "theme"), str(theme)):
            from tenuto.tui.themes import find_any

            return next(iter(find_any(theme, home, environ, light=False).problems), "")
        case (("model",), str(model)) if model:
            from tenuto.model.registry import ModelRegistry
            from tenuto.protocol.model import ModelError

            try:
                ModelRegistry(settings, home, environ).require(model)
            except ModelError as error:
                return str(error)
            return ""
        case _:
            return ""


def _read_value(key: Key, word: str) -> tuple[object] | str:
    """Return the value that a word stands for, in a tuple, or what is wrong with it."""
    fault = ""
    for value in (*_as_toml(word), word):
        fault = _fault(key, value)
        if not fault:
            return (msgspec.to_builtins(msgspec.convert(value, type_at(key, Settings), strict=False)),)
    return fault.replace(" is ignored: ", " is not changed: ")


def _fault(key: Key, value: object) -> str:
    """Return what is wrong with a setting, empty when nothing is."""
    nested: Any = value
    for name in reversed(key):
        nested = {name: nested}
    faults: list[str] = []
    keep_fitting(nested, Settings, lambda _path, fault: faults.append(fault))
    return faults[0] if faults else ""


def _as_toml(word: str) -> list[object]:
    try:
        return [tomllib.loads(f"value = {word}")["value"]]
    except (tomllib.TOMLDecodeError, RecursionError, KeyError):
        return []


def _unset(file: Path, key: Key) -> int:
    try:
        was_there = drop_value(file, key)
    except SettingNotKept as error:
        return complain(str(error), FAILED)
    say(f"{name_key(key)} is out of {file}" if was_there else f"{name_key(key)} is not in {file}")
    return OK


def _edit(file: Path, home: Path, cwd: Path, environ: Mapping[str, str]) -> int:
    from tenuto.tui.programs import edit_file

    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fault = asyncio.run(edit_file(str(file), environ))
    if fault:
        return complain(fault, FAILED)
    problems = [problem for source in read_sources(home, cwd, environ) for problem in source.problems]
    for problem in problems:
        complain(problem)
    return FAILED if problems else OK


def _unknown(key: Key) -> str:
    """Return the line on a key that no setting has."""
    fault = _fault(key, "x")
    if "there is no such setting" in fault:
        return fault.replace(" is ignored: ", ": ")
    return f"{name_key(key)} is a table; tenuto config show --all lists what is in it"
