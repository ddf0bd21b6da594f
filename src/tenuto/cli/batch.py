"""`tenuto batch TASKS.jsonl`: many headless agents, each in a git worktree and a session of its own."""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.cli.arguments import MOST, read_mode, working_directory
from tenuto.cli.engines import add_engine, can_move, make_engine
from tenuto.cli.parsing import Parser, add_directory, complain, parse, read_amount, read_number, read_one_of
from tenuto.config.sources import load_settings
from tenuto.exit_codes import BAD_USAGE, FAILED, LIMIT_REACHED, OK
from tenuto.frontend.batch.results import OUTCOMES

if TYPE_CHECKING:
    from tenuto.engine.display import QuietDisplay
    from tenuto.frontend.batch.conduct import Item
    from tenuto.frontend.batch.results import Results
    from tenuto.frontend.batch.tasks import Task


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto batch`."""
    parser = Parser(
        prog="tenuto batch",
        description="Run headless agents over many tasks, one JSON object a line, or over tasks of Harbor. "
        "Results stand beside the file or folder, and a second run goes on behind them. Exits with 0 when all "
        "tasks are done, with 1 when some are not.",
    )
    amount, count = read_amount, read_number(1, MOST)
    parser.add_argument(
        "tasks", metavar="TASKS", help="a file of tasks (docs/batch.md has their keys) or a folder of Harbor tasks"
    )
    add_engine(parser, "agents")
    parser.add_argument("--max-turns", type=count, metavar="N", help="stop a task after N calls of the model")
    parser.add_argument("--max-cost", type=amount, metavar="DOLLARS", help="stop a task when it has cost so much")
    parser.add_argument("--timeout", type=amount, metavar="SECONDS", help="stop a task after so many seconds")
    parser.add_argument("--total-cost", type=amount, metavar="DOLLARS", help="begin no more when all have cost so much")
    parser.add_argument(
        "--retries", type=read_number(0, 99), default=1, metavar="N", help="tries more for tasks that failed; default 1"
    )
    parser.add_argument(
        "--again",
        action="append",
        default=[],
        type=lambda word: read_one_of(OUTCOMES)(word.lower()),
        metavar="OUTCOME",
        help=f"run tasks that ended so once more: {', '.join(OUTCOMES)}",
    )
    parser.add_argument("-m", "--model", default="", metavar="PROVIDER/NAME[:EFFORT]", help="for tasks that name none")
    parser.add_argument("--mode", type=read_mode, metavar="{ask,edits,auto,plan}", help="for tasks that name none")
    parser.add_argument("--no-sandbox", action="store_true", help="run commands and checks without a sandbox")
    parser.add_argument("--keep-worktrees", action="store_true", help="keep worktrees in which something was changed")
    parser.add_argument("--worktrees", default="", metavar="DIR", help="where worktrees are made; default: your cache")
    parser.add_argument(
        "--harbor-config", type=Path, metavar="FILE", help="Harbor's own settings of a trial, as JSON or YAML"
    )
    add_directory(parser, "what paths of the tasks are seen from")
    parser.add_argument("--json", action="store_true", help="results as JSON lines on standard output")
    return parser


def run_batch(words: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto batch`; returns the exit code."""
    from tenuto.core.errors import UsageError
    from tenuto.engine.record import RecordTakenError
    from tenuto.frontend.batch.results import open_results
    from tenuto.frontend.batch.tasks import TasksError

    options = parse(build_parser(), words)
    if isinstance(options, int):
        return options
    cwd = working_directory(options.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    file = Path(options.tasks).expanduser().resolve()
    try:
        tasks = (
            _read_trials(options, file, environ) if file.is_dir() else _read_tasks(options, file, cwd, home, environ)
        )
        results = open_results(_beside(file, ".results.jsonl"))
    except TasksError as error:
        for line in str(error).split("\n"):
            complain(line)
        return BAD_USAGE
    except (UsageError, RecordTakenError) as error:
        return complain(str(error))
    except OSError as error:
        return complain(f"{error.filename or file}: {error.strerror or error}")
    try:
        return _run(options, file, tasks, results, environ)
    except UsageError as error:
        return complain(str(error))
    except OSError as error:
        return complain(
            f"{error.filename or results.path}: {error.strerror or error}; what is finished is kept", FAILED
        )
    finally:
        results.close()


def _read_tasks(
    options: argparse.Namespace, file: Path, cwd: Path, home: Path, environ: Mapping[str, str]
) -> Sequence[Item]:
    """Return the tasks of a file. Raises `TasksError`, `UsageError` and `OSError`."""
    from tenuto.core.errors import UsageError
    from tenuto.frontend.batch.tasks import Defaults, read_tasks

    if options.harbor_config is not None:
        raise UsageError("--harbor-config goes with a folder of Harbor tasks")
    tasks = read_tasks(file, Defaults(cwd, options.model, options.mode or ""))
    _demand_sandbox(tasks, home, environ, sandboxed=not options.no_sandbox)
    return tasks


def _read_trials(options: argparse.Namespace, folder: Path, environ: Mapping[str, str]) -> Sequence[Item]:
    """Return the tasks of a data set. Raises `TasksError`, `UsageError` and `OSError`."""
    from tenuto.core.errors import UsageError
    from tenuto.frontend.batch.trial import PROGRAM, read_trials

    unfit = {"--mode": options.mode, "--no-sandbox": options.no_sandbox}
    unfit |= {"--keep-worktrees": options.keep_worktrees, "--worktrees": options.worktrees}
    for word in (word for word, value in unfit.items() if value):
        raise UsageError(f"{word} goes with a file of tasks: {folder} is a folder of Harbor tasks")
    if options.engine == "processes" and shutil.which(PROGRAM, path=environ.get("PATH")) is None:
        raise UsageError(f"{PROGRAM} is not installed: uv tool install --python 3.12 --with tenuto harbor")
    config: Path | None = options.harbor_config
    return read_trials(folder, options.model, config.expanduser().resolve() if config else None)


def _beside(file: Path, suffix: str) -> Path:
    """Return what is kept beside a file of tasks, or a folder of them, whose name may have dots."""
    return file.with_name(f"{file.name if file.is_dir() else file.stem}{suffix}")


def _run(
    options: argparse.Namespace, file: Path, tasks: Sequence[Item], results: Results, environ: Mapping[str, str]
) -> int:
    """Run what is left of the tasks, write the report, and say how it ended. Raises `UsageError` and `OSError`."""
    from tenuto.core.errors import UsageError
    from tenuto.engine.conductor import Conductor, run_conductor
    from tenuto.frontend.batch.conduct import Batch, Limits, Places, is_finished, judge
    from tenuto.frontend.batch.report import write_report
    from tenuto.private_files import make_directory, replace_file

    for fault in results.faults:
        complain(fault)
    again = frozenset(options.again)
    left = [task for task in tasks if not is_finished(task, results.latest, again)]
    folder = _beside(file, ".results")
    report = folder / "report.md"

    def keep_report() -> None:
        make_directory(folder)
        replace_file(report, write_report(file.name, tasks, results.latest).encode())

    try:
        keep_report()  # before anything costs money: a folder that cannot be written is found now
    except OSError as error:
        raise UsageError(f"{folder}: {error.strerror or error}") from error
    places = Places(_worktrees(options.worktrees, file, environ), folder, options.keep_worktrees)
    limits = Limits(options.max_turns, options.max_cost, options.timeout, options.total_cost, options.retries)
    batch = Batch(left, results, limits, places, sandboxed=not options.no_sandbox)
    display = _make_display(options, len(tasks), len(left), environ)
    begun, code = time.monotonic(), OK

    def describe_end() -> str:
        return display.standing.describe_end(time.monotonic() - begun, "the same command goes on")

    with closing(make_engine(options, environ)) if left else nullcontext() as engine, display.told(describe_end):
        if engine is not None:
            with display.shown():
                code = run_conductor(Conductor(engine, batch, display))
        keep_report()
        display.close(f"{describe_end()}. Report: {report}")
    code = code or (LIMIT_REACHED if batch.is_spent else OK)
    return code or judge([results.latest[task.id] for task in tasks if task.id in results.latest])


def _make_display(options: argparse.Namespace, total: int, left: int, environ: Mapping[str, str]) -> QuietDisplay:
    """Return what fits standard output."""
    from tenuto.engine.display import JsonDisplay, LineDisplay, Standing, TableDisplay

    standing = Standing(total, "task", total - left)
    if options.json:
        return JsonDisplay(standing)
    return TableDisplay(standing) if can_move(environ) else LineDisplay(standing)


def _worktrees(named: str, file: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder for the worktrees of a file's tasks: outside of repositories, and not in Tenuto's home."""
    from tenuto.config.consent import digest_of

    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".cache")
    folder = Path(named).expanduser().absolute() if named else cache / "tenuto" / "worktrees"
    return folder / digest_of(str(file))[:12]


def _demand_sandbox(tasks: Sequence[Task], home: Path, environ: Mapping[str, str], *, sandboxed: bool) -> None:
    """Raise `UsageError` where checks would have to run what agents wrote with nothing to hold it."""
    from tenuto.core.errors import UsageError
    from tenuto.guard.sandbox.machine import find_machine

    wishes = load_settings(home, Path.cwd(), environ)[0].sandbox
    checked = [task.id for task in tasks if task.check]
    if checked and sandboxed and wishes.enabled and not find_machine(wishes.kind).kind:
        raise UsageError(
            f"there is no sandbox here for the check of {checked[0]}, which runs what an agent wrote; "
            "--no-sandbox runs it without one"
        )
