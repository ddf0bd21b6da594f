"""The tree of the session as a side bar: prompts and marks of the active path, and each branch where it leaves."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry, ViewEditEntry
from tenuto.protocol.message import CompactionEntry, HistoryEvent, UserMessage
from tenuto.protocol.part import text_of
from tenuto.session.exporters.html.markup import EMPTY, Markup, closing, element, join, line, opening
from tenuto.session.exporters.items import is_shown
from tenuto.session.exporters.labels import branch_name, first_line
from tenuto.session.exporters.outline import Outline
from tenuto.text.figures import format_change

_DEEPEST = 10
"""Branches of branches beyond this depth stand beside one another: no page needs more indentation."""


class _Stop(msgspec.Struct, frozen=True):
    """One stop in a piece: an entry to go to, or a branch that leaves here (`piece` is its number)."""

    position: int
    entry: HistoryEvent | None = None
    piece: int = 0


def tree(outline: Outline, labels: dict[int, str]) -> Iterator[Markup]:
    """Yield the list, piece by piece; no recursion, so that no depth of branches is too much."""
    stops = _Stops(outline, labels)
    yield opening("ol")
    open_lists: list[tuple[Iterator[_Stop], Markup]] = [(iter(stops.of(0)), closing("ol"))]
    while open_lists:
        stop = next(open_lists[-1][0], None)
        if stop is None:
            yield open_lists.pop()[1]
        elif stop.entry is not None:
            yield _node(stop.entry, labels.get(stop.entry.seq, ""))
        elif len(open_lists) < _DEEPEST:
            yield join(opening("li", class_="branch"), opening("details", open="open"))
            yield join(element("summary", _branch_link(outline, stop.piece)), opening("ol"))
            open_lists.append((iter(stops.of(stop.piece)), Markup("</ol></details></li>")))
        else:
            yield element("li", _branch_link(outline, stop.piece), class_="branch")
            open_lists.append((iter(stops.of(stop.piece)), EMPTY))


class _Stops:
    """What stands where in each piece."""

    def __init__(self, outline: Outline, labels: dict[int, str]) -> None:
        self._pieces = outline.pieces
        self._labels = labels
        self._leaving: dict[int, list[_Stop]] = {}
        for number, piece in enumerate(outline.pieces):
            if number > 0:
                owner = max(piece.parent, 0)
                self._leaving.setdefault(owner, []).append(_Stop(position=piece.after, piece=number))

    def of(self, number: int) -> list[_Stop]:
        """Return the stops of a piece in order; a branch stands after the entry that it leaves."""
        piece = self._pieces[number]
        stops = [
            _Stop(position=position, entry=entry)
            for position, entry in zip(piece.positions, piece.entries, strict=True)
            if _is_stop(entry) or (entry.seq in self._labels and is_shown(entry))
        ]
        return sorted([*stops, *self._leaving.get(number, ())], key=lambda stop: stop.position)


def _node(entry: HistoryEvent, label: str) -> Markup:
    match entry:
        case UserMessage():
            kind, words = "user", first_line(text_of(entry.parts)) or "(image)"
        case CompactionEntry() | ViewEditEntry():
            kind, words = "compaction", f"compacted{_sizes(entry)}"
        case BranchSummaryEntry():
            kind, words = "summary", f"summary of #{entry.from_seq}"
        case _:
            kind, words = "labelled", f"#{entry.seq}"
    mark = element("mark", line(label)) if label else EMPTY
    return element("li", element("a", line(words), href=f"#e{entry.seq}"), mark, class_=kind)


def _is_stop(entry: HistoryEvent) -> bool:
    if isinstance(entry, ViewEditEntry):
        return bool(entry.rung)
    return isinstance(entry, (UserMessage, CompactionEntry, BranchSummaryEntry))


def _sizes(entry: CompactionEntry | ViewEditEntry) -> str:
    if entry.tokens_before is None or entry.tokens_after is None:
        return ""
    return f" {format_change(entry.tokens_before, entry.tokens_after, rough=entry.rough)}"


def _branch_link(outline: Outline, number: int) -> Markup:
    return element("a", line(branch_name(outline.pieces[number])), href=f"#b{number}")
