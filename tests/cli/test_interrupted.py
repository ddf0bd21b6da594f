"""SIGINT at any moment of a start or of a subcommand ends the program with 130 and leaves nothing half made.

The moment is a number: the hook below counts the calls of Python functions from `main` on, and raises the signal at
the one that is asked for. Some are asked for by name, because Python loses or changes there what a handler raises:
`cb` is the callback by which an import gives its lock back, `__set_name__` runs in class bodies.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.session.importers import sources
from tests.session.importers.sources import write_lines
from tests.tui.first_paint.pseudo import SOURCES, TENUTO, Pseudo

HOOK = """
import os, signal, sys
at, name, until, report = [os.environ[one] for one in ("HOOK_AT", "HOOK_NAME", "HOOK_UNTIL", "HOOK_REPORT")]
count, has_begun = 0, False
def note(text):
    sys.settrace(None)
    with open(report, "a") as file:
        file.write(text)
def look(frame, event, argument):
    global count, has_begun
    function = frame.f_code.co_name
    if not has_begun:
        has_begun = function == "_run" and frame.f_code.co_filename.endswith("cli/main.py")
    elif function == until:
        note(f"{count} calls")
    elif name in ("", function):
        count += 1
        if str(count) == at:
            note("raised")
            signal.raise_signal(signal.SIGINT)
sys.settrace(look)
"""
"""Two names of functions: the one whose calls are counted (empty: all), and the one that ends the counting."""
FRONT_END = "ended_by_signals"
"""From here on a front-end hears of signals itself."""
END = "_leave"
PLACES = 5
OFFLINE = ("--model", "offline/tenuto")
LATE = ("cb", "__set_name__")


class Hooked:
    """Runs of the program under the hook, in one home."""

    def __init__(self, folder: Path, words: tuple[str | Path, ...], until: str) -> None:
        self.folder, self.words, self.until = folder, words, until
        self.home = folder / "home"
        self.report = folder / "report"
        (folder / "sitecustomize.py").write_text(HOOK)

    def environ(self, at: int, name: str) -> dict[str, str]:
        self.report.write_text("")
        return {
            "HOOK_AT": str(at),
            "HOOK_NAME": name,
            "HOOK_UNTIL": self.until,
            "HOOK_REPORT": str(self.report),
            "PYTHONPATH": f"{self.folder}:{SOURCES}",
            "PYTHONHASHSEED": "0",
        }

    def run(self, at: int = 0, name: str = "") -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tenuto", *map(str, self.words)],
            cwd=self.folder,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.folder),
                "TENUTO_HOME": str(self.home),
                **self.environ(at, name),
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def count(self, name: str = "") -> int:
        """Return how many calls there are in a run that nothing interrupts."""
        done = self.run(name=name)
        assert done.returncode == 0, done.stderr
        return int(self.report.read_text().split()[0])

    def left(self) -> list[Path]:
        """Return what is in the home of the staging of imports, and sessions without a log."""
        staged = list((self.home / "importing").glob("*")) if (self.home / "importing").is_dir() else []
        return [*staged, *(one for one in self.home.glob("sessions/*/*") if not (one / "events.jsonl").is_file())]


def moments(hooked: Hooked, *names: str) -> list[tuple[int, str]]:
    """Return moments all over a run, and the first, a middle and the last call of those that are named.

    Of these are always those in which an exception gets lost.
    """
    total = hooked.count()
    found = [(1 + total * place // PLACES, "") for place in range(PLACES)]
    for name in (*LATE, *names):
        calls = hooked.count(name)
        found += [(at, name) for at in sorted({1, calls // 2, calls}) if 0 < at <= calls]
    return found


@pytest.mark.parametrize(
    "words",
    [pytest.param((*OFFLINE, "-p", "hello"), marks=pytest.mark.matrix), (*OFFLINE, "--json", "-p", "hello")],
    ids=["print", "json"],
)
def test_an_interrupt_at_any_moment_of_the_start_ends_it_at_once(tmp_path: Path, words: tuple[str, ...]) -> None:
    hooked = Hooked(tmp_path, words, FRONT_END)
    asked = moments(hooked)
    before = set(hooked.home.glob("sessions/*/*"))
    for at, name in asked:
        done = hooked.run(at, name)
        assert hooked.report.read_text() == "raised", (at, name)
        assert (done.returncode, done.stdout, done.stderr) == (130, "", ""), (at, name)
    assert set(hooked.home.glob("sessions/*/*")) == before


@pytest.mark.parametrize("option", ["", "--inline"], ids=["full", "inline"])
def test_an_interrupt_while_a_screen_is_imported_gives_the_terminal_back(tmp_path: Path, option: str) -> None:
    words = (option,) if option else ()
    hooked = Hooked(tmp_path, words, FRONT_END)
    with Pseudo(tmp_path, (*TENUTO, *words), **hooked.environ(0, "")) as program:
        program.read_until(b"? keys")
        while not (counted := hooked.report.read_text()):
            program.read(0.05)
    total = int(counted.split()[0])
    for place in range(1, 5):
        with Pseudo(tmp_path, (*TENUTO, *words), **hooked.environ(total * place // 5, "")) as program:
            assert program.wait() == 130
            assert program.is_restored()
            assert hooked.report.read_text() == "raised"
            assert b"Traceback" not in program.output


def test_an_interrupt_at_any_moment_of_an_import_leaves_a_whole_session_or_none(tmp_path: Path) -> None:
    path = write_lines(tmp_path / "session.jsonl", sources.claude_session())
    hooked = Hooked(tmp_path, ("import", "--force", path, "--cwd", tmp_path), END)
    for at, name in moments(hooked, "create", "_fill", "close"):
        done = hooked.run(at, name)
        assert hooked.report.read_text() == "raised", (at, name)
        assert done.returncode == 130, (at, name, done.stderr)
        assert hooked.left() == [], (at, name)


@pytest.mark.parametrize(
    "words", [("sessions", "list"), ("eval", "compaction", "--seeds", "1", "--windows", "8192", "--rounds", "1")]
)
def test_an_interrupt_of_a_subcommand_is_130_whatever_becomes_of_the_exception(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    hooked = Hooked(tmp_path, words, END)
    total = 60_000 if words[0] == "eval" else hooked.count()
    for at, name in [(total // 20, ""), (total // 2, ""), (total * 9 // 10, ""), (1, "cb"), (1, "__set_name__")]:
        done = hooked.run(at, name)
        raised = hooked.report.read_text() == "raised"
        assert raised or name, (at, "there are as many calls of all functions")
        assert not raised or done.returncode == 130, (at, name, done.stderr)


def test_an_interrupt_that_whoever_started_the_program_has_ignored_is_ignored(tmp_path: Path) -> None:
    code = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    hooked = Hooked(tmp_path, ("sessions", "list"), END)
    environ = {**os.environ, "TENUTO_HOME": str(hooked.home), **hooked.environ(2_000, "")}
    command = [sys.executable, "-c", code, sys.executable, "-m", "tenuto", *hooked.words]
    done = subprocess.run(command, env=environ, cwd=tmp_path, capture_output=True, check=False, timeout=120)
    assert (done.returncode, hooked.report.read_text()) == (0, "raised")
