"""Puts each answer together with its results, whatever came in between. Pure.

Agents run calls while the answer still streams: in their files a result can stand before the last blocks of its
answer, or behind the first words of the next one. A provider takes only an answer with all its results behind it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

import msgspec

from tenuto.protocol.entry import BranchSummaryEntry, ShellEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, ToolResultMessage, UserMessage
from tenuto.protocol.part import ToolCallPart
from tenuto.session.importers.builder import Piece

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
