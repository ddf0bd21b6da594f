"""When a failed call is made again (R-093)."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.model import MAX_DELAY, MAX_RETRY_AFTER, RETRYABLE, ErrorKind, ModelError, next_delay


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_r093_only_what_may_pass_is_tried_again(kind: ErrorKind):
    assert (next_delay(ModelError(kind, "x"), 1, 5, 0.5) is not None) == (kind in RETRYABLE)


def test_r093_the_attempts_are_counted():
    error = ModelError("overloaded", "x")
    assert next_delay(error, 5, 5, 0.0) is not None
    assert next_delay(error, 6, 5, 0.0) is None
    assert next_delay(error, 1, 0, 0.0) is None


@given(st.integers(1, 30), st.floats(0, 1))
def test_delays_grow_and_stay_bounded(failures: int, jitter: float):
    error = ModelError("server", "x")
    delay = next_delay(error, failures, 100, jitter)
    later = next_delay(error, failures + 2, 100, jitter)
    assert delay is not None
    assert later is not None
    assert 0 < delay <= later <= MAX_DELAY * 1.25


@given(st.floats(0, MAX_RETRY_AFTER), st.integers(1, 5), st.floats(0, 1))
def test_r093_what_the_provider_asks_for_is_waited_for(wait: float, failures: int, jitter: float):
    delay = next_delay(ModelError("rate_limit", "x", retry_after=wait), failures, 5, jitter)
    assert delay is not None
    assert wait <= delay <= wait + 1


def test_r093_an_hour_is_not_waited_for_but_said():
    from tenuto.model.errors import classify

    error = classify("groq", 429, "Rate limit reached. Please try again in 57m36s.")
    assert next_delay(error, 1, 5, 0.5) is None
    assert "58 minutes" in str(error)
