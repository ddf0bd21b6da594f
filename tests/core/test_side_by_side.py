"""Which calls of a step run at the same time (B15): commands that only read do, and nothing that changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tenuto.protocol.event import ToolResultEvent, ToolStartedEvent
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.operation import InterruptOperation
from tenuto.protocol.part import text_of
from tests.core.harness import Agent, agent
from tests.server import Call, Reply

PATIENCE = 120.0
"""Seconds that a command may take which should wait for nothing."""


def command(text: str, **more: object) -> Call:
    return Call("bash", {"command": text, "timeout": PATIENCE, **more})


def results(running: Agent) -> list[ToolResultMessage]:
    return [event.message for event in running.of(ToolResultEvent)]


WAITING_CAT = """#!/bin/sh
case "$1" in one | two) exec /bin/cat "{fifos}/$1" ;; *) exec /bin/cat "$@" ;; esac
"""
"""A pipe in the workspace would be asked for: this reads `one` and `two` from pipes elsewhere."""


@pytest.fixture
def fifos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place, programs = tmp_path / "fifos", tmp_path / "programs"
    place.mkdir()
    programs.mkdir()
    for name in ("one", "two"):
        os.mkfifo(place / name)
    (programs / "cat").write_text(WAITING_CAT.format(fifos=place))
    (programs / "cat").chmod(0o700)
    monkeypatch.setenv("TENUTO_SANDBOX__ENABLED", "false")  # in it neither pipes nor programs of `/tmp` are there
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    return place


@pytest.fixture
def work(tmp_path: Path, fifos: Path) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    for name in ("one", "two", "plain"):
        (place / name).write_text(f"{name} text\n")
    return place


@contextmanager
def beside(work: Callable[[], None]) -> Iterator[asyncio.Future[None]]:
    yield asyncio.ensure_future(asyncio.to_thread(work))


def feed(*fifos: Path) -> None:
    """Open all for writing, each when somebody reads it, then write into all, the last first."""
    held = [os.open(fifo, os.O_WRONLY) for fifo in fifos]
    for descriptor, fifo in reversed(list(zip(held, fifos, strict=True))):
        os.write(descriptor, f"from {fifo.name}\n".encode())
        os.close(descriptor)


def release(*fifos: Path) -> None:
    """Let go of whoever still waits for one of these, on either side."""
    for fifo in fifos:
        os.close(os.open(fifo, os.O_RDWR | os.O_NONBLOCK))


@pytest.mark.parametrize(
    ("mode", "protocol"), [("ask", "openai-chat"), ("plan", "openai"), ("auto", "anthropic"), ("auto", "openai-chat")]
)
async def test_b15_commands_that_only_read_run_side_by_side(
    tmp_path: Path, work: Path, fifos: Path, mode: str, protocol: str
) -> None:
    """`cat one` gets its text only when somebody reads `two` as well, so neither can end alone."""
    calls = [command("cat one"), command("cat two")]
    async with agent(
        tmp_path, [Reply(tool_calls=calls), Reply("done")], mode=mode, model=f"{protocol}/test"
    ) as running:
        with beside(lambda: feed(fifos / "two", fifos / "one")) as fed:
            assert (await running.ask("go", timeout=3 * PATIENCE)).outcome == "completed"
        release(fifos / "one", fifos / "two")
        await fed
        first, second = results(running)
        assert "from one" in text_of(first.parts)
        assert "from two" in text_of(second.parts)
        assert [item.text for item in running.server.requests[-1].items if item.kind == "result"] == [
            text_of(first.parts),
            text_of(second.parts),
        ], "in call order"


async def test_b15_a_reading_command_runs_beside_reads_and_searches(tmp_path: Path, work: Path, fifos: Path) -> None:
    calls = [
        Call("read", {"path": "plain"}),
        command("cat one"),
        Call("grep", {"pattern": "plain", "path": "plain"}),
        command("cat two"),
    ]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")]) as running:
        await running.send("go")
        await running.until(ToolStartedEvent, 4)
        assert [result.name for result in results(running)] in ([], ["read"])
        await asyncio.to_thread(feed, fifos / "two", fifos / "one")
        await asyncio.wait_for(running.runtime.wait_settled(), 3 * PATIENCE)
        assert [result.name for result in results(running)] == ["read", "bash", "grep", "bash"]


@pytest.mark.parametrize(
    "second",
    [
        command("touch made"),
        command("cat plain > made"),
        command("cd .. && cat plain"),
        command("cat plain", background=True),
        Call("write", {"path": "made", "content": "x"}),
        command("cat /etc/hostname"),
        command(""),
    ],
    ids=["changes", "redirects", "changes the directory", "background", "writes", "reads outside", "is none"],
)
async def test_b15_what_may_change_something_waits_for_those_before(
    tmp_path: Path, work: Path, fifos: Path, second: Call
) -> None:
    calls = [command("cat one"), second, command("cat plain")]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")]) as running:
        await running.send("go")
        await running.until(ToolStartedEvent)
        writing = await asyncio.to_thread(os.open, fifos / "one", os.O_WRONLY)
        await asyncio.sleep(0.3)
        assert len(running.of(ToolStartedEvent)) == 1
        assert not (work / "made").exists()
        os.close(writing)
        await asyncio.wait_for(running.runtime.wait_settled(), 3 * PATIENCE)
        assert len(results(running)) == 3


async def test_b15_an_interrupt_ends_all_commands_that_run_side_by_side(
    tmp_path: Path, work: Path, fifos: Path
) -> None:
    calls = [command("cat one"), command("cat two"), command("cat plain")]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("done")]) as running:
        await running.send("go")
        held = [await asyncio.to_thread(os.open, fifos / name, os.O_WRONLY) for name in ("one", "two")]
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 3 * PATIENCE)
        for descriptor in held:
            with pytest.raises(BrokenPipeError):  # nobody reads any more
                os.write(descriptor, b"x")
            os.close(descriptor)
        assert settled.outcome == "interrupted"
        assert len(results(running)) == 3, "each call has its result"
