"""Entries as text, and as messages, for code of others: extensions and strategies (seed 003).

text = tenuto.serialize_conversation(tenuto.convert_to_llm(preparation.messages_to_summarize))
"""

from __future__ import annotations

from collections.abc import Iterable

from tenuto.compaction.plan.entries import visible_entry
from tenuto.compaction.summary.serialize import serialize
from tenuto.protocol.message import HistoryEvent, Message
from tenuto.session.view.projection import show_entry


def convert_to_llm(entries: Iterable[HistoryEvent]) -> list[Message]:
    """Return the messages that entries are to the model; what it does not see (state, notices) is left out."""
    return [message for message in map(show_entry, entries) if message is not None]


def serialize_conversation(messages: Iterable[HistoryEvent]) -> str:
    """Return messages, or entries as they are, as one bounded text: something to report on, not to go on with."""
    return serialize(entry for entry in map(visible_entry, messages) if entry is not None)
