"""`tenuto hooks`: which commands are asked at which events here, and what is wrong with their files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, complain, parse, say, say_json
from tenuto.config.plugins.installed import all_hook_files
from tenuto.config.settings import load_settings
from tenuto.exit_codes import FAILED, OK
from tenuto.extension.hooks.files import EVENTS, HookCommand, ReadHooks, may_run, read_hook_files
from tenuto.text.bounding import shorten

COMMAND_CHARS = 100


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto hooks`."""
    parser = Parser(
        prog="tenuto hooks",
        description="List the hooks that hold here, the user's and the project's. check names what is wrong with their "
        "files; exit code 1 where anything is.",
    )
    parser.add_argument("what", nargs="?", choices=("list", "check"), default="list", help="default: list")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parser.add_argument("--cwd", default="", metavar="DIR", help="the directory to look from")
    return parser


def run_hooks(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto hooks …`; returns the exit code: 0 done, 1 `check` found something, 2 bad usage."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    cwd = working_directory(parsed.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    settings, problems = load_settings(home, cwd, environ)
    for problem in problems:
        complain(problem)
    files = all_hook_files(home, cwd, environ, shared=settings.hooks.shared) if settings.hooks.enabled else []
    read = read_hook_files(files)
    if parsed.json:
        say_json(
            {"enabled": settings.hooks.enabled, "hooks": list(map(_plain, read.commands)), "problems": read.problems}
        )
    elif parsed.what == "list":
        _list(read, is_enabled=settings.hooks.enabled)
    else:
        _check(read, [str(file.path) for file in files])
    return FAILED if parsed.what == "check" and read.problems else OK


def _list(read: ReadHooks, *, is_enabled: bool) -> None:
    if not read.commands:
        say("No hooks." if is_enabled else "Hooks are switched off (hooks.enabled).")
    for command in sorted(read.commands, key=lambda one: EVENTS.index(one.event)):
        say(describe_hook(command))
    for problem in read.problems:
        complain(problem)


def _check(read: ReadHooks, files: list[str]) -> None:
    for problem in read.problems:
        say(problem)
    if not read.problems:
        say(f"Everything is in order: {len(read.commands)} hooks in {', '.join(files)}" if files else "No hook files.")


def describe_hook(command: HookCommand) -> str:
    """Return a hook on one line."""
    which = f" {command.matcher}" if command.matcher not in ("", "*") else ""
    left_out = "" if may_run(command) else ", not run: it is the project's"
    text = shorten(command.command, COMMAND_CHARS)
    return f"{command.event}{which}: {text} ({command.file.path}, {command.timeout:g} s{left_out})"


def _plain(command: HookCommand) -> dict[str, object]:
    return {
        "event": command.event,
        "matcher": command.matcher,
        "if": command.condition,
        "command": command.command,
        "timeout": command.timeout,
        "async": not command.waits,
        "file": str(command.file.path),
        "source": "plugin" if command.file.plugin else "user" if command.file.root is None else "project",
        "runs": may_run(command),
    }
