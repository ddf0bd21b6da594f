"""`search.sqlite`: which runs of a log have which three letters in a row.

It lies beside the log and goes where that goes. It is made from the log, grows behind it, and only says where to look:
what it names is read in the log and compared. One that is damaged, of another version or of another log is made again;
where there is none, or SQLite has no such index, the log itself is read.
A run is a few entries, about 16 KB; with their outputs the index takes about a fifth of what is searched. Where words
are in most runs and in no entry together, the bytes of each line say which entries are worth decoding; `aside` names
those whose lines do not.
"""

from __future__ import annotations

import contextlib
import io
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from tenuto.private_files import open_private
from tenuto.session.describe import Piece, pieces_of
from tenuto.session.log.history import Block, History, log_check
from tenuto.session.log.log import LogLine, Place, scan_log
from tenuto.session.search.needs import fold, has_letters, letters_of
from tenuto.session.store import OUTPUTS

if TYPE_CHECKING:
    from sqlite3 import Connection

SEARCH_NAME = "search.sqlite"
SEARCH_VERSION = 2
RUN_BYTES = 16_000
"""Bytes of the log that are one run, unless an entry is longer."""
STEP_BYTES = 4 << 20
"""Bytes of the log that one step reads, about; and of outputs, as much again."""
WORTH_BYTES = 512 << 10
"""Bytes of a log below which reading it takes no longer than asking."""
LARGEST_OUTPUT = 8 << 20
"""Bytes of an output above which it is not in the index, and always looked at."""
_GRAM = 3
_MOST_GRAMS = 24
_MOST_SHORT = 50_000
"""Places of a short text above which it narrows nothing."""
_LONGEST_LINE = 65_536
_BLOCK_LINES = 2_000
_MOST_RUNS = 0.5
"""The share of all runs above which reading the whole log is less work."""
_WAIT = 0.2
"""Seconds for which a reader waits for a writer that is just committing."""
_TABLES = (
    "CREATE TABLE covered (blocks INTEGER, end INTEGER, position INTEGER, lines INTEGER, highest INTEGER, sum INTEGER)",
    "INSERT INTO covered VALUES (0, 0, 0, 0, 0, 0)",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, offset INTEGER, size INTEGER, line INTEGER, highest INTEGER,"
    " position INTEGER, count INTEGER, aside TEXT)",
    "CREATE INDEX by_position ON runs (position)",
    "CREATE TABLE files (run INTEGER, path TEXT, size INTEGER, changed INTEGER)",
    "CREATE VIRTUAL TABLE texts USING fts5"
    " (text, content='', columnsize=0, detail=none, tokenize='trigram case_sensitive 1')",
    "CREATE VIRTUAL TABLE grams USING fts5vocab (texts, 'instance')",
    f"PRAGMA user_version = {SEARCH_VERSION}",
)


def file_blocks(path: Path) -> Iterator[list[str]]:
    """Yield a file's lines in blocks; nothing where it cannot be read. A very long line counts as several."""
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            block: list[str] = []
            while line := file.readline(_LONGEST_LINE):
                block.append(line.rstrip("\r\n"))
                if len(block) == _BLOCK_LINES:
                    yield block
                    block = []
            if block:
                yield block
    except OSError:
        return


class SearchDamagedError(Exception):
    """An index cannot be read to its end: whoever asked looks through the log instead."""


class Run(msgspec.Struct, frozen=True):
    """A few lines of the log: where they begin, their bytes, the position of their first entry, how many there are.

    `aside` are the lines, counted from 0, whose entry says more than stands in them letter by letter: it has a file,
    or a word that is made or escaped. `None`: the lines are not one entry each.
    """

    place: Place
    size: int
    position: int
    count: int
    aside: frozenset[int] | None = frozenset()


class _Covered(msgspec.Struct, frozen=True):
    """How far the index goes: whole blocks, where the last one ends, and the CRC-32 of the log's bytes before that."""

    blocks: int = 0
    end: int = 0
    position: int = 0
    lines: int = 0
    highest: int = 0
    sum: int = 0


class SearchIndex:
    """An open index that fits its log. Use it in the thread that opened it, and close it."""

    def __init__(self, connection: Connection, covered: _Covered) -> None:
        self._connection = connection
        self._covered = covered

    @property
    def position(self) -> int:
        """The position of the first entry that the index knows nothing of."""
        return self._covered.position

    def runs_with(self, needs: Iterable[str]) -> Sequence[int] | None:
        """Return the ids of the runs that may have all of the texts, ascending; `None` where too many may.

        There are never too many where the texts have letters that are looked for in the lines themselves. Raises
        `sqlite3.Error` for a damaged index.
        """
        needs = tuple(needs)
        whole = self.run_at(self._covered.position)
        most = 1.0 if letters_of(needs) else _MOST_RUNS
        grams = [gram for text in needs if len(text) >= _GRAM for gram in _grams(text)]
        found: set[int] | None = None
        if grams:
            wanted = " AND ".join('"{}"'.format(gram.replace('"', '""')) for gram in dict.fromkeys(grams))
            found = {
                run for (run,) in self._connection.execute("SELECT rowid FROM texts WHERE texts MATCH ?", (wanted,))
            }
        for text in needs:
            if len(text) < _GRAM and (short := self._runs_with_short(text)) is not None:
                found = short if found is None else found & short
        if found is None and most == 1.0:
            return range(1, whole + 1)
        if found is None or len(found) > most * whole:
            return None
        return sorted(found | self._runs_to_look_at())

    def _runs_with_short(self, text: str) -> set[int] | None:
        """Return where a text shorter than three letters stands, by the threes that begin with it."""
        after = text[:-1] + chr(ord(text[-1]) + 1) if ord(text[-1]) not in (0xD7FF, 0x10FFFF) else "\U0010ffff"
        query = "SELECT doc FROM grams WHERE term >= ? AND term < ? LIMIT ?"
        places = self._connection.execute(query, (text, after, _MOST_SHORT)).fetchall()
        return {run for (run,) in places} if len(places) < _MOST_SHORT else None

    def _runs_to_look_at(self) -> set[int]:
        """Return the runs with an output that is another than it was, or that is too large."""
        rows = self._connection.execute("SELECT run, path, size, changed FROM files")
        return {
            run for run, path, size, changed in rows if _facts(Path(path)) != (size, changed) or size > LARGEST_OUTPUT
        }

    def run(self, number: int) -> Run:
        """Return a run by its id. Raises `SearchDamagedError`."""
        query = "SELECT offset, line, highest, size, position, count, aside FROM runs WHERE id = ?"
        found = self._fetch(query, number)
        if found is None:
            raise SearchDamagedError(f"run {number} is missing")
        offset, line, highest, size, position, count, aside = found
        lines = None if aside is None else frozenset(map(int, str(aside).split()))
        return Run(Place(offset, line, highest), size, position, count, lines)

    def run_at(self, position: int) -> int:
        """Return the id of the run with this position. Raises `SearchDamagedError`."""
        query = "SELECT id FROM runs WHERE position <= ? ORDER BY position DESC LIMIT 1"
        found = self._fetch(query, position)
        if found is None:
            raise SearchDamagedError(f"no run has position {position}")
        return found[0]

    def _fetch(self, query: str, value: int) -> tuple[Any, ...] | None:
        """Return the first row. Raises `SearchDamagedError`."""
        import sqlite3

        try:
            return self._connection.execute(query, (value,)).fetchone()
        except sqlite3.Error as error:
            raise SearchDamagedError(str(error)) from error

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()


def open_search(history: History) -> SearchIndex | None:
    """Return the index of a log, `None` where there is none that can be used."""
    path = history.log.parent / SEARCH_NAME
    if not path.is_file() or not history.is_placed:
        return None
    import sqlite3

    try:
        connection = _connect(path)
    except sqlite3.Error:
        return None
    try:
        covered = _covered(connection)
        if covered is not None and covered.blocks and _fits(covered, history):
            return SearchIndex(connection, covered)
    except (sqlite3.Error, OSError, ValueError, TypeError):
        pass
    connection.close()
    return None


def search_index_lags(history: History) -> bool:
    """Say whether a step of `grow_search` may have something to do: a long log with more than its index has."""
    if not history.blocks or history.blocks[-1].end < WORTH_BYTES or not history.is_placed:
        return False
    index = open_search(history)
    if index is None:
        return True
    index.close()
    return index.position < history.blocks[-1].position_after


def grow_search(history: History, may_go_on: Callable[[], bool] = lambda: True) -> tuple[int, int]:
    """Take a step: put the next blocks of the log into the index, which is made where there is none that fits.

    `may_go_on` is asked after each block; what is done by then is kept, so each step comes further.
    Returns how many bytes of the log are in it, and how many could be; the same two where nothing can be done.
    A process that is killed meanwhile leaves the index as it was. Call it in a thread.
    """
    whole = history.blocks[-1].end if history.blocks else 0
    if whole < WORTH_BYTES or not history.is_placed:
        return whole, whole
    try:
        import sqlite3
    except ImportError:  # a Python without it
        return whole, whole
    path = history.log.parent / SEARCH_NAME
    for _ in range(2):
        try:
            return _grow(path, history, may_go_on), whole
        except sqlite3.OperationalError as error:
            if "no such" not in str(error) and "malformed" not in str(error):
                break  # somebody else writes, the disk is full, no FTS5 here
            remove_search(history.log.parent)
        except (sqlite3.DatabaseError, _DoesNotFitError):
            remove_search(history.log.parent)
        except OSError:
            break
    return whole, whole


def remove_search(directory: Path) -> None:
    """Take an index away; a disk that fails keeps it."""
    with contextlib.suppress(OSError):
        for name in (SEARCH_NAME, f"{SEARCH_NAME}-journal"):
            (directory / name).unlink(missing_ok=True)


class _DoesNotFitError(Exception):
    """An index is of another version, or of another log."""


def _grow(path: Path, history: History, may_go_on: Callable[[], bool]) -> int:
    """Raises `sqlite3.Error`, `OSError`, and `_DoesNotFitError`."""
    os.close(open_private(path, os.O_RDWR | os.O_CREAT))
    connection = _connect(path)
    try:
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() == (0,):
            for table in _TABLES:
                connection.execute(table)
        covered = _covered(connection)
        if covered is None or (covered.blocks and not _fits(covered, history)):
            raise _DoesNotFitError
        with history.log.open("rb") as log:
            writer, first = _Writer(connection, history.log.parent / OUTPUTS, covered), covered.end
            for block in history.blocks[covered.blocks :]:
                log.seek(block.offset)
                writer.add_block(block, log.read(block.size))
                if block.end - first + writer.output_bytes >= STEP_BYTES or not may_go_on():
                    break
            end = writer.finish(log)
        connection.execute("COMMIT")
        return end
    finally:
        connection.close()


class _Writer:
    """Writes the runs of blocks, inside one transaction."""

    def __init__(self, connection: Connection, outputs: Path, covered: _Covered) -> None:
        self._connection = connection
        self._outputs = outputs
        self._covered = covered
        self._next = connection.execute("SELECT coalesce(max(id), 0) + 1 FROM runs").fetchone()[0]
        self.output_bytes = 0

    def add_block(self, block: Block, data: bytes) -> None:
        """Add what stands in a block. Raises `_DoesNotFitError` where that is not what it had."""
        place, position = block.place, block.position
        for lines in _cut(scan_log(io.BytesIO(data), place)):
            count, size = sum(len(line.records) for line in lines), sum(line.size for line in lines)
            begin = place.offset - block.offset
            self._add_run(Run(place, size, position, count), lines, data[begin : begin + size])
            highest = max((place.highest, *(record.entry.seq for line in lines for record in line.records)))
            place = Place(place.offset + size, place.line + len(lines), highest)
            position += count
        if (place, position) != (Place(block.end, block.lines_after, block.top), block.position_after):
            raise _DoesNotFitError
        self._covered = _Covered(self._covered.blocks + 1, block.end, position, block.lines_after, block.top)

    def _add_run(self, run: Run, lines: list[LogLine], data: bytes) -> None:
        texts: list[str] = []
        aside: list[int] = []
        lowered = data.lower().split(b"\n")[:-1]
        single = len(lowered) == len(lines) and all(len(line.records) == 1 for line in lines)
        for number, line in enumerate(lines):
            said = [piece for record in line.records for piece in pieces_of(record.entry, self._outputs)]
            said = [piece for piece in said if not piece.is_echo]
            for piece in said:
                texts.append(piece.text)
                texts += self._outputs_of(piece)
            if single and not _stands_in(said, lowered[number]):
                aside.append(number)
        place = run.place
        told = " ".join(map(str, aside)) if single else None
        row = (self._next, place.offset, run.size, place.line, place.highest, run.position, run.count, told)
        self._connection.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
        if texts:
            text = fold("\n".join(texts)) + "\x01\x01"  # the last letters begin a three as well
            self._connection.execute("INSERT INTO texts (rowid, text) VALUES (?, ?)", (self._next, text))
        self._next += 1

    def _outputs_of(self, piece: Piece) -> Iterator[str]:
        for path in piece.paths:
            size, changed = _facts(path)
            row = (self._next, os.fsencode(path).decode("utf-8", "replace"), size, changed)
            self._connection.execute("INSERT INTO files VALUES (?, ?, ?, ?)", row)
            if 0 <= size <= LARGEST_OUTPUT:
                self.output_bytes += size
                yield from ("\n".join(lines) for lines in file_blocks(path))

    def finish(self, log: io.BufferedReader) -> int:
        """Write down how far the index goes now, and return that in bytes."""
        covered = msgspec.structs.replace(self._covered, sum=log_check(log, self._covered.end))
        row = msgspec.structs.astuple(covered)
        self._connection.execute(
            "UPDATE covered SET (blocks, end, position, lines, highest, sum) = (?, ?, ?, ?, ?, ?)", row
        )
        return covered.end


def _stands_in(pieces: Iterable[Piece], lowered: bytes) -> bool:
    """Say whether all the letters of what an entry says are in its line, whatever their case."""
    return all(not piece.paths and has_letters(lowered, letters_of((fold(piece.text),))) for piece in pieces)


def _cut(lines: Iterable[LogLine]) -> Iterator[list[LogLine]]:
    """Yield lines in runs."""
    before = 0

    def number(line: LogLine) -> int:
        nonlocal before
        before += line.size
        return (before - 1) // RUN_BYTES

    return (list(run) for _, run in groupby(lines, number))


def _connect(path: Path) -> Connection:
    import sqlite3
    from urllib.parse import quote

    place = f"file:{quote(os.fsencode(path.absolute()))}?mode=rw"
    return sqlite3.connect(place, uri=True, isolation_level=None, timeout=_WAIT)


def _covered(connection: Connection) -> _Covered | None:
    """Return how far the index goes, `None` for one of another version. Raises `sqlite3.Error`."""
    if connection.execute("PRAGMA user_version").fetchone() != (SEARCH_VERSION,):
        return None
    return _Covered(*connection.execute("SELECT blocks, end, position, lines, highest, sum FROM covered").fetchone())


def _fits(covered: _Covered, history: History) -> bool:
    """Say whether an index is of this log. Raises `OSError` of the log."""
    if covered.blocks > len(history.blocks):
        return False
    last = history.blocks[covered.blocks - 1]
    if (last.end, last.position_after, last.lines_after, last.top) != msgspec.structs.astuple(covered)[1:5]:
        return False
    with history.log.open("rb") as log:
        return log_check(log, last.end) == covered.sum


def _facts(path: Path) -> tuple[int, int]:
    """Return size and time of change of a file, in bytes and nanoseconds; -1 and 0 where it is none."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        return -1, 0
    return (found.st_size, found.st_mtime_ns) if path.is_file() else (-1, 0)


def _grams(text: str) -> list[str]:
    """Return threes of letters that a text has, spread over it; of a short one all."""
    places = range(len(text) - _GRAM + 1)
    step = max(1, len(places) // _MOST_GRAMS)
    return [text[place : place + _GRAM] for place in (*places[::step], places[-1])]
