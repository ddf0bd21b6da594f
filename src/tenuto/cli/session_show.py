"""`tenuto sessions show`: the facts of one session."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tenuto.cli.parsing import FAILED, Parser, complain, find_directory, parse, say, say_json
from tenuto.cli.session_list import as_data
from tenuto.protocol.message import CompactionEntry
from tenuto.session.catalog import SessionSummary, summarise_session
from tenuto.session.log import LOG_NAME, Damage, read_log
from tenuto.session.meta import current_meta
from tenuto.text.figures import format_bytes, format_cost, plural


def run_show(words: tuple[str, ...], home: Path) -> int:
    """Show one session; returns the exit code."""
    parser = Parser(prog="tenuto sessions show", description="Show one session; nothing is changed.")
    parser.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    directory = find_directory(home, parsed.id)
    if isinstance(directory, int):
        return directory
    try:
        summary = summarise_session(directory)
        facts, damage = _read(directory)
    except OSError as error:
        return complain(f"session {directory.name} cannot be read: {error.strerror or error}", FAILED)
    if parsed.json:
        data = {**(as_data(summary) if summary is not None else {}), **facts, "damage": damage}
        say_json(data)
        return 0
    for line in _lines(directory, summary, facts, damage):
        say(line)
    return 0


def _read(directory: Path) -> tuple[dict[str, object], list[str]]:
    """Return what the log says, and a line for every damaged place in it. Raises `OSError`."""
    damages: list[Damage] = []
    compactions = 0
    with (directory / LOG_NAME).open("rb") as file:
        for record in read_log(file, damages):
            compactions += isinstance(record.entry, CompactionEntry)
    meta = current_meta(directory)
    usage = meta.state.usage
    facts: dict[str, object] = {
        "id": directory.name,
        "cwd": meta.cwd,
        "model": meta.state.model,
        "compactions": compactions,
        "tokens_in": usage.sent,
        "tokens_out": usage.output,
        "cost": usage.cost,
    }
    return facts, [str(damage) for damage in damages]


def _lines(
    directory: Path, summary: SessionSummary | None, facts: dict[str, object], damage: Sequence[str]
) -> list[str]:
    lines = [f"session      {facts['id']}", f"stored in    {directory}", f"directory    {facts['cwd']}"]
    if summary is not None:
        when = [time.strftime("%Y-%m-%d %H:%M", time.localtime(at)) for at in (summary.created, summary.updated)]
        said = f"{plural(summary.messages, 'message')}, {plural(summary.steps, 'step')}, {format_bytes(summary.size)}"
        lines += [
            f"title        {summary.title or '(none)'}",
            f"created      {when[0]}, last used {when[1]}",
            f"contents     {said}, {plural(int(str(facts['compactions'])), 'compaction')}",
            f"first words  {summary.first_text}",
            f"last words   {summary.last_text}",
        ]
    cost = f", {format_cost(summary.cost)}" if summary is not None and summary.cost is not None else ""
    lines.append(f"model        {facts['model'] or '(none yet)'}")
    lines.append(f"used         {facts['tokens_in']:,} tokens in, {facts['tokens_out']:,} out{cost}")
    return [*lines, *(f"damaged      {one}" for one in damage)]
