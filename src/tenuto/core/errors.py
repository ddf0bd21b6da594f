"""Errors of the core, and the one place that turns an error into a line for a user."""

from __future__ import annotations

import traceback

from tenuto.protocol.event import Outcome
from tenuto.protocol.model import ModelError
from tenuto.session.errors import SessionError


class TenutoError(Exception):
    """Base of the errors that end as one clear line; `str(error)` says what to do."""


class TaskFailedError(TenutoError):
    """A task cannot go on; the session can."""


class EndedEarlyError(TaskFailedError):
    """A task ends before its work is done, and nothing is broken; `outcome` says why. The user has been told."""

    def __init__(self, outcome: Outcome, text: str) -> None:
        super().__init__(text)
        self.outcome: Outcome = outcome


class CompactionRefusedError(TaskFailedError):
    """An extension cancelled a compaction; the text names it and says why. The user has been told."""


class MoveRefusedError(TaskFailedError):
    """An extension is against a move of the leaf; the text names it and says why."""


class UsageError(TenutoError):
    """The user asked for something that does not exist or does not fit (exit code 2)."""


EXPECTED_FAILURES = (TenutoError, ModelError, SessionError)
"""Errors whose text is written for a user; every other one is a fault of ours."""


def names_nothing(failure: BaseException) -> bool:
    """Return whether a user asked for what there is not, or what does not fit: nothing has changed, nothing broke."""
    return isinstance(failure, UsageError) or (isinstance(failure, ModelError) and failure.kind == "not_found")


def describe_failure(failure: BaseException) -> str:
    """Return one line for a user. An unexpected error names its place, so that a report of it is useful."""
    if isinstance(failure, EXPECTED_FAILURES):
        return str(failure)
    frames = traceback.extract_tb(failure.__traceback__)
    place = f" at {frames[-1].name}:{frames[-1].lineno}" if frames else ""
    return f"internal error ({type(failure).__name__}{place}): {failure}"
