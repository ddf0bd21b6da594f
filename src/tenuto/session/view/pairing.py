"""Calls and results: every call followed by its results, once, in call order, and no result without call (R-048)."""

from __future__ import annotations

import msgspec

from tenuto.protocol.message import AssistantMessage, Message, ToolResultMessage
from tenuto.protocol.part import TextPart, ToolCallPart, open_searches, searches_in, without_searches
from tenuto.text.figures import plural

INTERRUPTED_TEXT = "interrupted; may have taken effect; check"
_KEPT_BUILDS = 2


class Memo:
    """Messages that were made for views, by the very objects that they were made from; keeps encoders' caches warm.

    What no view has used for a while is forgotten, so that it does not grow with the session.
    """

    def __init__(self) -> None:
        self._made: dict[tuple[int, int], tuple[Message, object, object]] = {}
        self._used: dict[tuple[int, int], int] = {}
        self._build = 0

    def begin(self) -> None:
        """Take note that a view is built again."""
        self._build += 1
        for key in [key for key, build in self._used.items() if build < self._build - _KEPT_BUILDS]:
            del self._made[key], self._used[key]

    def get(self, source: object, edit: object = None) -> Message | None:
        """Return the message that was made from these two objects."""
        key = (id(source), id(edit))
        made = self._made.get(key)
        if made is None:
            return None
        self._used[key] = self._build
        return made[0]

    def keep(self, message: Message, source: object, edit: object = None) -> Message:
        """Remember a message; its sources live as long as it does, because an id is unique only while they live."""
        key = (id(source), id(edit))
        self._made[key] = (message, source, edit)
        self._used[key] = self._build
        return message


def interrupted_result(call: ToolCallPart) -> ToolResultMessage:
    """Return the result that stands in for one that never came (R-068)."""
    return ToolResultMessage(
        call_id=call.id, name=call.name, parts=(TextPart(text=INTERRUPTED_TEXT),), is_error=True, interrupted=True
    )


def interruption(output: str, lines: int, path: str = "") -> str:
    """Return the text of a result that has what a command wrote before it was interrupted.

    `path` is where all of it is, for an output that was found after its process had died.
    """
    where = f" The output so far is in {path}:" if path else " The output so far:"
    return f"interrupted after {plural(lines, 'line')} of output; may have taken effect; check.{where}\n{output}"


def output_before(text: str) -> str:
    """Return the output in an interrupted result's text, without the line that says so; empty where there is none."""
    first, _line_end, output = text.partition("\n")
    return output if first.startswith("interrupted") else text


class PairedMessages:
    """Messages that grow at the end, where a result takes the place that its call keeps for it.

    Results belong to the answer before them and to no earlier one, because some providers number the calls of every
    answer alike. Without a call, or a second time, a result is left out; a call without result shows fixed text.
    Whatever else stands between a call and its results comes after them (R-049). A provider's web search is left out
    where what it began with, or ended with, is not beside it any more.
    """

    def __init__(self, memo: Memo) -> None:
        self.messages: list[Message] = []
        self._memo = memo
        self._open: dict[str, list[int]] = {}
        self._last_answer = -1

    def add(self, message: Message) -> None:
        """Add a message at its place; takes constant time."""
        if isinstance(message, ToolResultMessage):
            places = self._open.get(message.call_id)
            if places:
                self.messages[places.pop(0)] = message
            return
        message = self._pair_searches(message)
        self.messages.append(message)
        if isinstance(message, AssistantMessage):
            self._last_answer = len(self.messages) - 1
            self._open = {}
            for part in message.parts:
                if isinstance(part, ToolCallPart):
                    self._open.setdefault(part.id, []).append(len(self.messages))
                    self.messages.append(self._stand_in(part))

    def _pair_searches(self, message: Message) -> Message:
        """Return a message that comes next, and take out of the last answer the searches that nothing will end.

        One goes on in the next answer. Until then results of calls may stand between, and nothing where there are none.
        """
        last = self.messages[self._last_answer] if self._last_answer >= 0 else None
        begun = (
            {search.id for search in open_searches(last.parts)} if isinstance(last, AssistantMessage) else set[str]()
        )
        if isinstance(message, AssistantMessage):
            carried = {search.id for search in searches_in(message.parts) if search.carried}
            message = self._without(message, carried - begun, last)
            lost = begun - carried
        else:
            lost = begun if isinstance(last, AssistantMessage) and not last.tool_calls else set[str]()
        if isinstance(last, AssistantMessage):
            self.messages[self._last_answer] = self._without(last, lost, message)
        return message

    def _without(self, answer: AssistantMessage, ids: set[str], beside: Message | None) -> Message:
        """Return an answer without some of its searches, always the same object beside the same message."""
        if not ids:
            return answer
        parts = without_searches(answer.parts, ids)
        made = self._memo.get(answer, beside)
        return made or self._memo.keep(msgspec.structs.replace(answer, parts=parts), answer, beside)

    def _stand_in(self, call: ToolCallPart) -> Message:
        """Return the result of a call that has none, always the same object."""
        return self._memo.get(call) or self._memo.keep(interrupted_result(call), call)
