"""Searching the record of a session: everything that was ever said and done in it (DESIGN section 6).

A search returns the record: what was said and done, the newest matches and the very first one. A summary is a
paraphrase of entries that are searched themselves, so only the newest one counts, and only where the record has
nothing. Nothing is loaded that is not looked at, and files are read in blocks.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Iterable, Iterator, Reversible, Sequence
from contextlib import nullcontext
from itertools import islice, takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from tenuto.protocol.message import HistoryEvent
from tenuto.session.agents import SHORT_ID
from tenuto.session.describe import Piece, pieces_of
from tenuto.session.errors import SessionError
from tenuto.session.search.index import SearchDamagedError, file_blocks
from tenuto.session.search.narrow import Narrowed, narrow
from tenuto.session.search.needs import words_needed
from tenuto.session.session import Session
from tenuto.session.store import agent_directories
from tenuto.session.view.tree import between
from tenuto.text.bounding import boundary_after, boundary_before
from tenuto.tool.output import format_size
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.matchers import ExpressionMatcher, Hit, Matcher, Scan, WordMatcher
from tenuto.tool.search.search import Stop

if TYPE_CHECKING:
    pass


ROOM = 16_000
"""Characters of an answer; a single entry that is longer is shown nevertheless."""
NOTHING = "Nothing found."
_LINE_CHARS = 240
_BATCH_PIECES, _BATCH_CHARS = 512, 400_000
"""How much the matcher is asked about at once: a question costs as much as looking through a hundred lines."""
_NO_END = 2**63
_RANGE = re.compile(r"#?(\d*)\s*(-|\.\.|–)?\s*#?(\d*)")


class Span(msgspec.Struct, frozen=True):
    """Entries by their seq, both ends included."""

    first: int = 1
    last: int = _NO_END

    @classmethod
    def parse(cls, text: str) -> Span:
        """Read `120`, `120-140`, `120-` or `-140`. Raises `ToolError`."""
        found = _RANGE.fullmatch(text.strip())
        if found is None or not (found[1] or found[3]):
            raise ToolError(f"“{text}” is not a range of entries; write 120, 120-140, 120- or -140")
        first = int(found[1] or 1)
        last = int(found[3] or (_NO_END if found[2] else first))
        if last < first:
            raise ToolError(f"The range {text} ends before it begins")
        return cls(first, last)


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """What to look for. Without a `query` everything in `span` is shown. `limit` is the most entries of a search.

    `private` also looks at what the user kept from the model: for the user's own questions only.
    """

    query: str = ""
    regex: bool = False
    span: Span | None = None
    limit: int = 20
    private: bool = False


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """Another session, a sub-agent's too: what names it to the model, its entries in order, its outputs."""

    name: str
    entries: Sequence[HistoryEvent]
    outputs: Path


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """A piece that matches; `path` is the file in which its lines were found, if it was not the entry itself.

    `scan` has the lines, `is_summary` says that it is a paraphrase.
    """

    entry: HistoryEvent
    kind: str
    scan: Scan
    path: Path | None
    is_summary: bool


def recall(
    question: Question,
    entries: Sequence[HistoryEvent],
    outputs: Path,
    stop: Stop,
    agents: Iterable[Record] = (),
) -> str:
    """Return what the history says on a question. `entries` are in the order of the log. Raises `ToolError`.

    A search without a span looks at what the sub-agents did as well, each for itself, and says where it was found.
    """
    span = question.span or Span()
    entries = between(entries, span.first, span.last)
    if question.query.strip():
        own = _search(question, entries, outputs, stop)
        theirs = _search_agents(question, agents, stop) if question.span is None else []
        if not theirs:
            return own
        return "\n\n".join(theirs if own.startswith(NOTHING) else (own, *theirs))
    if question.span is None:
        raise ToolError("Say what to look for: words, or a range of entries like 120-140.")
    return _show(question, span, _within(span, entries), outputs, stop)


def _search_agents(question: Question, agents: Iterable[Record], stop: Stop) -> list[str]:
    """Return what the sub-agents have on a question, as many as there is room for."""
    found: list[str] = []
    room = ROOM
    for agent in agents:
        if room <= 0 or stop.is_due():
            break
        answer = _search(question, agent.entries, agent.outputs, stop)
        if not answer.startswith(NOTHING):
            head, _, rest = answer.partition("\n")
            found.append(
                f"In sub-agent {agent.name} (its entries are shown for seq {agent.name}/NUMBER): {head}\n{rest}"
            )
            room -= len(answer)
    return found


def _within(span: Span, entries: Iterable[HistoryEvent]) -> Iterator[HistoryEvent]:
    """Yield the entries of a span, given in the order of the log, without looking beyond its end."""
    inside = takewhile(lambda entry: entry.seq <= span.last, entries)
    return (entry for entry in inside if entry.seq >= span.first)


def _within_backwards(span: Span, entries: Reversible[HistoryEvent]) -> Iterator[HistoryEvent]:
    """Yield the entries of a span, the newest first, without looking before its beginning."""
    inside = takewhile(lambda entry: entry.seq >= span.first, reversed(entries))
    return (entry for entry in inside if entry.seq <= span.last)


MOST_COUNTED = 100
"""Texts with a word are counted up to here, where no entry has all of the words."""


def _search(question: Question, entries: Sequence[HistoryEvent], outputs: Path, stop: Stop) -> str:
    """Return what matches; by the index of a long session, where there is one that can be read to the end."""
    search = _Search(question, entries, outputs, stop)
    try:
        return search.answer(may_narrow=True)
    except SearchDamagedError:
        return search.answer(may_narrow=False)


def newest_in(question: Question, record: Record, stop: Stop) -> list[Found]:
    """Return the newest matches of a session, the newest first; a summary alone where the record has none.

    `question.limit` counts pieces. Raises `ToolError`.
    """
    search = _Search(question, record.entries, record.outputs, stop)
    try:
        return search.newest(may_narrow=True)
    except SearchDamagedError:
        return search.newest(may_narrow=False)


class _Search:
    """One question to the entries of one session."""

    def __init__(self, question: Question, entries: Sequence[HistoryEvent], outputs: Path, stop: Stop) -> None:
        self._question = question
        self._entries = entries
        self._outputs = outputs
        self._stop = stop
        self._span = question.span or Span()

    def answer(self, *, may_narrow: bool) -> str:
        """Return the matches as text. Raises `ToolError`, `SearchDamagedError`."""
        matcher = self._matcher()
        try:
            with self._narrowed(matcher.needs if may_narrow else ()) as entries:
                saw_all = not isinstance(entries, Narrowed)
                self._stop.whole += 0 if isinstance(entries, Narrowed) else len(entries)
                blocks, note = self._find(entries, matcher)
            late = "The search ran out of time; a simpler question sees more." if self._stop.is_due() else ""
            if not blocks:
                counts = self._count(matcher, saw_all=saw_all)
                return f"{NOTHING}{counts} {late}".rstrip()
        finally:
            matcher.close()
        count = "1 match" if len(blocks) == 1 else f"{len(blocks)} matches"
        head = f"[{count}, oldest first; a whole entry is shown for its seq. {note}{late}".rstrip() + "]"
        return "\n".join((head, *blocks))

    def newest(self, *, may_narrow: bool) -> list[Found]:
        """Return the newest matches. Raises `ToolError`, `SearchDamagedError`."""
        matcher = self._matcher()
        summaries: list[Found] = []
        try:
            with self._narrowed(matcher.needs if may_narrow else ()) as entries:
                looked = self._look(_within_backwards(self._span, entries), matcher, self._stop)
                found = list(islice(_record_of(looked, summaries), self._question.limit))
        finally:
            matcher.close()
        return found or summaries[:1]

    def _matcher(self) -> Matcher:
        query = self._question.query
        return ExpressionMatcher(query, self._stop) if self._question.regex else WordMatcher(query)

    def _narrowed(self, needs: tuple[str, ...]) -> Narrowed | nullcontext[Sequence[HistoryEvent]]:
        return narrow(self._entries, needs) or nullcontext(self._entries)

    def _look(self, entries: Iterable[HistoryEvent], matcher: Matcher, stop: Due) -> Iterator[Found]:
        counted = self._stop.counting(entries)
        return _matches(self._question, counted, outputs=self._outputs, matcher=matcher, stop=stop)

    def _find(self, entries: Narrowed | Sequence[HistoryEvent], matcher: Matcher) -> tuple[list[str], str]:
        """Return the newest matches and the very first one, and a note on them."""
        span = self._span
        summaries: list[Found] = []
        newest = self._look(_within_backwards(span, entries), matcher, self._stop)
        page = _newest(_record_of(newest, summaries), self._question.limit)
        if page.older:
            blocks = page.blocks
            note = f"There are older ones: ask again with seq {span.first}-{page.older}. "
            older = self._look(_within(Span(span.first, page.older), entries), matcher, self._stop)
            if (first := next(_record_of(older, []), None)) is not None:
                blocks = [describe_found(first), *blocks]
                note = f"The first one is the oldest of all, the others are the newest. {note}"
            return blocks, note
        if page.blocks or not summaries:
            return page.blocks, ""
        return [describe_found(summaries[0])], "Only a summary has it: a paraphrase, not the record. "

    def _count(self, matcher: Matcher, *, saw_all: bool) -> str:
        """Say how many texts have each word; nothing where there are not several."""
        if not matcher.counted or not isinstance(matcher, WordMatcher):
            return ""
        counts: list[str] = []
        for word in matcher.counted:
            seen = matcher.seen[word] if saw_all else self._count_word(word)
            counts.append(f"“{word}” in {MOST_COUNTED} or more" if seen >= MOST_COUNTED else f"“{word}” in {seen}")
        return f" No entry has all the words: {', '.join(counts)}."

    def _count_word(self, word: str) -> int:
        matcher = WordMatcher(self._question.query)
        stop = _Enough(self._stop, matcher, word)
        with self._narrowed(words_needed((word,))) as entries:
            deque(self._look(_within_backwards(self._span, entries), matcher, stop), maxlen=0)
        return matcher.seen[word]


def _record_of(matches: Iterable[Found], summaries: list[Found]) -> Iterator[Found]:
    """Yield the matches of the record; those of summaries go aside."""
    for found in matches:
        if found.is_summary:
            summaries.append(found)
        else:
            yield found


class Due(Protocol):
    """Says when to stop."""

    def is_due(self) -> bool:
        """Whether that is now."""
        ...


class _Enough(msgspec.Struct, frozen=True):
    """Stops a count when it is large, too."""

    stop: Stop
    matcher: WordMatcher
    word: str

    def is_due(self) -> bool:
        """Whether enough was counted."""
        return self.matcher.seen[self.word] >= MOST_COUNTED or self.stop.is_due()


class _Page(msgspec.Struct, frozen=True):
    """The newest matches, oldest first. `older` is the seq of the next match before them, 0 where there is none."""

    blocks: list[str]
    older: int


def _newest(matches: Iterable[Found], limit: int) -> _Page:
    """Return as many matches as `limit` and the room allow; all of one entry stay together."""
    blocks: list[str] = []
    room, oldest = ROOM, 0
    for found in matches:
        block = describe_found(found)
        seq = found.entry.seq
        if blocks and seq != oldest and (len(blocks) >= limit or len(block) > room):
            return _Page(blocks[::-1], seq)
        oldest = seq
        room -= len(block) + 1
        blocks.append(block)
    return _Page(blocks[::-1], 0)


def _matches(
    question: Question,
    entries: Iterable[HistoryEvent],
    *,
    outputs: Path,
    matcher: Matcher,
    stop: Due,
) -> Iterator[Found]:
    """Yield what matches, in the order of `entries`."""
    for batch in _batches(_pieces(question, entries, outputs)):
        if stop.is_due():
            return
        texts_can = matcher.can_match([piece.text for _, piece in batch if not piece.paths])
        for entry, piece in batch:
            if stop.is_due():
                return
            if not (texts_can or piece.paths):
                continue
            for path in _places(piece):
                scan = matcher.scan(file_blocks(path) if path is not None else _text_blocks(piece.text))
                if scan.total:
                    yield Found(entry=entry, kind=piece.kind, scan=scan, path=path, is_summary=piece.is_summary)
                    break


def _pieces(question: Question, entries: Iterable[HistoryEvent], outputs: Path) -> Iterator[tuple[HistoryEvent, Piece]]:
    """Yield what is looked at, with the entry that it is of."""
    for entry in entries:
        for piece in pieces_of(entry, outputs):
            if not (piece.is_echo or (piece.is_private and not question.private)):
                yield entry, piece


def _batches(pieces: Iterable[tuple[HistoryEvent, Piece]]) -> Iterator[list[tuple[HistoryEvent, Piece]]]:
    """Yield the pieces in batches that grow: what is near is found at once, and far back few questions are asked."""
    batch: list[tuple[HistoryEvent, Piece]] = []
    size, most = 0, 1
    for entry, piece in pieces:
        batch.append((entry, piece))
        size += len(piece.text)
        if len(batch) >= most or size >= _BATCH_CHARS:
            yield batch
            batch, size, most = [], 0, min(2 * most, _BATCH_PIECES)
    yield batch


def _places(piece: Piece) -> Iterator[Path | None]:
    """Yield where a piece can be read, best first: `None` is its own text."""
    files = [path for path in piece.paths if path.is_file()]
    if not (piece.is_whole and files):
        yield None
    yield from files


def _text_blocks(text: str) -> Iterator[list[str]]:
    if text:
        yield text.split("\n")


def describe_found(found: Found) -> str:
    """Return a match as rows: its entry, its lines."""
    rows = [_heading(found.entry, found.kind)]
    if found.path is not None:
        rows.append(f"  in {found.path}:")
    rows += (f"  {hit.number}: {excerpt(hit)}" for hit in found.scan.hits)
    more = found.scan.total - len(found.scan.hits)
    if more:
        rows.append(f"  … and {more:,} more lines")
    return "\n".join(rows)


def _heading(entry: HistoryEvent, kind: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.ts))
    return f"#{entry.seq} {kind} · {when}"


def excerpt(hit: Hit) -> str:
    """Return a line, or the part of a long one around its match."""
    text = hit.text
    if len(text) <= _LINE_CHARS:
        return text
    start = boundary_after(text, max(min(hit.column - _LINE_CHARS // 4, len(text) - _LINE_CHARS), 0))
    end = boundary_before(text, start + _LINE_CHARS)
    return f"{'… ' if start else ''}{text[start:end]}{' …' if end < len(text) else ''}"


def _show(question: Question, span: Span, entries: Iterable[HistoryEvent], outputs: Path, stop: Stop) -> str:
    """Return entries word for word, as many as there is room for, and where to go on."""
    blocks: list[str] = []
    room = ROOM
    for entry in entries:
        texts = [
            f"{_heading(entry, piece.kind)}\n{piece.text}{_file_notes(piece)}"
            for piece in pieces_of(entry, outputs)
            if piece.text and (question.private or not piece.is_private)
        ]
        size = sum(len(text) + 2 for text in texts)
        if (blocks and size > room) or stop.is_due():
            end = "" if span.last == _NO_END else span.last
            blocks.append(f"[There is more: ask for seq {entry.seq}-{end}.]")
            break
        room -= size
        blocks += texts
    return "\n\n".join(blocks) or "There is nothing in that range."


def _file_notes(piece: Piece) -> str:
    """Return a line for each file of a piece that still exists."""
    sizes = [(path, _size(path)) for path in piece.paths]
    return "".join(f"\n[More of it is in {path} ({format_size(size)}).]" for path, size in sizes if size is not None)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None


def recall_agent(question: Question, folder: Path, stop: Stop, *, branches: bool) -> str:
    """Return what the sub-agent in a folder has on a question. Raises `ToolError`."""
    record = read_record(folder, branches=branches)
    if record is None:
        raise ToolError(f"What sub-agent {folder.name[:SHORT_ID]} did cannot be read; its session is in {folder}.")
    return recall(question, record.entries, record.outputs, stop)


def agent_records(directory: Path, *, branches: bool) -> Iterator[Record]:
    """Yield the records of a session's sub-agents that can be read, the newest first."""
    for folder in agent_directories(directory):
        record = read_record(folder, branches=branches)
        if record is not None:
            yield record


def read_record(folder: Path, *, branches: bool) -> Record | None:
    """Return the record of the session in a folder, `None` where it cannot be read."""
    try:
        session = Session.open(folder, read_only=True)
    except SessionError:
        return None
    entries = session.everything() if branches else session.path()
    return Record(name=folder.name[:SHORT_ID], entries=entries, outputs=session.store.outputs)
