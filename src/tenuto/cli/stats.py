"""`tenuto stats`: what all sessions used, by day, model and project."""

from __future__ import annotations

import argparse
import shutil
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, cast

from msgspec import Struct

from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, add_directory, complain, parse, say, say_json
from tenuto.cli.progress import progress
from tenuto.exit_codes import OK
from tenuto.protocol.usage import Usage
from tenuto.session.library.catalog import session_directories
from tenuto.session.library.spending import Read, Spent, read_spending
from tenuto.text.figures import format_cost, format_count, plural
from tenuto.tui.chrome import home_relative

DAYS = 30
DAY_SECONDS = 86_400
Group = Literal["day", "model", "project"]
GROUPS: tuple[Group, ...] = ("day", "model", "project")
BAR = 24
"""Cells of the longest bar."""
NAME_CELLS = 44


class Sum(Struct):
    """What is counted together: tokens, US dollars, entries that used something, sessions."""

    usage: Usage = Usage()
    calls: int = 0
    sessions: int = 0
    unpriced: int = 0

    def add(self, spent: Iterable[Spent]) -> None:
        """Count in what one session used."""
        for one in spent:
            self.usage += one.usage
            self.calls += one.calls
            self.unpriced += one.usage.cost is None and one.usage.total > 0


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto stats`."""
    parser = Parser(prog="tenuto stats", description="Tokens and cost of the sessions on this machine.")
    parser.add_argument("--by", choices=GROUPS, help="only this table (default: all three)")
    parser.add_argument(
        "--days", type=int, default=DAYS, metavar="N", help=f"the last N days; 0: all (default: {DAYS})"
    )
    parser.add_argument("--here", action="store_true", help="only sessions of this directory")
    add_directory(parser, "with --here: of that directory")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    return parser


def run_stats(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto stats …`; returns the exit code."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    if parsed.days < 0:
        return complain("--days takes a number from 0")
    cwd = working_directory(parsed.cwd)
    if isinstance(cwd, str):
        return complain(cwd)
    directories = list(session_directories(home, cwd if parsed.here else None))
    with progress("Reading sessions") as tell:
        read = read_spending(home, directories, tell)
    since = _day_before(parsed.days - 1) if parsed.days else ""
    recent = [_since(one, since) for one in read.values()]
    groups = cast("tuple[Group, ...]", (parsed.by,) if parsed.by else GROUPS)
    tables: dict[Group, dict[str, Sum]] = {group: _sums(recent, group) for group in groups}
    total = Sum(sessions=sum(bool(one.spent) for one in recent))
    total.add(spent for one in recent for spent in one.spent)
    if parsed.json:
        say_json(
            {"since": since or None, "total": _plain(total), **{f"by_{name}": _rows(of) for name, of in tables.items()}}
        )
        return OK
    _tell(total, tables, parsed.days, environ.get("HOME", ""))
    return OK


def _day_before(days: int) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(time.time() - days * DAY_SECONDS))


def _since(read: Read, day: str) -> Read:
    return Read(cwd=read.cwd, spent=tuple(one for one in read.spent if one.day >= day))


def _sums(recent: Sequence[Read], group: Group) -> dict[str, Sum]:
    sums: dict[str, Sum] = defaultdict(Sum)
    for read in recent:
        parts: dict[str, list[Spent]] = defaultdict(list)
        for one in read.spent:
            parts[_name(group, read, one)].append(one)
        for name, spent in parts.items():
            sums[name].sessions += 1
            sums[name].add(spent)
    return dict(sums)


def _name(group: Group, read: Read, one: Spent) -> str:
    match group:
        case "day":
            return one.day
        case "model":
            return one.model or "(unknown)"
        case "project":
            return read.cwd or "(unknown)"


def _rows(sums: Mapping[str, Sum]) -> dict[str, object]:
    return {name: _plain(one) for name, one in sorted(sums.items())}


def _plain(one: Sum) -> dict[str, object]:
    used = one.usage
    return {
        "sessions": one.sessions,
        "calls": one.calls,
        "input": used.input,
        "cache_read": used.cache_read,
        "cache_write": used.cache_write,
        "output": used.output,
        "cost": used.cost,
        "unpriced": one.unpriced > 0,
    }


def _tell(total: Sum, tables: Mapping[Group, Mapping[str, Sum]], days: int, home: str) -> None:
    if not total.calls:
        say(f"Nothing was used in the last {days} days." if days else "Nothing was used.")
        return
    say(f"{_figures(total)} in {plural(total.sessions, 'session')}" + (f", the last {days} days" if days else ""))
    for group, sums in tables.items():
        say("")
        for line in _table(group, sums, home):
            say(line)
    if total.unpriced:
        say("")
        say("$? and + mark what has a model whose price is not known; tenuto models lists prices.")


def _figures(one: Sum) -> str:
    used = one.usage
    sent = used.sent or 1
    cost = "$?" if used.cost is None else format_cost(used.cost) + ("+" if one.unpriced else "")
    cached = used.cache_read * 100 // sent
    return f"{cost}  {format_count(used.sent)} in ({cached} % cached)  {format_count(used.output)} out"


def _table(group: Group, sums: Mapping[str, Sum], home: str) -> Iterator[str]:
    """Yield the rows of a table with a bar each: days in their order, others the most expensive first."""
    names = sorted(sums) if group == "day" else sorted(sums, key=lambda name: _weight(sums[name]), reverse=True)
    shown = {name: home_relative(name, home) if group == "project" else name for name in names}
    room = max(10, min(NAME_CELLS, shutil.get_terminal_size((100, 30)).columns - BAR - 48))
    width = min(room, max(map(len, shown.values())))
    most = max(_weight(one) for one in sums.values()) or (0.0, 1)
    for name in names:
        bar = "█" * max(1, round(BAR * _share(_weight(sums[name]), most)))
        cut = shown[name] if len(shown[name]) <= width else "…" + shown[name][1 - width :]
        yield f"{cut:<{width}}  {bar:<{BAR}}  {_figures(sums[name])}"


def _weight(one: Sum) -> tuple[float, int]:
    """Return what rows are compared by: dollars, and tokens where no price is known."""
    return (one.usage.cost or 0.0, one.usage.total)


def _share(weight: tuple[float, int], most: tuple[float, int]) -> float:
    return weight[0] / most[0] if most[0] else weight[1] / (most[1] or 1)
