"""How often a user is asked: the commands of recorded sessions, each judged as a call of `bash` is (issue: asking)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import msgspec
import pytest

from tenuto.guard.approval import judge
from tenuto.guard.subject import Allow, ApprovalSubject, Ask
from tenuto.protocol.entry import Mode
from tenuto.tool.bash import command_subject
from tests.guard.repositories import git
from tests.guard.subjects import ENVIRON

RECORDED = Path(__file__).with_name("session_commands.jsonl")
SHARE_OF_READING_THAT_MAY_ASK = 0.10
SHARE_THAT_MAY_ASK_IN_A_SANDBOX = 0.02
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


def recorded_commands() -> list[Recorded]:
    lines = RECORDED.read_text(encoding="utf-8").splitlines()
    return [msgspec.convert(json.loads(line), Recorded) for line in lines if not line.startswith("#")]


COMMANDS = recorded_commands()


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Places:
    """Make a workspace in which what the commands name is there: files where a name has an ending, else directories."""
    found = Places(tmp_path_factory.mktemp("root").resolve(), tmp_path_factory.mktemp("beside").resolve())
    git(found.root, "init", "-q", "-b", "main")
    git(found.root, "commit", "-q", "--allow-empty", "-m", "first")
    for recorded in COMMANDS:
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


def asked_in(mode: Mode, commands: list[Recorded], places: Places, *, confined: bool = False) -> list[str]:
    """Return the commands that ask, each behind its reason."""
    found: list[str] = []
    for recorded in commands:
        subject = msgspec.structs.replace(places.subject(recorded), confined=confined)
        verdict = judge(mode, subject, (), places.names)
        assert isinstance(verdict, Allow | Ask)
        if isinstance(verdict, Ask):
            found.append(f"{verdict.reason} ({recorded.session}): {recorded.command}")
    return found


def test_the_record_is_large_enough() -> None:
    assert len(COMMANDS) >= 200
    assert len({recorded.session for recorded in COMMANDS}) >= 10


def test_reading_work_of_real_sessions_hardly_asks(places: Places) -> None:
    reading = [recorded for recorded in COMMANDS if recorded.tag == "reading"]
    asked = asked_in("ask", reading, places)
    print(*asked, f"{len(asked)} of {len(reading)} reading commands ask", sep="\n")
    assert len(asked) <= SHARE_OF_READING_THAT_MAY_ASK * len(reading)


def test_what_changes_something_asks(places: Places) -> None:
    changing = [recorded for recorded in COMMANDS if recorded.tag == "changing"]
    assert len(asked_in("ask", changing, places)) == len(changing)


def test_in_a_sandbox_hardly_anything_asks(places: Places) -> None:
    asked = asked_in("auto", COMMANDS, places, confined=True)
    assert len(asked) <= SHARE_THAT_MAY_ASK_IN_A_SANDBOX * len(COMMANDS), asked
    assert len(asked_in("edits", COMMANDS, places, confined=True)) > len(asked), "the sandbox makes the difference"
