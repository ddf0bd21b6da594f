"""What estimated tokens of each kind really come to with one model, learned from what its provider counted. Pure.

A factor for everything would carry the error of the largest part over to all others: what is learned from a log full of
digits would be applied to the system prompt. So there is one for each kind of content. They are found by Bayesian
linear regression, an observation at a time: each counted text moves the factors of the kinds that it is made of, the
more the less is known of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Vector = tuple[float, ...]
"""Estimated tokens by kind."""

FIXED, LETTERS, DIGITS, MARKS, WIDE, DENSE, IMAGE, FRAME, RESULT, NOTES = range(10)
"""The kinds. `FIXED` is system prompt and tool schemas, `FRAME` what goes around messages and calls.

`RESULT` and `NOTES` are no tokens of their own but those of a tool's result, or of what stands for a summarised part,
once more: by how much such texts differ from others made of the same characters.
"""
_EXPECTED = (1.0,) * 8 + (0.0,) * 2
_DOUBT = (0.15, 0.15, 0.4, 0.25, 0.4, 0.35, 0.7, 0.4, 0.2, 0.1)
"""By how much the estimate of a kind may be wrong before anything is known (one standard deviation of its factor)."""
_NOISE_TOKENS, _NOISE_SHARE = 4.0, 0.02
"""How far a count may be from what right factors give."""
_PLAUSIBLE = (0.1, 10.0)
"""A count outside these shares of its estimate is of something else, and tells nothing."""
_LIMITS = (0.25, 4.0)
ZERO: Vector = (0.0,) * len(_DOUBT)


class Calibration:
    """The factors of one model."""

    def __init__(self) -> None:
        self._factors = list(_EXPECTED)
        kinds = range(len(_DOUBT))
        self._doubt = [[_DOUBT[row] ** 2 if row == column else 0.0 for column in kinds] for row in kinds]

    def factor(self, kind: int) -> float:
        """Return real / estimated tokens of a kind."""
        low, high = _LIMITS
        return min(high, max(low, self._factors[kind]))

    def tokens(self, vector: Vector) -> float:
        """Return the tokens that something with these estimates is likely to have."""
        total = estimated(vector)
        low, high = _LIMITS
        likely = sum(weight * self._factors[kind] for kind, weight in enumerate(vector) if weight)
        return min(high * total, max(low * total, likely))

    def observe(self, vector: Vector, counted: float) -> None:
        """Take into account that something with these estimates was counted as `counted` tokens."""
        total = estimated(vector)
        if counted <= 0 or total <= 0 or not _PLAUSIBLE[0] <= counted / total <= _PLAUSIBLE[1]:
            return
        used = [(kind, weight) for kind, weight in enumerate(vector) if weight]
        spread = [sum(row[kind] * weight for kind, weight in used) for row in self._doubt]
        noise = _NOISE_TOKENS + _NOISE_SHARE * counted
        variance = noise * noise + sum(weight * spread[kind] for kind, weight in used)
        error = counted - sum(weight * self._factors[kind] for kind, weight in used)
        for row, share in enumerate(spread):
            gain = share / variance
            self._factors[row] += gain * error
            line = self._doubt[row]
            for column, other in enumerate(spread):
                line[column] -= gain * other


def estimated(vector: Vector) -> float:
    """Return the plain estimate, all kinds together."""
    return sum(vector[:RESULT])


def as_result(vector: Vector) -> Vector:
    """Return the vector of a tool's result."""
    return (*vector[:RESULT], estimated(vector), 0.0)


def as_notes(vector: Vector) -> Vector:
    """Return the vector of what stands for a summarised part."""
    return (*vector[:RESULT], 0.0, estimated(vector))


def add(vectors: Iterable[Vector]) -> Vector:
    """Return the sum of vectors, kind by kind."""
    total = ZERO
    for vector in vectors:
        total = tuple(one + other for one, other in zip(total, vector, strict=True))
    return total


def vector_of(kinds: Sequence[float], *, fixed: float = 0.0, images: float = 0.0, frame: float = 0.0) -> Vector:
    """Return the vector of a text's kinds (`text/estimate.py`) with what is around it."""
    return (fixed, *kinds, images, frame, 0.0, 0.0)
