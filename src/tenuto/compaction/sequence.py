"""A plain sequence of messages, as seed 004 has strategies return it, brought into the form that the log keeps. Pure.

The sequence is the whole new view. Its longest common tail with the present view stays what it is; everything before
that becomes the `replacement`.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenuto.compaction.errors import StrategyError
from tenuto.compaction.serialize import SEPARATOR, serialize_blocks
from tenuto.compaction.validate import Standing, is_valid_cut
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)

RUNG = "strategy"


def outcome_of(messages: Sequence[Message], standing: Standing, rung: str = RUNG) -> CompactionOutcome | None:
    """Return the outcome that leads to these messages, `None` when they are the view as it is.

    Raises `StrategyError` when they stand in another order than in the history.
    """
    proposed = list(messages)
    view = list(standing.view)
    if view and isinstance(view[0], SystemMessage):
        # The system prompt always stays; a strategy may return it or leave it out.
        proposed = proposed[1:] if proposed and proposed[0] == view[0] else proposed
        view = view[1:]
    _check_order(proposed)
    if proposed == view:
        return None
    start = _kept_from(proposed, view, standing)
    kept = next((message.seq for message in proposed[start:] if message.seq), standing.path[-1].seq + 1)
    return CompactionOutcome(
        replacement=tuple(msgspec.structs.replace(message, seq=0, ts=0.0) for message in proposed[:start]),
        first_kept_index=kept,
        summary=_readable(proposed[:start]),
        rung=rung,
    )


def _check_order(messages: Sequence[Message]) -> None:
    newest = 0
    for message in messages:
        if message.seq and message.seq <= newest:
            raise StrategyError(f"entry {message.seq} stands behind entry {newest}: the order of events has to stay")
        newest = max(newest, message.seq)


def _kept_from(proposed: Sequence[Message], view: Sequence[Message], standing: Standing) -> int:
    """Return the index in `proposed` of the longest common tail that begins where the conversation can be cut."""
    common = 0
    most = min(len(proposed), len(view))
    while common < most and proposed[-1 - common] == view[-1 - common]:
        common += 1
    for index in range(len(proposed) - common, len(proposed)):
        if proposed[index].seq and is_valid_cut(proposed[index].seq, standing):
            return index
    return len(proposed)


def _readable(messages: Sequence[Message]) -> str:
    """Return the replaced part as text: for the user, for search, and for the next summary."""
    texts = [message.text for message in messages if isinstance(message, SystemMessage)]
    shown = [
        message
        for message in messages
        if isinstance(message, UserMessage | AssistantMessage | ToolResultMessage | DeveloperMessage)
    ]
    return "\n\n".join([*texts, SEPARATOR.join(serialize_blocks(shown))]).strip()
