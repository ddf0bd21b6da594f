"""What an editor that hosts a session does itself: files as its user has them open, and its terminals.

The guard has judged a call before anything of this is asked for; an editor changes where it is done, and never whether.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import msgspec


class EditorError(Exception):
    """The editor did not do what it was asked for; the message says why."""


class HostedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command for a terminal of the editor: its `words`, what is added to the environment, seconds that it may take.

    `max_bytes` is how much of its output is wanted.
    """

    call_id: str
    words: tuple[str, ...]
    cwd: Path
    environ: Mapping[str, str]
    timeout: float | None
    max_bytes: int


class HostedEnd(msgspec.Struct, frozen=True, kw_only=True):
    """What became of it. `exit_code` is 128 + n for one that signal n ended, `None` when it was stopped."""

    output: str
    exit_code: int | None = None
    timed_out: bool = False
    truncated: bool = False


class Editor(Protocol):
    """The editor. Reading and writing are called in threads, and answer with nothing where it does not do them."""

    @property
    def has_terminals(self) -> bool:
        """Whether it runs commands."""
        ...

    def read(self, path: Path) -> str | None:
        """Return the text of a file as it is in the editor, saved or not; `None`: the disk says it."""
        ...

    def write(self, path: Path, text: str) -> bool:
        """Have the editor write a file; `False`: it did not, and nothing has changed."""
        ...

    async def run(self, command: HostedCommand) -> HostedEnd:
        """Run a command in a terminal. Raises `EditorError`; a cancellation ends the command."""
        ...
