"""Fetching a repository that somebody named, with git: one commit, within limits, and nothing of it runs."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tenuto.guard.git import (
    FIXED,
    GitFailedError,
    GitRefusedError,
    clean_environment,
    find_program,
    read_entries,
    without_filters,
)
from tenuto.last_acts import add_last_act
from tenuto.text.bounding import shorten

_FETCHED_OVER = "https:ssh:file"
"""Ways to a repository whose content cannot be exchanged on its way, and that run no program of its choice."""
_ADDRESS = re.compile(r"(?:https|ssh)://(?!-)[^\s\x00-\x1f/]+/[^\s\x00-\x1f]+|file:///[^\x00-\x1f]+")
_REF = re.compile(r"(?!-)[\w./@+-]{1,200}", re.ASCII)
_LOOK_EVERY = 0.2
"""Seconds between two looks at how large a checkout has become."""


def check_address(address: str, ref: str = "") -> str:
    """Return why nothing is fetched from an address, empty where it can be."""
    if not _ADDRESS.fullmatch(address):
        return "only https://, ssh:// and file:/// addresses are fetched"
    if re.match(r"\w+://[^/]*:[^/@]*@", address):
        return "the address has a password in it; let git's credential helper have it"
    if ref and (not _REF.fullmatch(ref) or ".." in ref):
        return f"{ref[:80]!r} is no branch, tag or commit"
    return ""


def fetch_repository(
    address: str, ref: str, target: Path, environ: Mapping[str, str], *, seconds: float, limit: int
) -> str:
    """Check out one commit of another repository into a new folder, and return the commit's name.

    Nothing of the repository runs: no hooks, no filters, no submodules, no other protocols. `ref` is a branch, a tag or
    a commit, empty for the one that the repository offers. Takes `seconds` and `limit` bytes at most. Raises
    `GitRefusedError` and `GitFailedError`.
    """
    if problem := check_address(address, ref):
        raise GitRefusedError(problem)
    program = find_program(environ, target)
    clean = {**clean_environment(environ), "GIT_ALLOW_PROTOCOL": _FETCHED_OVER, "GIT_LFS_SKIP_SMUDGE": "1"}
    clean.pop("GIT_NO_LAZY_FETCH")
    watch = _Watch(target, clean, seconds, limit)
    target.mkdir(mode=0o700)
    options = [program, *FIXED, "-c", "core.autocrlf=false", "-c", "core.symlinks=true"]
    listed = watch.run([*options, "config", "--list", "-z", "--show-scope"])
    options += without_filters(read_entries(listed), ())
    watch.run([*options, "init", "--quiet", "--template=", "."])
    own = [*options, "--git-dir=.git", "--work-tree=."]
    wanted = ("--depth=1", "--no-tags", "--no-recurse-submodules", "--no-write-commit-graph")
    watch.run([*own, "fetch", "--quiet", *wanted, "--", address, ref or "HEAD"])
    watch.run([*own, "checkout", "--quiet", "--detach", "FETCH_HEAD"])
    return watch.run([*own, "rev-parse", "HEAD"]).decode("ascii", "replace").strip()


class _Watch:
    """Runs git's commands in a folder, with one time limit and one limit of bytes for all of them."""

    def __init__(self, folder: Path, environ: Mapping[str, str], seconds: float, limit: int) -> None:
        self._folder = folder
        self._environ = environ
        self._seconds = seconds
        self._limit = limit
        self._end = time.monotonic() + seconds

    def run(self, words: Sequence[str]) -> bytes:
        """Return what a command writes. Raises `GitFailedError`; whatever it started is ended."""
        with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    words,
                    cwd=self._folder,
                    env=self._environ,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=errors,
                    start_new_session=True,  # no terminal to ask on, and one group to end
                )
            except (OSError, ValueError) as error:
                raise GitFailedError(f"git could not be run: {error}") from error
            forget = add_last_act(lambda: _end_group(process))
            try:
                self._wait(process)
            finally:
                _end_group(process)
                process.wait()
                forget()
            if process.returncode != 0:
                raise GitFailedError(_last_words(errors))
            output.seek(0)
            return output.read()

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        while True:
            left = self._end - time.monotonic()
            if left <= 0:
                raise GitFailedError(f"git took more than {self._seconds:g} s")
            try:
                process.wait(min(_LOOK_EVERY, left))
            except subprocess.TimeoutExpired:
                self._look_at_size()
            else:
                self._look_at_size()
                return

    def _look_at_size(self) -> None:
        size = 0
        for place, _, names in os.walk(self._folder):
            for name in names:
                with contextlib.suppress(OSError):
                    size += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 - of every file
        if size > self._limit:
            raise GitFailedError(f"the repository has more than {self._limit:,} bytes")


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process that was started in a session of its own, with all that it started."""
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)


def _last_words(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors.read(20_000).decode("utf-8", "replace").splitlines() if line.strip()]
    named = [line for line in lines if line.startswith(("fatal:", "error:"))]
    said = (named or lines or ["git failed and said nothing"])[0]
    return shorten(said.removeprefix("fatal: ").removeprefix("error: "), 300)
