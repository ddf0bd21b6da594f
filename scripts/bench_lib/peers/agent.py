"""An agent as `programs/NAME.toml` describes it, and one that was found on this machine with a home of its own.

To add a peer, add a file. `${base_url}`, `${openai_url}`, `${home}`, `${project}`, `${key}` and `${key_end}` (its
last twenty characters) are filled in everywhere in it.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"
KEY = "test-key-that-opens-nothing"
KEPT = ("LANG", "LC_ALL", "USER", "TMPDIR", "SHELL")
CLOSED = "http://127.0.0.1:9"
"""Nothing listens there (the discard port): what asks a proxy for the outer world gets no answer from it."""


@dataclass(frozen=True, slots=True)
class Description:
    """What a file of `programs/` says. Command lines are words without the program itself; no word: not possible.

    `find` are names of the program, of which the first that is found is taken. `interactive` opens its screen,
    `resume` comes before that and opens the last session of the directory, `one_shot` asks `hello` without a screen.
    `prompt` matches a row of the screen when its input box is there; `answers` are keys for what it asks at its first
    start, by a pattern of a row. `session` is where a session's log is below the home, if that is JSON lines, and
    `turn` matches the first line of a turn in it. `unsupported` says why measures (by name, or all that need
    `one_shot`, `interactive` or `resume`) are not taken. `ours`: it is Tenuto.
    """

    name: str
    package: str
    find: Sequence[str]
    protocol: str
    prompt: str
    version: Sequence[str] = ("--version",)
    one_shot: Sequence[str] = ()
    interactive: Sequence[str] = ()
    resume: Sequence[str] = ()
    session: str = ""
    turn: str = ""
    answers: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    unsupported: Mapping[str, str] = field(default_factory=dict)
    notes: Sequence[str] = ()
    ours: bool = False


def describe(file: Path) -> Description:
    """Read a description. Raises `ValueError` that names the file for one that cannot be read."""
    try:
        found: dict[str, Any] = tomllib.loads(file.read_text())
        re.compile(found.get("prompt", ""))
        return Description(**found)
    except (TypeError, ValueError, re.error) as error:
        raise ValueError(f"{file.name}: {error}") from None


def descriptions(folder: Path = PROGRAMS) -> list[Description]:
    """Return all descriptions, ours first, the others by name."""
    return sorted((describe(file) for file in folder.glob("*.toml")), key=lambda one: (not one.ours, one.name.lower()))


def find_program(names: Sequence[str], folders: Sequence[Path]) -> Path | None:
    """Return the first program of these names, in the folders before PATH."""
    places = os.pathsep.join([*map(str, folders), os.environ.get("PATH", os.defpath)])
    return next((Path(found) for name in names if (found := shutil.which(name, path=places))), None)


@dataclass(slots=True)
class Agent:
    """An agent that was found: its program, a home and a project of its own, the server that it is to ask."""

    description: Description
    program: Path
    home: Path
    project: Path
    base_url: str
    folders: Sequence[Path] = ()
    version: str = ""

    @property
    def name(self) -> str:
        """Its name in the tables."""
        return self.description.name

    def prepare(self) -> None:
        """Write the files of its home and ask for its version."""
        self.home.mkdir(parents=True, exist_ok=True)
        for name, text in self.description.files.items():
            file = self.home / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(self.fill(text))
        words = [str(self.program), *self.description.version]
        done = subprocess.run(
            words, env=self.environ(), cwd=self.project, capture_output=True, text=True, timeout=60, check=False
        )
        self.version = version_in(done.stdout + done.stderr)

    def sibling(self, home: Path) -> Agent:
        """Return the same agent with another home, prepared."""
        other = replace(self, home=home)
        other.prepare()
        return other

    def fill(self, text: str) -> str:
        """Return a text of the description with the places filled in."""
        return Template(text).safe_substitute(
            base_url=self.base_url,
            openai_url=f"{self.base_url}/v1",
            home=str(self.home),
            project=str(self.project),
            key=KEY,
            key_end=KEY[-20:],
        )

    def environ(self) -> dict[str, str]:
        """Return a small, known environment, in which nothing of the user's takes part and nothing leaves here."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        places = [*map(str, self.folders), os.environ.get("PATH", os.defpath)]
        closed = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), CLOSED)
        return (
            kept
            | closed
            | {
                "HOME": str(self.home),
                "PATH": os.pathsep.join(places),
                "LANG": kept.get("LANG", "C.UTF-8"),
                "TERM": "xterm-256color",
                "COLORTERM": "truecolor",
                "NO_PROXY": "127.0.0.1,localhost",
                "no_proxy": "127.0.0.1,localhost",
            }
            | {name: self.fill(value) for name, value in self.description.environment.items()}
        )

    def words(self, arguments: Sequence[str]) -> list[str]:
        """Return a command line."""
        return [str(self.program), *map(self.fill, arguments)]

    def why_not(self, measure: str, needs: str) -> str:
        """Return why a measure is not taken; empty when it is."""
        reasons = self.description.unsupported
        words = {"one_shot": self.description.one_shot, "interactive": ("",), "resume": self.description.resume}[needs]
        return reasons.get(measure) or reasons.get(needs) or ("" if words else "it has no way to do this")

    def is_prompt(self, rows: Sequence[str]) -> bool:
        """Say whether a screen shows its input box."""
        return is_on(rows, self.description.prompt)


def is_on(rows: Sequence[str], pattern: str) -> bool:
    """Say whether a row of a screen matches."""
    return any(re.search(pattern, row) for row in rows)


def version_in(text: str) -> str:
    """Return the first version number in what a program prints; empty when there is none."""
    found = re.search(r"\d+\.\d+[\w.+-]*", text)
    return found[0] if found else ""
