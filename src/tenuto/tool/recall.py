"""The `recall` tool: everything that was ever said and done in the session (DESIGN section 6).

A search returns the record: what was said and done, the newest matches and the very first one. A summary is a
paraphrase of entries that are searched themselves, so only the newest one counts, and only where the record has
nothing. Nothing is loaded that is not looked at, and files are read in blocks.
"""

from __future__ import annotations

import contextlib
import heapq
import json
import re
import subprocess
import sys
import time
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import HistoryEvent
from tenuto.session.agents import SHORT_ID
from tenuto.session.describe import Piece, pieces_of
from tenuto.session.errors import SessionError
from tenuto.session.session import Session
from tenuto.session.store import agent_directories, find_agent
from tenuto.session.view.tree import between
from tenuto.text.bounding import boundary_after, boundary_before, shorten
from tenuto.tool.output import ToolOutput, clean_text, format_size
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError
from tenuto.tool.search import line_matcher
from tenuto.tool.search.line_matcher import SHOWN
from tenuto.tool.search.search import Stop, run_stoppable

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import RecallArguments


_HELD_BLOCKS = 8
"""Blocks of a file that are kept while not all words have been seen in it."""
_WORD = re.compile(r'"([^"]+)"|(\S+)')
REACH = 160
"""Characters within which words of a long line stand together."""
_Line = tuple[int, int, str]
"""Minus the words that a line has, its number from 1, its text."""


class Hit(msgspec.Struct, frozen=True):
    """A line that matches: its number from 1, its text, and where in it the match begins."""

    number: int
    text: str
    column: int


class Scan(msgspec.Struct, frozen=True):
    """What was found in one text: how many lines match, and the first of them."""

    total: int
    hits: tuple[Hit, ...]


class Matcher(Protocol):
    """Something to look for."""

    def scan(self, blocks: Iterable[list[str]]) -> Scan:
        """Look through one text, given as blocks of lines."""
        ...

    def can_match(self, texts: list[str]) -> bool:
        """Say whether any of the texts may match; `False` is certain, and much cheaper than looking at each."""
        ...

    def explain_nothing(self) -> str:
        """Return what to tell when no entry matched; empty when there is nothing more to say."""
        ...

    def close(self) -> None:
        """Let go of whatever was needed."""
        ...


class WordMatcher:
    """Texts that have all the words, in any order, whatever their case; `"two words"` in quotes are one."""

    def __init__(self, query: str) -> None:
        self._words = tuple(dict.fromkeys((quoted or bare).casefold() for quoted, bare in _WORD.findall(query)))
        self._seen: Counter[str] = Counter()

    def scan(self, blocks: Iterable[list[str]]) -> Scan:
        """Return the lines with any of the words, if the text has them all; of many those with most of the words.

        Lines are looked at one by one only when all words are known to be there; until then the last blocks are held.
        """
        missing = set(self._words)
        held: deque[tuple[int, list[str]]] = deque(maxlen=_HELD_BLOCKS)
        best: list[_Line] = []
        total = before = 0
        for lines in blocks:
            folded = "\n".join(lines).casefold()
            if any(word in folded for word in self._words):
                missing.difference_update([word for word in missing if word in folded])
                held.append((before, lines))
            before += len(lines)
            while held and not missing:
                found = list(self._lines_with_any(*held.popleft()))
                total += len(found)
                best = heapq.nsmallest(SHOWN, (*best, *found))
        self._seen.update(word for word in self._words if word not in missing)
        hits = (Hit(number, text, self._densest(text)) for _, number, text in sorted(best, key=itemgetter(1)))
        return Scan(total, tuple(hits))

    def can_match(self, texts: list[str]) -> bool:
        """Each has to be looked at: how often the words occur is told as well."""
        return bool(texts)

    def _lines_with_any(self, before: int, lines: list[str]) -> Iterator[_Line]:
        for number, line in enumerate(lines, before + 1):
            folded = line.casefold()
            found = sum(word in folded for word in self._words)
            if found:
                yield -found, number, line

    def _densest(self, line: str) -> int:
        """Return where in a line the part of `REACH` characters begins that has most of the words."""
        folded = line.casefold()
        places = sorted((found.start(), word) for word in self._words for found in re.finditer(re.escape(word), folded))
        inside: Counter[str] = Counter()
        start, most, best = 0, 0, places[0][0]
        for place, word in places:
            inside[word] += 1
            while place + len(word) - places[start][0] > REACH and places[start][0] < place:
                first = places[start][1]
                inside[first] -= 1
                if not inside[first]:
                    del inside[first]
                start += 1
            if len(inside) > most:
                most, best = len(inside), places[start][0]
        return best

    def explain_nothing(self) -> str:
        """Say how often each word occurs, where there are several."""
        if len(self._words) < 2:
            return ""
        counts = ", ".join(f"“{word}” in {self._seen[word]:,}" for word in self._words)
        return f" No entry has all the words: {counts}."

    def close(self) -> None:
        """Nothing to let go of."""


class _Answer(msgspec.Struct, frozen=True):
    """A line of the matching process."""

    error: str = ""
    total: int = 0
    hits: tuple[tuple[int, int], ...] = ()


class ExpressionMatcher:
    """Lines that a regular expression finds, whatever their case; tried in a process that can be killed."""

    def __init__(self, pattern: str, stop: Stop) -> None:
        """Start the process. Raises `ToolError` for an expression that is none."""
        program = [sys.executable, "-I", "-S", line_matcher.__file__]
        self._stop = stop
        self._process = subprocess.Popen(
            program,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        stop.watch(self._process)
        answer = self._ask(pattern)
        if answer.error:
            self.close()
            raise ToolError(f"The search could not be done: not a regular expression: {answer.error}")

    def scan(self, blocks: Iterable[list[str]]) -> Scan:
        """Return the lines that match."""
        hits: list[Hit] = []
        total = before = 0
        for lines in blocks:
            answer = self._ask(lines)
            total += answer.total
            hits += (Hit(before + index + 1, lines[index], column) for index, column in answer.hits)
            before += len(lines)
        return Scan(total, tuple(hits[:SHOWN]))

    def can_match(self, texts: list[str]) -> bool:
        """Ask for all lines at once."""
        return bool(texts) and self._ask("\n".join(texts).split("\n")).total > 0

    def _ask(self, question: str | list[str]) -> _Answer:
        """Return what the process says; nothing once the search is stopped. Raises `ToolError` if it ends by itself."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(question).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
            if line.endswith(b"\n"):
                return msgspec.json.decode(line, type=_Answer)
        if self._stop.is_due():
            return _Answer()
        self.close()
        raise ToolError("The search failed: the program that tries the expression ended. Search for words instead.")

    def explain_nothing(self) -> str:
        """There is no more to say."""
        return ""

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


ROOM = 16_000
"""Characters of an answer; a single entry that is longer is shown nevertheless."""
NOTHING = "Nothing found."
_LINE_CHARS = 240
_BLOCK_LINES = 2_000
_BATCH_PIECES, _BATCH_CHARS = 512, 400_000
"""How much the matcher is asked about at once: a question costs as much as looking through a hundred lines."""
_LONGEST_LINE = 65_536
"""Characters after which a line of a file is taken as two: a file may have no line end at all."""
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


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a sub-agent: what names it to the model, its entries in the order of the log, its outputs."""

    name: str
    entries: Sequence[HistoryEvent]
    outputs: Path


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A piece that matches; `path` is the file in which its lines were found, if it was not the entry itself."""

    entry: HistoryEvent
    kind: str
    scan: Scan
    path: Path | None


def recall(
    question: Question,
    entries: Sequence[HistoryEvent],
    outputs: Path,
    stop: Stop,
    agents: Iterable[AgentRecord] = (),
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


def _search_agents(question: Question, agents: Iterable[AgentRecord], stop: Stop) -> list[str]:
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


def _within_backwards(span: Span, entries: Sequence[HistoryEvent]) -> Iterator[HistoryEvent]:
    """Yield the entries of a span, the newest first, without looking before its beginning."""
    inside = takewhile(lambda entry: entry.seq >= span.first, reversed(entries))
    return (entry for entry in inside if entry.seq <= span.last)


def _search(question: Question, entries: Sequence[HistoryEvent], outputs: Path, stop: Stop) -> str:
    matcher: Matcher = ExpressionMatcher(question.query, stop) if question.regex else WordMatcher(question.query)
    look = partial(_matches, question, outputs=outputs, matcher=matcher, stop=stop)
    span = question.span or Span()
    try:
        page = _newest(look(_within_backwards(span, entries)), question.limit)
        blocks, note = page.blocks, ""
        if page.older:
            note = f"There are older ones: ask again with seq {span.first}-{page.older}. "
            if (first := next(look(_within(Span(span.first, page.older), entries)), None)) is not None:
                blocks = [_describe(first), *blocks]
                note = f"The first one is the oldest of all, the others are the newest. {note}"
        elif not blocks:
            summary = next(look(_within_backwards(span, entries), summaries=True), None)
            if summary is not None:
                blocks = [_describe(summary)]
                note = "Only a summary has it: a paraphrase, not the record. "
    finally:
        matcher.close()
    late = "The search ran out of time; a simpler question sees more." if stop.is_due() else ""
    if not blocks:
        return f"{NOTHING}{matcher.explain_nothing()} {late}".rstrip()
    count = "1 match" if len(blocks) == 1 else f"{len(blocks)} matches"
    head = f"[{count}, oldest first; a whole entry is shown for its seq. {note}{late}".rstrip() + "]"
    return "\n".join((head, *blocks))


class _Page(msgspec.Struct, frozen=True):
    """The newest matches, oldest first. `older` is the seq of the next match before them, 0 where there is none."""

    blocks: list[str]
    older: int


def _newest(matches: Iterable[_Found], limit: int) -> _Page:
    """Return as many matches as `limit` and the room allow; all of one entry stay together."""
    blocks: list[str] = []
    room, oldest = ROOM, 0
    for found in matches:
        block = _describe(found)
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
    stop: Stop,
    summaries: bool = False,
) -> Iterator[_Found]:
    """Yield what matches, in the order of `entries`: of the record, or of the `summaries` alone."""
    pieces = (pair for pair in _pieces(question, entries, outputs) if pair[1].is_summary == summaries)
    for batch in _batches(pieces):
        if stop.is_due():
            return
        texts_can = matcher.can_match([piece.text for _, piece in batch if not piece.paths])
        for entry, piece in batch:
            if stop.is_due():
                return
            if not (texts_can or piece.paths):
                continue
            for path in _places(piece):
                scan = matcher.scan(_file_blocks(path) if path is not None else _text_blocks(piece.text))
                if scan.total:
                    yield _Found(entry=entry, kind=piece.kind, scan=scan, path=path)
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


def _file_blocks(path: Path) -> Iterator[list[str]]:
    """Yield a file's lines in blocks; nothing where it cannot be read."""
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


def _describe(found: _Found) -> str:
    rows = [_heading(found.entry, found.kind)]
    if found.path is not None:
        rows.append(f"  in {found.path}:")
    rows += (f"  {hit.number}: {_excerpt(hit)}" for hit in found.scan.hits)
    more = found.scan.total - len(found.scan.hits)
    if more:
        rows.append(f"  … and {more:,} more lines")
    return "\n".join(rows)


def _heading(entry: HistoryEvent, kind: str) -> str:
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.ts))
    return f"#{entry.seq} {kind} · {when}"


def _excerpt(hit: Hit) -> str:
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


class RecallTool(BuiltinTool):
    """Looks into the history, also at what a summary stands for."""

    name = "recall"

    def subject(self, arguments: RecallArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: the model has seen all of it before."""
        what = " in ".join(part for part in (shorten(arguments.query, 80), arguments.seq) if part)
        return ApprovalSubject(kind="none", tool=self.name, summary=what)

    async def run(self, arguments: RecallArguments, context: ToolContext) -> ToolOutput:
        """Look off the loop, at the history as it is now."""
        name, slash, seq = arguments.seq.strip().rpartition("/")
        question = Question(
            query=arguments.query,
            regex=arguments.regex,
            span=Span.parse(seq) if seq.strip() else Span() if slash and not arguments.query.strip() else None,
            limit=arguments.limit,
        )
        history = context.history
        if slash:
            folder = find_agent(context.session.directory, name.strip())
            if folder is None:
                raise ToolError(f"There is no sub-agent {shorten(name, 40)} of this session, or several begin so.")
            text = await run_stoppable(lambda stop: _recall_agent(question, folder, stop, branches=arguments.branches))
            return ToolOutput.of_text(clean_text(text))
        entries = history.everything() if arguments.branches else history.path()
        agents = agent_records(context.session.directory, branches=arguments.branches)
        text = await run_stoppable(lambda stop: recall(question, entries, context.outputs, stop, agents))
        return ToolOutput.of_text(clean_text(text))


def _recall_agent(question: Question, folder: Path, stop: Stop, *, branches: bool) -> str:
    record = _record(folder, branches=branches)
    if record is None:
        raise ToolError(f"What sub-agent {folder.name[:SHORT_ID]} did cannot be read; its session is in {folder}.")
    return recall(question, record.entries, record.outputs, stop)


def agent_records(directory: Path, *, branches: bool) -> Iterator[AgentRecord]:
    """Yield the records of a session's sub-agents that can be read, the newest first."""
    for folder in agent_directories(directory):
        record = _record(folder, branches=branches)
        if record is not None:
            yield record


def _record(folder: Path, *, branches: bool) -> AgentRecord | None:
    try:
        session = Session.open(folder, read_only=True)
    except SessionError:
        return None
    entries = session.everything() if branches else session.path()
    return AgentRecord(name=folder.name[:SHORT_ID], entries=entries, outputs=session.store.outputs)
