"""How much of a test every run needs, and what of it waits for `./scripts/test --full`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import hypothesis
import pytest

SHARE = 5


def few_examples(**others: object) -> hypothesis.settings:
    """A fifth of the examples that the profile in `tests/conftest.py` gives: for a property of whole sessions."""
    everywhere = hypothesis.settings.default
    assert everywhere is not None
    return hypothesis.settings(max_examples=everywhere.max_examples // SHARE, **others)


def one_of(values: Iterable[object], at: int = 0) -> list[object]:
    """One of a parameter's values in every run, the others with `--full`: where all of them take the same path."""
    return [value if place == at else pytest.param(value, marks=pytest.mark.full) for place, value in enumerate(values)]


def in_turn(first: Iterable[object], second: Sequence[object]) -> list[object]:
    """Each value of the first parameter with one of the second in every run, by turns; all pairs with `--full`."""
    return [
        pytest.param(one, other, marks=() if place % len(second) == turn else pytest.mark.full)
        for place, one in enumerate(first)
        for turn, other in enumerate(second)
    ]


def many_examples(**others: object) -> hypothesis.settings:
    """For a property that holds a promise of the guard: 500 examples in every run, 20,000 with `--full`."""
    everywhere = hypothesis.settings.default
    assert everywhere is not None
    return hypothesis.settings(max_examples=500 if everywhere.max_examples <= 20 else 20_000, **others)
