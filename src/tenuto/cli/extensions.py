"""`tenuto extensions list | check`: which there are, without running them; and trying one in a process of its own."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tenuto.cli.parsing import Parser, add_directory, complain, parse_here, say, say_json
from tenuto.command.registry import command_names
from tenuto.config.project import EXTENSIONS, find_upwards
from tenuto.config.settings import Settings
from tenuto.config.sources import load_settings
from tenuto.core.state.found import list_extensions
from tenuto.exit_codes import FAILED, OK
from tenuto.extension.checking import Checked, check
from tenuto.extension.finding import Source, find_extensions, is_extension, list_files, source_of
from tenuto.extension.host import Reserved
from tenuto.model.registry import ModelRegistry
from tenuto.text.matching import did_you_mean
from tenuto.tool.run.registry import ToolRegistry


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto extensions`."""
    parser = Parser(
        prog="tenuto extensions",
        description="List the extensions of this directory, yours and installed ones; none is run. check imports one "
        "in a process of its own and says what it registers, and every fault with file and line. Exit code 1 where "
        "there is one.",
    )
    parser.add_argument("what", nargs="?", choices=("list", "check"), default="list", help="default: list")
    parser.add_argument("names", nargs="*", metavar="PATH|NAME", help="with check: a file, a folder, or a listed name")
    add_directory(parser)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    return parser


def run_extensions(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto extensions …`; returns the exit code: 0 done, 1 there are faults, 2 bad usage."""
    given = parse_here(build_parser(), arguments)
    if isinstance(given, int):
        return given
    parsed, cwd = given.options, given.cwd
    settings, _ = load_settings(home, cwd, environ)
    if parsed.what == "list":
        if parsed.names:
            return complain("list takes no name; tenuto extensions check NAME tries one")
        return _list(home, cwd, settings, as_json=parsed.json)
    found = [_find(home, cwd, settings, name) for name in parsed.names]
    for one in found:
        if isinstance(one, str):
            return complain(one)
    chosen = [one for one in found if isinstance(one, Source)] or _own(home, settings)
    return _check(home, environ, settings, chosen, as_json=parsed.json)


def _own(home: Path, settings: Settings) -> list[Source]:
    return list(find_extensions(home, settings.extensions).sources)


def _list(home: Path, cwd: Path, settings: Settings, *, as_json: bool) -> int:
    rows, problems = list_extensions(home, cwd, settings)
    if as_json:
        say_json({"extensions": rows, "problems": problems})
        return OK
    for row in rows:
        say(f"{row.name} ({row.origin}, {row.state})")
        say(f"  {row.place}")
    for problem in problems:
        complain(problem)
    if not rows:
        say("There are no extensions. One is a Python file with setup(tenuto), in extensions/ in Tenuto's home.")
    return OK


def _find(home: Path, cwd: Path, settings: Settings, name: str) -> Source | str:
    """Return the extension that a word means, or why there is none."""
    path = cwd / Path(name).expanduser()
    if path.exists():
        if is_extension(path):
            return source_of(path.resolve())
        return f"{path} is neither a Python file nor a folder with an __init__.py"
    known = {source.name: source for source in find_extensions(home, settings.extensions).sources}
    folder = find_upwards(cwd, home, EXTENSIONS)
    known = {path.stem: source_of(path) for path in (list_files(folder) if folder is not None else ())} | known
    if name in known:
        return known[name]
    return f"there is no extension {name}{did_you_mean(name, known)}; tenuto extensions list shows them"


def _check(home: Path, environ: Mapping[str, str], settings: Settings, sources: list[Source], *, as_json: bool) -> int:
    reserved = Reserved(
        tools=frozenset(ToolRegistry().names()),
        commands=command_names(),
        providers=frozenset(ModelRegistry(settings, home, environ).provider_names()),
    )
    checked = [check(source, home, reserved, settings.extensions.load_timeout) for source in sources]
    if as_json:
        say_json({"extensions": checked})
    else:
        for one in checked:
            _say_checked(one)
        if not checked:
            say("There are no extensions to check.")
    return FAILED if any(one.faults for one in checked) else OK


def _say_checked(one: Checked) -> None:
    said = "; ".join(f"{kind}: {', '.join(names)}" for kind, names in one.registers.items())
    say(f"{one.name}: {said or ('it cannot be used' if one.faults else 'it registers nothing')}")
    for fault in one.faults:
        say(f"  {fault}")
