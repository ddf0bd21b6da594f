"""Whether an automatic compaction may run: over the trigger, switched on, and not known to be of no use.

Pure bookkeeping. An automatic compaction whose next *measured* request is not under the trigger was of no use; twice
in a row ends them until the person acts (R-005). After one that failed the next waits until there is more (R-012).
"""

from __future__ import annotations

from math import ceil

from msgspec import Struct

MAX_INEFFECTIVE = 2
GROWTH_AFTER_FAILURE = 1.1


class AutomaticCompaction(Struct):
    """What is known of the session's automatic compactions. Token counts."""

    ineffective: int = 0
    done: int = 0
    """How many compactions of any kind this run has had."""
    _waits_for_measure: bool = False
    _not_under: float = 0.0

    @property
    def is_stopped(self) -> bool:
        """Whether they have been of no use too often."""
        return self.ineffective >= MAX_INEFFECTIVE

    @property
    def waits_for(self) -> int:
        """The size from which on the next one may run after one that failed or was undone (0: any)."""
        return ceil(self._not_under)

    def may_run(self, tokens: int) -> bool:
        """Say whether one may start at this size."""
        return not self.is_stopped and tokens >= self._not_under

    def note_done(self, *, manual: bool) -> None:
        """A compaction is on disk; the next measured request tells whether it was of use."""
        self.done += 1
        if manual:
            self.reset()
        self._waits_for_measure = True
        self._not_under = 0.0

    def note_failed(self, tokens: int) -> None:
        """One failed at this size: the next waits for a tenth more."""
        self._not_under = tokens * GROWTH_AFTER_FAILURE

    def note_undone(self, tokens: int, most: int) -> None:
        """The person undid one, to this size: the next waits for a tenth more, at the latest until `most` tokens."""
        self.reset()
        self._not_under = min(tokens * GROWTH_AFTER_FAILURE, most)

    def note_measured(self, tokens: int, trigger: int) -> bool:
        """A provider counted a request; returns whether this was what stops them."""
        if not self._waits_for_measure:
            return False
        self._waits_for_measure = False
        if tokens <= trigger:
            self.ineffective = 0
            return False
        self.ineffective += 1
        return self.is_stopped

    def reset(self) -> None:
        """The person acted (compacted, changed the model): begin anew."""
        self.ineffective = 0
        self._waits_for_measure = False
        self._not_under = 0.0
