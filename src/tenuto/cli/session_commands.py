"""`tenuto sessions list, show, stats, export, delete, restore, trash, repair`."""

from __future__ import annotations

import argparse
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tenuto.cli.arguments import working_directory
from tenuto.cli.output import write_bytes
from tenuto.cli.parsing import Parser, agrees, complain, find_directory, parse, say, say_json
from tenuto.cli.progress import progress, stages, working
from tenuto.exit_codes import FAILED
from tenuto.guard.terminal import sanitize_line, write_text
from tenuto.protocol.message import CompactionEntry
from tenuto.session.errors import SessionAmbiguous, SessionError
from tenuto.session.exporters.export import FORMATS, Export, ExportRefused, ExportRequest, choose_format
from tenuto.session.library.catalog import (
    SessionSummary,
    bin_directory,
    find_session,
    list_bin,
    list_sessions,
    move_to_bin,
    summarise_session,
    take_from_bin,
)
from tenuto.session.library.meta import META_NAME, current_meta
from tenuto.session.log.history import INDEX_NAME
from tenuto.session.log.log import LOG_NAME, Damage, read_log
from tenuto.session.moving import Way, rejoin
from tenuto.session.search.index import remove_search
from tenuto.session.session import Session
from tenuto.session.store import agent_directories
from tenuto.text.figures import format_bytes, format_cost, plural

READING = "Reading sessions"


def run_list(words: tuple[str, ...], home: Path) -> int:
    """List the sessions that have all of the words; returns the exit code."""
    parser = Parser(prog="tenuto sessions list", description="The sessions on this machine, the last used first.")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only sessions with all of these, in title or texts")
    parser.add_argument("--here", action="store_true", help="only those of the present directory")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    here = working_directory("") if parsed.here else None
    if isinstance(here, str):
        return complain(here)
    with progress(READING) as tell:
        found = [one for one in list_sessions(home, here, tell) if matches(one, parsed.words)]
    for summary in found:
        if parsed.json:
            say_json(as_data(summary))
        else:
            say(as_line(summary))
    if not found and not parsed.json:
        complain("no session has that" if parsed.words else "there are no sessions yet")
    return 0


def matches(summary: SessionSummary, words: list[str]) -> bool:
    """Say whether a session has all of the words, whatever their case."""
    text = " ".join((summary.id, summary.cwd, summary.title, summary.first_text, summary.last_text)).lower()
    return all(word.lower() in text for word in words)


def as_line(summary: SessionSummary) -> str:
    """Return a session as one line."""
    day = time.strftime("%Y-%m-%d %H:%M", time.localtime(summary.updated))
    text = summary.name if summary.title or summary.first_text else "(nothing said)"
    return f"{summary.id}  {day}  {summary.cwd}  {summary.error or text}"


def as_data(summary: SessionSummary) -> dict[str, object]:
    """Return a session as plain data."""
    return {**msgspec.structs.asdict(summary), "directory": str(summary.directory)}


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
        with working("Reading the log"):
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


class Total(msgspec.Struct):
    """Sums over sessions. `size` is bytes on disk of the logs alone; `cost` is US dollars where prices are known."""

    sessions: int = 0
    messages: int = 0
    steps: int = 0
    size: int = 0
    cost: float = 0.0

    def add(self, summary: SessionSummary) -> None:
        """Count one session."""
        self.sessions += 1
        self.messages += summary.messages
        self.steps += summary.steps
        self.size += summary.size
        self.cost += summary.cost or 0.0


def run_stats(words: tuple[str, ...], home: Path) -> int:
    """Print the sums, by project and by model; returns the exit code."""
    parser = Parser(prog="tenuto sessions stats", description="How much there is, by project and by model.")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    total, projects, models = Total(), defaultdict[str, Total](Total), defaultdict[str, Total](Total)
    with progress(READING) as tell:
        found = list_sessions(home, None, tell)
    for summary in found:
        total.add(summary)
        projects[summary.cwd or "(unknown)"].add(summary)
        models[summary.model or "(none)"].add(summary)
    if parsed.json:
        data = {"total": total, "projects": dict(projects), "models": dict(models)}
        say_json(data)
        return 0
    say(f"{_line(total)} in all")
    for title, group in (("by project", projects), ("by model", models)):
        say(f"{title}:")
        for name, one in sorted(group.items(), key=lambda item: item[1].size, reverse=True):
            say(f"  {name}: {_line(one)}")
    return 0


def _line(total: Total) -> str:
    cost = f", {format_cost(total.cost)}" if total.cost else ""
    counts = (
        plural(total.sessions, "session"),
        plural(total.messages, "message"),
        plural(total.steps, "step"),
        format_bytes(total.size),
    )
    return ", ".join(counts) + cost


def run_delete(words: tuple[str, ...], home: Path) -> int:
    """Move sessions to the bin, after listing them; returns the exit code."""
    parser = Parser(
        prog="tenuto sessions delete",
        description=f"Move sessions to the bin ({bin_directory(home)}), from where “restore” brings them back. "
        "They are listed first. To free the disk, remove their folders there yourself.",
    )
    parser.add_argument("ids", nargs="+", metavar="ID", help="a session, or the beginning of its id")
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--json", action="store_true", help="what was moved, one JSON object a line")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    found = [find_directory(home, name) for name in parsed.ids]
    directories = [one for one in found if isinstance(one, Path)]
    if len(directories) < len(found):
        return next(one for one in found if isinstance(one, int))
    for directory in () if parsed.json else directories:
        say(_describe(directory))
    if not parsed.yes and not (sys.stdin.isatty() and agrees(f"Move {len(directories)} to the bin?")):
        return complain("nothing was moved; --yes does it without asking", FAILED)
    return _move(directories, home, as_json=parsed.json)


def _move(directories: Sequence[Path], home: Path, *, as_json: bool) -> int:
    code = 0
    for directory in dict.fromkeys(directories):
        try:
            target = move_to_bin(home, directory)
        except SessionError as error:
            code = complain(str(error), FAILED)
        else:
            if as_json:
                say_json({"id": directory.name, "directory": str(target)})
                continue
            say(f"Moved {directory.name} to {target}; tenuto sessions restore {directory.name[:8]} restores it")
    return code


def run_restore(words: tuple[str, ...], home: Path) -> int:
    """Take a session out of the bin, or list what is in it; returns the exit code."""
    parser = Parser(
        prog="tenuto sessions restore",
        description="Restore a session from the bin, or from the copy of one that could not be saved in its "
        "place; without ID, list the bin.",
    )
    parser.add_argument("id", nargs="?", default="", metavar="ID", help="a deleted session, or the path of a copy")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    if parsed.id.endswith(f"/{LOG_NAME}"):
        return _rejoin(home, Path(parsed.id), as_json=parsed.json)
    deleted = list_bin(home)
    if not parsed.id:
        for directory in deleted:
            _tell_deleted(directory, as_json=parsed.json)
        return 0
    found = [directory for directory in deleted if directory.name.startswith(parsed.id)]
    if len(found) != 1:
        what = f"{parsed.id} fits {len(found)} sessions" if found else f"there is no session {parsed.id} in the bin"
        return complain(f"{what}; tenuto sessions restore lists them")
    try:
        target = take_from_bin(home, found[0])
    except SessionError as error:
        return complain(str(error), FAILED)
    if parsed.json:
        say_json({"id": target.name, "directory": str(target)})
    else:
        say(f"{target.name} is back")
    return 0


def _tell_deleted(directory: Path, *, as_json: bool) -> None:
    if not as_json:
        say(_describe(directory))
        return
    summary = summarise_session(directory)
    say_json(as_data(summary) if summary is not None else {"id": directory.name, "directory": str(directory)})


_WAYS: dict[Way, str] = {
    "made": "is back",
    "joined": "has the lines of the copy now, behind its own",
    "there": "has all lines of the copy already",
    "apart": "is made of the copy: the session was continued meanwhile, and stays as it is",
}


def _rejoin(home: Path, copy: Path, *, as_json: bool) -> int:
    try:
        done = rejoin(home, copy)
    except SessionError as error:
        return complain(str(error), FAILED)
    except OSError as error:
        return complain(f"{copy} cannot be brought back: {error.strerror or error}", FAILED)
    if as_json:
        say_json({"id": done.directory.name, "directory": str(done.directory), "way": done.way})
    else:
        say(f"{done.directory.name} {_WAYS[done.way]}")
    return 0


def _describe(directory: Path) -> str:
    summary = summarise_session(directory)
    return as_line(summary) if summary is not None else f"{directory.name}  (nothing said)"


def run_repair(words: tuple[str, ...], home: Path) -> int:
    """Make a session's metadata and index again and say what is damaged in its log; returns the exit code."""
    parser = Parser(
        prog="tenuto sessions repair",
        description="Read a log again: rebuild the index and metadata, close what a crash left open, report damage.",
    )
    parser.add_argument("session", help="its id, or how the id begins")
    parser.add_argument(
        "--take-over", action="store_true", help="although a process on another host has it, which is gone for certain"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a line, for the session and each agent's")
    parsed = parse(parser, words)
    if isinstance(parsed, int):
        return parsed
    directory = find_directory(home, parsed.session)
    if isinstance(directory, int):
        return directory
    try:
        folders = [directory, *agent_directories(directory)]
        return max([_repair(folder, take_over=parsed.take_over, as_json=parsed.json) for folder in folders])
    except (SessionError, OSError) as error:
        return complain(str(error), FAILED)


def _repair(directory: Path, *, take_over: bool, as_json: bool) -> int:
    with working("Reading the log"):
        session, count = _read_again(directory, take_over=take_over)
    if session.unsaved is not None:
        return complain(f"what was repaired could not be saved: {session.unsaved.reason}", FAILED)
    if as_json:
        say_json({"id": session.id, "entries": count, "damage": [str(damage) for damage in session.damage]})
        return 0
    for damage in session.damage:
        say(str(damage))
    bad = plural(len(session.damage), "damaged line")
    found = f"{bad}; what is good in them is kept" if session.damage else "whole"
    say(f"session {session.id}: {plural(count, 'entry')}, {found}")
    return 0


def _read_again(directory: Path, *, take_over: bool) -> tuple[Session, int]:
    """Return the session, closed, and its number of entries."""
    # This takes the lock: nobody else writes while what they keep up is taken away.
    first = Session.open(directory, take_over=take_over)
    first.flush_held_usage()
    first.close()
    for name in (META_NAME, INDEX_NAME):
        (directory / name).unlink(missing_ok=True)
    remove_search(directory)
    session = Session.open(directory)
    count = sum(1 for _ in session.entries())
    session.close()
    return session, count


_STANDARD_OUTPUT = "-"


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto sessions export`."""
    parser = Parser(
        prog="tenuto sessions export",
        description="Write a session to a file that only you can read. Nothing in it is loaded from anywhere, and "
        "nothing of the conversation can run in it.",
    )
    parser.add_argument("id", metavar="ID", help="the session, or the beginning of its id")
    parser.add_argument("--format", choices=FORMATS, default="", help="else by the file's name, else html")
    parser.add_argument("--output", default="", metavar="PATH", help="a file, a folder, or “-” for standard output")
    parser.add_argument("--force", action="store_true", help="replace the file if it exists")
    parser.add_argument("--active-path", action="store_true", help="with jsonl: without the branches that were left")
    parser.add_argument("--json", action="store_true", help="where the file is and its bytes, as one JSON object")
    return parser


def run_export(arguments: tuple[str, ...], home: Path) -> int:
    """Export one session; returns the exit code."""
    parsed = parse(build_parser(), arguments)
    if isinstance(parsed, int):
        return parsed
    wish = ExportRequest(
        output=parsed.output,
        format=parsed.format,
        force=parsed.force,
        active_path=parsed.active_path,
    )
    try:
        export = _find(parsed.id, home)
        if wish.output == _STANDARD_OUTPUT:
            return _print(export, wish)
        here = working_directory("")
        if isinstance(here, str):
            return complain(here)
        with stages() as tell:
            done = export.write(wish, here, lambda what, done, whole: tell(f"Exporting, {what}:", done, whole))
    except (ExportRefused, SessionAmbiguous) as error:
        return complain(str(error))
    except SessionError as error:
        return complain(str(error), FAILED)
    if parsed.json:
        say_json({"id": export.id, "path": str(done.path), "size": done.size})
    else:
        write_text(f"{sanitize_line(str(done.path))} ({format_bytes(done.size)})")
    return 0


def _find(name: str, home: Path) -> Export:
    directory = find_session(home, name)
    if directory is None:
        raise ExportRefused(f"there is no session {name}; tenuto sessions list shows them")
    return Export.of_directory(directory)


def _print(export: Export, wish: ExportRequest) -> int:
    form = choose_format(wish.format, "", Path())
    write_bytes(export.chunks(form, wish))
    return 0
