"""A workspace with traps: links and pipes that lead out, secrets beside it, files that look like a repository."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import msgspec

from tenuto.guard.readers.places import Place
from tenuto.tool.process.process import shell_environment
from tests.guard.repositories import git, make_repository

SECRET = "SECRET-d41d8cd98f"
SECONDS = 60
"""How long a line that was judged to only read may run before it is killed."""
LINES = Path(__file__).with_name("shell_lines.txt")


class Row(msgspec.Struct, frozen=True):
    """A line of the table: `verdict` is `run` or `ask`."""

    verdict: str
    line: str
    why: str


def rows() -> list[Row]:
    found: list[Row] = []
    for text in LINES.read_text(encoding="utf-8").split("\n"):
        if text and not text.startswith("#"):
            verdict, line, why = text.split(" ## ")
            line = re.sub("‹([0-9a-f]+)›", lambda match: chr(int(match[1], 16)), line).replace("⏎", "\n")
            found.append(Row(verdict, line, why))
    return found


def make_workspace(place: Path) -> Path:
    """Build it in `place` and return the workspace."""
    secret, work = place / "secret", place / "work"
    secret.mkdir(parents=True)
    for name in ("key", "id_rsa", "hard"):
        (secret / name).write_text(f"{SECRET}\n")
    work.mkdir()
    git(work, "init", "-q", "-b", "main")
    git(work, "commit", "-q", "--allow-empty", "-m", "first")
    for name in ("src", "tests", "sub", "a", "b"):
        (work / name).mkdir(exist_ok=True)
    for name in (
        "f",
        "g",
        "empty",
        "README.md",
        "log",
        "two words.txt",
        "src/x.py",
        "tests/x.py",
        "sub/f",
        "sub/x.py",
        "b/x",
    ):
        (work / name).write_text("" if name == "empty" else f"one x\ntwo needle\nthree {name}\n")
    for name in ("a.py", "b.py", "script"):
        (work / name).write_text("print('x')\n")
    (work / "data.json").write_text('{"a": {"b": 1}, "items": [{"n": 2, "name": "x"}]}\n')
    (work / "sums").write_text(f"0  {secret / 'key'}\n")
    (work / "nul").write_text(f"{secret / 'key'}\0")
    for name in ("k", "-k", "a/x"):
        (work / name).symlink_to(secret / "key")
    (work / "dl").symlink_to(secret)
    (work / "inside").symlink_to("f")
    (work / "-e").symlink_to("/proc/self/environ")
    (work / "0in").symlink_to("/dev/stdin")
    (work / "up").symlink_to("/proc/self/cwd/..")
    _make_odd_names(work, secret)
    os.link(secret / "hard", work / "hard")
    os.mkfifo(work / "fifo")
    make_repository(work / "d")
    git(work / "d", "commit", "-q", "--allow-empty", "-m", "second")
    git(work, "add", "f", "g", "src", "tests", "a.py")
    git(work, "commit", "-q", "-m", "second")
    git(work, "init", "-q", "--bare", "bare")
    (work / "bare" / "sub").mkdir()
    git(work / "bare", "config", "core.fsmonitor", f"touch {place / 'canary'}")
    return work


def _make_odd_names(work: Path, secret: Path) -> None:
    """Files whose names become others when they are taken apart, look like options, or stand for keys."""
    for folder in ("blank/a ", "newline/a\n", 'quote/"', "mixed/a.py\n"):
        place = work / "odd" / f"{folder}{secret}"
        place.mkdir(parents=True)
        (place / "key").write_text("needle x\n")
    for name in ("odd/dash/-fk", "odd/equals/FS=x", "odd/safe/a.py", "odd/safe/two words.txt", "odd/space.d/a b.py"):
        (work / name).parent.mkdir(parents=True, exist_ok=True)
        (work / name).write_text("needle\n")
    (work / "odd/links").mkdir()
    (work / "odd/links/out.py").symlink_to(secret / "key")
    (work / "odd/links/real.md").write_text("needle\n")
    os.mkfifo(work / "odd/links/pipe.txt")
    os.link(secret / "hard", work / "odd/links/hard.rs")
    (work / "odd/keys").mkdir()
    (work / "odd/keys/.env").write_text(f"{SECRET}\n")
    (work / "odd/keys/a.go").write_text("needle\n")


def surroundings(work: Path) -> Place:
    """Return where lines run: with a key in the environment."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "BASH_ENV")) and name != "ENV"
    }
    environ |= {"OPENAI_API_KEY": SECRET, "HOME": str(work.parent / "home"), "GIT_CONFIG_NOSYSTEM": "1"}
    root = os.path.realpath(work)
    return Place(root=root, cwd=root, environ=shell_environment(environ))


def run_line(line: str, place: Place) -> bytes:
    """Run a line as the tool does and return all that it says; the deadline is an error."""
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=place.cwd,
        env=dict(place.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )
    return done.stdout


def snapshot(place: Path) -> set[str]:
    """Return the names of all files, but for what git writes down for itself."""
    return {str(path) for path in place.rglob("*") if ".git" not in path.parts}
