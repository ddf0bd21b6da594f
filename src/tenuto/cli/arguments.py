"""The command line's words (DESIGN section 9, "The command line that scripts and benchmarks rely on")."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NoReturn

from msgspec import Struct

from tenuto.exit_codes import BAD_USAGE

if TYPE_CHECKING:
    import argparse


FLAGS = {
    "-p": "print_mode",
    "--print": "print_mode",
    "--json": "json",
    "-c": "continue_latest",
    "--continue": "continue_latest",
    "--fork": "fork",
    "--no-session": "no_session",
    "--inline": "inline",
    "--screen-reader": "screen_reader",
    "--no-sandbox": "no_sandbox",
}
VALUES = {
    "-m": "model",
    "--model": "model",
    "--mode": "mode",
    "--profile": "profile",
    "-C": "cwd",
    "--cwd": "cwd",
    "-o": "output_format",
    "--output-format": "output_format",
    "--input-format": "input_format",
    "--max-turns": "max_turns",
    "--max-cost": "max_cost",
    "--timeout": "timeout",
    "--output-schema": "output_schema",
}
HEADLESS = ("json", "output_format", "input_format", "max_turns", "max_cost", "timeout", "output_schema")
"""Options of runs without a screen: each of them asks for one."""
RESUME = ("-r", "--resume")


def read_plain(arguments: Sequence[str], modes: Sequence[str]) -> dict[str, Any] | None:
    """Return the values of the options as argparse would, `None` for what is for argparse to read or to refuse."""
    found: dict[str, Any] = {}
    prompt: list[str] = []
    words = list(reversed(arguments))
    while words:
        word = words.pop()
        value = words[-1] if words and words[-1] and not words[-1].startswith("-") else ""
        if word and not word.startswith("-"):
            prompt.append(word)
        elif word in FLAGS:
            found[FLAGS[word]] = True
        elif word in RESUME and (value or not words or words[-1]):
            found["resume"] = words.pop() if value else ""
        elif word in VALUES and value and (word != "--mode" or value in modes):
            found[VALUES[word]] = words.pop()
        else:
            return None
    return found | {"prompt": prompt}


MOST = 1_000_000_000
"""A limit over this is no limit."""
FORMATS = ("text", "json", "stream-json")
MODES = ("ask", "edits", "auto", "plan")
SUBCOMMANDS = {
    "sessions": "tenuto.cli.sessions:run_sessions",
    "search": "tenuto.cli.searching:run_search",
    "models": "tenuto.cli.models:run_models",
    "login": "tenuto.cli.login:run_login",
    "logout": "tenuto.cli.login:run_logout",
    "import": "tenuto.cli.importing:run_import",
    "eval": "tenuto.cli.evaluating:run_eval",
    "batch": "tenuto.cli.batch:run_batch",
    "prompt": "tenuto.cli.prompting:run_prompt",
    "approvals": "tenuto.cli.approvals:run_approvals",
    "doctor": "tenuto.cli.doctor.command:run_doctor",
    "sandbox": "tenuto.cli.sandboxing:run_sandbox",
    "trust": "tenuto.cli.trust:run_trust",
    "hooks": "tenuto.cli.hooks:run_hooks",
    "extensions": "tenuto.cli.extensions:run_extensions",
    "skills": "tenuto.cli.skills:run_skills",
    "plugins": "tenuto.cli.plugins.command:run_plugins",
    "mcp": "tenuto.cli.mcp:run_mcp",
    "acp": "tenuto.cli.acp:run_acp",
    "config": "tenuto.cli.config:run_config",
    "stats": "tenuto.cli.stats:run_stats",
    "completion": "tenuto.cli.completion:run_completion",
}
"""The function that carries out each subcommand: it gets the words behind it, Tenuto's home and the environment."""


class Options(Struct, frozen=True):
    """What the command line asks for. `resume` is empty for "let me choose"; `None` when it was not given."""

    prompt: str = ""
    print_mode: bool = False
    json: bool = False
    output_format: str = "text"
    input_format: str = "text"
    max_turns: int | None = None
    max_cost: float | None = None
    timeout: float | None = None
    output_schema: str = ""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    add_dir: tuple[str, ...] = ()
    continue_latest: bool = False
    resume: str | None = None
    fork: bool = False
    model: str = ""
    mode: Literal["ask", "edits", "auto", "plan"] | None = None
    cwd: str = ""
    no_session: bool = False
    inline: bool = False
    screen_reader: bool = False
    no_sandbox: bool = False
    subcommand: tuple[str, ...] = ()


def _complain(message: str) -> int:
    from tenuto.guard.terminal import write_text

    write_text(f"tenuto: {message}", to_errors=True)
    return BAD_USAGE


def read_mode(word: str) -> str:
    """Return the mode that a word names. Raises `ArgumentTypeError` with those that there are."""
    import argparse

    from tenuto.text.matching import did_you_mean

    if word not in MODES:
        hint = did_you_mean(word, MODES)
        raise argparse.ArgumentTypeError(f"“{word}” is none of {', '.join(MODES)}{hint}")
    return word


def working_directory(named: str) -> Path | str:
    """Return the real path of the directory to work in, or a sentence that says why there is none."""
    try:
        cwd = Path(named or ".").expanduser()
        if cwd.is_dir():
            return cwd.resolve(strict=True)
    except FileNotFoundError:
        return "the working directory was deleted; change to another one, or name one with --cwd DIR"
    except (OSError, RuntimeError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return f"{named or 'the working directory'} cannot be used ({reason}); name another one"
    return f"{cwd} is not a directory; name an existing one"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the main command."""
    import argparse

    class Parser(argparse.ArgumentParser):
        def error(self, message: str) -> NoReturn:
            """Say what is wrong in one line, and where the rest is."""
            raise SystemExit(_complain(f"{message}; tenuto --help lists what there is"))

    parser = Parser(
        prog="tenuto",
        description="A coding agent for your terminal. Without a prompt it opens the full screen.",
        epilog=f"Subcommands, each with --help: {', '.join(SUBCOMMANDS)}. API keys: ANTHROPIC_API_KEY, OPENAI_API_KEY, "
        "GEMINI_API_KEY; without one the built-in offline model answers.",
    )
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help="what to do; “-” reads it from standard input")
    parser.add_argument(
        "-p", "--print", dest="print_mode", action="store_true", help="non-interactive: print the answer and exit"
    )
    headless = parser.add_argument_group("headless runs", "each of these runs without a screen, as -p does")
    headless.add_argument(
        "-o", "--output-format", metavar="{" + ",".join(FORMATS) + "}", help="what standard output gets (default text)"
    )
    headless.add_argument(
        "--input-format", metavar="{text,stream-json}", help="stream-json: prompts as JSON lines on standard input"
    )
    headless.add_argument("--json", action="store_true", help="every event of Tenuto's own as one JSON line")
    headless.add_argument("--max-turns", metavar="N", help="stop after N calls of the model")
    headless.add_argument("--max-cost", metavar="DOLLARS", help="stop when the run has cost so much")
    headless.add_argument("--timeout", metavar="SECONDS", help="stop after so many seconds")
    headless.add_argument("--output-schema", metavar="FILE", help="the answer is JSON that fits this JSON schema")
    parser.add_argument(
        "--allow",
        action="append",
        metavar="RULE",
        help="allow without asking, as bash(pytest *) or edit(src/**)",
    )
    parser.add_argument("--deny", action="append", metavar="RULE", help="never allow; wins over everything else")
    parser.add_argument("--add-dir", action="append", metavar="DIR", help="one more directory to work in")
    parser.add_argument(
        "--no-sandbox", action="store_true", help="run commands without a sandbox; mode auto then runs them so, unasked"
    )
    parser.add_argument(
        "-c",
        "--continue",
        dest="continue_latest",
        action="store_true",
        help="continue the latest session of this directory",
    )
    parser.add_argument(
        "-r", "--resume", nargs="?", const="", metavar="ID", help="resume a session by id or words, or choose one"
    )
    parser.add_argument("--fork", action="store_true", help="with --continue or --resume ID: continue in a copy")
    parser.add_argument("-m", "--model", default="", metavar="PROVIDER/NAME[:EFFORT]", help="the model to use")
    parser.add_argument("--mode", type=read_mode, metavar="{" + ",".join(MODES) + "}", help="what needs approval")
    parser.add_argument("--profile", default="", metavar="NAME", help="settings of [profiles.NAME] come before yours")
    parser.add_argument("-C", "--cwd", default="", metavar="DIR", help="work in this directory")
    parser.add_argument("--no-session", action="store_true", help="do not save the session")
    parser.add_argument("--inline", action="store_true", help="print into the terminal's own scrollback")
    parser.add_argument("--screen-reader", action="store_true", help="plain lines, one after the other")
    parser.add_argument("-V", "--version", action="store_true", help="print the version")
    return parser


def parse_arguments(arguments: list[str]) -> Options | int:
    """Return the options, or the exit code when there is nothing more to do."""
    if arguments[:1] == ["--profile"] and arguments[2:3] and arguments[2] in SUBCOMMANDS:
        if problem := use_profile(arguments[1]):
            return _complain(problem)
        arguments = arguments[2:]
    if arguments[:1] and arguments[0] in SUBCOMMANDS:
        return Options(subcommand=tuple(arguments))
    if len(arguments) == 1 and (problem := _find_slip(arguments[0])):
        return _complain(problem)
    given = read_plain(arguments, MODES)
    if given is None:
        try:
            given = vars(build_parser().parse_intermixed_args(arguments))
        except SystemExit as stop:
            return stop.code if isinstance(stop.code, int) else 0
    if given.pop("version", False):
        from tenuto.guard.terminal import write_text
        from tenuto.version import __version__

        write_text(f"tenuto {__version__}")
        return 0
    profile = given.pop("profile", "")
    if profile and (problem := use_profile(profile)):
        return _complain(problem)
    return _checked(given)


LIKENESS = 0.75
"""Of two words, from 0 to 1: `confg` is a `config` written badly, `test` is no `trust`."""


def _find_slip(word: str) -> str:
    """Return what to say of a lone word that is nearly a subcommand: sent as a prompt it would only cost."""
    if not (word.isalpha() and word.islower()):
        return ""
    from tenuto.text.matching import nearest

    meant = nearest(word, SUBCOMMANDS, LIKENESS)
    return f"{word} is no subcommand; did you mean {meant}? To send it as a prompt: tenuto -- {word}" if meant else ""


def use_profile(name: str) -> str:
    """Let a profile of the user's settings hold in this process, or say in a line that there is none of that name."""
    from tenuto.config.sources import PROFILE, home_directory, missing_profile

    problem = missing_profile(home_directory(os.environ), name)
    if not problem:
        os.environ[PROFILE] = name
    return problem


NUMBERS: dict[str, type[int] | type[float]] = {"max_turns": int, "max_cost": float, "timeout": float}


def _number(name: str, word: str, kind: type[int] | type[float]) -> float | str:
    """Return the number that a limit is, or what is wrong with it."""
    try:
        value = kind(word)
    except ValueError:
        value = 0
    if 0 < value < MOST:
        return value
    what = "a whole number from 1" if kind is int else "a number over 0"
    return f"--{name.replace('_', '-')} takes {what}, not “{word}”"


def _find_misfit(given: dict[str, Any]) -> str:
    """Return what is wrong with the formats, empty when nothing is."""
    from tenuto.text.matching import did_you_mean

    output, reads = given.get("output_format", "text"), given.get("input_format", "text")
    for name, word, known in (("output", output, FORMATS), ("input", reads, ("text", "stream-json"))):
        if word not in known:
            return f"--{name}-format takes {', '.join(known)}, not “{word}”{did_you_mean(word, known)}"
    if reads != "text" and output != "stream-json":
        return "--input-format stream-json goes with --output-format stream-json"
    if given.get("json") and output != "text":
        return "--json and --output-format exclude each other"
    return ""


def _checked(given: dict[str, Any]) -> Options | int:
    """Return the options, or the exit code after saying what does not go together."""
    given["prompt"] = " ".join(given["prompt"])
    given = {name: value for name, value in given.items() if value is not None or name == "resume"}
    given["print_mode"] = given.get("print_mode", False) or any(given.get(name) for name in HEADLESS)
    given |= {name: tuple(given.get(name, ())) for name in ("allow", "deny", "add_dir")}
    for name, read in NUMBERS.items():
        if name in given:
            found = _number(name, given[name], read)
            if isinstance(found, str):
                return _complain(found)
            given[name] = found
    problem = _find_misfit(given)
    if problem:
        return _complain(problem)
    options = Options(**given)
    earlier = options.continue_latest or options.resume is not None
    if options.continue_latest and options.resume is not None:
        return _complain("--continue and --resume exclude each other")
    if options.no_session and earlier:
        return _complain("--no-session cannot go on with an earlier session")
    if options.fork and not options.continue_latest and not options.resume:
        return _complain("--fork goes with --continue or --resume ID: it goes on in a copy of that session")
    return options
