"""The edge of an import: reads a source, never writes to it, and makes the session in one piece.

The session is made beside the others and moved to them when it is complete, so an import that is killed leaves nothing
that looks like a session. Its first entry says what it was made from; by that a second import of the same file is
known.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path, PurePath
from typing import Any

import msgspec

from tenuto.private_files import make_directory, make_new_directory
from tenuto.protocol.entry import (
    BranchSummaryEntry,
    Entry,
    ExtensionEntry,
    ModelEntry,
    NoticeEntry,
    ShellEntry,
    TitleEntry,
)
from tenuto.protocol.message import AssistantMessage, CompactionEntry, DeveloperMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import ImagePart, TextPart, ToolCallPart, text_of
from tenuto.session.errors import SessionLocked
from tenuto.session.importers import claude_code, codex, kimi_cli, kimi_code, klaude_code, pi
from tenuto.session.importers.builder import EXTENSION, Assembler, Piece
from tenuto.session.importers.format import Context, Format, Heading
from tenuto.session.importers.json_access import (
    Fields,
    Report,
    field,
    parse_object,
    raw_json,
    read_lines,
    text,
)
from tenuto.session.log.lock import SessionLock
from tenuto.session.log.log import LOG_NAME
from tenuto.session.paths import SESSIONS, new_session_id, project_directory
from tenuto.session.session import Session
from tenuto.text.bounding import bound_middle
from tenuto.text.json_access import as_dict

FORMATS: tuple[Format, ...] = (
    claude_code.FORMAT,
    codex.FORMAT,
    pi.FORMAT,
    kimi_code.FORMAT,
    kimi_cli.FORMAT,
    klaude_code.FORMAT,
)
HEAD_LINES = 100
HEAD_BYTES = 1 << 18
"""How much of a file is read to know what it is and whose; one line may be longer."""
MAX_TITLE = 200


class NotImportable(Exception):  # noqa: N818 (it says what the file is)
    """There is nothing at a path that can be imported; the text says why, for a user."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A session file of another agent. `size` is in bytes, `changed` seconds since the epoch."""

    path: Path
    format: Format
    heading: Heading
    size: int = 0
    changed: float = 0.0

    @property
    def name(self) -> str:
        """What a user calls the session: its title, else how it began, on one line."""
        words = " ".join((self.heading.title or self.heading.first_text).split())
        return words[:MAX_TITLE] or "(no text)"


def open_source(path: Path) -> Source:
    """Return the session file at `path`, or the one that a directory stands for. Raises `NotImportable`, `OSError`."""
    path = Path(os.path.abspath(path))  # noqa: PTH100 (links stay as they are)
    if path.is_dir():
        candidates = [path / name for known in FORMATS for name in known.main_files]
        found = next((candidate for candidate in candidates if candidate.is_file()), None)
        if found is None:
            raise NotImportable(f"{path} is a directory without a session file; name the file itself")
        path = found
    elif not path.is_file():
        raise NotImportable(f"{path} is not a file")
    beside = path.with_name("context.jsonl")
    if path.name == "wire.jsonl" and beside.is_file():  # kimi-cli shows from the one and continues from the other
        path = beside
    objects = _head(path)
    return _describe(path, _recognise(path, objects), objects)


def find_sources(
    environ: Mapping[str, str], home: Path, tell: Callable[[int, int], None] = lambda _done, _all: None
) -> list[Source]:
    """Return the sessions in the agents' usual places, the last changed first; sub-agents' ones are left out.

    `tell` hears how many files were looked at; how many there are nobody knows (0).
    """
    found: list[Source] = []
    looked = 0
    for known in FORMATS:
        for path in _paths(known, environ, home):
            looked += 1
            tell(looked, 0)
            try:
                source = _describe(path, known, _head(path))
            except OSError:
                continue
            if source.heading.first_text and not source.heading.is_subagent:
                found.append(source)
    return sorted(found, key=lambda source: source.changed, reverse=True)


def _paths(known: Format, environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    try:
        yield from known.find(environ, home)
    except OSError:
        return


def _head(path: Path) -> list[Fields]:
    """Return the objects of the first lines. Raises `OSError`."""
    objects: list[Fields] = []
    size = 0
    with path.open("rb") as file:
        for line in islice(file, HEAD_LINES):
            size += len(line)
            fields = parse_object(line)
            if fields is not None:
                objects.append(fields)
            if size > HEAD_BYTES:
                break
    return objects


def _recognise(path: Path, objects: list[Fields]) -> Format:
    if any(fields.get("type") == "header" and "seq" not in fields and "session_id" in fields for fields in objects):
        raise NotImportable(f"{path} is a session of Tenuto itself; continue it with --resume")
    counted = [(sum(known.is_line(fields) for fields in objects), known) for known in FORMATS]
    best, found = max(counted, key=lambda pair: pair[0])
    if not best:
        labels = ", ".join(known.label for known in FORMATS)
        raise NotImportable(f"{path} is not a session file of a known agent ({labels})")
    return found


def _describe(path: Path, known: Format, objects: list[Fields]) -> Source:
    heading = Heading()
    known.surround(heading, path)
    for fields in objects:
        known.describe(heading, as_dict(fields))
    heading.session_id = heading.session_id or path.stem
    if "\0" in heading.cwd or not PurePath(heading.cwd).is_absolute():
        heading.cwd = ""
    stat = path.stat()
    return Source(path=path, format=known, heading=heading, size=stat.st_size, changed=stat.st_mtime)


MARK_BYTES = 65_536
MARK_LINES = 2


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """What an imported session says of its source: the file's `size` in bytes at that time."""

    directory: Path
    format: str
    session: str
    path: str
    size: int


def mark_of(source: Source, now: float) -> dict[str, Any]:
    """Return what the session of a source says of it; `now` is the time of the import."""
    return {
        "format": source.format.name,
        "session": source.heading.session_id,
        "path": str(source.path),
        "size": source.size,
        "imported": now,
    }


def find_marks(home: Path) -> list[Mark]:
    """Return what the sessions under `home` that were imported say of their sources."""
    return [mark for log in sorted((home / SESSIONS).glob(f"*/*/{LOG_NAME}")) if (mark := _read_mark(log))]


def _read_mark(log: Path) -> Mark | None:
    try:
        with log.open("rb") as file:
            lines = file.read(MARK_BYTES).split(b"\n")[:MARK_LINES]
    except OSError:
        return None
    for line in lines:
        fields = as_dict(parse_object(line) if b'"import"' in line else None)
        state = field(fields, "state")
        if fields.get("type") == "extension" and fields.get("extension") == EXTENSION and text(state, "format"):
            size = state.get("size")
            return Mark(
                directory=log.parent,
                format=text(state, "format"),
                session=text(state, "session"),
                path=text(state, "path"),
                size=size if isinstance(size, int) else 0,
            )
    return None


def matching_marks(source: Source, marks: list[Mark]) -> Iterator[Mark]:
    """Yield the marks of the same source: the same session of the same agent, or the same file."""
    for mark in marks:
        if mark.format != source.format.name:
            continue
        if mark.path == str(source.path) or (mark.session and mark.session == source.heading.session_id):
            yield mark


MAX_PIECES = 500
"""So many pieces are looked through for a result that is late; one that never comes must not hold up the rest."""


def in_step_order(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield the pieces, which are in file order, with every result right behind its answer.

    Blocks of one answer (`Piece.group`) that have results between them become one answer again. What the user says ends
    a step: no result is looked for behind it.
    """
    step = _Step()
    for piece in pieces:
        if step.ends_before(piece):
            yield from step.in_order()
            step = _Step()
        if step.pieces or _calls(piece):
            step.add(piece)
        else:
            yield piece
    yield from step.in_order()


class _Step:
    """Pieces from an answer with calls on, and the calls that wait for their results."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._groups: set[str] = set()
        self._open: Counter[str] = Counter()

    def add(self, piece: Piece) -> None:
        self.pieces.append(piece)
        if piece.group:
            self._groups.add(piece.group)
        self._open.update(call.id for call in _calls(piece))
        if isinstance(piece.entry, ToolResultMessage) and self._open[piece.entry.call_id] > 0:
            self._open[piece.entry.call_id] -= 1

    def ends_before(self, piece: Piece) -> bool:
        """Whether nothing that comes from this piece on can belong to the step."""
        is_done = self._open.total() == 0 or len(self.pieces) >= MAX_PIECES
        match piece.entry:
            case UserMessage(origin="typed" | "command") | ShellEntry() | CompactionEntry() | BranchSummaryEntry():
                return True
            case AssistantMessage():
                return is_done and piece.group not in self._groups
            case _:
                return False

    def in_order(self) -> Iterator[Piece]:
        """Yield each answer whole, its results behind it, all else in the order that it had."""
        rows: list[list[Piece]] = []
        answers: dict[str, list[Piece]] = {}
        waiting: dict[str, list[list[Piece]]] = {}
        for piece in self.pieces:
            entry = piece.entry
            if isinstance(entry, AssistantMessage) and piece.group in answers:
                row = answers[piece.group]
                row[0] = _joined(row[0], piece)
            elif isinstance(entry, ToolResultMessage) and waiting.get(entry.call_id):
                row = waiting[entry.call_id].pop(0)
                row.append(piece)
            else:
                row = [piece]
                rows.append(row)
            if isinstance(entry, AssistantMessage):
                if piece.group:
                    answers[piece.group] = row
                for call in _calls(piece):
                    waiting.setdefault(call.id, []).append(row)
        for row in rows:
            yield from row


def _calls(piece: Piece) -> list[ToolCallPart]:
    if not isinstance(piece.entry, AssistantMessage):
        return []
    return [part for part in piece.entry.parts if isinstance(part, ToolCallPart)]


def _joined(first: Piece, later: Piece) -> Piece:
    """Return an answer with the blocks that came later; what was counted last counts."""
    one, two = first.entry, later.entry
    if not isinstance(one, AssistantMessage) or not isinstance(two, AssistantMessage):
        return first
    stop = one.stop_reason if one.stop_reason == "tool_use" else two.stop_reason
    parts, usage = (*one.parts, *two.parts), two.usage or one.usage
    whole = msgspec.structs.replace(one, parts=parts, usage=usage, stop_reason=stop)
    return replace(first, entry=whole, names=(*first.names, *later.names))


STAGING = "importing"
MAX_IMAGE_BYTES = 20_000_000
MAX_RESULT_CHARACTERS = 100_000
"""What one result may have in a request; the agents that we know bound theirs at less."""
OTHER_TOOLS = (
    "The conversation up to here took place in {agent}. Its tools are not here: call only the tools that you are given "
    "now, by their own names and with their own arguments. Files may have changed since; read them again before you "
    "rely on what was said of them."
)
"""What the model is told once, because it would go on with the tools that it sees in use."""
Clock = Callable[[], float]
_STAGED = re.compile(r"[0-9a-f]{8}-\d{8}-\d{6}")


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A session that was made from a source. `earlier` says that it was made by an import before this one."""

    id: str
    directory: Path
    source: Source
    report: Report
    earlier: bool = False


class SourceClock:
    """Gives entries the times that they have in the source, in seconds since the epoch."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        """Return the time of the entry in hand."""
        return self.now


def import_source(
    source: Source,
    home: Path,
    *,
    cwd: Path | None = None,
    accepts_model: Callable[[str], bool] = lambda model: False,
    clock: Clock = time.time,
) -> Imported:
    """Make a session under `home` from a source, whatever was imported before.

    It belongs to the source's working directory, or to `cwd` where that is given or the source knows none. It goes on
    with the source's last model if `accepts_model` says so. Raises `NotImportable` when there is no message in the
    source, `OSError`.
    """
    heading = source.heading
    place = cwd or Path(heading.cwd or os.curdir)
    started = heading.started or source.changed
    session_id = new_session_id(started or clock())
    _clear_staging(home)
    times = SourceClock(started or clock())
    directory = project_directory(home, place.absolute()) / session_id
    with _staging(home / STAGING / session_id) as staged:
        session = Session.create(home, place.absolute(), clock=times, durability="none", directory=staged)
        with contextlib.closing(session):
            report = _fill(session, source, directory, times=times, accepts_model=accepts_model, now=clock())
            unsaved = session.unsaved
        if unsaved is not None:
            raise OSError(f"the imported session cannot be written: {unsaved.reason}")
        with contextlib.suppress(OSError):
            os.utime(staged / LOG_NAME, (times.now, times.now))
        make_directory(directory.parent)
        staged.rename(directory)
    return Imported(id=session_id, directory=directory, source=source, report=report)


@contextlib.contextmanager
def _staging(folder: Path) -> Generator[Path]:
    """Make a folder for a session that is being made. What has not been moved from there at the end is removed."""
    try:
        make_new_directory(folder)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(
    session: Session,
    source: Source,
    directory: Path,
    *,
    times: SourceClock,
    accepts_model: Callable[[str], bool],
    now: float,
) -> Report:
    """Write the session, which will lie in `directory`."""
    report = Report()

    def append(entry: Entry, ts: float) -> int:
        times.now = ts or times.now
        if isinstance(entry, ToolResultMessage):
            entry = _bound_result(entry, session, directory)
        return session.append(entry).seq

    def keep_image(data: bytes, media_type: str) -> ImagePart:
        return session.store.save_image(data, media_type)

    mark = append(ExtensionEntry(extension=EXTENSION, state=raw_json(mark_of(source, now))), 0.0)
    context = Context(
        keep_image=keep_image,
        report=report,
        load_image=lambda path: _load_image(source.path.parent / path),
        heading=source.heading,
    )
    agent = source.format.label
    assembler = Assembler(append, report, last_seq=mark, agent=agent, cwd=source.heading.cwd)
    for piece in in_step_order(_pieces(source, context, report)):
        assembler.add(piece)
    assembler.finish()
    if not (report.prompts or report.answers):
        why = "only a sub-agent's transcript" if report.counts.get("sidechain") else "no conversation"
        raise NotImportable(f"{source.path} holds {why}")
    append(DeveloperMessage(text=OTHER_TOOLS.format(agent=agent), kind=EXTENSION), 0.0)
    if source.heading.title and not session.state.title:
        append(TitleEntry(title=source.heading.title), 0.0)
    if source.heading.model and accepts_model(source.heading.model):
        append(ModelEntry(model=source.heading.model), 0.0)
    level = "warning" if report.damaged else "info"
    append(NoticeEntry(text=describe_import(source, report), level=level, kind=EXTENSION), 0.0)
    return report


def _pieces(source: Source, context: Context, report: Report) -> Iterator[Piece]:
    """Yield what the source's lines hold, in their order."""
    reader = source.format.reader(context)
    for fields in _objects(source, report):
        yield from reader.read(fields)
        while context.kept:
            yield Piece(entry=context.kept.pop(0))
    yield from reader.finish()


def _bound_result(entry: ToolResultMessage, session: Session, directory: Path) -> ToolResultMessage:
    """Return a result that fits a request; the whole text of a very long one goes into a file of the session."""
    whole = text_of(entry.parts)
    bounded = bound_middle(whole, MAX_RESULT_CHARACTERS)
    if bounded is None:
        return entry
    stored = session.store.save_output(f"{entry.call_id}.txt", whole)
    path = directory / stored.parent.name / stored.name
    notice = f"[… {bounded.omitted_chars:,} characters left out here. The whole text is in {path}: read or grep it.]"
    others = tuple(part for part in entry.parts if not isinstance(part, TextPart))
    return msgspec.structs.replace(
        entry,
        parts=(TextPart(text=bounded.joined(notice)), *others),
        truncated=True,
        output_path=str(path),
        output_size=stored.stat().st_size,
    )


def _objects(source: Source, report: Report) -> Iterator[Fields]:
    """Yield the objects of the source's file, those of the files that were put aside before it first."""
    for path in source.format.earlier_files(source.path):
        with path.open("rb") as file:
            yield from read_lines(file, source.format.is_line, report)
        yield source.format.next_file
    with source.path.open("rb") as file:
        yield from read_lines(file, source.format.is_line, report)


def describe_import(source: Source, report: Report) -> str:
    """Return what was imported, and what of it is not as it was, as a user reads it."""
    lines = [f"Imported from {source.format.label} ({source.path}): {report.taken}", *report.remarks]
    return "\n".join(lines)


def _load_image(path: Path) -> bytes | None:
    try:
        if not path.is_file() or path.stat().st_size > MAX_IMAGE_BYTES:
            return None
        return path.read_bytes()
    except (OSError, ValueError):
        return None


def _clear_staging(home: Path) -> None:
    """Remove the half copies of imports that were killed; their sources are whole."""
    with contextlib.suppress(OSError):
        for directory in (home / STAGING).iterdir():
            if not _STAGED.fullmatch(directory.name) or directory.is_symlink():
                continue  # nothing that an import made
            lock = SessionLock(directory)
            try:
                lock.acquire()
            except SessionLocked:
                continue
            shutil.rmtree(directory, ignore_errors=True)
            lock.release()
