"""Looking for words in entries that no screen has loaded: by the log's bytes; only what may have them is decoded."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tenuto.core.state.live import SessionServices
from tenuto.protocol.event import EarlierFoundEvent
from tenuto.protocol.message import HistoryEvent, ToolResultMessage
from tenuto.protocol.operation import FindEarlierOperation
from tenuto.text.matching import count_in_prose, may_contain

BYTES_AT_A_TIME = 32 << 20
"""Bytes of the log that are looked through before there is an answer, so that whoever asked can stop asking."""


def find_earlier(services: SessionServices, question: FindEarlierOperation) -> EarlierFoundEvent:
    """Return the nearest entry that has the words, or what is left to look through. Raises `SessionUnreadable`."""
    answer = partial(EarlierFoundEvent, session_id=services.id, query=question.query, upto=question.upto)
    path = services.session.path()
    outputs = services.session.store.outputs
    looked_at = 0
    may_have = partial(may_contain, query=question.query)
    for part in path.parts(question.after + 1, question.before - 1, may_have, newest=question.newest):
        looked_at += part.size
        for entry in part.entries:
            if question.after < entry.seq < question.before and _says(entry, question.query, outputs):
                return answer(seq=entry.seq)
        if looked_at >= BYTES_AT_A_TIME:
            if question.newest:
                return answer(after=question.after, before=part.first)
            return answer(after=part.last, before=question.before)
    return answer()


def _says(entry: HistoryEvent, query: str, outputs: Path) -> bool:
    return any(count_in_prose(text, query) for text in _texts(entry, outputs))


def _texts(entry: HistoryEvent, outputs: Path) -> Iterator[str]:
    """Yield what the screen shows of an entry, near enough."""
    from tenuto.protocol.message import DiffView
    from tenuto.session.describe import Place, is_shown, pieces_of

    if not is_shown(entry, Place.SCREEN):
        return
    for piece in pieces_of(entry, outputs):
        yield piece.text
    if isinstance(entry, ToolResultMessage):
        yield from (view.diff for view in entry.ui if isinstance(view, DiffView))
