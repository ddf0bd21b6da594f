"""Calls and results: every call followed by its results, once, in call order, and no result without call (R-048)."""

from __future__ import annotations

from tenuto.protocol.message import AssistantMessage, Message, ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart

INTERRUPTED_TEXT = "interrupted; may have taken effect; check"
Memo = dict[tuple[int, int], Message]
"""Messages that were made for a view, by the identities of what they were made from; keeps encoders' caches warm."""


def interrupted_result(call: ToolCallPart) -> ToolResultMessage:
    """Return the result that stands in for one that never came (R-068)."""
    return ToolResultMessage(
        call_id=call.id, name=call.name, parts=(TextPart(text=INTERRUPTED_TEXT),), is_error=True, interrupted=True
    )


class PairedMessages:
    """Messages that grow at the end, where a result takes the place that its call keeps for it.

    Results belong to the answer before them and to no earlier one, because some providers number the calls of every
    answer alike. Without a call, or a second time, a result is left out; a call without result shows fixed text.
    Whatever else stands between a call and its results comes after them (R-049).
    """

    def __init__(self, memo: Memo) -> None:
        self.messages: list[Message] = []
        self._memo = memo
        self._open: dict[str, list[int]] = {}

    def add(self, message: Message) -> None:
        """Add a message at its place; takes constant time."""
        if isinstance(message, ToolResultMessage):
            places = self._open.get(message.call_id)
            if places:
                self.messages[places.pop(0)] = message
            return
        self.messages.append(message)
        if isinstance(message, AssistantMessage):
            self._open = {}
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    self._open.setdefault(part.id, []).append(len(self.messages))
                    self.messages.append(self._stand_in(part))

    def _stand_in(self, call: ToolCallPart) -> Message:
        """Return the result of a call that has none, always the same object."""
        key = (id(call), 0)
        message = self._memo.get(key)
        if message is None:
            message = self._memo[key] = interrupted_result(call)
        return message
