"""How a run begins. Apart from the runtime, so that a screen is up before the core is imported."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from tenuto.protocol.entry import Mode

if TYPE_CHECKING:
    from tenuto.config.mcp.servers import NamedServer
    from tenuto.extension.finding import Source
    from tenuto.guard.rules import Rule
    from tenuto.protocol.compaction import CompactionStrategy


class Limits(Struct, frozen=True):
    """What a run without a user may take at most: calls of the model, and US dollars. `None`: no limit.

    `turns_name` and `cost_name` are what set them, for messages.
    """

    turns: int | None = None
    cost: float | None = None
    turns_name: str = "--max-turns"
    cost_name: str = "--max-cost"


class Start(Struct, frozen=True):
    """How a run begins: what the command line, or the Python API, asks for."""

    cwd: Path
    home: Path
    model: str = ""
    mode: Mode | None = None
    resume: str = ""
    resume_latest: bool = False
    fork: bool = False
    """Go on in a copy of the session that is resumed; it may be open elsewhere."""
    temporary: bool = False
    names_directory: bool = False
    """The user named `cwd`: a session whose own directory is gone goes on there."""
    interactive: bool = True
    ends_by_itself: bool = False
    """Whether the run ends when nothing is left to do; then it waits for background jobs first."""
    extra_prompt: str = ""
    limits: Limits = Limits()
    rules: tuple[Rule, ...] = ()
    """Rules of the command line, or of the Python API."""
    directories: tuple[str, ...] = ()
    """More directories that count as workspace: real paths."""
    servers: tuple[NamedServer, ...] = ()
    """MCP servers that an editor brings for the session; they are the user's own."""
    answer_note: str = ""
    """What the model is told of the form of its last answer."""
    sandboxed: bool = True
    """Whether commands of the model run in the sandbox, where the settings and the machine have one."""
    compaction: CompactionStrategy | None = None
    answered: bool = False
    """Whether a program answers questions where there is no screen."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Settings that win over all others, in nested sections."""
    extensions: tuple[Source, ...] = ()
    """Extensions that the program brings itself: loaded whatever the settings say."""
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    clock: Callable[[], float] = time.time
