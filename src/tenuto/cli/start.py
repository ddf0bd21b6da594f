"""From options to a front-end: where the prompt comes from, and whether there is a terminal to draw on."""

from __future__ import annotations

import errno
import os
import select
import stat
from collections.abc import Callable, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NoReturn, TypeAlias, cast

from msgspec import Struct

from tenuto.cli.arguments import SUBCOMMANDS, Options, working_directory
from tenuto.config.settings import UiSettings
from tenuto.config.sources import home_directory, load_settings
from tenuto.exit_codes import BAD_USAGE, SIGNAL
from tenuto.guard.terminal import write_text
from tenuto.tui.first_paint.decide import IMMOVABLE, is_accessible

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from tenuto.frontend.print import OutputFormat
    from tenuto.guard.rules import Rule
    from tenuto.tui.first_paint.reader import EarlyReader


MAX_STDIN_BYTES = 10_000_000
"""Bytes of a prompt on standard input; more than that is refused, and never cut."""


class Patience(Struct, frozen=True):
    """Seconds for which a pipe beside a prompt may be silent: at its beginning, and behind what came of it (R-081)."""

    first: float = 1.0
    rest: float = 30.0


class InputRefusedError(Exception):
    """Standard input cannot be taken whole; the message says why and what to do."""


def read_input(
    prompt: str,
    say: Callable[[str], None],
    descriptor: int = 0,
    patience: Patience = Patience(),  # noqa: B008
) -> str:
    """Return what is piped in. A pipe beside a prompt that stays open and silent is not waited for (R-081).

    `say` is told what is not waited for. Raises `InputRefusedError` when what comes cannot be had whole.
    """
    if prompt in ("", "-"):
        return _read(descriptor, lambda size: True)
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:
        return ""
    if stat.S_ISREG(mode):
        return _read(descriptor, lambda size: True)
    if not (stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)):
        return ""

    def is_more(size: int) -> bool:
        if _is_ready(descriptor, patience.first):
            return True
        if not size:
            say(f"nothing came on standard input within {patience.first:g} s; going on without it (tenuto -p - waits)")
            return False
        say(f"standard input is still open; waiting up to {patience.rest:g} s for more")
        if _is_ready(descriptor, patience.rest):
            return True
        say(f"standard input stayed silent; the {size:,} bytes that came are sent, what may come later is not")
        return False

    return _read(descriptor, is_more)


def _is_ready(descriptor: int, seconds: float) -> bool:
    """Wait until there is something to read, or the end."""
    return bool(select.select([descriptor], [], [], seconds)[0])


def _read(descriptor: int, is_more: Callable[[int], bool]) -> str:
    """Return what comes until its end, or until `is_more(bytes so far)` does not wait any longer."""
    data = bytearray()
    try:
        while is_more(len(data)) and (chunk := os.read(descriptor, 65_536)):
            data += chunk
            if len(data) > MAX_STDIN_BYTES:
                raise InputRefusedError(
                    f"standard input has more than {MAX_STDIN_BYTES:,} bytes, and nothing of it was sent; "
                    "put it into a file and name that in the prompt: the model reads what it needs of it"
                )
    except OSError as error:
        if error.errno != errno.EBADF:  # a standard input that was closed holds nothing
            reason = error.strerror or str(error)
            raise InputRefusedError(f"standard input cannot be read to its end ({reason}); nothing was sent") from error
    return data.decode("utf-8", errors="replace")


HINT_AFTER = 1.0
"""Seconds of silence after which it is said that a prompt is read from standard input."""

FrontEnd = Literal["print", "full", "inline", "plain"]


class Terminal(Struct, frozen=True):
    """What of the three standard streams is a terminal, and what kind."""

    stdin: bool
    stdout: bool
    stderr: bool
    name: str
    accessible: bool = False
    """Whether the environment asks for lines that a screen reader can read (`ACCESSIBLE=1`)."""

    @classmethod
    def present(cls) -> Terminal:
        """Return what this process has."""
        return cls(os.isatty(0), os.isatty(1), os.isatty(2), os.environ.get("TERM", ""), is_accessible(os.environ))


def choose_front_end(options: Options, terminal: Terminal, has_input: bool, *, inline: bool = False) -> FrontEnd | str:
    """Return the front-end to use, or a sentence (more than one word) that says why there is none. Pure.

    `inline` says that the settings want it without being asked.
    """
    if options.print_mode:
        says = has_input or options.prompt.strip() not in ("", "-")  # models refuse a prompt of spaces
        return "print" if says else "-p needs a prompt: as an argument, or on standard input"
    if terminal.stdin and terminal.stdout and terminal.stderr:
        if options.screen_reader or terminal.accessible or terminal.name in IMMOVABLE:
            return "plain"
        return "inline" if options.inline or inline else "full"
    if options.prompt or has_input:
        return "print"
    return "there is no terminal here and no prompt was given; use tenuto -p PROMPT"


def run(options: Options, early: EarlyReader | None = None) -> int:
    """Run the front-end that fits and return the exit code. `early` has the terminal already, if it is there."""
    leave_out_relative(os.environ)
    if options.subcommand:
        return run_subcommand(options.subcommand)
    cwd = working_directory(options.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    terminal = Terminal.present()
    reads_messages = options.input_format == "stream-json"
    if not (options.print_mode or options.prompt or terminal.stdin):
        announce_wait(os.environ)
    try:
        text = "" if terminal.stdin or reads_messages else read_input(options.prompt, note)
    except InputRefusedError as error:
        return complain(str(error))
    choice = choose_front_end(
        options, terminal, reads_messages or bool(text.strip()), inline=terminal.stdin and wants_inline(cwd)
    )
    if choice == "print":
        return run_headless(options, cwd, join_prompt(options.prompt, text))
    if choice in ("full", "inline", "plain"):
        return run_screen(choice, options, cwd, early)
    return complain(choice)


def leave_out_relative(environ: MutableMapping[str, str]) -> None:
    """Take entries out of the PATH that mean the working directory: programs of a project would run by it (S16)."""
    path = environ.get("PATH", "")
    kept = [folder for folder in path.split(os.pathsep) if os.path.isabs(folder)]  # noqa: PTH117
    if kept:
        environ["PATH"] = os.pathsep.join(kept)


def run_headless(options: Options, cwd: Path, prompt: str) -> int:
    """Run without a screen and return the exit code."""
    from tenuto.core.errors import UsageError
    from tenuto.frontend.print import PrintOptions, run_print

    for problem in theme_problems(cwd):
        note(problem)
    try:
        schema = None
        if options.output_schema:
            from tenuto.api.schema import read_schema

            schema = read_schema(Path(options.output_schema))
        start = runtime_start(options, cwd, interactive=False, answer_note=schema.note if schema else "")
    except UsageError as error:
        return complain(str(error))
    asked = PrintOptions(
        output="events" if options.json else cast("OutputFormat", options.output_format),
        reads_messages=options.input_format == "stream-json",
        timeout=options.timeout,
        schema=schema,
    )
    return run_print(start, prompt, asked)


def run_subcommand(words: tuple[str, ...]) -> int:
    """Run a subcommand and return its exit code, 128 and the signal's number where a signal ended it.

    A signal unwinds what runs, so that nothing half made is left; whatever becomes of the exception on its way, the
    end comes in time and with this code.
    """
    from tenuto.ending import ended_by_signals

    carry_out = _subcommand(words)

    def unwind(_number: int) -> NoReturn:
        raise KeyboardInterrupt

    code = 0
    with ended_by_signals(unwind) as signals:
        try:
            code = carry_out()
        except BaseException:
            if not signals:
                raise
    return SIGNAL + signals[0] if signals else code


RunSubcommand: TypeAlias = "Callable[[tuple[str, ...], Path, Mapping[str, str]], int]"


def _subcommand(words: tuple[str, ...]) -> Callable[[], int]:
    """Return what carries out a subcommand, imported."""
    name, *rest = words
    run = find_subcommand(name)
    return lambda: run(tuple(rest), home_directory(os.environ), os.environ)


def find_subcommand(name: str) -> RunSubcommand:
    """Return the function that carries out a subcommand, imported."""
    module, _, function = SUBCOMMANDS[name].partition(":")
    run: RunSubcommand = getattr(import_module(module), function)
    return run


def run_screen(choice: str, options: Options, cwd: Path, early: EarlyReader | None) -> int:
    """Run one of the interactive front-ends. `early` has painted for the one that a first look promised."""
    if early is not None:
        early.turn_to(choice)
    start = runtime_start(options, cwd, interactive=True)
    choose = options.resume == ""
    if choice == "full":
        from tenuto.tui.preview import preview_session

        preview = preview_session(start, early)
        from tenuto.tui.full.app import run_full  # it brings Textual along

        return run_full(start, options.prompt, choose=choose, early=early, preview=preview)
    if choice == "inline":
        from tenuto.tui.inline.app import run_inline

        return run_inline(start, options.prompt, choose=choose, early=early)
    from tenuto.tui.inline.plain import run_plain

    return run_plain(start, options.prompt, choose=choose)


def wants_inline(cwd: Path) -> bool:
    """Say whether the settings ask for the inline front-end."""
    settings, _ = load_settings(home_directory(os.environ), cwd, os.environ)
    return settings.ui.inline


def theme_problems(cwd: Path) -> tuple[str, ...]:
    """Return what is wrong with the theme of the settings, for a run that shows none."""
    home = home_directory(os.environ)
    settings, _ = load_settings(home, cwd, os.environ)
    if settings.ui.theme == UiSettings().theme:
        return ()
    from tenuto.tui.themes import find_any

    return find_any(settings.ui.theme, home, os.environ, light=False).problems


def runtime_start(  # noqa: ANN201 - imported late on purpose
    options: Options, cwd: Path, *, interactive: bool, answer_note: str = ""
):
    """Return how the runtime is to begin. Raises `UsageError` for a rule that cannot be read."""
    from tenuto.core.start import Limits, Start

    return Start(
        cwd=cwd,
        home=home_directory(os.environ),
        model=options.model,
        mode=options.mode,
        resume=options.resume or "",
        resume_latest=options.continue_latest or (options.resume == "" and not interactive),
        fork=options.fork,
        temporary=options.no_session,
        names_directory=bool(options.cwd),
        interactive=interactive,
        ends_by_itself=not interactive,
        limits=Limits(turns=options.max_turns, cost=options.max_cost),
        rules=(*_read_rules("allow", options.allow), *_read_rules("deny", options.deny)),
        directories=tuple(_real_directory(name, cwd) for name in options.add_dir),
        answer_note=answer_note,
        sandboxed=not options.no_sandbox,
    )


def _read_rules(effect: Literal["allow", "deny"], texts: Sequence[str]) -> tuple[Rule, ...]:
    """Return the rules of the command line. Raises `UsageError`."""
    if not texts:
        return ()
    from tenuto.core.errors import UsageError
    from tenuto.guard.rules import RuleError, read_rule

    try:
        return tuple(read_rule(text, effect, "option") for text in texts)
    except RuleError as error:
        raise UsageError(f"--{effect} {error}") from None


def _real_directory(name: str, cwd: Path) -> str:
    """Return where `--add-dir` leads. Raises `UsageError`."""
    from tenuto.core.errors import UsageError

    found = working_directory(str(cwd / Path(name).expanduser()))
    if isinstance(found, str):
        raise UsageError(f"--add-dir {name}: {found}")
    return str(found)


def complain(message: str) -> int:
    """Print one line to standard error; returns the exit code for bad usage."""
    note(message)
    return BAD_USAGE


def note(message: str) -> None:
    """Print one line to standard error."""
    write_text(f"tenuto: {message}", to_errors=True, flush=True)


def announce_wait(environ: Mapping[str, str]) -> None:
    """Say that a prompt is read where somebody waits for a screen: ssh with a command gives no terminal by itself."""
    asked_for_none = environ.get("SSH_CONNECTION") and not environ.get("SSH_TTY")
    if asked_for_none and not select.select([0], [], [], HINT_AFTER)[0]:
        said = "tenuto: there is no terminal (ssh -t gives one); the prompt is read from standard input, to its end"
        write_text(said, to_errors=True, flush=True)


def join_prompt(prompt: str, text: str) -> str:
    """Return the prompt with what was piped in behind it."""
    if prompt in ("", "-"):
        return text.strip()
    return f"{prompt}\n\n<stdin>\n{text.rstrip()}\n</stdin>" if text.strip() else prompt
