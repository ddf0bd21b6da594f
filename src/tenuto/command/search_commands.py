"""`/recall`: what was said in this session. `/search`: in any of the project; a match opens its session there."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from tenuto.command.counting import run_counted
from tenuto.command.outcome import Choice, Choose, CommandOutcome, FindText, Say
from tenuto.command.session_commands import age
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import OpenSessionOperation
from tenuto.session.agents import SHORT_ID
from tenuto.session.library.catalog import newest_first, summarise_session
from tenuto.session.log.lock import lock_owner
from tenuto.session.store import agent_directories
from tenuto.text.bounding import shorten
from tenuto.tool.output import clean_text
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.project import search_sessions
from tenuto.tool.search.record import Found, Question, Span, agent_records, excerpt, recall
from tenuto.tool.search.search import Stop

MOST = 50
LINE_CHARACTERS = 100
_PLACE = re.compile(r"(\S+)#(\d+) (.*)", re.DOTALL)
"""What a picked row passes on: session, entry, how its line begins."""
_SPLIT = re.compile(r"[*`\s]{2,}|[*`]|\n")
"""Where a line on the screen may be another than in the log: marks of Markdown, and white space."""


async def run_recall(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Search the active path for words or a `/regular expression/`, or show entries by their `#seq`."""
    if not argument:
        return [Say("Say what to look for: /recall WORDS, /recall /REGEX/, or /recall #120-140.", "warning")]
    session = runtime.live.session
    entries, outputs = session.path(), session.store.outputs
    agents = agent_records(session.directory, branches=False)
    try:
        question = parse_question(argument)
    except ToolError as error:
        raise UsageError(str(error)) from error
    text = await run_counted(runtime, "Searching", lambda stop: recall(question, entries, outputs, stop, agents))
    return [Say(clean_text(text))]


def parse_question(argument: str) -> Question:
    """Return what the user asks for. Raises `ToolError`."""
    if argument.startswith("#"):
        return Question(span=Span.parse(argument), private=True)
    if len(argument) > 2 and argument.startswith("/") and argument.endswith("/"):
        return Question(query=argument[1:-1], regex=True, private=True)
    return Question(query=argument, private=True)


async def run_search(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Offer the entries that have all the words, of any session of this project; open the one that was picked."""
    if not argument:
        return [Say("Say what to look for: /search WORDS, or /search /REGEX/.", "warning")]
    picked = _PLACE.fullmatch(argument)
    if picked is not None:
        return await _open(runtime, picked[1], picked[3])
    is_regex = len(argument) > 2 and argument.startswith("/") and argument.endswith("/")
    question = Question(query=argument[1:-1] if is_regex else argument, regex=is_regex, limit=MOST, private=True)
    folders = _folders(runtime.home, runtime.live.session.cwd)
    rows = await run_counted(runtime, "Searching", lambda stop: tuple(_rows(question, folders, stop)))
    if not rows:
        return [Say("No session of this project has that. tenuto search looks into those of all projects.")]
    return [Choose(f"{shorten(argument, 40)}, in the sessions of this project", "search", rows, in_order=True)]


def _folders(home: Path, cwd: Path) -> Iterator[Path]:
    for folder in newest_first(home, cwd):
        yield folder
        yield from agent_directories(folder)


def _rows(question: Question, folders: Iterable[Path], stop: Stop) -> Iterator[Choice]:
    now = time.time()
    for matches in search_sessions(question, folders, stop):
        summary = summarise_session(matches.folder)
        name = summary.name if summary is not None else ""
        for found in matches.found:
            line = excerpt(found.scan.hits[0]).strip()
            detail = f"{found.kind} · {age(now - found.entry.ts)} · {matches.folder.name[:SHORT_ID]} #{found.entry.seq}"
            preview = "\n".join((name, *(excerpt(hit) for hit in found.scan.hits)))
            yield Choice(
                f"{matches.folder.name}#{found.entry.seq} {_needle(found)}",
                shorten(line, LINE_CHARACTERS),
                detail,
                preview=preview,
            )


def _needle(found: Found) -> str:
    """Return the part of a match's line that the screen surely shows as it is."""
    hit = found.scan.hits[0]
    ends = [part.start() for part in _SPLIT.finditer(hit.text, hit.column + 1)]
    return hit.text[hit.column : min([*ends, hit.column + LINE_CHARACTERS])].strip()


async def _open(runtime: Runtime, name: str, text: str) -> list[CommandOutcome]:
    """Open a session, to look at where somebody else has it open, and look for the text in its transcript."""
    present = runtime.live.session.directory
    if name != present.name:
        folder = next((one for one in _folders(runtime.home, runtime.live.session.cwd) if one.name == name), None)
        if folder is None:
            return [Say("That session is not there any more.", "warning")]
        access = "read" if lock_owner(folder) is not None else "write"
        await runtime.submit(OpenSessionOperation(session_id=runtime.session_id, target=name, access=access))
        if runtime.live.session.directory.name != name:
            return []
    return [FindText(text)] if text else []
