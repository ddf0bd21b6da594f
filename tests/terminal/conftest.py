"""Terminals for these tests: opened by the test, closed whatever happens."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.core.harness import IN_ORDER, copy_sample
from tests.server import Request, ScriptedServer, ServerThread
from tests.server.reply import Script
from tests.terminal.screen import Screen, has_tmux

MODEL = "openai-chat/test"
NO_TMUX = "tmux is not installed: the tests in a real terminal are skipped"


def said(request: Request) -> str:
    """What the user said last, without the notes that go along with it."""
    return request.last_user.partition("\n\n<harness-note>")[0].partition("\n<harness-note>")[0].strip()


class Workplace:
    """A copy of the sample repository, a home of its own, and what opens terminals on them."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        self.work = copy_sample(folder / "work")
        self._stack = stack
        self.server: ScriptedServer | None = None

    def serve(self, script: Script, **options: object) -> ScriptedServer:
        """Start the scripted server; terminals opened afterwards use it."""
        self.server = self._stack.enter_context(ServerThread(script, **options))
        return self.server

    def open(self, columns: int = 100, rows: int = 30, **environ: str) -> Screen:
        """Open a terminal with a shell in the repository."""
        known = {**self.server.environ(), **IN_ORDER} if self.server else {}
        screen = Screen(self.folder, self.work, {**known, **environ}, columns, rows)
        self._stack.callback(screen.close)
        return screen

    def start(self, *arguments: str, columns: int = 100, rows: int = 30) -> Screen:
        """Open a terminal and start the program in it, on the scripted server if there is one."""
        screen = self.open(columns, rows)
        model = MODEL if self.server else "offline/tenuto"
        screen.start("--model", model, *arguments)
        screen.wait_for(model)
        return screen

    def settings(self, text: str) -> None:
        """Write the user's settings."""
        (self.home / "settings.toml").write_text(text)

    @property
    def log(self) -> bytes:
        """The log of the one session there is."""
        (log,) = self.home.glob("sessions/*/*/events.jsonl")
        return log.read_bytes()


@pytest.fixture(scope="session")
def tmux() -> None:
    """Skip, and say so, where there is no tmux."""
    if not has_tmux():
        warnings.warn(NO_TMUX, stacklevel=1)
        pytest.skip(NO_TMUX)


@pytest.fixture
def place(tmp_path: Path, tmux: None) -> Iterator[Workplace]:
    """A workplace for one test."""
    with ExitStack() as stack:
        yield Workplace(tmp_path, stack)
