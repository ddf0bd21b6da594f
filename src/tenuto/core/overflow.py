"""Recovery from an overflow: compact and repeat the same step, a bounded number of times (DESIGN section 6)."""

from __future__ import annotations

import msgspec

from tenuto.core.errors import TaskFailedError
from tenuto.core.live import LiveSession
from tenuto.core.sizes import describe_sizes
from tenuto.protocol.model import ModelError, ModelRequest

MAX_COMPACTIONS = 3
MIN_USEFUL_OUTPUT = 1_024
MIN_DOUBTED = 8_192
"""Tokens: a smaller request is not believed to have been too long for any model."""
AMBIGUOUS_SHARE = 0.8
"""Of the window: an error without words is an overflow only above this (R-020)."""


def is_overflow(error: ModelError, tokens: int, window: int) -> bool:
    """Say whether the request was too long; an undecided error is judged by the request's estimated size."""
    if error.kind == "ambiguous":
        return tokens > AMBIGUOUS_SHARE * window
    return error.kind == "overflow"


def leaves_no_room(error: ModelError) -> bool:
    """Say whether a request fits the window but leaves next to nothing for an answer: as good as an overflow."""
    return (
        error.kind == "output_budget"
        and error.observed is not None
        and error.limit is not None
        and error.limit < MIN_USEFUL_OUTPUT
    )


class OverflowChain:
    """One step's chain of recoveries; a new step begins a new one."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._compactions = 0

    async def recover(self, error: ModelError, request: ModelRequest) -> None:
        """Make the view smaller, so that the step can be repeated.

        Raises `TaskFailedError` with the sizes when that is switched off, tried often enough, or not possible.
        """
        live = self._live
        self.learn(error)
        if not self._names_window(error):
            self._doubt_window(request)
        if not live.settings.compaction.enabled:
            raise TaskFailedError(
                f"the conversation does not fit the model's window ({describe_sizes(live)}) and automatic "
                "compaction is off: /compact makes it smaller, /model changes to a model with a larger window"
            ) from error
        if self._compactions >= MAX_COMPACTIONS:
            raise TaskFailedError(
                f"{request.model.id} still refuses the request as too long after {self._compactions} compactions "
                f"({describe_sizes(live)}): {error}. /new starts afresh, /model changes the model"
            ) from error
        from tenuto.core.compact import run_compaction

        attempt = self._compactions
        self._compactions += 1
        try:
            await run_compaction(live, "overflow", submission_id=self._submission_id, will_retry=True, attempt=attempt)
        except TaskFailedError as failure:
            raise TaskFailedError(
                f"the request does not fit the model's window and could not be made smaller: {failure} "
                f"({describe_sizes(live)})"
            ) from error

    def _doubt_window(self, request: ModelRequest) -> None:
        """A refusal without numbers: for this session the window is not larger than what was refused."""
        live = self._live
        size = live.measure()
        known = request.model.context_window
        if size.tokens < max(MIN_DOUBTED, 2 * size.fixed) or (known is not None and size.tokens >= known):
            return
        live.facts = msgspec.structs.replace(live.facts, context_window=size.tokens, source="learned")

    def _names_window(self, error: ModelError) -> bool:
        """Say whether an error's limit can be believed: a size beside it, or a request that is not far below it."""
        if error.limit is None or error.observed is not None:
            return error.limit is not None
        return error.kind == "overflow" and self._live.measure().tokens >= error.limit // 2

    def learn(self, error: ModelError) -> None:
        """A text that names what is allowed lowers the window that we know (R-023)."""
        if error.limit is None or not self._names_window(error):
            return
        live = self._live
        # An output refusal names the room that is left beside the request, an overflow the window itself.
        limit = error.limit + (error.observed or 0) if error.kind == "output_budget" else error.limit
        if live.models.learn_window(live.facts.id, limit):
            live.facts = live.models.facts(live.facts.id)
            live.notify(f"{live.facts.id} takes {limit:,} tokens; that is remembered.", keep=True)
