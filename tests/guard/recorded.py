"""The commands of recorded sessions, and a workspace in which what they name is there."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import msgspec

from tenuto.guard.subject import ApprovalSubject
from tenuto.tool.bash import command_subject
from tests.guard.repositories import git
from tests.guard.subjects import ENVIRON

RECORDED = Path(__file__).with_name("session_commands.jsonl")
UNSELECTED = Path(__file__).with_name("unselected_commands.jsonl")
_NAMED = re.compile(r"(?:\{root\}/|\{beside\}/|\./)?[A-Za-z0-9_.-]+(?:/[A-Za-z0-9_.-]+)*/?")
_IS_FILE = re.compile(r"\.[a-z]{1,5}$")


class Recorded(msgspec.Struct, frozen=True):
    """A command of a session. `tag` is `reading` or `changing`."""

    session: int
    tag: str
    command: str


class Places(msgspec.Struct, frozen=True):
    """The workspace, and a folder that was added to it."""

    root: Path
    beside: Path

    def subject(self, recorded: Recorded) -> ApprovalSubject:
        """Return the command as it would be here."""
        line = recorded.command.replace("{root}", str(self.root)).replace("{beside}", str(self.beside))
        return command_subject(line, self.root, self.names, ENVIRON)

    @property
    def names(self) -> list[str]:
        return [str(self.root), str(self.beside)]


def recorded_commands(file: Path) -> list[Recorded]:
    lines = file.read_text(encoding="utf-8").split("\n")
    return [msgspec.convert(json.loads(line), Recorded) for line in lines if line and not line.startswith("#")]


COMMANDS = recorded_commands(RECORDED)
UNSELECTED_COMMANDS = recorded_commands(UNSELECTED)


def make_places(folder: Path, commands: Sequence[Recorded]) -> Places:
    """Make a workspace in which what the commands name is there: files where a name has an ending, else directories."""
    found = Places(folder.resolve() / "root", folder.resolve() / "beside")
    found.root.mkdir()
    found.beside.mkdir()
    git(found.root, "init", "-q", "-b", "main")
    git(found.root, "commit", "-q", "--allow-empty", "-m", "first")
    for recorded in commands:
        for name in _NAMED.findall(recorded.command):
            place = found.beside if name.startswith("{beside}") else found.root
            _make(place, re.sub(r"^\{\w+\}/", "./", name))
        for name in re.findall(r"\bcd (?:\{root\}/)?([a-z-]+)", recorded.command):
            _make(found.root, f"./{name}")
    return found


def _make(place: Path, name: str) -> None:
    is_file = bool(_IS_FILE.search(name))
    if ".." in name or name.startswith(("-", ".git/")) or not (is_file or "/" in name):
        return
    path = place / name.strip("/")
    folder = path.parent if is_file else path
    if any(parent.is_file() for parent in (folder, *folder.parents)) or path.is_dir():
        return
    folder.mkdir(parents=True, exist_ok=True)
    if is_file:
        path.touch()
