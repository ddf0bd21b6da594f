"""The git branch of a directory, read from git's files, and whether git sees changes there.

For the second git itself is asked, but only where it would run nothing of the project's (R-086).
"""

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from tenuto.config.project import read_branch
from tenuto.guard.repository import configured_programs

SHORT_HASH = 8
GIT_SECONDS = 5.0
MIN_SECONDS = 2.0
"""Between two looks."""
COST_FACTOR = 10
STATUS = (
    *("git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all"),
)


class BranchWatch:
    """Looks at the branch, off the loop: not twice in two seconds, and seldom where looking takes long.

    `clock` is seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = float("-inf")
        self._looking = False

    @property
    def due(self) -> bool:
        """Whether a look would be worth it, should something have changed."""
        return not self._looking and self._clock() >= self._next

    async def look(self, cwd: Path) -> tuple[str, bool]:
        """Return the branch and whether something is not as committed."""
        began, self._looking = self._clock(), True
        try:
            branch = await asyncio.to_thread(read_branch, cwd, SHORT_HASH)
            return branch, await asyncio.to_thread(is_dirty, cwd) if branch else False
        finally:
            ended = self._clock()
            self._looking = False
            self._next = ended + max(MIN_SECONDS, COST_FACTOR * (ended - began))


def is_dirty(cwd: Path) -> bool:
    """Say whether tracked files are not as committed. Where git cannot be asked safely and soon: no."""
    root = next((folder for folder in (cwd, *cwd.parents) if (folder / ".git").exists()), None)
    if root is None or configured_programs(root / ".git"):
        return False
    try:
        ran = subprocess.run(
            STATUS,
            cwd=root,
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=GIT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return ran.returncode == 0 and bool(ran.stdout)
