"""A git worktree for one task: made outside of the repository, looked at for what was changed, and taken away."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

from tenuto.guard.git import Git, GitFailedError, GitRefusedError, open_git
from tenuto.private_files import locked
from tenuto.text.bounding import shorten

GIT_SECONDS = 900.0
"""How long git may take for a checkout, or for a patch."""
_DIFF = ("diff", "--binary", "--no-color", "--no-ext-diff", "--no-textconv", "--src-prefix=a/", "--dst-prefix=b/")


class WorktreeError(Exception):
    """Git cannot make the worktree, or say what was changed in it; the message says why."""


class Worktree:
    """A worktree without a branch. `cwd` is the place in it that stands for the directory that was named."""

    def __init__(self, repository: Path, folder: Path, ref: str, environ: Mapping[str, str]) -> None:
        """Check out `ref` of the repository around a directory, below `folder`. Raises `WorktreeError`, `OSError`."""
        self._environ = environ
        self._git = _open(repository, environ)
        self.root = folder / self._git.root.name
        self.cwd = self.root / repository.relative_to(self._git.root)
        self.base = self._find_commit(ref)
        with locked(self._git.root):
            _run(self._git, "worktree", "add", "--detach", str(self.root), self.base)
        if not self.cwd.is_dir():
            raise WorktreeError(f"there is no directory {repository.relative_to(self._git.root)} at {ref}")

    def _find_commit(self, ref: str) -> str:
        """Return the commit that a name stands for. Raises `WorktreeError`."""
        words = ("rev-parse", "--quiet", "--verify", "--end-of-options")
        try:
            return _run(self._git, *words, f"{ref}^{{commit}}").decode().strip()
        except WorktreeError:
            if self._git.run(self._git.root, *words, "HEAD", seconds=GIT_SECONDS).returncode != 0:
                raise WorktreeError(
                    f"{self._git.root} has no commit yet; make one: a worktree begins with what is committed"
                ) from None
            raise WorktreeError(f"{self._git.root} has no commit or branch “{ref}”") from None

    def take_patch(self) -> bytes:
        """Return all that differs from what was checked out, new files too, those that git ignores not.

        Raises `WorktreeError`.
        """
        git = self._look()
        _run(git, "add", "--intent-to-add", "--", ".")
        return _run(git, *_DIFF, self.base, "--")

    def changed_files(self) -> list[str]:
        """Return the paths of what the patch changes, seen from the repository's root. Raises `WorktreeError`."""
        listed = _run(self._look(), "diff", "--name-only", "--no-renames", "-z", self.base, "--")
        return [os.fsdecode(name).encode("utf-8", "replace").decode() for name in listed.split(b"\0") if name]

    def new_commit(self) -> str:
        """Return the commit that the worktree is on, empty where it began with that. Raises `WorktreeError`."""
        head = _run(self._look(), "rev-parse", "HEAD").decode().strip()
        return head if head != self.base else ""

    def remove(self) -> None:
        """Take the worktree away, with all that is in it."""
        with locked(self._git.root):
            remove_folder(self.root)
            _run(self._git, "worktree", "remove", "--force", "--force", str(self.root))

    def _look(self) -> Git:
        """Look at the configuration anew: whoever worked here may have changed it."""
        return _open(self.root, self._environ)


def remove_leftovers(repository: Path, folder: Path, environ: Mapping[str, str]) -> None:
    """Take away what a run that was killed has left of a task: its folder, and what git knows of its worktree.

    The second is there without the first where the run was killed while it took the worktree away itself.
    """
    remove_folder(folder)
    git = _open(repository, environ)
    tree = str(folder / git.root.name)
    with locked(git.root):
        git.run(git.root, "worktree", "remove", "--force", "--force", tree, seconds=GIT_SECONDS)


def remove_folder(folder: Path) -> None:
    """Remove a folder, with what is write-protected in it, as far as that goes."""

    def unlock(remove: Callable[[str], object], path: str, _error: object) -> None:
        try:
            Path(path).parent.chmod(stat.S_IRWXU)
            remove(path)
        except OSError:
            return

    shutil.rmtree(folder, onerror=unlock)


def _open(place: Path, environ: Mapping[str, str]) -> Git:
    try:
        git = open_git(place, environ)
    except (GitRefusedError, GitFailedError) as error:
        raise WorktreeError(f"git is not run in {place}: {error}") from error
    if git is None:
        raise WorktreeError(f"{place} is in no git repository; “cwd” works in a directory as it is")
    return git


def _run(git: Git, *words: str) -> bytes:
    try:
        ran = git.run(git.root, *words, seconds=GIT_SECONDS)
    except GitFailedError as error:
        raise WorktreeError(str(error)) from error
    if ran.returncode != 0:
        said = ran.stderr.decode("utf-8", "replace").strip().split("\n")[-1]
        raise WorktreeError(f"git {words[0]}: {shorten(said, 300)}")
    return ran.stdout
