from __future__ import annotations

import asyncio
import json
import shlex
import time

import pytest

from tenuto.tui.alerts.status_command import StatusCommand, first_line, session_facts
from tenuto.tui.machine.state import UiState

PATIENCE = 20.0


class Watched:
    """A status command that runs for real, and what came of it."""

    def __init__(self, command: str, interval: float = 0.0) -> None:
        self.shown: list[str] = []
        self.problems: list[str] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.state = UiState(session_id="s1")
        self.state.status.model, self.state.status.tokens = "offline/offline", 5
        self.status = StatusCommand(
            command,
            interval,
            spawn=self._spawn,
            show=lambda spans: self.shown.append("".join(text for text, _style in spans)),
            complain=self.problems.append,
            clock=time.monotonic,
        )

    def _spawn(self, work) -> None:
        task = asyncio.ensure_future(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def follow(self, **changes) -> None:
        for name, value in changes.items():
            setattr(self.state.status, name, value)
        self.status.follow(self.state)
        async with asyncio.timeout(PATIENCE):
            await asyncio.gather(*self.tasks)


async def test_it_gets_the_session_as_json_and_its_first_line_shows(tmp_path):
    log = tmp_path / "in.jsonl"
    watched = Watched(f"tee -a {shlex.quote(str(log))} | tr -d '\\n' | wc -c | tr -d ' '; echo second")
    watched.state.status.cwd = str(tmp_path)
    await watched.follow()
    told = json.loads(log.read_text())
    assert told == session_facts(watched.state)
    assert told["model"] == "offline/offline" and told["tokens"] == 5 and told["session_id"] == "s1"
    assert watched.shown == [str(len(log.read_text()) - 1)]


async def test_without_a_change_it_does_not_run_again(tmp_path):
    log = tmp_path / "runs"
    watched = Watched(f"cat >/dev/null; echo x >> {shlex.quote(str(log))}; echo ok")
    await watched.follow()
    await watched.follow()
    assert log.read_text() == "x\n" and not watched.tasks
    await watched.follow(tokens=6)
    assert log.read_text() == "x\nx\n"


async def test_changes_while_it_runs_are_one_more_run_with_the_last_of_them(tmp_path):
    watched = Watched("sleep 0.2; cat")
    watched.status.follow(watched.state)
    await asyncio.sleep(0)
    for tokens in range(10, 20):
        watched.state.status.tokens = tokens
        watched.status.follow(watched.state)
    await watched.follow(tokens=99)
    assert [json.loads(line)["tokens"] for line in watched.shown] == [5, 99]


async def test_what_fails_leaves_the_last_line_and_is_told_once():
    watched = Watched("test $(cat | grep -c '\"tokens\":5') = 1 && echo good")
    await watched.follow()
    await watched.follow(tokens=6)
    await watched.follow(tokens=7)
    assert watched.shown == ["good"]
    assert watched.problems == ["ui.status_command ended with exit code 1"]


async def test_one_that_hangs_is_ended_with_everything_that_it_started(tmp_path, monkeypatch):
    monkeypatch.setattr("tenuto.tui.alerts.status_command.SECONDS", 0.5)
    mark = tmp_path / "pid"
    watched = Watched(f"sleep 300 & echo $! > {shlex.quote(str(mark))}; wait")
    await watched.follow()
    assert watched.problems == ["ui.status_command took longer than 0.5 seconds"]
    pid = mark.read_text().strip()
    deadline = time.monotonic() + PATIENCE
    while _alive(pid):
        assert time.monotonic() < deadline, "the child of the command lives on"
        await asyncio.sleep(0.02)


def _alive(pid: str) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


async def test_what_the_session_says_is_never_part_of_the_command_line(tmp_path):
    watched = Watched("cat >/dev/null; echo fine")
    await watched.follow(title=f"$(touch {tmp_path}/hit); `touch {tmp_path}/hit`", branch="'; touch hit; '")
    assert watched.shown == ["fine"] and not (tmp_path / "hit").exists()


async def test_before_there_is_a_session_it_does_not_run():
    watched = Watched("echo x")
    watched.state.session_id = ""
    await watched.follow()
    assert not watched.shown


@pytest.mark.parametrize(
    ("output", "spans"),
    [
        (b"plain\nsecond", [("plain", "status")]),
        (b"\x1b[31mred\x1b[0m on", [("red", "status fg=1"), (" on", "status")]),
        (b"a\x1b]0;title\x07b\x1b[2Jc\x1b[?1049hd", [("abcd", "status")]),
        ("a\x9b2Jb\u202ec".encode(), [("abc", "status")]),
        (b"\xff\t!", [("\ufffd !", "status")]),
        (b"", []),
    ],
)
def test_r088_of_what_it_prints_colours_stay_and_nothing_else(output, spans):
    assert first_line(output) == spans
