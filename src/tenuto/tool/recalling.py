"""Looking into the history: searching it, newest first, and showing a range of it word for word (DESIGN section 6).

Nothing is loaded that is not looked at: a search stops as soon as it has enough, and files are read in blocks.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from pathlib import Path

import msgspec

from tenuto.protocol.message import HistoryEvent
from tenuto.session.path import between
from tenuto.text.bounding import boundary_after, boundary_before
from tenuto.tool.errors import ToolError
from tenuto.tool.history import Piece, pieces_of
from tenuto.tool.matchers import ExpressionMatcher, Hit, Matcher, Scan, WordMatcher
from tenuto.tool.output import format_size
from tenuto.tool.search import Stop

ROOM = 16_000
"""Characters of an answer; a single entry that is longer is shown nevertheless."""
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

    `private` also looks at what the person kept from the model: for the person's own questions only.
    """

    query: str = ""
    regex: bool = False
    span: Span | None = None
    limit: int = 20
    private: bool = False

    @property
    def first(self) -> int:
        """The seq before which nothing is looked at."""
        return self.span.first if self.span is not None else 1


class _Found(msgspec.Struct, frozen=True, kw_only=True):
    """A piece that matches; `path` is the file in which its lines were found, if it was not the entry itself."""

    entry: HistoryEvent
    kind: str
    scan: Scan
    path: Path | None


def recall(question: Question, entries: Sequence[HistoryEvent], outputs: Path, stop: Stop) -> str:
    """Return what the history says on a question. `entries` are in the order of the log. Raises `ToolError`."""
    span = question.span or Span()
    entries = between(entries, span.first, span.last)
    inside = takewhile(lambda entry: entry.seq >= span.first, reversed(entries))
    if question.query.strip():
        return _search(question, (entry for entry in inside if entry.seq <= span.last), outputs, stop)
    if question.span is None:
        raise ToolError("Say what to look for: words, or a range of entries like 120-140.")
    inside = takewhile(lambda entry: entry.seq <= span.last, entries)
    return _show(question, span, (entry for entry in inside if entry.seq >= span.first), outputs, stop)


def _search(question: Question, newest_first: Iterable[HistoryEvent], outputs: Path, stop: Stop) -> str:
    matcher: Matcher = ExpressionMatcher(question.query, stop) if question.regex else WordMatcher(question.query)
    blocks: list[str] = []
    room, rest, oldest = ROOM, "", 0
    try:
        for found in _matches(question, newest_first, outputs, matcher, stop):
            block = _describe(found)
            seq = found.entry.seq
            if blocks and seq != oldest and (len(blocks) >= question.limit or len(block) > room):
                rest = f"There are older ones: ask again with seq {question.first}-{seq}. "
                break
            oldest = seq
            room -= len(block) + 1
            blocks.append(block)
    finally:
        matcher.close()
    late = " The search ran out of time; a simpler question sees more." if stop.is_due() else ""
    if not blocks:
        return f"Nothing found.{matcher.explain_nothing()}{late}"
    count = "1 match" if len(blocks) == 1 else f"{len(blocks)} matches"
    head = f"[{count}, oldest first; a whole entry is shown for its seq. {rest}{late.strip()}".rstrip() + "]"
    return "\n".join((head, *reversed(blocks)))


def _matches(
    question: Question, entries: Iterable[HistoryEvent], outputs: Path, matcher: Matcher, stop: Stop
) -> Iterator[_Found]:
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
