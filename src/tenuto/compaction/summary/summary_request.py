"""One summary request from the call to an accepted text, the same for every way of asking (DESIGN sections 5 and 6).

Passing failures are retried, an answer that cannot be used is asked for once more with what was wrong with it. What
does not come to a usable text is a `SummaryError`, and the ladder goes on with its next rung.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import cast

import msgspec

from tenuto.compaction.errors import RungError
from tenuto.compaction.measure.budget import MIN_FREE
from tenuto.compaction.summary.judge import Expected, Fault
from tenuto.compaction.summary.summary import find_fault, is_too_long, shorten, text_of_summary
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import RETRYABLE, ErrorKind, Finished, ModelClient, ModelError, ModelRequest, TextDelta
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import estimate_text

Progress = Callable[[str, int], None]
"""Told the stage, and how many tokens of the summary have arrived (an estimate)."""
Sleep = Callable[[float], Awaitable[None]]

MAX_RETRIES = 2
"""Retries of one request after passing failures."""
MAX_WAIT = 30.0
"""Seconds that one compaction waits for overloaded providers, all rungs and retries together."""
MAX_ATTEMPTS = 2
"""How often a usable text is asked for: once, and once more with what was wrong."""
MIN_LOWERED_OUTPUT = MIN_FREE // 4
HOPELESS: frozenset[ErrorKind] = frozenset({"quota", "auth", "not_found", "rate_limit", "overloaded", "unreachable"})
"""Failures of a model as such: another request to the same model would fail in the same way."""


class SummaryError(RungError):
    """No usable summary came; `str(error)` says why in one line, `cause` is the provider's error if there was one."""

    def __init__(self, reason: str, cause: ModelError | None = None) -> None:
        super().__init__(reason)
        self.cause = cause


@dataclass(slots=True)
class Patience:
    """What one compaction has put up with: seconds waited, and the models (`provider/name`) that it gave up on."""

    waited: float = 0.0
    given_up: set[str] = field(default_factory=set[str])

    def note(self, model_id: str, error: ModelError) -> None:
        """Remember a model that cannot be reached at all, so that no other rung asks it again."""
        if error.kind in HOPELESS:
            self.given_up.add(model_id)


class Asker:
    """Makes summary requests to one model. `usage` is what they have cost, also when they were cancelled or failed."""

    def __init__(
        self, client: ModelClient, progress: Progress, patience: Patience, *, sleep: Sleep = asyncio.sleep
    ) -> None:
        self.usage = Usage()
        self._client = client
        self._progress = progress
        self._patience = patience
        self._sleep = sleep

    async def call(self, request: ModelRequest, stage: str) -> AssistantMessage:
        """Make one request, with at most two retries of passing failures. Raises `ModelError`."""
        failures = 0
        while True:
            self._progress(stage, 0)
            try:
                return await self._stream(request, stage)
            except ModelError as error:
                if error.kind == "output_budget" and request.max_output_tokens > 2 * MIN_LOWERED_OUTPUT:
                    request = msgspec.structs.replace(request, max_output_tokens=_lower(request, error))
                    continue
                failures += 1
                wait = error.retry_after if error.retry_after is not None else 2.0**failures
                is_final = error.kind not in RETRYABLE or failures > MAX_RETRIES
                if is_final or self._patience.waited + wait > MAX_WAIT:
                    self._patience.note(request.model.id, error)
                    raise
                self._patience.waited += wait
                self._progress(f"{stage}, waiting to try again: {error}", 0)
                await self._sleep(wait)

    async def _stream(self, request: ModelRequest, stage: str) -> AssistantMessage:
        """Read one answer to its end. A stream without an end is a broken one."""
        characters = 0
        stream = cast("AsyncGenerator[object, None]", self._client.stream(request))
        async with aclosing(stream):
            async for part in stream:
                if isinstance(part, TextDelta):
                    characters += len(part.text)
                    self._progress(stage, characters // 4)
                elif isinstance(part, Finished):
                    if part.message.usage is not None:
                        self.usage += part.message.usage
                    return part.message
        raise ModelError("broken_stream", "the stream ended before the summary was complete")


async def accept_summary(
    ask: Callable[[str], Awaitable[AssistantMessage]], *, length: int, replaced: int, expected: Expected
) -> str:
    """Return a text of at most `length` estimated tokens that can stand for `replaced` ones (R-009, R-010).

    `ask` is called with what to add to the request: nothing at first, then what was wrong with the first answer and
    what to do instead. Raises `SummaryError` in words for the user, and whatever `ask` raises.
    """
    too_long = feedback = reason = ""
    for _attempt in range(MAX_ATTEMPTS):
        answer = await ask(feedback)
        text = text_of_summary(answer)
        fault = find_fault(answer, replaced, expected)
        if fault is None:
            if not is_too_long(text, length):
                return text
            too_long = text
            fault = Fault(f"it was about {estimate_text(text)} tokens long, and {length} is the most")
        reason = fault.what
        feedback = f"\n\nA first attempt could not be used: {fault.tell_model()}"
    if too_long:
        return shorten(too_long, length)
    raise SummaryError(f"the summary could not be used: {reason}")


def _lower(request: ModelRequest, error: ModelError) -> int:
    """Return the output limit that the provider named, or half of the refused one (R-021)."""
    if error.limit is not None and 0 < error.limit < request.max_output_tokens:
        return error.limit
    return request.max_output_tokens // 2
