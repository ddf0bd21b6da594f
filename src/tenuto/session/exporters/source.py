"""What an export is made from: the entries in file order, the path and the branches beside it, and what it all cost."""

from __future__ import annotations

import time
from base64 import b64encode
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from tenuto.guard.secrets import mask_secrets, masked_copy
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import (
    BranchEntry,
    BranchSummaryEntry,
    ForkOrigin,
    HeaderEntry,
    UndoEntry,
    UnknownEntry,
    UsageEntry,
    ViewEditEntry,
)
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import ImagePart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.describe import Place, is_shown
from tenuto.session.log.log import Damage
from tenuto.session.plans import as_shown
from tenuto.session.view.projection import compaction_of_edits, view_changes_in_effect
from tenuto.session.view.state import SessionState, apply_entry


class Call(msgspec.Struct, kw_only=True):
    """A call and its result, `None` when there is none."""

    part: ToolCallPart
    result: ToolResultMessage | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer of a model and what its calls came to, in the order of the calls."""

    message: AssistantMessage
    calls: tuple[Call, ...] = ()

    @property
    def seq(self) -> int:
        """The answer's own seq."""
        return self.message.seq

    @property
    def ts(self) -> float:
        """When it was complete, in seconds since the epoch."""
        return self.message.ts


Item = Answer | HistoryEvent


def arrange(entries: Iterable[HistoryEvent]) -> list[Item]:
    """Return the items of a path or a piece of one, in order; a result stands with its call.

    A compaction that only edits the view is shown as one. What only keeps state (queue, titles, labels, todo, usage)
    is left out: it shows in the page's own parts.
    """
    items: list[Item] = []
    waiting: dict[str, list[Call]] = {}
    for entry in map(as_shown, entries):
        match entry:
            case AssistantMessage():
                calls = tuple(Call(part=part) for part in entry.parts if isinstance(part, ToolCallPart))
                waiting = {}
                for call in calls:
                    waiting.setdefault(call.part.id, []).append(call)
                items.append(Answer(message=entry, calls=calls))
            case ToolResultMessage() if waiting.get(entry.call_id):
                waiting[entry.call_id].pop(0).result = entry
            case ViewEditEntry() if entry.rung:
                items.append(compaction_of_edits(entry))
            case _ if is_shown(entry, Place.EXPORT):
                items.append(entry)
            case _:
                continue
    return items


def find_undone(path: Sequence[HistoryEvent]) -> frozenset[int]:
    """Return the seqs of the compactions, view edits and undos that an undo on the path took back."""
    in_effect = {mark.seq for mark in view_changes_in_effect(path)}
    marks = (entry.seq for entry in path if isinstance(entry, (CompactionEntry, ViewEditEntry, UndoEntry)))
    return frozenset(seq for seq in marks if seq not in in_effect)


ROOT = -1


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """Entries that follow one another. `parent` is the piece that it leaves, `after` the position there (-1: root).

    `positions` are places in the file order, one for each entry.
    """

    entries: tuple[HistoryEvent, ...]
    positions: tuple[int, ...]
    parent: int = ROOT
    after: int = ROOT


class Outline(msgspec.Struct, frozen=True, kw_only=True):
    """All pieces in which something is to be seen. The first is the active path, the others are what was left."""

    pieces: tuple[Piece, ...]

    @property
    def path(self) -> tuple[HistoryEvent, ...]:
        """The entries from the root to the leaf, without header and branches."""
        return self.pieces[0].entries

    @property
    def undone(self) -> frozenset[int]:
        """The seqs of what was taken back on the path, or on the branch that it stands on."""
        return frozenset(seq for piece in self.pieces for seq in find_undone(piece.entries))

    @property
    def branches(self) -> tuple[Piece, ...]:
        """What is not on the active path."""
        return self.pieces[1:]


class _Runs:
    """The stretches that `branch` entries cut the file into, each with the position of its parent."""

    def __init__(self, entries: Sequence[HistoryEvent]) -> None:
        self.starts = [0]
        self.parents = [ROOT]
        positions: dict[int, int] = {}
        for position, entry in enumerate(entries):
            positions.setdefault(entry.seq, position)
            if isinstance(entry, BranchEntry):
                self.starts.append(position + 1)
                self.parents.append(_find_parent(entries, positions, entry.parent, position))
        self.ends = [*self.starts[1:], len(entries)]

    def at(self, position: int) -> int:
        """Return the run that a position lies in."""
        return bisect_right(self.starts, position) - 1


def _find_parent(entries: Sequence[HistoryEvent], positions: dict[int, int], seq: int, before: int) -> int:
    """Return the position of `seq`, or of the nearest entry before it when its line was damaged."""
    if seq > 0 and seq in positions:
        return positions[seq]
    for position in range(before, -1, -1):
        if 0 < entries[position].seq < seq:
            return position
    return ROOT


def read_outline(entries: Sequence[HistoryEvent]) -> Outline:
    """Return the active path and everything beside it. The cost is that of the entries, whatever the branches."""
    runs = _Runs(entries)
    taken = _active_ends(runs)
    stretches = [range(runs.starts[run], end) for run, end in sorted(taken.items())]
    owners = [0] * len(entries)
    pieces = [_piece(entries, [at for stretch in stretches for at in stretch])]
    for run, (start, end) in enumerate(zip(runs.starts, runs.ends, strict=True)):
        begin = taken.get(run, start)
        after = begin - 1 if run in taken else runs.parents[run]
        piece = _piece(entries, range(begin, end), owners[after] if after != ROOT else ROOT, after)
        if any(is_shown(entry, Place.EXPORT) for entry in piece.entries):
            owners[begin:end] = [len(pieces)] * (end - begin)
            pieces.append(piece)
        else:
            owners[begin:end] = [max(piece.parent, 0)] * (end - begin)
    return Outline(pieces=tuple(pieces))


def _active_ends(runs: _Runs) -> dict[int, int]:
    """Return where each run of the active path stops being on it."""
    run, end = len(runs.starts) - 1, runs.ends[-1]
    taken = {run: end}
    while runs.parents[run] != ROOT:
        end = runs.parents[run] + 1
        run = runs.at(end - 1)
        taken[run] = end
    return taken


def _piece(entries: Sequence[HistoryEvent], places: Sequence[int], parent: int = ROOT, after: int = ROOT) -> Piece:
    shown = [at for at in places if not isinstance(entries[at], (HeaderEntry, BranchEntry))]
    return Piece(entries=tuple(entries[at] for at in shown), positions=tuple(shown), parent=parent, after=after)


SUMMARIES = "summaries"
UNNAMED = "(model not named)"


class Share(msgspec.Struct, frozen=True):
    """What one model, or one purpose, used in `calls` calls."""

    name: str
    calls: int
    usage: Usage


def read_shares(entries: Iterable[HistoryEvent]) -> list[Share]:
    """Return what each model used, what summaries and unfinished calls used, and with more than one the sum."""
    sums: dict[str, Share] = {}
    for entry in entries:
        match entry:
            case AssistantMessage():
                name = entry.model or UNNAMED
            case CompactionEntry() | BranchSummaryEntry():
                name = SUMMARIES
            case UsageEntry():
                name = entry.purpose or entry.model or "other"
            case _:
                continue
        if entry.usage is not None:
            share = sums.get(name, Share(name, 0, Usage()))
            sums[name] = Share(name, share.calls + 1, share.usage + entry.usage)
    shares = list(sums.values())
    if len(shares) > 1:
        shares.append(Share("all", sum(share.calls for share in shares), add_up(shares)))
    return shares


def add_up(shares: Iterable[Share]) -> Usage:
    """Return the sum of shares."""
    total = Usage()
    for share in shares:
        total += share.usage
    return total


_TITLE_LENGTH = 120
Tell = Callable[[str, int, int], None]
"""Hears how far an export is: what is counted, how many are done, of how many; 0: nobody knows. It may raise."""
READ, WRITTEN = "entries read", "entries written"


def tell_nobody(_what: str, _done: int, _whole: int) -> None:
    """Let nobody hear how far it is."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """A session as it is exported. `load_blob` returns an image's bytes by hash, or raises `OSError`."""

    id: str
    cwd: str
    forked_from: ForkOrigin | None
    entries: tuple[HistoryEvent, ...]
    state: SessionState
    damage: tuple[Damage, ...]
    load_blob: Callable[[str], bytes]
    tell: Tell = tell_nobody

    @classmethod
    def read(
        cls,
        entries: Iterable[HistoryEvent],
        load_blob: Callable[[str], bytes],
        *,
        session_id: str = "",
        damage: tuple[Damage, ...] = (),
        whole: int = 0,
        tell: Tell = tell_nobody,
    ) -> Source:
        """Fold the entries of a whole log, in file order; `session_id` is for a log that lost its header.

        `whole` is how many there are, 0 where nobody knows.
        """
        history = tuple(_masked(entry) for entry in _counted(entries, whole, tell))
        state = SessionState()
        for entry in history:
            apply_entry(state, entry)
        header = next((entry for entry in history if isinstance(entry, HeaderEntry)), None)
        return cls(
            id=header.session_id if header else session_id,
            cwd=header.cwd if header else "",
            forked_from=header.forked_from if header else None,
            entries=history,
            state=state,
            damage=damage,
            load_blob=load_blob,
            tell=tell,
        )

    @property
    def title(self) -> str:
        """What a user calls the session, on one line: its title, else how it began, else its id."""
        words = self.state.title or self.state.first_text or f"Session {self.id}"
        line = sanitize_line(words) or f"Session {self.id}"
        return line if len(line) <= _TITLE_LENGTH else line[: _TITLE_LENGTH - 1] + "…"


def _counted(entries: Iterable[HistoryEvent], whole: int, tell: Tell) -> Iterator[HistoryEvent]:
    for number, entry in enumerate(entries):
        tell(READ, number, whole)
        yield entry


class Writing:
    """How far the writing of a session is, told item by item."""

    def __init__(self, source: Source) -> None:
        self._tell = source.tell
        self._whole = len(source.entries)
        self._done = 0

    def items(self, piece: Piece) -> Iterator[Item]:
        """Yield the items of a piece, each when those before it are written."""
        items = arrange(piece.entries)
        for number, item in enumerate(items):
            self._tell(WRITTEN, self._done + number * len(piece.entries) // len(items), self._whole)
            yield item
        self._done += len(piece.entries)


def _masked(entry: HistoryEvent) -> HistoryEvent:
    """Return an entry without what is a secret or looks like one: an export goes to other eyes."""
    return entry if isinstance(entry, UnknownEntry) else masked_copy(entry, mask_secrets)


_SHOWN_IMAGES = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MAX_IMAGE_BYTES = 5_000_000


def read_image(part: ImagePart, load_blob: Callable[[str], bytes]) -> tuple[str, str]:
    """Return an image as a `data:` address, or why there is none; the other of the two is empty."""
    if part.media_type not in _SHOWN_IMAGES:
        return "", "not a kind of image that is shown here"
    try:
        data = load_blob(part.sha256) if part.size <= _MAX_IMAGE_BYTES else b""
    except (OSError, ValueError):
        return "", "no longer there"
    if max(len(data), part.size) > _MAX_IMAGE_BYTES:
        return "", "too large to be put in here"
    return f"data:{part.media_type};base64,{b64encode(data).decode('ascii')}", ""


def format_time(seconds: float) -> str:
    """Return a moment as people and programs read it, in UTC; empty for 0, which is no moment."""
    moment = _moment(seconds)
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", moment) if moment else ""


def format_machine_time(seconds: float) -> str:
    """Return a moment as RFC 3339 has it, in UTC; empty for 0."""
    moment = _moment(seconds)
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", moment) if moment else ""


def format_day(seconds: float) -> str:
    """Return the day of a moment, in UTC; empty for 0."""
    moment = _moment(seconds)
    return time.strftime("%Y-%m-%d", moment) if moment else ""


def _moment(seconds: float) -> time.struct_time | None:
    """Return the moment in UTC; a log can hold numbers that no calendar has."""
    try:
        return time.gmtime(seconds) if seconds > 0 else None
    except (OverflowError, ValueError, OSError):
        return None
