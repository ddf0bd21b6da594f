"""kill -9 of a real process in the middle of a compaction, with texts typed meanwhile; then resume (R-016, R-044)."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tenuto.protocol.event import CompactionStartEvent, QueueChangedEvent
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import SUMMARY, compact, compactions, fill, is_summary_request, talk
from tests.core.harness import Agent, reopened
from tests.program import PYTHON
from tests.server import Hang, Reply, Request, ScriptedServer
from tests.session.build import check_pairs

ROOT = Path(__file__).parent.parent.parent


class Victim:
    """A process with the session open."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process

    async def send(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())
        await self.process.stdin.drain()

    async def until(self, name: str, count: int = 1) -> None:
        assert self.process.stdout is not None
        async with asyncio.timeout(60):
            while count:
                line = await self.process.stdout.readline()
                assert line, "the process ended"
                count -= line.decode().strip() == name

    async def kill(self) -> None:
        if self.process.returncode is None:
            self.process.kill()
        await self.process.wait()


@asynccontextmanager
async def victim(tmp_path: Path, server: ScriptedServer, model: str = "openai-chat/test") -> AsyncIterator[Victim]:
    arguments = (str(tmp_path / "home"), str(tmp_path / "work"), model)
    process = await asyncio.create_subprocess_exec(
        PYTHON,
        "-m",
        "tests.core.crashing",
        *arguments,
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", **server.environ()},
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    running = Victim(process)
    try:
        await running.until("ready")
        yield running
    finally:
        await running.kill()


def added(before: bytes, log: Path) -> list[dict[str, object]]:
    """Return the entries that were appended since; nothing before them may have changed."""
    now = log.read_bytes()
    assert now.startswith(before)
    return [json.loads(line) for line in now[len(before) :].splitlines()]


async def prepare(tmp_path: Path, server: ScriptedServer) -> tuple[Path, bytes, list[object]]:
    """Leave a conversation on disk; return its log, the log's bytes, and the view."""
    async with reopened(tmp_path, server) as running:
        await fill(running)
        view = list(running.session.get_llm_history())
        log = running.session.directory / "events.jsonl"
    return log, log.read_bytes(), view


def check_as_before(running: Agent, view: list[object]) -> None:
    assert list(running.session.get_llm_history()) == view
    assert not running.session.damage
    assert not running.of(CompactionStartEvent), "R-101: nothing is pending after a resume"


POINTS = {"silence": Hang(), "streaming": Reply(SUMMARY, delay_per_event=0.1)}


@pytest.mark.parametrize("point", POINTS)
async def test_killed_between_start_and_end_the_session_is_as_before_and_what_was_typed_is_queued(tmp_path, point):
    summary = POINTS[point]

    def script(request: Request):
        return summary if is_summary_request(request) else Reply("fine " * 600)

    async with ScriptedServer(script, window=32_000) as server:
        log, before, view = await prepare(tmp_path, server)
        asked = len(server.requests)
        async with victim(tmp_path, server) as process:
            await process.send("compact")
            await process.until("CompactionProgressEvent", 4 if point == "streaming" else 1)
            await server.wait_for_requests(asked + 1)
            for text in ("one", "two", "three"):
                await process.send(f"say {text}")
            await process.until("QueueChangedEvent", 3)
            await process.kill()
        assert [entry["type"] for entry in added(before, log)] == ["queued"] * 3, "R-046: nothing but what was typed"

        summary = Reply(SUMMARY)
        async with reopened(tmp_path, server, resume_latest=True) as running:
            check_as_before(running, view)
            queue = running.of(QueueChangedEvent)[-1]
            assert [text_of(item.parts) for item in queue.items] == ["one", "two", "three"]
            assert queue.waiting, "the queue waits for the user after a resume"
            assert len(server.requests) == asked + 1

            await running.runtime.submit_prompt(())
            assert (await asyncio.wait_for(running.runtime.wait_settled(), 60)).outcome == "completed"
            sent = [text_of(one.parts) for one in running.session.path() if isinstance(one, UserMessage)]
            assert sent[-3:] == ["one", "two", "three"]
            assert len(sent) == 9
            assert not running.session.state.queue
            await compact(running)
            assert len(compactions(running)) == 1
            check_pairs(running.session.get_llm_history())
        assert not server.refusals


async def test_killed_at_a_random_moment_the_compaction_is_whole_or_not_there(tmp_path):
    """T-11"""
    seed = random.randrange(1_000_000)
    print("seed", seed)
    dice = random.Random(seed)
    slow = Reply(SUMMARY, delay_per_event=0.01)
    async with ScriptedServer(talk(summary=slow), window=32_000) as server:
        log, before, view = await prepare(tmp_path, server)
        for _ in range(4):
            async with victim(tmp_path, server) as process:
                await process.send("compact")
                await process.until("CompactionStartEvent")
                await asyncio.sleep(dice.uniform(0, 0.2))
                await process.kill()
            new = added(before, log)
            async with reopened(tmp_path, server, resume_latest=True) as running:
                if any(entry["type"] == "compaction" for entry in new):
                    last = compactions(running)[-1]
                    assert last.replacement
                    assert running.session.get_llm_history()[1].text == last.replacement[0].text
                else:
                    check_as_before(running, view)
                    assert not new
                await fill(running, 3)
                view = list(running.session.get_llm_history())
            before = log.read_bytes()
        assert not server.refusals


async def test_a_process_that_is_killed_while_notes_on_a_branch_are_written_has_moved_nothing(tmp_path):
    hanging = True

    def answer(request: Request) -> Reply | Hang:
        return Hang() if hanging and is_summary_request(request) else Reply(SUMMARY)

    async with ScriptedServer(talk(summary=answer), window=32_000) as server:
        log, before, view = await prepare(tmp_path, server)
        target = next(json.loads(line)["seq"] for line in before.splitlines() if b'"type":"user"' in line)
        async with victim(tmp_path, server) as running:
            await running.send(f"/tree {target} summary")
            await running.until("CompactionProgressEvent")
            await running.send("say typed meanwhile")
            await running.until("QueueChangedEvent")
            await running.kill()
        assert [entry["type"] for entry in added(before, log)] == ["queued"]
        hanging = False
        async with reopened(tmp_path, server, resume_latest=True) as running:
            check_as_before(running, view)
            await running.runtime.run_command(f"/tree {target} summary")
            (notes,) = (one for one in running.session.get_llm_history() if isinstance(one, UserMessage))
            assert SUMMARY in text_of(notes.parts)
            check_pairs(running.session.get_llm_history())
