"""Commands of the model, through the whole agent: they never hold it up and never outlive it (R-077 to R-079)."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tenuto.protocol.event import ToolOutputEvent, ToolResultEvent
from tenuto.protocol.operation import InterruptOperation
from tenuto.protocol.part import text_of
from tenuto.tool.process.process import GONE_SECONDS, TERM_SECONDS
from tests.core.harness import agent
from tests.program import TENUTO
from tests.server import Call, Reply, ServerThread
from tests.tool.test_bash import alive

LIMIT = 3.0
"""Seconds: the requirement's own limit (R-078)."""
STUBBORN = "sh -c 'trap \"\" TERM; sleep {mark} & echo up; sleep {mark}'"


def mark_of(number: int) -> str:
    """A number of seconds to sleep that no other process on this machine sleeps."""
    return f"9{os.getpid()}{number}"


def test_r078_what_an_end_waits_for_is_within_the_limit() -> None:
    assert TERM_SECONDS + GONE_SECONDS < LIMIT


async def test_r077_a_child_left_behind_does_not_hold_the_agent_and_ends_with_it(tmp_path: Path) -> None:
    mark = mark_of(1)
    script = [Reply(tool_calls=[Call("bash", {"command": f"sleep {mark} & echo done"})]), Reply("fine")]
    async with agent(tmp_path, script) as running:
        settled = await running.ask("go", timeout=20)
        assert settled.outcome == "completed"
        (event,) = running.of(ToolResultEvent)
        assert text_of(event.message.parts).startswith("done\n")
        assert alive(f"sleep {mark}")
    assert alive(f"sleep {mark}") == []


@pytest.mark.parametrize(
    "command", [STUBBORN, "(trap '' TERM HUP; sleep {mark}) & echo up; exec sleep {mark}", "echo up; exec sleep {mark}"]
)
async def test_r078_t32_an_interrupt_ends_every_descendant(tmp_path: Path, command: str) -> None:
    mark = mark_of(2)
    script = [Reply(tool_calls=[Call("bash", {"command": command.replace("{mark}", mark)})]), Reply("fine")]
    async with agent(tmp_path, script) as running:
        await running.send("go")
        await running.until(ToolOutputEvent)
        while not alive(f"sleep {mark}"):
            await asyncio.sleep(0.01)
        await running.runtime.submit(InterruptOperation(session_id=running.runtime.session_id))
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert alive(mark) == []
        assert settled.outcome == "interrupted"
        assert running.of(ToolResultEvent)[-1].message.interrupted
        assert (await running.ask("go on")).outcome == "completed"
        assert not running.server.requests[-1].refused


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_r078_a_signal_to_a_headless_run_ends_what_it_started(tmp_path: Path, number: signal.Signals) -> None:
    mark = mark_of(3)
    with ServerThread([Reply(tool_calls=[Call("bash", {"command": STUBBORN.replace("{mark}", mark)})])]) as server:
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        process = subprocess.Popen(
            [*TENUTO, "-p", "go", "--mode", "auto", "--model", "openai-chat/test"],
            cwd=tmp_path,
            env=environ | server.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 120
        while not alive(f"sleep {mark}"):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        _, said = process.communicate(timeout=120)
        assert process.returncode == 130
        assert "interrupted" in said
        assert alive(mark) == []


async def test_r079_nothing_of_the_agents_asks_the_user(tmp_path: Path) -> None:
    commands = [
        "read x; echo got:$x",
        "git commit",
        "sudo -k true",
        "cat /dev/tty",
        "python3 -c 'input()'",
        "$EDITOR f",
    ]
    calls = [Call("bash", {"command": command, "timeout": 20}) for command in commands]
    async with agent(tmp_path, [Reply(tool_calls=calls), Reply("fine")]) as running:
        settled = await running.ask("go", timeout=60)
        assert settled.outcome == "completed"
        texts = [text_of(event.message.parts) for event in running.of(ToolResultEvent)]
        assert len(texts) == len(commands)
        assert not any("time limit" in text for text in texts)
        assert texts[0].startswith("got:\n")
