"""When a failed model call is made again. Pure: the randomness is passed in."""

from __future__ import annotations

from tenuto.protocol.model import RETRYABLE, ModelError

FIRST_DELAY = 0.5
FIRST_RATE_DELAY = 2.0
MAX_DELAY = 60.0
MAX_RETRY_AFTER = 300.0
"""Seconds. A provider that asks for more is not waited for: the error says how long it wants."""


def next_delay(error: ModelError, failures: int, attempts: int, jitter: float) -> float | None:
    """Return the seconds to wait before the next attempt, `None` when the error is final.

    `failures` counts from 1, `attempts` is how many repeats are allowed, `jitter` lies in 0 to 1. What the provider
    asks for (`Retry-After`) is waited for in full, never less (R-093).
    """
    if error.kind not in RETRYABLE or failures > attempts:
        return None
    if error.retry_after is not None:
        if error.retry_after > MAX_RETRY_AFTER:
            return None
        return error.retry_after + 0.25 * jitter
    first = FIRST_RATE_DELAY if error.kind in {"rate_limit", "overloaded"} else FIRST_DELAY
    return min(MAX_DELAY, first * 2 ** (failures - 1)) * (0.75 + 0.5 * jitter)
