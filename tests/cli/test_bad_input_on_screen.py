"""Bad input where there is a terminal: one clear line and exit code 2, or a screen that says it and can be used."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.server import HttpError, Reply, Request, ServerThread
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import PATIENCE

pytestmark = pytest.mark.terminal
NO_SCREEN = "\x1b[?1049l"
NOWHERE = {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1", "OPENAI_API_KEY": "x", "TENUTO_REQUEST__RETRIES": "0"}
Open = Callable[..., PseudoTerminal]


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Open]:
    opened: list[PseudoTerminal] = []
    (tmp_path / "work").mkdir()

    def start(*arguments: str, environ: Mapping[str, str] | None = None) -> PseudoTerminal:
        running = PseudoTerminal(tmp_path / "work", tmp_path / "home", environ or {}, *arguments)
        opened.append(running)
        return running

    yield start
    for running in opened:
        if not hasattr(running, "code"):
            running.close()


def end_of(running: PseudoTerminal) -> tuple[int, str]:
    """Wait for the program's end; return its exit code and what it wrote after it had given the screen back."""
    deadline = time.monotonic() + PATIENCE
    while True:
        assert time.monotonic() < deadline, running.text()
        running.read(0.02)
        pid, status = os.waitpid(running.pid, os.WNOHANG)
        if pid:
            break
    running.read()
    running.code = os.waitstatus_to_exitcode(status)  # pyright: ignore[reportAttributeAccessIssue]
    os.close(running.descriptor)
    return running.code, running.output.decode().rpartition(NO_SCREEN)[2]  # pyright: ignore


@pytest.mark.parametrize(
    ("arguments", "environ", "words"),
    [
        (["--model", "anthropic/x"], {}, ["ANTHROPIC_API_KEY", "offline/tenuto"]),
        (["--model", "openai/x"], {}, ["OPENAI_API_KEY", "offline/tenuto"]),
        (["--model", "nonsense"], {}, ["nonsense", "provider/name"]),
        (["--model", "nobody/x"], {}, ["nobody", "settings.toml"]),
        (["--model", "offline/other"], {}, ["offline/tenuto"]),
        (["--resume", "nothing"], {}, ["nothing"]),
        (["--continue"], {}, ["--continue"]),
    ],
)
def test_what_cannot_begin_ends_with_one_clear_line(
    terminal: Open, arguments: list[str], environ: dict[str, str], words: list[str]
) -> None:
    code, said = end_of(terminal(*arguments, environ=environ))
    assert code == 2
    # An answer of the terminal that comes after the end is echoed by it.
    line = re.sub(r"\^\[\[\?[0-9;]*\$y", "", said[said.index("tenuto: ") :]).strip()
    assert "\n" not in line.replace("\r\n", "\n"), line
    assert all(word in line for word in words), line
    assert "Traceback" not in said


def test_a_broken_settings_file_is_named_and_the_screen_opens(terminal: Open, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("this is = = not toml")
    running = terminal("--model", "offline/tenuto")
    running.wait_for("ignored")  # one word: where the line wraps depends on the folder
    running.wait_for("offline/tenuto")
    running.write(b"hello\r")
    running.wait_for("offline")


def test_a_bad_key_is_said_with_its_variable_and_the_session_stays(terminal: Open) -> None:
    with ServerThread([Reply("It works.")], api_key="the-right-one") as server:
        environ = {**server.environ(), "ANTHROPIC_API_KEY": "wrong"}
        running = terminal("--model", "anthropic/test", environ=environ)
        running.wait_for("anthropic/test")
        running.write(b"go\r")
        running.wait_for("ANTHROPIC_API_KEY")
        running.write(b"/mode plan\r")
        running.wait_for("plan · anthropic/test")


def test_an_unknown_model_is_named_when_it_is_asked(terminal: Open) -> None:
    def script(request: Request) -> Reply | HttpError:
        known = request.body["model"] == "test"
        return Reply("It works.") if known else HttpError(404, "The model `no-such-model` does not exist")

    with ServerThread(script) as server:
        running = terminal("--model", "openai-chat/no-such-model", environ=server.environ())
        running.wait_for("openai-chat/no-such-model")
        running.write(b"go\r")
        shown = running.wait_for("does not exist")
        assert "no-such-model" in shown
        assert len(server.requests) == 1, "it is not tried again"
        running.write(b"/model openai-chat/test\r")
        running.wait_for("ask · openai-chat/test")
        running.write(b"again\r")
        running.wait_for("It works.")


def test_an_unreachable_server_is_named_and_another_model_can_be_chosen(terminal: Open) -> None:
    running = terminal("--model", "openai-chat/test", environ=NOWHERE)
    running.wait_for("openai-chat/test")
    running.write(b"go\r")
    running.wait_for("127.0.0.1:9/v1")
    running.write(b"/model offline/tenuto\r")
    running.wait_for("ask · offline/tenuto")
    running.write(b"hello\r")
    running.wait_for("offline model")


def test_a_home_that_cannot_be_written_to_is_said_and_the_screen_opens(terminal: Open) -> None:
    running = terminal("--model", "offline/tenuto", environ={"TENUTO_HOME": "/dev/null/home"})
    running.wait_for("offline/tenuto")
    running.write(b"hello\r")
    running.wait_for("not being saved")
    running.wait_for("offline model")
