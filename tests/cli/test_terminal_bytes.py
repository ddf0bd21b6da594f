"""Every entry point without a screen, with hostile text through it, on a terminal of its own: security.md S18."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tenuto.protocol.entry import TitleEntry
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import TextPart
from tenuto.session.session import Session
from tests.program import TENUTO
from tests.server import Call, HttpError, Reply, Request, ServerThread
from tests.terminal.pseudo import CommandTerminal
from tests.terminal.screen import BIN
from tests.terminal.test_raw_bytes import PAYLOAD

TITLE = f"common {PAYLOAD}"
STRANGE = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069].{0,20}", re.DOTALL
)
Run = Callable[..., str]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work \x1b]0;EVIL\x07\u202e"
    place.mkdir()
    return place


@pytest.fixture
def run(tmp_path: Path, work: Path) -> Run:
    """Run a command on a terminal and return everything that it gets."""

    def start(*command: str, server: ServerThread | None = None, stdout: bool = True, cwd: Path | None = None) -> str:
        values = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        values |= {"TERM": "xterm", "LC_ALL": "C.UTF-8", **(server.environ() if server else {})}
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            command,
            cwd=cwd or work,
            env=values,
            stdin=subprocess.DEVNULL,
            stdout=theirs if stdout else subprocess.DEVNULL,
            stderr=theirs,
        )
        os.close(theirs)
        output = b""
        while True:
            try:
                data = os.read(ours, 65_536)
            except OSError:  # the last of them has closed it
                break
            if not data:
                break
            output += data
        os.close(ours)
        process.wait(60)
        return output.decode("utf-8", "replace")

    return start


def name_session(session: Session, title: str) -> None:
    session.append(UserMessage(parts=(TextPart(text=title),)))
    session.append(TitleEntry(title=title))


def tenuto(*arguments: str) -> tuple[str, ...]:
    return *TENUTO, *arguments


def script(request: Request) -> Reply | HttpError:
    if "fail" in request.last_user:
        return HttpError(400, f"no {PAYLOAD}")
    if any(item.kind == "result" for item in request.items):
        return Reply(f"Done. {PAYLOAD}")
    return Reply(PAYLOAD, thinking=PAYLOAD, tool_calls=[Call("bash", {"command": f"printf %s '{PAYLOAD}'"})])


MODEL = ("--model", "openai-chat/test", "--mode", "auto")
LINES: dict[str, tuple[str, ...]] = {
    "answer": ("-p", PAYLOAD, *MODEL),
    "json": ("-p", PAYLOAD, "--json", *MODEL),
    "error": ("-p", "fail", *MODEL),
    "error in json": ("-p", "fail", "--json", *MODEL),
    "several fit": ("-p", "x", "--resume", "common", *MODEL),
    "none fits": ("-p", "x", "--resume", PAYLOAD, *MODEL),
    "no directory": ("--cwd", PAYLOAD, "-p", "x"),
    "option": (f"--{PAYLOAD}",),
    "mode": ("--mode", PAYLOAD),
    "model": ("-p", "x", "--model", PAYLOAD),
    "model of a provider": ("-p", "x", "--model", f"openai-chat/{PAYLOAD}"),
    "subcommand": ("sessions", PAYLOAD),
    "list": ("sessions", "list"),
    "list in json": ("sessions", "list", "--json"),
    "list some": ("sessions", "list", PAYLOAD),
    "show": ("sessions", "show", "ID"),
    "show in json": ("sessions", "show", "ID", "--json"),
    "show none": ("sessions", "show", PAYLOAD),
    "stats": ("sessions", "stats"),
    "stats in json": ("sessions", "stats", "--json"),
    "export": ("sessions", "export", "ID", "--output", "-", "--format", "md"),
    "export html": ("sessions", "export", "ID", "--output", "-", "--format", "html"),
    "export jsonl": ("sessions", "export", "ID", "--output", "-", "--format", "jsonl"),
    "export to": ("sessions", "export", "ID", "--output", "PLACE"),
    "export none": ("sessions", "export", PAYLOAD),
    "compact": ("sessions", "compact", "ID", "--dry-run"),
    "compact in json": ("sessions", "compact", "ID", "--dry-run", "--json"),
    "repair": ("sessions", "repair", PAYLOAD),
    "delete": ("sessions", "delete", PAYLOAD),
    "restore": ("sessions", "restore", PAYLOAD),
    "import": ("import", f"/nowhere/{PAYLOAD}"),
    "import in json": ("import", f"/nowhere/{PAYLOAD}", "--json"),
    "import what is there": ("import", "LOG"),
}


@pytest.mark.parametrize("name", LINES)
def test_s18_nothing_foreign_reaches_the_terminal(name: str, run: Run, tmp_path: Path, work: Path) -> None:
    sessions = [Session.create(tmp_path / "home", work) for _ in range(2)]
    for session in sessions:
        name_session(session, TITLE)
        session.close()
    log = tmp_path / "log\u202e.jsonl"
    row = {"type": "user", "message": {"role": "user", "content": TITLE}, "uuid": "1", "sessionId": "s", "cwd": TITLE}
    log.write_text(json.dumps({**row, "timestamp": "2026-01-01T00:00:00Z", "version": "1.0.0"}) + "\n")
    words = {"ID": sessions[0].id, "LOG": str(log), "PLACE": str(tmp_path / f"out\x9b{PAYLOAD[:9]}".replace("/", ""))}
    with ServerThread(script) as server:
        shown = run(*tenuto(*(words.get(word, word) for word in LINES[name])), server=server)
        assert shown.strip(), "it says nothing"
        assert STRANGE.findall(shown.replace("\r\n", "\n")) == []
        errors_alone = run(*tenuto(*(words.get(word, word) for word in LINES[name])), server=server, stdout=False)
        assert STRANGE.findall(errors_alone.replace("\r\n", "\n")) == []


def test_s18_json_has_the_values_as_they_are(run: Run, tmp_path: Path, work: Path) -> None:
    session = Session.create(tmp_path / "home", work)
    name_session(session, "a\u202e\x9b\x7fb")
    session.close()
    shown = run(*tenuto("sessions", "list", "--json"))
    assert json.loads(shown)["title"] == "a\u202e\x9b\x7fb"


@pytest.mark.parametrize("stdout", [True, False])
def test_s18_a_traceback_and_what_libraries_say_are_safe(run: Run, stdout: bool) -> None:
    for code in (
        "raise ValueError(text)",
        "import logging; logging.warning(text)",
        "import warnings; warnings.warn(text)",
    ):
        text = f"import sys; from tenuto.cli.output import shield_errors; shield_errors(); text = {PAYLOAD!r}; {code}"
        shown = run(sys.executable, "-c", text, stdout=stdout)
        assert "EVIL" in shown or "C1" in shown
        uncoloured = re.sub(r"\x1b\[[\d;]*m", "", shown)  # from Python 3.13 on tracebacks have colours
        assert STRANGE.findall(uncoloured.replace("\r\n", "\n")) == []


def test_s18_a_screen_that_cannot_open_says_so_safely(run: Run, tmp_path: Path) -> None:
    for _ in range(2):
        session = Session.create(tmp_path / "home", tmp_path)
        name_session(session, TITLE)
        session.close()
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TENUTO_HOME": str(tmp_path / "home"),
        "TERM": "xterm",
    }
    for options in ((), ("--inline",)):
        command = [BIN / "tenuto", "--model", "offline/tenuto", "--resume", "common", *options]
        terminal = CommandTerminal(tmp_path, environ, command)
        try:
            terminal.wait_end()
            assert "name one by its id" in "".join(terminal.screen.display), "rows wrap"
        finally:
            terminal.close()
        assert not any(bad in terminal.output for bad in (b"\x1b]52", b"\x1b]0;EVIL", b"\x1bP", "\u202e".encode()))
