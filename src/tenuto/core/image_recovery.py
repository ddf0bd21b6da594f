"""Requests that are refused because of their images: too many bytes, too many of them, or one that is no good.

The oldest leave the view when there are too many (R-053, R-054); one that a provider cannot read is among those that it
had not accepted before. It costs no model call, is an edit of the view like every other, and never stops a session.
"""

from __future__ import annotations

import re

from tenuto.compaction.images import image_bytes, images_of
from tenuto.core.live import LiveSession
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ErrorKind, ModelError, ModelRequest

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
        from tenuto.core.view_edits import leave_out_images

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
