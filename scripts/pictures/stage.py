"""The real program in a real terminal (tmux), the model played by the scripted server; and what it shows as SVG."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from scripts.pictures.cells import from_lines, ground_of
from scripts.pictures.story import model, write_logs
from scripts.pictures.svg import picture
from tests.core.harness import copy_sample
from tests.server import ServerThread
from tests.terminal.screen import PATIENCE, POLL, Screen

from tenuto.tui.render.line import Line, Span, ansi_lines
from tenuto.tui.render.theme import find_theme

MODEL = "scripted/demo"
SETTINGS = '[providers.scripted]\nbase_url = "{}"\n\n[models."scripted/demo"]\ncontext_window = 200000\n'
QUIET_SECONDS, TRIES = 0.3, 5


class Stage:
    """One terminal with the program in it."""

    def __init__(self, screen: Screen, columns: int, theme: str) -> None:
        self.screen = screen
        self.columns = columns
        self.theme = find_theme(theme)

    def say(self, text: str, *shown: str) -> None:
        """Send a prompt and wait until everything is done and these words show."""
        self.send(text)
        self.screen.wait_settled(*shown)

    def send(self, text: str) -> None:
        """Type a prompt, wherever it stands on the screen, and press Enter."""
        self.screen.type(text)
        self.screen.wait_for(f"❯ {text}")
        self.screen.keys("Enter")

    def _capture(self) -> str:
        return self.screen.tmux("capture-pane", "-e", "-N", "-p", "-t", "main").removesuffix("\n")

    def picture(self, title: str) -> str:
        """Return what shows now."""
        text = self._capture()
        for _ in range(TRIES):  # a frame that is being written is none; what moves by itself shows as it is
            time.sleep(QUIET_SECONDS)
            before, text = text, self._capture()
            if before == text:
                break
        text = text.replace(str(self.screen.folder), "~")  # it is the home directory there
        lines = [_row(spans) for spans in ansi_lines(text, "text")]
        return picture(
            from_lines(lines, self.theme, self.columns), self.columns, ground_of(self.theme).background, title
        )


@contextmanager
def on_stage(
    folder: Path, *arguments: str, columns: int = 100, rows: int = 46, theme: str = "dark", slow_summary: float = 0.0
) -> Iterator[Stage]:
    """Start the program on a fresh copy of the sample repository, in `folder`."""
    work = copy_sample(folder / "shop")
    write_logs(work / "orders")
    subprocess.run(["git", "init", "-q", "-b", "main", work], check=True)
    (folder / "home").mkdir()
    with ServerThread(model(slow_summary), models=("demo",)) as server:
        (folder / "home" / "settings.toml").write_text(SETTINGS.format(server.base_url + "/v1"))
        environ = {
            "COLORTERM": "truecolor",
            "TENUTO_UI__THEME": theme,
            "TENUTO_UI__REDUCE_MOTION": "true",
            "PYTEST_ADDOPTS": "-p no:cacheprovider -p no:asyncio -p no:xdist",
            **server.environ(),
        }
        screen = Screen(folder, work, environ, columns, rows)
        try:
            screen.start("--model", MODEL, *arguments)
            screen.wait_for(MODEL)
            yield Stage(screen, columns, theme)
        finally:
            _end(screen)


def _row(spans: Sequence[Span]) -> Line:
    """Return a row. tmux keeps cells that were erased in a colour, and leaves them out here."""
    last = spans[-1][1] if spans else ""
    return Line(tuple(spans), fill=last if "bg=" in last else "")


def _end(screen: Screen) -> None:
    """Close the terminal, and wait until the program is done with its files."""
    program = Path("/proc") / str(screen.program_pid())
    screen.close()
    deadline = time.monotonic() + PATIENCE
    while program.exists() and time.monotonic() < deadline:
        time.sleep(POLL)
