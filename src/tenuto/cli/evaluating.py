"""`tenuto eval compaction`: measure what survives compaction, without a network and without a key."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import TypeVar, get_args

from tenuto.cli.engines import add_engine, can_move, make_engine
from tenuto.cli.parsing import Parser, complain, parse, read_number, read_one_of
from tenuto.core.errors import TenutoError, UsageError
from tenuto.engine.conductor import Conductor, run_conductor
from tenuto.engine.display import QuietDisplay, Standing, TableDisplay
from tenuto.evaluation.driving import Case, Figures
from tenuto.evaluation.folders import remove_abandoned
from tenuto.evaluation.jobs import Evaluation
from tenuto.evaluation.phrases import SET_NAMES
from tenuto.evaluation.plot import draw
from tenuto.evaluation.quality import Row, beside_published, markdown, rows_of, session_names
from tenuto.evaluation.recorded import RecordedError, read_recorded
from tenuto.evaluation.report import Report
from tenuto.evaluation.scripted import KEEPS, SUMMARISERS
from tenuto.evaluation.store import Store, StoreError
from tenuto.evaluation.strategies import STRATEGY_NAMES
from tenuto.evaluation.wires import Wire
from tenuto.exit_codes import BAD_USAGE, FAILED, OK
from tenuto.guard.terminal import write_text
from tenuto.text.writable import to_json

T = TypeVar("T")
WINDOWS = "8192,16384,65536,200000"
ROUNDS = 11
QUESTIONS = 3
MIN_WINDOW = 8_192
MAX_ROUNDS = 99
PROTOCOLS: tuple[Wire, ...] = get_args(Wire)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto eval compaction`."""
    parser = Parser(
        prog="tenuto eval compaction",
        description="Play generated sessions with a scripted model and say what of them the model is still sent after "
        "each compaction. Nothing leaves this machine without --model. Exits with 1 when a bar is missed.",
    )
    _add_sessions(parser)
    _add_writers(parser)
    parser.add_argument(
        "--out",
        type=Path,
        metavar="FOLDER",
        help="write report.md, report.json and report.svg there; what was measured before is not measured again",
    )
    add_engine(parser, "sessions")
    parser.add_argument("--json", action="store_true", help="every figure as one JSON object")
    return parser


def _add_sessions(parser: argparse.ArgumentParser) -> None:
    """Add what says which sessions are played."""
    parser.add_argument(
        "--seeds", type=read_number(0, 999), default=3, metavar="N", help="sessions to generate; default 3"
    )
    parser.add_argument(
        "--recorded",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="session files of other agents that `tenuto import` reads, to play as well",
    )
    parser.add_argument(
        "--windows",
        type=_list_of(read_number(MIN_WINDOW, 2_000_000)),
        default=WINDOWS,
        metavar="TOKENS,…",
        help=f"context windows; default {WINDOWS}",
    )
    parser.add_argument(
        "--rounds", type=read_number(1, MAX_ROUNDS), default=ROUNDS, metavar="N", help=f"compactions; default {ROUNDS}"
    )
    parser.add_argument(
        "--phrases",
        type=read_one_of(SET_NAMES),
        default=SET_NAMES[0],
        metavar="NAME",
        help=f"the sentences to plant: one of {', '.join(SET_NAMES)}; default {SET_NAMES[0]}",
    )


def _add_writers(parser: argparse.ArgumentParser) -> None:
    """Add what says who compacts and who answers."""
    parser.add_argument(
        "--summarisers",
        type=_list_of(read_one_of(SUMMARISERS)),
        default=",".join(SUMMARISERS),
        metavar="NAME,…",
        help=f"who writes the summaries; default all: {', '.join(SUMMARISERS)}",
    )
    parser.add_argument(
        "--keeps",
        type=read_number(0, 100),
        default=round(100 * KEEPS),
        metavar="PERCENT",
        help=f"facts that the lossy summariser puts into each summary; default {round(100 * KEEPS)}",
    )
    parser.add_argument(
        "--strategies",
        type=_list_of(read_one_of(STRATEGY_NAMES)),
        default="ladder",
        metavar="NAME,…",
        help=f"compaction strategies: {', '.join(STRATEGY_NAMES)}; default ladder",
    )
    parser.add_argument(
        "--protocol",
        type=read_one_of(PROTOCOLS),
        default=PROTOCOLS[0],
        metavar="NAME",
        help=f"one of {', '.join(PROTOCOLS)}; default {PROTOCOLS[0]}",
    )
    parser.add_argument(
        "--model",
        default="",
        metavar="PROVIDER/NAME",
        help="a real model of your settings for the recorded sessions: it writes the summaries and answers questions",
    )
    parser.add_argument(
        "--questions",
        type=read_number(0, 99),
        default=QUESTIONS,
        metavar="N",
        help=f"about facts of each kind, to a real model after the last round; default {QUESTIONS}",
    )


def run_eval(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto eval WORD …`; returns the exit code: 0 all bars hold, 1 some are missed, 2 bad usage, 130 Ctrl+C."""
    if arguments[:1] != ("compaction",):
        asked = arguments[:1] in (("-h",), ("--help",))
        text = "usage: tenuto eval compaction [--help]"
        if asked:
            write_text(text)
        return OK if asked else complain(text, BAD_USAGE)
    parsed = parse(build_parser(), arguments[1:])
    if isinstance(parsed, int):
        return parsed
    remove_abandoned()
    fault = _find_fault(parsed)
    if fault:
        return complain(fault, BAD_USAGE)
    try:
        settings = _read_settings(home) if parsed.model else ""
        with closing(Store(parsed.out)) if parsed.out is not None else nullcontext() as store:
            for text in store.faults if store is not None else ():
                complain(text)
            evaluation = Evaluation(_cases(parsed), store, settings)
            if code := _measure(parsed, evaluation, environ):
                return code
            figures = [evaluation.figures[case] for case in evaluation.cases]
            if store is not None:
                _write_reports(store, figures)
    except (StoreError, TenutoError) as error:
        return complain(f"{error}", FAILED)
    return _show(figures, as_json=parsed.json)


def _find_fault(parsed: argparse.Namespace) -> str:
    """Return what is wrong with the sessions that were asked for, empty if nothing."""
    for file in parsed.recorded:
        try:
            read_recorded(file)
        except RecordedError as error:
            return f"{error}"
    if parsed.model and "/" not in parsed.model:
        return f"--model {parsed.model} has to be PROVIDER/NAME"
    if parsed.model and not parsed.recorded:
        return "a real model does not play generated sessions: name recorded ones with --recorded"
    return "" if parsed.seeds or parsed.recorded else "there is nothing to measure: --seeds 0 without --recorded"


def _cases(parsed: argparse.Namespace) -> list[Case]:
    """Return the sessions to measure: generated ones, then recorded ones; with a real model only those."""
    sources = [] if parsed.model else [(seed, "") for seed in range(1, parsed.seeds + 1)]
    sources += [(0, str(file)) for file in parsed.recorded]
    return [
        Case(
            seed=seed,
            recorded=recorded,
            window=window,
            strategy=strategy,
            rounds=parsed.rounds,
            summariser=summariser,
            keeps=parsed.keeps / 100,
            protocol=parsed.protocol,
            phrases=parsed.phrases,
            model=parsed.model,
            questions=parsed.questions if parsed.model else 0,
        )
        for window in parsed.windows
        for summariser in (parsed.summarisers[:1] if parsed.model else parsed.summarisers)
        for strategy in parsed.strategies
        for seed, recorded in sources
    ]


def _read_settings(home: Path) -> str:
    """Return the user's settings, which know the model. Raises `UsageError`."""
    file = home / "settings.toml"
    try:
        return file.read_text(encoding="utf-8") if file.is_file() else ""
    except (OSError, UnicodeError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error


def _measure(parsed: argparse.Namespace, evaluation: Evaluation, environ: Mapping[str, str]) -> int:
    """Measure what is left; returns 0, or 128 and a signal's number. Raises `TenutoError` and `StoreError`."""
    total, left = len(evaluation.cases), len(evaluation.left)
    if not left:
        return OK
    standing = Standing(total, "session", total - left)
    display = TableDisplay(standing, to_errors=True) if can_move(environ, to_errors=True) else QuietDisplay(standing)
    begun = time.monotonic()
    rest = "the same command goes on" if parsed.out is not None else "nothing is kept without --out"

    def describe_end() -> str:
        return standing.describe_end(time.monotonic() - begun, rest)

    with closing(make_engine(parsed, environ)) as engine, display.told(describe_end):
        with display.shown():
            code = run_conductor(Conductor(engine, evaluation, display))
        if code:
            display.close(describe_end())
    return code


def _write_reports(store: Store, figures: Sequence[Figures]) -> None:
    rows = rows_of(figures)
    report = {"rows": rows, "published": beside_published(figures), "recorded": session_names(figures)}
    store.write("report.json", to_json(report).decode() + "\n")
    store.write("report.md", markdown(figures))
    first = [row for row in rows if (row.window, row.writer, row.source) == _group(rows[0])]
    title = f"{first[0].sessions} {first[0].source} sessions, window {first[0].window:,}, {first[0].writer}"
    store.write("report.svg", draw(first, title))


def _group(row: Row) -> tuple[int, str, str]:
    return row.window, row.writer, row.source


def _show(figures: Sequence[Figures], *, as_json: bool) -> int:
    report = Report(figures)
    misses = report.misses()
    if as_json:
        write_text(to_json({"sessions": report.figures, "missed": misses}).decode(), data=True)
    else:
        write_text("\n".join(report.rows()))
    return FAILED if misses else OK


def _list_of(read: Callable[[str], T]) -> Callable[[str], list[T]]:
    return lambda words: [read(word.strip()) for word in words.split(",")]
