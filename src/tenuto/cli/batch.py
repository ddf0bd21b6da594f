"""`tenuto batch TASKS.jsonl`: many headless agents, each in a git worktree and a session of its own."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Mapping
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
    from tenuto.frontend.batch.results import Results
    from tenuto.frontend.batch.tasks import Task


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto batch`."""
    parser = Parser(
        prog="tenuto batch",
        description="Run headless agents over many tasks, one JSON object a line. Results stand beside the file, and a "
        "second run goes on behind them. Exits with 0 when all tasks are done, with 1 when some are not.",
    )
    amount, count = read_amount, read_number(1, MOST)
    parser.add_argument("tasks", metavar="TASKS.jsonl", help="the tasks; docs/batch.md has their keys")
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
    add_directory(parser, "what paths of the tasks are seen from")
    parser.add_argument("--json", action="store_true", help="results as JSON lines on standard output")
    return parser


def run_batch(words: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto batch`; returns the exit code."""
    from tenuto.core.errors import UsageError
    from tenuto.engine.record import RecordTakenError
    from tenuto.frontend.batch.results import open_results
    from tenuto.frontend.batch.tasks import Defaults, TasksError, read_tasks

    options = parse(build_parser(), words)
    if isinstance(options, int):
        return options
    cwd = working_directory(options.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    file = Path(options.tasks).expanduser().resolve()
    try:
        tasks = read_tasks(file, Defaults(cwd, options.model, options.mode or ""))
        _demand_sandbox(tasks, home, environ, sandboxed=not options.no_sandbox)
        results = open_results(file.with_suffix(".results.jsonl"))
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


def _run(
    options: argparse.Namespace, file: Path, tasks: list[Task], results: Results, environ: Mapping[str, str]
) -> int:
    """Run what is left of the tasks, write the report, and say how it ended. Raises `UsageError` and `OSError`."""
    from tenuto.engine.conductor import Conductor, run_conductor
    from tenuto.frontend.batch.conduct import Batch, Limits, Places, is_finished, judge
    from tenuto.frontend.batch.report import write_report
    from tenuto.private_files import make_directory, replace_file

    for fault in results.faults:
        complain(fault)
    again = frozenset(options.again)
    left = [task for task in tasks if not is_finished(task, results.latest, again)]
    folder = file.with_suffix(".results")
    places = Places(_worktrees(options.worktrees, file, environ), folder, options.keep_worktrees)
    limits = Limits(options.max_turns, options.max_cost, options.timeout, options.total_cost, options.retries)
    batch = Batch(left, results, limits, places, sandboxed=not options.no_sandbox)
    display = _make_display(options, len(tasks), len(left), environ)
    begun, code = time.monotonic(), OK
    if left:
        engine = make_engine(options, environ)
        try:
            with display.shown():
                code = run_conductor(Conductor(engine, batch, display))
        finally:
            engine.close()
    make_directory(folder)
    report = folder / "report.md"
    replace_file(report, write_report(file.name, tasks, results.latest).encode())
    standing = display.standing
    rest = f"; {standing.left} left, the same command goes on" if standing.left else ""
    display.close(f"{standing.describe(time.monotonic() - begun)}{rest}. Report: {report}")
    code = code or (LIMIT_REACHED if batch.is_spent else OK)
    return code or judge([results.latest[task.id] for task in tasks if task.id in results.latest])


def _make_display(options: argparse.Namespace, total: int, left: int, environ: Mapping[str, str]) -> QuietDisplay:
    """Return what fits standard output."""
    from tenuto.engine.display import JsonDisplay, LineDisplay, Standing, TableDisplay

    standing = Standing(total, "task", total - left)
    if options.json:
        return JsonDisplay(standing)
    return TableDisplay(standing) if can_move(sys.stdout, environ) else LineDisplay(standing)


def _worktrees(named: str, file: Path, environ: Mapping[str, str]) -> Path:
    """Return the folder for the worktrees of a file's tasks: outside of repositories, and not in Tenuto's home."""
    from tenuto.config.consent import digest_of

    cache = Path(environ.get("XDG_CACHE_HOME") or Path(environ.get("HOME") or "~").expanduser() / ".cache")
    folder = Path(named).expanduser().absolute() if named else cache / "tenuto" / "worktrees"
    return folder / digest_of(str(file))[:12]


def _demand_sandbox(tasks: list[Task], home: Path, environ: Mapping[str, str], *, sandboxed: bool) -> None:
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
