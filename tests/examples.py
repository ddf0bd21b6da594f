"""How many examples are enough where one example is a whole session."""

from __future__ import annotations

import hypothesis

SHARE = 5


def few_examples(**others: object) -> hypothesis.settings:
    """A fifth of what the profile in `tests/conftest.py` says."""
    everywhere = hypothesis.settings.default
    assert everywhere is not None
    return hypothesis.settings(max_examples=everywhere.max_examples // SHARE, **others)
