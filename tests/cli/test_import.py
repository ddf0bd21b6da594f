"""`tenuto import` as a user and a script see it: a real process, and a real terminal for the list."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import time

import pytest

from tests.program import TENUTO
from tests.server import Reply, ServerThread
from tests.session.importers import sources
from tests.session.importers.sources import FILES, write_all_sources, write_lines


@pytest.fixture
def run(tmp_path):
    work = tmp_path / "work"
    work.mkdir()

    def start(*arguments, environ=None, **options):
        options = {"stdin": subprocess.DEVNULL, "cwd": work, **options}
        return subprocess.run(
            [*TENUTO, *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            env=variables(tmp_path, environ),
            timeout=60,
            **options,
        )

    start.work = work
    return start


def variables(tmp_path, more=None):
    values = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "person"), "TENUTO_HOME": str(tmp_path / "home")}
    return {**values, **(more or {})}


def test_an_imported_session_is_told_listed_and_goes_on(run, tmp_path):
    path = write_lines(tmp_path / "session.jsonl", sources.claude_session())
    path.write_bytes(path.read_bytes() + b'{"type": "us')
    done = run("import", path, "--cwd", run.work)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == f"Imported from Claude Code ({path}): 2 prompts, 4 answers, 3 tool calls"
    assert "1 damaged line skipped: line 20 (12 bytes): cut off" in lines
    assert "1 line of a sub-agent left out" in lines
    command, _, session_id = lines[-1].rpartition(" ")
    assert command == "Continue it with: tenuto --resume"
    assert "Clock that stops" in run("sessions", "list").stdout
    with ServerThread([Reply("Tock.")]) as server:
        arguments = ("-p", "And now?", "--resume", session_id, "--model", "anthropic/test")
        answered = run(*arguments, environ=server.environ())
    assert (answered.returncode, answered.stdout) == (0, "Tock.\n"), answered.stderr
    assert next(item.text for item in server.requests[0].items if item.kind == "user") == "Why does the clock stop?"


def test_the_same_file_twice_says_so_and_makes_no_second_session(run, tmp_path):
    path = write_lines(tmp_path / "session.jsonl", sources.pi_session())
    first = run("import", path).stdout.split()[-1]
    path.write_bytes(
        path.read_bytes() + json.dumps(sources.pi_message("u9", "a5", 20, role="user", content="?")).encode()
    )
    again = run("import", path)
    assert again.returncode == 0
    assert f"imported before, as {first}. The file has" in again.stdout
    assert "bytes more since then" in again.stdout
    assert len(run("sessions", "list").stdout.splitlines()) == 1
    forced = run("import", path, "--force").stdout.split()[-1]
    assert forced != first
    assert len(run("sessions", "list").stdout.splitlines()) == 2


def test_a_file_that_cannot_be_imported_stops_no_other(run, tmp_path):
    bad, good = tmp_path / "bad.txt", write_lines(tmp_path / "good.jsonl", sources.pi_session())
    bad.write_text("hello")
    done = run("import", bad, tmp_path / "gone", good)
    assert done.returncode == 1
    assert f"tenuto: {bad} is not a session file of a known agent" in done.stderr
    assert f"tenuto: {tmp_path / 'gone'} is not a file" in done.stderr
    assert "Imported from Pi" in done.stdout


def test_a_disk_that_refuses_leaves_the_source_and_no_session(run, tmp_path):
    def bound():
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (1_500, 1_500))

    path = write_lines(tmp_path / "session.jsonl", sources.pi_session())
    done = run("import", path, preexec_fn=bound)
    assert done.returncode == 1
    assert "cannot be written: File too large" in done.stderr
    assert run("sessions", "list").stdout == ""
    assert run("import", path).returncode == 0


def test_without_a_path_scripts_get_a_list(run, tmp_path):
    paths = write_all_sources(tmp_path / "person")
    plain = run("import")
    assert plain.returncode == 0
    rows = [line.split("\t") for line in plain.stdout.splitlines()]
    assert {row[0] for row in rows} == set(FILES)
    assert {row[4] for row in rows} == set(map(str, paths.values()))
    assert {row[2] for row in rows} == {"not imported"}
    made = json.loads(run("import", paths["codex"], "--json").stdout)[0]
    assert (made["format"], made["imported_now"], made["report"]["calls"]) == ("codex", True, 3)
    listed = json.loads(run("import", "--json", "--from", "codex").stdout)
    assert [(row["session"], row["id"]) for row in listed] == [("0199-aa", made["id"])]
    assert json.loads(run("import", paths["codex"], "--json").stdout)[0]["imported_now"] is False


def test_a_script_that_finds_none_reads_nothing_and_is_told(run):
    none = run("import")
    assert (none.returncode, none.stdout) == (0, "")
    assert "tenuto: no sessions of Claude Code, Codex" in none.stderr
    assert (run("import", "--json").stdout, run("import", "--json").stderr) == ("[]\n", "")


def test_control_bytes_of_a_source_never_reach_the_terminal(run, tmp_path):
    lines = sources.pi_session()
    lines[2]["message"]["content"][0]["text"] = "\x1b]0;owned\x07\x1b[2JHello"
    del lines[15]
    write_lines(tmp_path / "person" / FILES["pi"][0], lines)
    done = run("import")
    assert "\x1b" not in done.stdout
    assert "Hello" in done.stdout


def test_bad_usage_is_told(run):
    assert run("import", "--from", "nobody").returncode == 2
    assert "tenuto import" in run("import", "--help").stdout


class Terminal:
    """A process on a pseudo-terminal."""

    def __init__(self, tmp_path, *arguments):
        self._leader, follower = pty.openpty()
        self.process = subprocess.Popen(
            [*TENUTO, *arguments],
            stdin=follower,
            stdout=follower,
            stderr=follower,
            env=variables(tmp_path, {"TERM": "xterm", "COLUMNS": "120"}),
            start_new_session=True,
        )
        os.close(follower)
        self.text = ""

    def until(self, words, timeout=20.0):
        deadline = time.monotonic() + timeout
        while words not in self.text and time.monotonic() < deadline:
            ready, _, _ = select.select([self._leader], [], [], 0.2)
            try:
                self.text += os.read(self._leader, 65_536).decode() if ready else ""
            except OSError:
                break
        assert words in self.text, self.text
        before, _, self.text = self.text.partition(words)
        return before

    def type(self, text):
        os.write(self._leader, text.encode())

    def close(self):
        code = self.process.wait(120)
        os.close(self._leader)
        return code


def test_on_a_terminal_a_user_chooses_from_a_numbered_list(tmp_path):
    write_all_sources(tmp_path / "person")
    terminal = Terminal(tmp_path, "import")
    listed = terminal.until("Enter to leave: ")
    assert [label in listed for label in ("Claude Code", "Codex", "Pi", "Kimi Code", "Kimi CLI", "klaude-code")]
    terminal.type("codex\r")
    assert "Codex" in terminal.until("Enter to leave: ")
    terminal.type("7\r")
    terminal.until("Nothing fits")
    terminal.until("Enter to leave: ")
    terminal.type("codex\r")
    found = terminal.until("Enter to leave: ")
    assert "Pi " not in found
    terminal.type("1\r")
    terminal.until("Imported from Codex")
    terminal.until("Continue it with: tenuto --resume ")
    assert terminal.close() == 0


def test_what_was_imported_before_is_marked_and_asked_about(run, tmp_path):
    paths = write_all_sources(tmp_path / "person")
    run("import", paths["pi"])
    for answer, sessions in (("n", 1), ("y", 2)):
        terminal = Terminal(tmp_path, "import", "--from", "pi")
        listed = terminal.until("Enter to leave: ")
        assert "  1* " in listed
        assert "* imported before" in listed
        terminal.type("1\r")
        terminal.until("as a new session? [y/N] ")
        terminal.type(f"{answer}\r")
        assert terminal.close() == 0
        assert len(run("sessions", "list").stdout.splitlines()) == sessions


def test_leaving_the_list_imports_nothing(tmp_path):
    write_all_sources(tmp_path / "person")
    terminal = Terminal(tmp_path, "import")
    terminal.until("Enter to leave: ")
    terminal.type("\r")
    assert terminal.close() == 0
    assert not (tmp_path / "home" / "sessions").exists()


def test_without_other_agents_the_list_says_so(tmp_path):
    terminal = Terminal(tmp_path, "import")
    terminal.until("tenuto: no sessions of Claude Code, Codex, Pi, Kimi Code, Kimi CLI, klaude-code were found")
    assert terminal.close() == 0
