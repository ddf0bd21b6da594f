"""`tenuto eval compaction`: measure what survives compaction, without a network and without a key."""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from tenuto.cli.parsing import Parser, complain, parse, read_number, read_one_of
from tenuto.cli.progress import working
from tenuto.evaluation.driving import Case, Figures, Report, describe, measure
from tenuto.evaluation.phrases import SET_NAMES
from tenuto.evaluation.scripted import SUMMARISERS
from tenuto.evaluation.wires import Wire
from tenuto.exit_codes import BAD_USAGE, FAILED, OK
from tenuto.guard.terminal import write_text
from tenuto.text.writable import to_json

T = TypeVar("T")
WINDOWS = "8192,16384,65536,200000"
ROUNDS = 11
MIN_WINDOW = 8_192
MAX_ROUNDS = 99
PROTOCOLS: tuple[Wire, ...] = get_args(Wire)


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto eval compaction`."""
    parser = Parser(
        prog="tenuto eval compaction",
        description="Play generated sessions with a scripted model and say what of them the model is still sent after "
        "each compaction. Nothing leaves this machine. Exits with 1 when a bar is missed.",
    )
    parser.add_argument(
        "--seeds", type=read_number(1, 999), default=3, metavar="N", help="sessions to generate; default 3"
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
        "--summarisers",
        type=_list_of(read_one_of(SUMMARISERS)),
        default=",".join(SUMMARISERS),
        metavar="NAME,…",
        help=f"who writes the summaries; default all: {', '.join(SUMMARISERS)}",
    )
    parser.add_argument(
        "--protocol",
        type=read_one_of(PROTOCOLS),
        default=PROTOCOLS[0],
        metavar="NAME",
        help=f"one of {', '.join(PROTOCOLS)}; default {PROTOCOLS[0]}",
    )
    parser.add_argument(
        "--phrases",
        type=read_one_of(SET_NAMES),
        default=SET_NAMES[0],
        metavar="NAME",
        help=f"the sentences to plant: one of {', '.join(SET_NAMES)}; default {SET_NAMES[0]}",
    )
    parser.add_argument("--json", action="store_true", help="every figure as one JSON object")
    return parser


def run_eval(arguments: tuple[str, ...], _home: Path, _environ: Mapping[str, str]) -> int:
    """Run `tenuto eval WORD …`; returns the exit code: 0 all bars hold, 1 some are missed, 2 bad usage."""
    if arguments[:1] != ("compaction",):
        asked = arguments[:1] in (("-h",), ("--help",))
        text = "usage: tenuto eval compaction [--help]"
        if asked:
            write_text(text)
        return OK if asked else complain(text, BAD_USAGE)
    parsed = parse(build_parser(), arguments[1:])
    if isinstance(parsed, int):
        return parsed
    cases = [
        Case(
            seed=seed,
            window=window,
            rounds=parsed.rounds,
            summariser=summariser,
            protocol=parsed.protocol,
            phrases=parsed.phrases,
        )
        for window in parsed.windows
        for summariser in parsed.summarisers
        for seed in range(1, parsed.seeds + 1)
    ]
    report = Report([_measure(case, f"{place} of {len(cases)}") for place, case in enumerate(cases, 1)])
    misses = report.misses()
    if parsed.json:
        write_text(to_json({"sessions": report.figures, "missed": misses}).decode(), data=True)
    else:
        write_text("\n".join(report.rows()))
    return FAILED if misses else OK


def _measure(case: Case, place: str) -> Figures:
    with working(f"Session {place}: {describe(case)}"):
        return asyncio.run(measure(case))


def _list_of(read: Callable[[str], T]) -> Callable[[str], list[T]]:
    return lambda words: [read(word.strip()) for word in words.split(",")]
