"""Whether the model goes round in circles. Pure bookkeeping, per task.

The same failing call three times in a row (R-096); and after a compaction the same call with the same result three
times: it does not know any more that it has seen it, and will not find out by looking again.
"""

from __future__ import annotations

from collections import Counter

from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import ToolCallPart, text_of

MAX_SAME_FAILURES = 3
MAX_SAME_RESULTS = 3
WAITING_SECONDS = 5.0
"""A call that takes this long waits for something: to look again is its purpose."""


class RepeatedCalls:
    """Counts calls since the person's last message."""

    def __init__(self) -> None:
        self._failures: Counter[tuple[str, str]] = Counter()
        self._results: Counter[tuple[str, str, int]] = Counter()
        self._compactions = 0

    def clear(self) -> None:
        """The person said something: what comes now is a new attempt."""
        self._failures.clear()
        self._results.clear()

    def find(self, call: ToolCallPart, result: ToolResultMessage, compactions: int) -> str:
        """Count a call; return why the task has to stop, empty when it may go on.

        `compactions` is how many the session has had in this run.
        """
        if compactions != self._compactions:
            self._compactions = compactions
            self._results.clear()
        key = (call.name, call.arguments)
        self._failures[key] = self._failures[key] + 1 if result.is_error else 0
        if self._failures[key] >= MAX_SAME_FAILURES:
            return f"stopped: the model made the same failing call {MAX_SAME_FAILURES} times ({_words(call)})"
        if not compactions or result.duration >= WAITING_SECONDS:
            return ""
        same = (*key, hash(text_of(result.parts)))
        self._results[same] += 1
        if self._results[same] < MAX_SAME_RESULTS:
            return ""
        return (
            f"stopped: since the last compaction the model made the same call {MAX_SAME_RESULTS} times and always got "
            f"the same result ({_words(call)})"
        )


def _words(call: ToolCallPart) -> str:
    return f"{call.name} {call.arguments[:120]}"
