"""Whatever is said, left, gone back to, compacted, undone and restarted: one view, paired calls, an append-only log."""

from __future__ import annotations

import asyncio
import random
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.protocol.message import AssistantMessage, UserMessage
from tests.core.compacting import SUMMARY, is_summary_request
from tests.core.going_back import check, command, said
from tests.core.harness import Agent, reopened
from tests.examples import few_examples
from tests.server import Call, Reply, Request, ScriptedServer

OPERATIONS = (
    "ask",
    "read",
    "write",
    "move",
    "notes",
    "both",
    "files",
    "compact",
    "from",
    "undo",
    "redo",
    "restart",
    "shell",
)
STEPS = st.lists(st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 2**20)), min_size=4, max_size=12)


def script(request: Request) -> Reply:
    """Long answers, parallel calls, notes."""
    if is_summary_request(request):
        return Reply(SUMMARY)
    if any(item.kind == "result" for item in request.turn):
        return Reply("done " * 40)
    verb, _, rest = said(request).partition(" ")
    if verb == "read":
        return Reply(tool_calls=[Call("read", {"path": "a.txt"}), Call("read", {"path": "none.txt"})])
    if verb == "write":
        return Reply(
            tool_calls=[Call("write", {"path": f"{rest}.txt", "content": rest}), Call("read", {"path": "a.txt"})]
        )
    return Reply("answer " * 60)


async def do(running: Agent, operation: str, number: int) -> None:
    source = random.Random(number)
    entries = [entry for entry in running.session.entries() if isinstance(entry, UserMessage | AssistantMessage)]
    seq = source.choice(entries).seq if entries else 1
    match operation:
        case "ask":
            await running.ask(f"question {number} " + "because " * 60)
        case "read" | "write":
            await running.ask(f"{operation} {number % 3}")
        case "move":
            await command(running, f"/tree {seq}")
        case "notes":
            await command(running, f"/tree {seq} summary")
        case "both" | "files":
            await command(running, f"/rewind {seq} {operation}")
        case "compact":
            await command(running, "/compact")
        case "from":
            await command(running, f"/compact from {seq}")
        case "undo" | "redo":
            await command(running, f"/compact {operation}")
        case _:
            await command(running, f"/label #{seq} here")


async def play(folder: Path, steps: list[tuple[str, int]], protocol: str) -> None:
    (folder / "work").mkdir()
    (folder / "work" / "a.txt").write_text("text\n" * 50)
    log = b""
    async with ScriptedServer(script, window=32_000) as server:
        rounds: list[list[tuple[str, int]]] = [[("ask", 1)]]
        for step in steps:
            rounds.append([]) if step[0] == "restart" else rounds[-1].append(step)
        view: list[object] = []
        for number, part in enumerate(rounds):
            async with reopened(folder, server, model=f"{protocol}/test", resume_latest=number > 0) as running:
                assert list(running.session.get_llm_history()) == view
                for operation, source in part:
                    await do(running, operation, source)
                    log = check(running, log)
                view = list(running.session.get_llm_history())
        assert [request.refused for request in server.requests if request.refused] == []
        assert not server.faults


@pytest.mark.parametrize("protocol", ["anthropic", "openai", "openai-chat"])
def test_one_view_paired_calls_and_a_log_that_only_grows(protocol):
    @few_examples()
    @given(STEPS)
    def holds(steps: list[tuple[str, int]]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            asyncio.run(asyncio.wait_for(play(Path(folder), steps, protocol), 120))

    holds()
