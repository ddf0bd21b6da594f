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

FIXED, LETTERS, DIGITS, MARKS, WIDE, DENSE, IMAGE, FRAME = range(8)
"""The kinds. `FIXED` is system prompt and tool schemas, `FRAME` what goes around messages and calls."""
_DOUBT = (0.15, 0.15, 0.4, 0.25, 0.4, 0.35, 0.7, 0.4)
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
        self._factors = [1.0] * len(_DOUBT)
        kinds = range(len(_DOUBT))
        self._doubt = [[_DOUBT[row] ** 2 if row == column else 0.0 for column in kinds] for row in kinds]

    def factor(self, kind: int) -> float:
        """Return real / estimated tokens of a kind."""
        low, high = _LIMITS
        return min(high, max(low, self._factors[kind]))

    def tokens(self, vector: Vector) -> float:
        """Return the tokens that something with these estimates is likely to have."""
        return sum(weight * self.factor(kind) for kind, weight in enumerate(vector) if weight)

    def observe(self, vector: Vector, counted: float) -> None:
        """Take into account that something with these estimates was counted as `counted` tokens."""
        total = sum(vector)
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


def add(vectors: Iterable[Vector]) -> Vector:
    """Return the sum of vectors, kind by kind."""
    total = ZERO
    for vector in vectors:
        total = tuple(one + other for one, other in zip(total, vector, strict=True))
    return total


def vector_of(kinds: Sequence[float], *, fixed: float = 0.0, images: float = 0.0, frame: float = 0.0) -> Vector:
    """Return the vector of a text's kinds (`text/estimate.py`) with what is around it."""
    return (fixed, *kinds, images, frame)
