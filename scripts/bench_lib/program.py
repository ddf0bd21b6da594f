"""The programs that are measured, and the surroundings that all of them get."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KEPT = ("PATH", "HOME", "LANG", "LC_ALL", "USER", "TMPDIR", "SHELL")


@dataclass(frozen=True, slots=True)
class Surroundings:
    """A temporary directory with a home and a project, and the address of the model server."""

    directory: Path
    base_url: str

    @property
    def project(self) -> Path:
        """Where the programs are started."""
        return self.directory / "project"

    def environ(self) -> dict[str, str]:
        """A small, known environment: nothing of the user's own settings takes part."""
        kept = {name: os.environ[name] for name in KEPT if name in os.environ}
        return kept | {
            "TERM": "xterm-256color",
            "COLORTERM": "truecolor",
            "LANG": kept.get("LANG", "C.UTF-8"),
            "TENUTO_HOME": str(self.directory / "tenuto-home"),
            "ANTHROPIC_BASE_URL": self.base_url,
            "ANTHROPIC_API_KEY": "test",
            "OPENAI_BASE_URL": f"{self.base_url}/v1",
            "OPENAI_API_KEY": "test",
            "NO_PROXY": "127.0.0.1,localhost",
        }

    def fill(self, command: str) -> list[str]:
        """Return a command's words; `{base_url}`, `{openai_url}`, `{project}`, `{home}` are filled in."""
        places = {
            "base_url": self.base_url,
            "openai_url": f"{self.base_url}/v1",
            "project": str(self.project),
            "home": str(self.directory),
        }
        words = shlex.split(command)
        for name, value in places.items():
            words = [word.replace(f"{{{name}}}", value) for word in words]
        return words


@dataclass(frozen=True, slots=True)
class Program:
    """A program with its command lines as a shell would read them; an empty one is not measured."""

    name: str
    interactive: str = ""
    one_shot: str = ""
    version: str = ""
    extra: dict[str, str] = field(default_factory=dict)


def tenuto(command: str, protocol: str) -> Program:
    """Return Tenuto over one of its protocols."""
    model = f"--model {protocol}/test --mode auto"
    return Program(
        "tenuto",
        interactive=f"{command} {model}",
        one_shot=f"{command} -p hello {model}",
        version=f"{command} --version",
    )


def interpreter(python: str) -> Program:
    """Return the floor: the bare interpreter, doing nothing."""
    return Program("python -c pass", version=f"{python} -c pass", one_shot=f"{python} -c pass")


def peers(interactive: list[str], one_shot: list[str], version: list[str]) -> list[Program]:
    """Return the peers of the command line, `NAME=COMMAND` each. Raises `ValueError` for what has no `=`."""
    found: dict[str, dict[str, str]] = {}
    for kind, given in (("interactive", interactive), ("one_shot", one_shot), ("version", version)):
        for text in given:
            name, equals, command = text.partition("=")
            if not equals or not name or not command:
                raise ValueError(f"a peer is given as NAME=COMMAND, not as {text!r}")
            found.setdefault(name, {})[kind] = command
    return [Program(name, **commands) for name, commands in found.items()]
