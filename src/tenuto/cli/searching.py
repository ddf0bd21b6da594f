"""`tenuto search`: what was said and done in any session on this machine."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from tenuto.cli.arguments import working_directory
from tenuto.cli.parsing import Parser, complain, parse, say, say_json
from tenuto.cli.progress import progress
from tenuto.exit_codes import FAILED, OK
from tenuto.guard.terminal import write_status
from tenuto.session.agents import SHORT_ID
from tenuto.session.errors import SessionError
from tenuto.session.library.catalog import newest_first, summarise_session
from tenuto.session.log.log import LOG_NAME
from tenuto.session.search.index import WORTH_BYTES
from tenuto.session.session import Session
from tenuto.session.store import agent_directories
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.project import Matches, search_sessions
from tenuto.tool.search.record import Found, Question, excerpt
from tenuto.tool.search.search import Stop

NEVER = 1e9
"""Seconds for a search that the user can end."""


def run_search(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Print what was found, the last used session first; returns the exit code: 1 where there is nothing."""
    del environ
    parser = Parser(
        prog="tenuto search",
        description="Search what was said and done in all sessions: entries that have all of the words, the last used "
        "session and the newest entry first. tenuto --resume ID opens the session.",
    )
    parser.add_argument("words", nargs="+", metavar="WORD", help="in any order and case; “two words” in quotes are one")
    parser.add_argument("--regex", action="store_true", help="the words are a regular expression for one line")
    parser.add_argument("--here", action="store_true", help="only sessions of the present directory")
    parser.add_argument("--branches", action="store_true", help="also branches that were left")
    parser.add_argument("-n", "--limit", type=int, default=20, metavar="N", help="at most N matches (default 20)")
    parser.add_argument("--json", action="store_true", help="one JSON object a match")
    parsed = parse(parser, arguments[1:] if arguments[:1] == ("search",) else arguments)
    if isinstance(parsed, int):
        return parsed
    here = working_directory("") if parsed.here else None
    if isinstance(here, str):
        return complain(here)
    if parsed.limit < 1:
        return complain("--limit is a number from 1")
    query = " ".join(parsed.words if parsed.regex else map(_quoted, parsed.words))
    question = Question(query=query, regex=parsed.regex, limit=parsed.limit, private=True)
    folders = [one for folder in newest_first(home, here) for one in (folder, *agent_directories(folder))]
    index_long_ones(folders)
    is_empty = True
    try:
        with progress("Searching sessions") as tell:
            for matches in search_sessions(question, _counted(folders, tell), Stop(NEVER), branches=parsed.branches):
                is_empty = False
                write_status("")  # what was found stands alone in its rows
                _print(matches, as_json=parsed.json)
    except ToolError as error:
        return complain(str(error))
    if not is_empty:
        return OK
    return FAILED if parsed.json else complain("nothing was found", FAILED)


def _counted(folders: Sequence[Path], tell: Callable[[int, int], None]) -> Iterator[Path]:
    for number, folder in enumerate(folders):
        tell(number, len(folders))
        yield folder


def _quoted(word: str) -> str:
    """Return an argument of several words as one, as the shell had it."""
    return f'"{word}"' if " " in word and '"' not in word else word


def index_long_ones(folders: Sequence[Path]) -> None:
    """Bring the indexes of long sessions up to date, with a count on standard error while that takes its time."""
    with progress("Indexing long sessions, MB") as tell:
        for folder in folders:
            if not _is_long(folder):
                continue
            try:
                session = Session.open(folder, read_only=True)
            except SessionError:
                continue
            done, whole = session.grow_search()
            while done < whole:
                tell(done >> 20, whole >> 20)
                done, whole = session.grow_search()


def _is_long(folder: Path) -> bool:
    try:
        return (folder / LOG_NAME).stat().st_size > WORTH_BYTES
    except OSError:
        return False


def _print(matches: Matches, *, as_json: bool) -> None:
    summary = summarise_session(matches.folder)
    title, cwd = (summary.name, summary.cwd) if summary is not None else ("", "")
    if as_json:
        for found in matches.found:
            say_json(_as_data(matches.folder, title, cwd, found))
        return
    say(f"{matches.folder.name[:SHORT_ID]}  {title}  {cwd}")
    for line in _rows(matches.found):
        say(line)


def _rows(matches: Iterable[Found]) -> Iterable[str]:
    for found in matches:
        day = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.entry.ts))
        yield f"  #{found.entry.seq}  {day}  {found.kind}{f'  in {found.path}' if found.path is not None else ''}"
        for hit in found.scan.hits:
            yield f"    {excerpt(hit).strip()}"


def _as_data(folder: Path, title: str, cwd: str, found: Found) -> dict[str, object]:
    return {
        "session": folder.name,
        "title": title,
        "cwd": cwd,
        "seq": found.entry.seq,
        "ts": found.entry.ts,
        "kind": found.kind,
        "file": str(found.path) if found.path is not None else "",
        "lines": [{"number": hit.number, "text": excerpt(hit)} for hit in found.scan.hits],
        "line_count": found.scan.total,
    }
