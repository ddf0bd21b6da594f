"""The examples of the Python API and of clients in other languages, each as it stands in `docs/examples/`."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.core.compacting import is_summary_request
from tests.server import Call, Reply, ServerThread

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
PYTHON = [sys.executable]


def run(tmp_path: Path, server, name: str, *arguments: str, program: list[str]) -> subprocess.CompletedProcess[str]:
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir(exist_ok=True)
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text('model = "openai-chat/test"\n')
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = {"PATH": programs, "HOME": str(tmp_path), "TENUTO_HOME": str(home), **server.environ()}
    return subprocess.run(
        [*program, str(EXAMPLES / name), *arguments],
        capture_output=True,
        text=True,
        env=environ,
        cwd=work,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )


def test_every_example_is_run_here():
    text = Path(__file__).read_text(encoding="utf-8")
    names = [
        f"{path.parent.name}/{path.name}" for kind in ("python", "clients") for path in (EXAMPLES / kind).iterdir()
    ]
    assert [name for name in names if f'"{name}"' not in text and "__pycache__" not in name] == []


def test_a_tool_and_approvals(tmp_path):
    script = [
        Reply(tool_calls=[Call("write", {"path": "version.txt", "content": "2\n"})]),
        Reply(tool_calls=[Call("bash", {"command": "touch other.txt"})]),
        Reply(tool_calls=[Call("tell_team", {"text": "Version 2 is out."})]),
        Reply("Done."),
    ]
    with ServerThread(script) as server:
        done = run(tmp_path, server, "python/approvals.py", "raise the version", program=PYTHON)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-3:] == ["to the team: Version 2 is out.", "Done.", f"changed: {tmp_path / 'work' / 'version.txt'}"]
    assert [path.name for path in (tmp_path / "work").iterdir()] == ["version.txt"]


def test_events(tmp_path):
    script = [Reply("I look.", tool_calls=[Call("glob", {"pattern": "*"})]), Reply("Nothing is here.")]
    with ServerThread(script) as server:
        done = run(tmp_path, server, "python/events.py", "what is here?", program=PYTHON)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "I look."
    assert lines[1].startswith("> glob")
    assert lines[2:4] == ["  done", "Nothing is here."]
    assert lines[4].startswith("completed: 2 turns, ")


def test_a_chat_with_commands_and_another_model(tmp_path):
    lines = tmp_path / "lines.txt"
    lines.write_text(
        "hello\n\n/mode auto\n/status\n/nothing-like-it is a path\n!model anthropic/test\n!model other\nbye\n"
    )
    with ServerThread(lambda request: Reply(f"You said {request.last_user.split()[0]}.")) as server:
        done = run(tmp_path, server, "python/chat.py", str(lines), program=PYTHON)
        protocols = [request.protocol for request in server.requests]
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert told[0] == "You said hello."
    assert any(line.startswith("mode") and "auto" in line for line in told), told
    assert told[-4:] == [
        "You said /nothing-like-it.",
        "anthropic/test answers from now on",
        "not done: “other” is not a model; write it as provider/name, for example anthropic/claude-sonnet-5-5",
        "You said bye.",
    ]
    assert protocols == ["chat", "chat", "anthropic"]


def test_a_long_session(tmp_path):
    def script(request):
        return Reply("## Goal\nGo on.") if is_summary_request(request) else Reply("fine " * 600)

    notes = tmp_path / "notes.txt"
    notes.write_text("\n".join(f"question {number} " + "because " * 300 for number in range(6)))
    with ServerThread(script, window=32_000) as server:
        done = run(tmp_path, server, "python/long_session.py", str(notes), program=PYTHON)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 6
    assert lines[3].split(":")[0] != lines[4].split(":")[0]


def test_an_answer_as_data(tmp_path):
    script = [Reply("a.py has most."), Reply('[{"path": "a.py", "lines": 120}]')]
    with ServerThread(script) as server:
        done = run(tmp_path, server, "python/structured.py", "which?", program=PYTHON)
    assert (done.returncode, done.stdout) == (0, "   120 a.py\n"), done.stderr


@pytest.mark.parametrize("name", ["clients/client.mjs", "clients/client.sh"])
def test_a_client_in_another_language(tmp_path, name):
    needed = {"clients/client.mjs": ["node"], "clients/client.sh": ["sh", "jq"]}[name]
    if missing := [program for program in needed if shutil.which(program) is None]:
        pytest.skip(f"{', '.join(missing)}: not installed")
    script = [
        Reply(tool_calls=[Call("glob", {"pattern": "*"})]),
        Reply("One."),
        Reply(tool_calls=[Call("bash", {"command": "touch x"})]),
        Reply("Two."),
    ]
    with ServerThread(script) as server:
        done = run(tmp_path, server, name, "first “prompt”", "second", program=needed[:1])
        assert any("first “prompt”" in item.text for item in server.requests[0].items)
    said = [line for line in done.stdout.splitlines() if not line.startswith(">")]
    assert said[0] == "One.", done.stderr
    assert said[1].startswith("error_calls_refused")
    assert not (tmp_path / "work" / "x").exists()
