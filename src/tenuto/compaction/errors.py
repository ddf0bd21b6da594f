"""What can go wrong while the view is made smaller, as typed errors."""

from __future__ import annotations


class RungError(Exception):
    """One way of making the view smaller came to nothing; `str(error)` says why in one line.

    `notice` is what the user has to be told even when another way succeeds (empty: nothing).
    """

    def __init__(self, reason: str, *, notice: str = "") -> None:
        super().__init__(reason)
        self.notice = notice


class NothingLeftError(RungError):
    """There is nothing that could be made smaller; the text says why."""


class StrategyError(RungError):
    """A strategy cannot be loaded, or does not behave like one; the text says what to change."""
