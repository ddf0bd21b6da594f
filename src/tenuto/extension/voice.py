"""How much of what an extension says on its own is shown: a program in a loop must not fill the screen."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

MOST_LINES_SAID, FLOOD_SECONDS = 50, 10.0
"""More lines than so many in so many seconds are a flood."""
STATUS_SECONDS = 0.05
"""Until a status shows; of several meanwhile the newest does."""


class Voice:
    """What one extension says, bounded: a flood of lines ends, of a flood of statuses the newest shows.

    `post` calls a function on the host's loop. Called from any thread.
    """

    def __init__(self, post: Callable[..., None], show: Callable[[str], None], complain: Callable[[], None]) -> None:
        self._post = post
        self._show = show
        self._complain = complain
        self._said: deque[float] = deque(maxlen=MOST_LINES_SAID)
        self._status = ""
        self._is_due = False

    def may_say(self) -> bool:
        """Say whether one more line is shown now."""
        now = time.monotonic()
        if len(self._said) == MOST_LINES_SAID and now - self._said[0] < FLOOD_SECONDS:
            self._post(self._complain)
            return False
        self._said.append(now)
        return True

    def show(self, text: str) -> None:
        """Show a status, soon."""
        self._status = text
        if not self._is_due:
            self._is_due = True
            self._post(self._show_soon)

    def _show_soon(self) -> None:
        asyncio.get_running_loop().call_later(STATUS_SECONDS, self._show_now)

    def _show_now(self) -> None:
        self._is_due = False
        self._show(self._status)
