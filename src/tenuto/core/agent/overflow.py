"""What a request has to pass, and recovery from one that is too long: the overflow decision tree (seed 001, DESIGN 6).

Before: no result of the view is longer than the window's ceiling. A result is bounded when it is made, by the window
of that moment (`tool/output.py`). After a switch to a smaller one, or in a session that came from elsewhere, older ones
can be over the ceiling: one edit of the view shortens them. Between two steps with the same window this costs a
comparison.

Behind a refusal: compact and repeat the same step, at most three times, each time with less; where that is not possible
shorten results that are over the ceiling, once; then condense without a model; then an error that names the sizes. The
chain of a step ends when a request of that step is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenuto.compaction.images import image_bytes, images_of
from tenuto.core.errors import CompactionRefusedError, TaskFailedError
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import LiveSession
from tenuto.core.state.windows import describe_sizes, doubt_window, learn_window, names_window, where_learned
from tenuto.protocol.entry import ViewEditEntry
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.protocol.model import ErrorKind, ModelError, ModelRequest
from tenuto.session.session import Session
from tenuto.session.view.projection import cancelled_by_undo
from tenuto.session.view.tree import find_on


def run_preflight(live: LiveSession, submission_id: str = "") -> None:
    """Shorten what is over the ceiling if the window is smaller than at the last request, or nobody has looked yet.

    Does nothing where automatic compaction is switched off (R-015). What the user undid stays undone.
    """
    window, checked = live.budget().window, live.compaction.checked_window
    live.compaction.checked_window = window
    if (checked and window >= checked) or not live.settings.compaction.enabled:
        return
    if not any(isinstance(message, ToolResultMessage) for message in live.session.get_llm_history()):
        return
    from tenuto.core.compacting.view_edits import shorten_oversized_results  # 2 ms that a new session need not wait for

    path = live.session.path()
    reason = "model_switch" if _last_model(path) not in ("", live.facts.id) else "threshold"
    shorten_oversized_results(live, reason, submission_id, untouched=_undone_targets(path))


def _last_model(path: Sequence[HistoryEvent]) -> str:
    return next((entry.model for entry in reversed(path) if isinstance(entry, AssistantMessage)), "")


def _undone_targets(path: Sequence[HistoryEvent]) -> set[int]:
    """Return the results whose shortening the user undid."""
    undone = (find_on(path, seq) for seq in cancelled_by_undo(path))
    return {edit.target for entry in undone if isinstance(entry, ViewEditEntry) for edit in entry.edits}


MAX_COMPACTIONS = 3
MIN_USEFUL_OUTPUT = 1_024
AMBIGUOUS_SHARE = 0.8
"""Of the window: an error without words is an overflow only above this (R-020)."""


def is_overflow(error: ModelError, tokens: int, window: int) -> bool:
    """Say whether the request was too long; an undecided error is judged by the request's estimated size.

    Too many bytes of text are too many tokens as well (images leave before that is asked, see `ImageRecovery`).
    """
    if error.kind == "ambiguous":
        return tokens > AMBIGUOUS_SHARE * window
    return error.kind in {"overflow", "too_many_bytes"}


def leaves_no_room(error: ModelError) -> bool:
    """Say whether a request fits the window but leaves next to nothing for an answer: as good as an overflow."""
    return (
        error.kind == "output_budget"
        and error.observed is not None
        and error.limit is not None
        and error.limit < MIN_USEFUL_OUTPUT
    )


def observed_in_window(error: ModelError) -> int:
    """Return the tokens of a request that the provider took and whose answer the window cut off; 0 for a refusal."""
    return error.observed or 0 if error.status is None and error.limit is None else 0


class OverflowChain:
    """One step's chain of recoveries; a new step begins a new one."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._compactions = 0
        self._is_shortened: bool | None = None
        self._is_condensed = False

    async def recover(self, error: ModelError, request: ModelRequest) -> None:
        """Make the view smaller, so that the step can be repeated.

        Raises `TaskFailedError` with the sizes when that is switched off, tried often enough, or not possible.
        """
        live = self._live
        known = request.model.context_window
        if error.kind == "too_many_bytes":
            doubt_window(live, known, _allowed_share(error))
        elif names_window(live, error):
            learn_window(live, error)
        else:
            doubt_window(live, known)
        if not live.settings.compaction.enabled:
            raise TaskFailedError(
                f"the conversation does not fit the model's window ({describe_sizes(live)}) and automatic "
                "compaction is off: /compact makes it smaller, /model changes to a model with a larger window"
            ) from error
        failure = await self._compact(observed_in_window(error))
        if failure is None or self._shorten_results():
            return
        if not self._is_condensed:
            self._is_condensed = True
            if await self._condense() is None:
                return
        raise TaskFailedError(self._describe(error, request, failure)) from error

    async def _compact(self, observed: int) -> TaskFailedError | None:
        """Compact with less kept than the time before. Returns why nothing came of it, `None` when it did.

        `observed` is the tokens of a request that was not refused (0: it was).

        Raises `TaskFailedError` where an extension is against it: nothing else is tried behind its back (R-061).
        """
        if self._compactions >= MAX_COMPACTIONS:
            return TaskFailedError(f"{self._compactions} compactions were not enough")
        from tenuto.core.compacting.compact import run_compaction

        request = self._request(self._compactions, observed)
        self._compactions += 1
        try:
            await run_compaction(self._live, request)
        except CompactionRefusedError as refusal:
            raise TaskFailedError(
                f"the request does not fit the model's window, and {refusal} ({describe_sizes(self._live)})"
            ) from refusal
        except TaskFailedError as failure:
            return failure
        return None

    def _request(self, attempt: int, observed: int = 0) -> CompactionRequest:
        return CompactionRequest(
            reason="overflow",
            submission_id=self._submission_id,
            will_retry=True,
            attempt=attempt,
            observed=observed,
        )

    def _shorten_results(self) -> bool:
        """Shorten the results over the window's ceiling, once until a request is accepted, over restarts too."""
        if self._is_shortened is None:
            self._is_shortened = _were_results_shortened(self._live.session)
        if self._is_shortened:
            return False
        from tenuto.core.compacting.view_edits import shorten_oversized_results

        self._is_shortened = shorten_oversized_results(self._live, "overflow", self._submission_id)
        return self._is_shortened

    async def _condense(self) -> TaskFailedError | None:
        """Condense without a model, with next to nothing kept word for word. Returns why nothing came of it."""
        from tenuto.compaction.ways.strategies import DigestCompaction
        from tenuto.core.compacting.compact import run_compaction

        try:
            await run_compaction(self._live, self._request(MAX_COMPACTIONS), DigestCompaction())
        except TaskFailedError as failure:
            return failure
        return None

    def _describe(self, error: ModelError, request: ModelRequest, failure: TaskFailedError) -> str:
        """Return the last word of a chain: what was tried, the sizes, and what a user can do."""
        tried = "; results over the ceiling were shortened" if self._is_shortened else ""
        said = str(error).rstrip(". ")
        sizes = describe_sizes(self._live, refused=True)
        last = f"{tried} ({sizes}): {said}. /new starts afresh, /model changes the model{where_learned(self._live)}"
        if self._compactions >= MAX_COMPACTIONS:
            return (
                f"{request.model.id} still refuses the request as too long after {self._compactions} compactions{last}"
            )
        return f"the request does not fit the model's window and could not be made smaller: {failure}{last}"


def _allowed_share(error: ModelError) -> float:
    """Return which part of a request's bytes is allowed, 1.0 where nobody says: of text alone that tells its tokens."""
    return min(1.0, error.limit / error.observed) if error.observed and error.limit else 1.0


def _were_results_shortened(session: Session) -> bool:
    """Say whether results were shortened for an overflow since the last request that was accepted."""
    cancelled = cancelled_by_undo(session.path())
    for entry in reversed(session.path()):
        if isinstance(entry, AssistantMessage):
            return False
        if isinstance(entry, ViewEditEntry) and (entry.rung, entry.reason) == ("truncate", "overflow"):
            return entry.seq not in cancelled
    return False


MAX_CUTS = 2
BYTES_SHARE = 0.6
"""Of the byte limit: what a request may have once images had to go, so that the next ones do not go one by one."""
SAFE_BYTES = 8_000_000
"""What is tried after a provider refused a request for its bytes and named no limit."""
_KINDS: frozenset[ErrorKind] = frozenset({"invalid", "unknown", "too_many_bytes"})
_TROUBLE = (
    r"(?:exceed|too (?:large|big|many|small)|maximum|larger than|could not|cannot|unable|invalid|unsupported|corrupt"
    r"|fail|unreadable|malformed|number of)"
)
_IMAGES = rf"(?i:\bimages?\b[^\n]{{0,100}}{_TROUBLE}|{_TROUBLE}[^\n]{{0,60}}\bimages?\b)"
_TOO_MANY = r"(?i:too many images|number of images|many-image|images? per (?:request|prompt))"


def concerns_images(error: ModelError, request: ModelRequest) -> bool:
    """Say whether a request with images was refused for what is likely them; a bare 413 can mean nothing else."""
    if not any(images_of(message) for message in request.messages):
        return False
    if error.kind == "too_many_bytes" or (error.kind == "ambiguous" and error.status == 413):
        return True
    return error.kind in _KINDS and re.search(_IMAGES, error.text) is not None


class ImageRecovery:
    """One step's attempts to go on with fewer images, then with none."""

    def __init__(self, live: LiveSession, submission_id: str) -> None:
        self._live = live
        self._submission_id = submission_id
        self._cuts = 0

    def leave_out(self, error: ModelError, request: ModelRequest) -> bool:
        """Leave images out of the view, at the second time all of them; say whether any could be."""
        if self._cuts >= MAX_CUTS:
            return False
        from tenuto.core.compacting.view_edits import leave_out_images

        self._cuts += 1
        most, since = (0, 0) if self._cuts == MAX_CUTS else self._find_cut(error, request)
        done = leave_out_images(self._live, most, self._submission_id, since=since)
        if not done and since:
            return self.leave_out(error, request)
        return done

    def _find_cut(self, error: ModelError, request: ModelRequest) -> tuple[int, int]:
        """Return how many bytes of images may stay, and from which entry on they are looked at."""
        present = image_bytes(request.messages)
        if error.observed is not None and error.limit is not None:
            return max(0, int(BYTES_SHARE * error.limit) - (error.observed - present)), 0
        if error.kind == "invalid" and not re.search(_TOO_MANY, error.text):
            return 0, self._first_unseen(request)
        return min(present // 2, SAFE_BYTES), 0

    def _first_unseen(self, request: ModelRequest) -> int:
        """Return the seq behind the last answer: whatever came before it was accepted once."""
        answers = (message.seq for message in reversed(request.messages) if isinstance(message, AssistantMessage))
        return next(answers, 0) + 1
