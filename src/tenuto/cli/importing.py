"""`tenuto import`: sessions of other agents, by path or from a list of what is on this machine."""

from __future__ import annotations

import argparse
import os
import shutil
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from tenuto.cli.parsing import Parser, add_directory, agrees, complain, parse, say_json
from tenuto.cli.progress import progress, working
from tenuto.exit_codes import FAILED, OK
from tenuto.guard.terminal import sanitize_line, write_text
from tenuto.session.importers.import_session import (
    FORMATS,
    Imported,
    Mark,
    NotImportable,
    Source,
    describe_import,
    find_marks,
    find_sources,
    import_source,
    matching_marks,
    open_source,
)
from tenuto.text.figures import format_bytes

ASK = "Import which? Numbers, words to search for, or Enter to leave: "


def run_import(arguments: Sequence[str], home: Path, environ: Mapping[str, str]) -> int:
    """Run `import`; returns the exit code: 0 done, 1 something could not be imported, 2 bad usage."""
    options = parse(_parser(), tuple(arguments))
    if isinstance(options, int):
        return options
    desk = _ImportDialog(options, home, environ)
    if options.paths:
        return desk.import_paths([Path(path).expanduser() for path in options.paths])
    with progress("Looking for sessions, files:") as tell:
        sources = find_sources(environ, Path(environ.get("HOME") or Path.home()), tell)
    if options.agent:
        sources = [source for source in sources if source.format.name == options.agent]
    if options.json or not (os.isatty(0) and os.isatty(1)):
        return desk.list(sources)
    return desk.choose(sources)


def _parser() -> argparse.ArgumentParser:
    names = [known.name for known in FORMATS]
    parser = Parser(
        prog="tenuto import",
        description="Turn sessions of other agents into sessions that Tenuto continues. Their files are only read.",
        epilog="Without a path: what is found on this machine, to choose from.",
    )
    parser.add_argument("paths", nargs="*", metavar="PATH", help="a session file, or the folder of one")
    parser.add_argument("--from", dest="agent", choices=names, help="list the sessions of one agent alone")
    add_directory(parser, "directory to assign the session to")
    parser.add_argument("--force", action="store_true", help="import again what was imported before, as a new session")
    parser.add_argument("--json", action="store_true", help="one JSON array instead of lines")
    return parser


class _ImportDialog:
    """Carries out what one command line asks for."""

    def __init__(self, options: argparse.Namespace, home: Path, environ: Mapping[str, str]) -> None:
        self._options = options
        self._home = home
        self._accepts = partial(accepts_model, home, environ)
        self._marks = find_marks(home)
        self._may_ask = False

    def import_paths(self, paths: list[Path]) -> int:
        """Import files; one that fails stops no other."""
        rows: list[dict[str, Any]] = []
        failed = 0
        for path in paths:
            try:
                rows.append(self._import(open_source(path)))
            except (NotImportable, OSError) as error:
                failed += 1
                rows.append({"path": str(path), "error": str(error)})
                if not self._options.json:
                    write_text(f"tenuto: {_line(error)}", to_errors=True)
        if self._options.json:
            say_json(rows)
        return FAILED if failed else OK

    def _import(self, source: Source) -> dict[str, Any]:
        earlier = next(matching_marks(source, self._marks), None)
        if earlier is not None and not self._options.force:
            if not self._options.json:
                write_text(_told_before(source, earlier))
            if not (self._may_ask and agrees("Import it again, as a new session?")):
                return {**_row(source, earlier), "imported_now": False}
        cwd = Path(self._options.cwd).expanduser() if self._options.cwd else None
        with working(f"Importing {format_bytes(source.size)}"):
            made = import_source(source, self._home, cwd=cwd, accepts_model=self._accepts)
        if not self._options.json:
            write_text(_told(made, cwd))
        report = {**msgspec.to_builtins(made.report), "remarks": made.report.remarks}
        return {**_row(source, None), "id": made.id, "imported_now": True, "report": report}

    def list(self, sources: list[Source]) -> int:
        """Print what there is, for other programs."""
        rows = [_row(source, next(matching_marks(source, self._marks), None)) for source in sources]
        if self._options.json:
            say_json(rows)
            return OK
        if not rows:
            complain(_nothing())
        for row in rows:
            words = f"imported as {row['id']}" if row["id"] else "not imported"
            write_text("\t".join((row["format"], _day(row["changed"]), words, _line(row["title"]), row["path"])))
        return OK

    def choose(self, sources: list[Source]) -> int:
        """Let a user choose from a numbered list."""
        if not sources:
            complain(_nothing())
            return OK
        shown = sources
        while True:
            self._show(shown)
            try:
                answer = input(ASK).strip()
            except EOFError:
                return OK
            if not answer:
                return OK
            chosen = _numbers(answer, len(shown))
            if chosen:
                self._may_ask = True
                return self.import_paths([shown[number - 1].path for number in chosen])
            found = [] if answer.isdecimal() else _search(sources, answer)
            if not found:
                write_text(f"Nothing fits “{_line(answer)}”.")
            shown = found or sources

    def _show(self, sources: list[Source]) -> None:
        size = shutil.get_terminal_size((100, 30))
        rows = sources[: max(5, size.lines - 4)]
        for number, source in enumerate(rows, 1):
            known = next(matching_marks(source, self._marks), None)
            place = _line(Path(source.heading.cwd).name)
            mark = "*" if known is not None else " "
            line = f"{number:>3}{mark} {_day(source.changed)}  {source.format.label:<11}  {place:<16.16}  "
            write_text((line + _line(source.name))[: size.columns - 1])
        notes = ["* imported before"] if any(True for row in rows if any(matching_marks(row, self._marks))) else []
        notes += [f"{len(sources) - len(rows)} older ones: search for them"] if len(sources) > len(rows) else []
        if notes:
            write_text("     " + "; ".join(notes))


def _nothing() -> str:
    names = ", ".join(known.label for known in FORMATS)
    return f"no sessions of {names} were found; tenuto import PATH imports a file from anywhere"


def _numbers(answer: str, count: int) -> list[int]:
    """Return the numbers of an answer, each once; nothing when it is no list of numbers that are there."""
    words = answer.replace(",", " ").split()
    if not all(word.isdecimal() and 1 <= int(word) <= count for word in words):
        return []
    return list(dict.fromkeys(int(word) for word in words))


def _search(sources: list[Source], words: str) -> list[Source]:
    """Return the sources in which every word occurs: in name, agent, directory or path."""
    wanted = words.casefold().split()

    def text(source: Source) -> str:
        told = (source.name, source.format.label, source.heading.cwd, str(source.path))
        return " ".join(told).casefold()

    return [source for source in sources if all(word in text(source) for word in wanted)]


def _row(source: Source, earlier: Mark | None) -> dict[str, Any]:
    return {
        "format": source.format.name,
        "session": source.heading.session_id,
        "title": source.name,
        "cwd": source.heading.cwd,
        "path": str(source.path),
        "size": source.size,
        "changed": source.changed,
        "id": earlier.directory.name if earlier is not None else "",
    }


def _told(made: Imported, cwd: Path | None) -> str:
    told = [_line(line) for line in describe_import(made.source, made.report).split("\n")]
    place = made.source.heading.cwd
    if cwd is None and not place:
        told.append("Its directory is not known, so it belongs to this one; --cwd DIR names another.")
    elif cwd is None and not Path(place).is_dir():
        told.append(f"Its directory {_line(place)} is not on this machine; --cwd DIR names another one.")
    return "\n".join((*told, f"Continue it with: tenuto --resume {made.id}"))


def _told_before(source: Source, earlier: Mark) -> str:
    grown = source.size - earlier.size
    since = f" The file has {grown:,} bytes more since then." if grown > 0 else ""
    return (
        f"{_line(source.name)}: imported before, as {earlier.directory.name}.{since}\n"
        f"Continue it with: tenuto --resume {earlier.directory.name}   (--force imports it again, as a new session)"
    )


def _line(text: object) -> str:
    return sanitize_line(str(text))


def _day(when: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(when))


def accepts_model(home: Path, environ: Mapping[str, str], model: str) -> bool:
    """Whether a model can be used here, so that an imported session may go on with it."""
    from tenuto.config.sources import load_settings
    from tenuto.model.registry import ModelRegistry
    from tenuto.protocol.model import ModelError

    settings, _ = load_settings(home, None, environ)
    try:
        ModelRegistry(settings, home, environ).require(model)
    except ModelError:
        return False
    return True
