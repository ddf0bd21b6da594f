"""The git branch of a directory, read from git's files, and whether git sees changes there.

For the second git itself is asked, but only where it would run nothing of the project's (`guard/git.py`, R-086).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from tenuto.config.project import read_branch
from tenuto.guard.git import GitFailedError, GitRefusedError, open_git

SHORT_HASH = 8
GIT_SECONDS = 5.0
MIN_SECONDS = 2.0
"""Between two looks."""
COST_FACTOR = 10
STATUS = ("status", "--porcelain", "--untracked-files=no", "--ignore-submodules=all")


class BranchWatch:
    """Looks at the branch, off the loop: not twice in two seconds, and seldom where looking takes long.

    `clock` is seconds. `refused` says why git is not asked, empty where it is.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._next = float("-inf")
        self._looking = False
        self.refused = ""

    @property
    def due(self) -> bool:
        """Whether a look would be worth it, should something have changed."""
        return not self._looking and self._clock() >= self._next

    async def look(self, cwd: Path) -> tuple[str, bool]:
        """Return the branch and whether something is not as committed."""
        began, self._looking, branch = self._clock(), True, ""
        try:
            branch = await asyncio.to_thread(read_branch, cwd, SHORT_HASH)
            dirty = await asyncio.to_thread(is_dirty, cwd) if branch else False
            self.refused = ""
            return branch, dirty
        except GitRefusedError as refused:
            self.refused = str(refused)
            return branch, False
        finally:
            ended = self._clock()
            self._looking = False
            self._next = ended + max(MIN_SECONDS, COST_FACTOR * (ended - began))


def is_dirty(cwd: Path) -> bool:
    """Say whether tracked files are not as committed. Raises `GitRefusedError`; where git cannot say it soon: no."""
    try:
        git = open_git(cwd)
        ran = git.run(git.root, *STATUS, seconds=GIT_SECONDS) if git is not None else None
    except GitFailedError:
        return False
    return ran is not None and ran.returncode == 0 and bool(ran.stdout)
