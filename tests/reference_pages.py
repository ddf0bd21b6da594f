"""The generated parts of the reference in `docs/`, made from the code. Written by `scripts/manual`.

A page has them between two marks; what stands around them is written by hand.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import inspect
import re
import sys
import typing
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType, UnionType
from unittest.mock import patch

import msgspec

from tenuto import exit_codes
from tenuto.cli.arguments import SUBCOMMANDS, build_parser
from tenuto.cli.completion import _acts
from tenuto.cli.start import find_subcommand
from tenuto.command.registry import COMMANDS
from tenuto.frontend.result import SUBTYPES
from tenuto.protocol.entry import Entry, UnknownEntry
from tenuto.protocol.event import AnyEvent, Event
from tenuto.protocol.message import HistoryEvent

ROOT = Path(__file__).parent.parent
BEGIN, END = "<!-- from the code: scripts/manual -->\n", "<!-- end -->\n"


def with_part(text: str, part: str) -> str:
    """Return a page with its generated part renewed. Numbers of requirements are for the code alone."""
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert begin and end, "the marks of the generated part are missing"
    plain = re.sub(r" \(R-\d+\)", "", part)
    return f"{before}{BEGIN}\n{plain}\n{END}{after}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of Markdown. A column in which no row has anything is left out."""
    used = [place for place in range(len(head)) if any(row[place] for row in rows)]
    lines = [head, *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    first, *others = [f"| {' | '.join(line[place] for place in used)} |\n" for line in lines]
    return "".join([first, f"|{'---|' * len(used)}\n", *others])


def code(text: str) -> str:
    return f"`{text}`" if text else ""


# --- commands and options ---


def slash_commands() -> str:
    rows = [
        (
            code(f"/{command.name} {command.argument_hint}".rstrip()),
            ", ".join(code(f"/{alias}") for alias in command.aliases),
            command.description,
        )
        for command in COMMANDS
    ]
    return table(("command", "also", "does"), rows)


class _Explained(Exception):
    """Carries the parser that was to explain itself."""


def _explain(parser: argparse.ArgumentParser, *_: object) -> typing.NoReturn:
    raise _Explained(parser)


def parsers() -> Iterator[argparse.ArgumentParser]:
    """Yield the parser of the command, then of each subcommand: the one that it asks for `--help`."""
    yield build_parser()
    told: set[str] = set()
    for name in SUBCOMMANDS:
        for act in [word for word in _acts(name) if word != "import"] or [""]:
            words = (*((act,) if act else ()), "--help")
            with patch.object(argparse.ArgumentParser, "print_help", _explain), contextlib.suppress(SystemExit):
                try:
                    find_subcommand(name)(words, Path("~/.tenuto"), {})
                except _Explained as explained:
                    for parser in _with_children(explained.args[0]):
                        if parser.prog not in told:
                            told.add(parser.prog)
                            yield parser


def _with_children(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child, shown in zip(action.choices.values(), action._choices_actions, strict=True):
                child.description = _sentence(child.description or shown.help or "")
                yield from _with_children(child)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}." if text else ""


def _value(action: argparse.Action) -> str:
    """Return how an action's value is written, empty where it takes none."""
    if action.nargs == 0:
        return ""
    choices = "{" + ",".join(map(str, action.choices)) + "}" if action.choices else ""
    named = action.metavar if isinstance(action.metavar, str) else ""
    value = named or choices or action.dest.upper()
    if action.nargs == "?":
        return f"[{value}]"
    return {"*": f"[{value} ...]", "+": f"{value} ..."}.get(str(action.nargs), value)


def _option_row(action: argparse.Action) -> tuple[str, str]:
    value = _value(action)
    if not action.option_strings:
        return code(value), action.help or ""
    *short, long = map(code, action.option_strings)
    return ", ".join([*short, f"{long[:-1]} {value}`" if value else long]), action.help or ""


def command_line() -> str:
    parts: list[str] = []
    for parser in parsers():
        shown = [
            action
            for action in parser._actions
            if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
            and action.help != argparse.SUPPRESS
        ]
        parts.append(f"### {parser.prog}\n\n{' '.join((parser.description or '').split())}\n")
        if shown:
            parts.append(table(("option", "means"), [_option_row(action) for action in shown]))
    return "\n".join(parts)


def commands_page() -> str:
    return f"## Slash commands\n\n{slash_commands()}\n## The command line\n\n{command_line()}"


# --- events and entries ---


def _fields_of(kind: type[msgspec.Struct]) -> Iterator[tuple[str, str, str, str]]:
    """Yield name, type, default and meaning of each field that a struct adds to its base."""
    told = _told_of_fields(kind)
    own = {field.name: field for field in msgspec.structs.fields(kind)}
    for name, written in kind.__annotations__.items():
        if name in own and not name.startswith("_"):
            yield name, str(written), _default(own[name]), told.get(name, "")


def _default(field: msgspec.structs.FieldInfo) -> str:
    if field.required:
        return "*required*"
    if field.default is msgspec.NODEFAULT:
        value = field.default_factory() if callable(field.default_factory) else None
        return code(repr(value)) if isinstance(value, int | str) else ""
    if isinstance(field.default, bool | None):
        return code({None: "null", True: "true", False: "false"}[field.default])
    return code(repr(field.default).replace("'", '"')) if isinstance(field.default, int | float | str) else ""


def _told_of_fields(kind: type) -> dict[str, str]:
    """Return the texts under the fields of a class."""
    (node,) = ast.parse(inspect.cleandoc("\n" + inspect.getsource(kind))).body
    assert isinstance(node, ast.ClassDef)
    told: dict[str, str] = {}
    for before, after in zip(node.body, node.body[1:], strict=False):
        if isinstance(before, ast.AnnAssign) and isinstance(before.target, ast.Name) and isinstance(after, ast.Expr):
            told[before.target.id] = " ".join(str(ast.literal_eval(after.value)).split())
    return told


def _names(written: str, module: ModuleType) -> Iterator[tuple[str, object]]:
    """Yield the names in a type as it is written, with what they stand for."""
    for name in re.findall(r"[A-Za-z_]\w*", re.sub(r"\"[^\"]*\"", "", written)):
        if hasattr(module, name):
            yield name, getattr(module, name)


def _is_part(value: object) -> bool:
    """Say whether a type has to be told by itself: a struct, words, or a choice of structs."""
    if isinstance(value, type):
        return issubclass(value, msgspec.Struct) and value not in (Event, Entry)
    return typing.get_origin(value) in (typing.Literal, UnionType, typing.Union)


def parts_of(kinds: Sequence[type[msgspec.Struct]]) -> dict[str, object]:
    """Return the types that the fields of these structs name, and what those name in turn, sorted by name."""
    found: dict[str, object] = {}
    waiting: list[tuple[str, ModuleType]] = [(written, _module(kind)) for kind in kinds for written in _written(kind)]
    while waiting:
        for name, value in _names(*waiting.pop()):
            if name in found or not _is_part(value) or value in (AnyEvent, HistoryEvent) or value in kinds:
                continue
            found[name] = value
            if isinstance(value, type) and issubclass(value, msgspec.Struct):
                waiting += [(written, _module(value)) for written in _written(value)]
            else:
                waiting += [(one.__name__, _module(one)) for one in typing.get_args(value) if isinstance(one, type)]
    return dict(sorted(found.items()))


def _module(kind: type) -> ModuleType:
    return sys.modules[kind.__module__]


def _written(kind: type[msgspec.Struct]) -> list[str]:
    return [written for _, written, _, _ in _fields_of(kind)]


def _type(written: str, module: ModuleType, places: dict[str, str]) -> str:
    """Return a type as code, with a link to the first part of it that this page tells."""
    place = next((places[name] for name, _ in _names(written, module) if name in places), "")
    words = re.sub(r"Literal\[(.*?)\]", lambda found: found[1].replace(", ", " | ").replace("'", '"'), written)
    shown = code(words.replace("msgspec.Raw", "JSON"))
    return f"[{shown}](#{place})" if place else shown


def _struct(heading: str, kind: type[msgspec.Struct], places: dict[str, str]) -> str:
    rows = [
        (code(name), _type(written, _module(kind), places), default, meaning)
        for name, written, default, meaning in _fields_of(kind)
    ]
    fields = table(("field", "type", "default", "meaning"), rows) if rows else ""
    return "\n".join(part for part in (f"### {heading}\n", f"{inspect.getdoc(kind) or ''}\n", fields) if part)


def _tag(kind: type[msgspec.Struct]) -> str:
    return str(kind.__struct_config__.tag)


def events_page() -> str:
    events: tuple[type[msgspec.Struct], ...] = typing.get_args(AnyEvent)
    entries = tuple(kind for kind in typing.get_args(HistoryEvent) if kind is not UnknownEntry)
    others = parts_of([*events, *entries])
    places = {**{kind.__name__: f"{_tag(kind)}-entry" for kind in entries}, **{name: name.lower() for name in others}}
    texts = ["## Events\n", *(_struct(code(_tag(kind)), kind, places) for kind in events)]
    texts += ["## Entries of the log\n", *(_struct(f"`{_tag(kind)}` entry", kind, places) for kind in entries)]
    texts += ["## Parts\n", *(_part(name, value, places) for name, value in others.items())]
    return "\n".join(texts)


def _part(name: str, value: object, places: dict[str, str]) -> str:
    if isinstance(value, type) and issubclass(value, msgspec.Struct):
        config = value.__struct_config__
        head, text, *fields = _struct(name, value, places).split("\n\n", 2)
        said = f" Its `{config.tag_field}` is `{config.tag}`." if config.tag is not None else ""
        return "\n\n".join([head, text.rstrip() + said, *fields])
    shown = [
        _type(one.__name__, _module(one), places) if isinstance(one, type) else code(f'"{one}"')
        for one in typing.get_args(value)
    ]
    return f"### {name}\n\nOne of {', '.join(shown)}.\n"


# --- exit codes ---


def exit_code_rows() -> list[tuple[int, str]]:
    """Return each exit code of a run and what it means, from the texts in `exit_codes.py`."""
    module = ast.parse(inspect.getsource(exit_codes))
    rows: list[tuple[int, str]] = []
    for before, after in zip(module.body, module.body[1:], strict=False):
        if isinstance(before, ast.Assign) and isinstance(after, ast.Expr) and isinstance(before.targets[0], ast.Name):
            text = " ".join(str(ast.literal_eval(after.value)).split())
            rows.append((getattr(exit_codes, before.targets[0].id), text))
    return rows


def exit_codes_page() -> str:
    rows = [
        (
            str(number),
            code(SUBTYPES.get(number, "error_during_execution")) if number != exit_codes.BAD_USAGE else "",
            text,
        )
        for number, text in exit_code_rows()
    ]
    return table(("exit code", "`subtype` of the result", "means"), rows)


README_TABLE = re.compile(r"^\| exit code \| means \|\n(?:\|.*\n)+", re.MULTILINE)


def with_exit_codes(readme: str) -> str:
    """Return the README with its table of exit codes renewed."""
    rows = [(str(number), text) for number, text in exit_code_rows()]
    return README_TABLE.sub(lambda _: table(("exit code", "means"), rows), readme, count=1)


PAGES = {"commands.md": commands_page, "events.md": events_page, "exit-codes.md": exit_codes_page}


def renewed() -> dict[Path, str]:
    """Return every file with a generated part, as it has to be."""
    folder = ROOT / "docs" / "reference"
    pages = {
        folder / name: with_part((folder / name).read_text(encoding="utf-8"), make()) for name, make in PAGES.items()
    }
    readme = ROOT / "README.md"
    return {**pages, readme: with_exit_codes(readme.read_text(encoding="utf-8"))}


if __name__ == "__main__":
    for path, text in renewed().items():
        path.write_text(text, encoding="utf-8")
