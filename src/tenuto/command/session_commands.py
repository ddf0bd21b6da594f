"""Commands on sessions: open, start, fork, move, rename, leave."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path

from tenuto.command.counting import A_DAY, run_counted
from tenuto.command.outcome import SURE, Choice, Choose, CommandOutcome, Leave, RowAct, RowChanged, RowFilter, Say
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import (
    ForkSessionOperation,
    MoveSessionOperation,
    NewSessionOperation,
    OpenSessionOperation,
    SessionAccess,
    SetTitleOperation,
)
from tenuto.session.errors import SessionError, SessionLocked
from tenuto.session.library.catalog import (
    SessionSummary,
    find_by_words,
    find_session,
    list_sessions,
    move_to_bin,
    summarise_session,
)
from tenuto.session.log.lock import lock_owner
from tenuto.session.moving import retitle
from tenuto.session.paths import project_directory
from tenuto.text.figures import format_cost, plural
from tenuto.text.titles import title_of


async def run_new(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Leave the open session and start one in the same directory, or in the one that is named."""
    await runtime.submit(NewSessionOperation(session_id=runtime.session_id, cwd=argument))
    return []


async def run_fork(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Fork at the present end of the conversation."""
    del argument
    origin = runtime.session_id
    await runtime.submit(ForkSessionOperation(session_id=origin))
    if runtime.session_id == origin:
        return []
    return [Say(f"Forked from {origin[:8]}.")]


async def run_move(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Go on with this session in the directory that is named; without one, offer what is likely."""
    cwd = runtime.live.session.cwd
    if argument:
        await runtime.submit(MoveSessionOperation(session_id=runtime.session_id, cwd=argument))
        moved = runtime.live.session.cwd
        return [Say(f"This session works in {moved} from now on.")] if moved != cwd else []
    if cwd.is_dir():
        return [Say(f"This session works in {cwd}. /move DIR goes on with it elsewhere.")]
    rows = tuple(Choice(str(place), str(place), detail) for place, detail in _likely(runtime.start.cwd, cwd))
    return [Choose(f"{cwd} is gone. Where does this session go on? (/move DIR for another place)", "move", rows)]


def _likely(here: Path, gone: Path) -> list[tuple[Path, str]]:
    """Return the directory that Tenuto was started in, and the nearest one above the old place that is still there."""
    above = next((place for place in gone.parents if place.is_dir()), None)
    found = [(here, "where you are")]
    if above is not None and above not in (here, Path(above.anchor)):
        found.append((above, "above the old place"))
    return found


async def run_title(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Set the title; without one, show the present."""
    if not argument:
        state = runtime.live.session.state
        if state.title:
            return [Say(state.title)]
        found = title_of(state.first_text)
        return [
            Say(
                f"“{found}”, from how it began. /title TEXT sets one."
                if found
                else "No title yet. /title TEXT sets one."
            )
        ]
    await runtime.submit(SetTitleOperation(session_id=runtime.session_id, title=argument))
    return [Say(f"Renamed to “{argument}”.")]


async def run_exit(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Leave the program."""
    del runtime, argument
    return [Leave()]


ACTS: tuple[RowAct, ...] = ("rename", "delete", "fork")
HERE, ELSEWHERE = "here", "elsewhere"


def session_row(session: SessionSummary, now: float, folder: Path) -> Choice:
    """Return the row of a session: its name and age; below the list how it began, where it is, on which branch.

    `now` is seconds since the epoch, `folder` where the sessions of this project lie.
    """
    detail = f"{age(now - session.updated)} · {plural(session.messages, 'message')} · {session.id[:8]}"
    facts = [
        session.cwd,
        session.branch,
        session.model,
        format_cost(session.cost) if session.cost else "",
        session.error,
    ]
    preview = [
        f"first  {session.first_text}" if session.first_text else "",
        f"last   {session.last_text}" if session.last_text and session.last_text != session.first_text else "",
        " · ".join(fact for fact in facts if fact),
    ]
    return Choice(
        session.id,
        session.name,
        detail,
        kind=HERE if session.directory.parent == folder else ELSEWHERE,
        preview="\n".join(" ".join(line.split()) for line in preview if line),
        title=session.title,
    )


async def change_session(runtime: Runtime, target: str, act: str, title: str) -> list[CommandOutcome]:
    """Rename the session that is named by its id (or the beginning of one), or move it to the bin.

    A deletion is asked about unless `title` says that it was. Whatever comes of it, the list learns how the session is
    now. Raises `UsageError` for the open session.
    """
    directory = find_session(runtime.home, target)
    if directory is None:
        return [RowChanged("resume", target, None), Say(f"There is no session “{target}” any more.", "warning")]
    if directory.name == runtime.live.session.directory.name:
        other = "/title names it" if act == "rename" else "go to another one first (/new, /resume)"
        raise UsageError(f"session {directory.name[:8]} is the open one: {other}")
    if act == "delete" and title != SURE:
        return [await asyncio.to_thread(_ask, directory)]
    try:
        said = await asyncio.to_thread(_rename if act == "rename" else _delete, runtime.home, directory, title)
    except (SessionError, OSError) as error:
        said = Say(str(error), "error")
    summary = await asyncio.to_thread(summarise_session, directory) if directory.is_dir() else None
    folder = project_directory(runtime.home, runtime.live.session.cwd)
    row = session_row(summary, time.time(), folder) if summary is not None else None
    return [RowChanged("resume", directory.name, row), said]


def _ask(directory: Path) -> Choose:
    summary = summarise_session(directory)
    name = summary.name if summary is not None else directory.name[:8]
    keep = Choice("", "no", "keep it")
    delete = Choice(f"{directory.name} delete {SURE}", "yes", "move to the bin; tenuto sessions restore brings it back")
    return Choose(f"Delete “{name}”?", "resume", (keep, delete))


def _rename(home: Path, directory: Path, title: str) -> Say:
    del home
    if not title:
        return Say("/resume ID rename needs a title: /resume ID rename TEXT", "warning")
    retitle(directory, title)
    return Say(f"Renamed {directory.name[:8]} to “{title}”.")


def _delete(home: Path, directory: Path, title: str) -> Say:
    del title
    move_to_bin(home, directory)
    name = directory.name[:8]
    return Say(f"Moved {name} to the bin; tenuto sessions restore {name} restores it.")


def age(seconds: float) -> str:
    """Return a short age: 5m, 3h, 2d."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= size:
            return f"{int(seconds // size)}{unit} ago"
    return "just now"


WAYS: dict[str, SessionAccess] = {"look": "read", "fork": "copy", "take-over": "take_over"}
"""What can be done with a session that is open elsewhere, as a word behind its id."""
FILTERS = (RowFilter("this directory", (HERE,)), RowFilter("all directories"))


async def run_resume(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Open the session that is named by its id, or change it; else offer those of this directory, or all.

    Words that are no id are looked for in what the sessions are called, and how they began and ended.
    """
    target, _, way = argument.partition(" ")
    act, _, title = way.strip().partition(" ")
    if way == "leave":
        return [Leave()]
    if act in ("rename", "delete"):
        return await change_session(runtime, target, act, title.strip())
    if target and find_session(runtime.home, target) is not None:
        return await _open(runtime, target, way.strip())
    # Many sessions take a moment to read; the screen lives meanwhile.
    search = partial(find_by_words, runtime.home, argument) if target else partial(list_sessions, runtime.home, None)
    found = await run_counted(
        runtime, "Reading", lambda stop: search(lambda done, whole: stop.hear("sessions", done, whole)), seconds=A_DAY
    )
    others = [session for session in found if session.id != runtime.session_id]
    if target and len(others) < 2:
        return await _open(runtime, others[0].id if others else argument, "")
    return [_list(runtime, others)] if others else [Say("There is no other session.")]


def _list(runtime: Runtime, sessions: list[SessionSummary]) -> Choose:
    folder, now = project_directory(runtime.home, runtime.live.session.cwd), time.time()
    rows = tuple(session_row(session, now, folder) for session in sessions)
    kinds = {row.kind for row in rows}
    filters = FILTERS if HERE in kinds else FILTERS[::-1]
    return Choose("Resume a session", "resume", rows, filters if len(kinds) > 1 else (), acts=ACTS)


async def _open(runtime: Runtime, target: str, way: str) -> list[CommandOutcome]:
    present = runtime.live.session
    directory = find_session(runtime.home, target)
    is_other = directory is not None and (directory.name != present.directory.name or present.is_read_only)
    locked = lock_owner(directory) if directory is not None and is_other and way not in WAYS else None
    if locked is not None:
        return [_offer(locked, is_open=locked.directory.name == present.directory.name)]
    access = WAYS.get(way, "write")
    await runtime.submit(OpenSessionOperation(session_id=runtime.session_id, target=target, access=access))
    return []


def _offer(locked: SessionLocked, *, is_open: bool) -> Choose:
    """Ask what to do about a session that is open elsewhere; `is_open`: it is already being looked at here."""
    name = locked.directory.name
    rows = [
        Choice("" if is_open else f"{name} look", "look at it", "nothing is written"),
        Choice(f"{name} fork", "go on in a copy", "what happens there stays there"),
    ]
    if locked.can_take_over:
        rows.append(Choice(f"{name} take-over", "take it over", f"if {locked.owner} is gone for certain"))
    rows.append(Choice(f"{name} leave" if is_open else "", "cancel", "leave Tenuto" if is_open else "stay here"))
    return Choose(f"This session is open in {locked.owner}", "resume", tuple(rows))
