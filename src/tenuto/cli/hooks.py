"""`tenuto hooks`: which commands are asked at which events here, and what is wrong with their files."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path

from tenuto.cli.parsing import Parser, add_directory, complain, parse_here, say, say_json, settings_for
from tenuto.config.consent import Verdict
from tenuto.config.plugins.installed import all_hook_files
from tenuto.exit_codes import FAILED, OK
from tenuto.extension.hooks.files import EVENTS, HookCommand, ReadHooks, read_hook_files
from tenuto.extension.hooks.trusting import STATES, HookTrust
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural

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
    add_directory(parser)
    return parser


def run_hooks(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto hooks …`; returns the exit code: 0 done, 1 `check` found something, 2 bad usage."""
    asked = parse_here(build_parser(), arguments)
    if isinstance(asked, int):
        return asked
    parsed, cwd = asked
    settings = settings_for(home, cwd, environ)
    files = all_hook_files(home, cwd, environ, shared=settings.hooks.shared) if settings.hooks.enabled else []
    read = read_hook_files(files)
    verdicts = HookTrust(cwd, home).verdicts(read.commands)
    if parsed.json:
        hooks = [_plain(command, verdicts[command]) for command in read.commands]
        say_json({"enabled": settings.hooks.enabled, "hooks": hooks, "problems": read.problems})
    elif parsed.what == "list":
        _list(read, verdicts, is_enabled=settings.hooks.enabled)
    else:
        _check(read, [str(file.path) for file in files])
    return FAILED if parsed.what == "check" and read.problems else OK


def _list(read: ReadHooks, verdicts: Mapping[HookCommand, Verdict], *, is_enabled: bool) -> None:
    if not read.commands:
        say("No hooks." if is_enabled else "Hooks are switched off (hooks.enabled).")
    for command in sorted(read.commands, key=lambda one: EVENTS.index(one.event)):
        say(describe_hook(command, verdicts[command]))
    if any(verdict != "trusted" for verdict in verdicts.values()):
        say("tenuto trust shows what waits for your trust, and decides it.")
    for problem in read.problems:
        complain(problem)


def _check(read: ReadHooks, files: list[str]) -> None:
    for problem in read.problems:
        say(problem)
    if not read.problems:
        say(
            f"Everything is in order: {plural(len(read.commands), 'hook')} in {', '.join(files)}"
            if files
            else "No hook files."
        )


def describe_hook(command: HookCommand, verdict: Verdict) -> str:
    """Return a hook on one line."""
    which = f" {command.matcher}" if command.matcher not in ("", "*") else ""
    left_out = f", {STATES[verdict]}" if STATES[verdict] else ""
    text = shorten(command.command, COMMAND_CHARS)
    return f"{command.event}{which}: {text} ({command.file.path}, {command.timeout:g} s{left_out})"


def _plain(command: HookCommand, verdict: Verdict) -> dict[str, object]:
    return {
        "event": command.event,
        "matcher": command.matcher,
        "if": command.condition,
        "command": command.command,
        "timeout": command.timeout,
        "async": not command.waits,
        "file": str(command.file.path),
        "source": "plugin" if command.file.plugin else "user" if command.file.root is None else "project",
        "trust": verdict,
        "runs": verdict == "trusted",
    }
