"""A client that nobody here wrote: npm `acpx` drives `tenuto acp` from prompt to diff; `scripts/acp-clients` has it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.acp.client import environment
from tests.core.compacting import SUMMARY, is_summary_request
from tests.server import Call, Hang, Reply, Request, ScriptedServer

FOLDER = Path(os.environ.get("TENUTO_TEST_ACP_CLIENTS") or Path.home() / ".cache" / "tenuto-acp-clients")
ACPX = FOLDER / "node_modules/acpx/dist/cli.js"
NODE = FOLDER / "node_modules/node/bin/node"
WRITE = Call("write", {"path": "a.txt", "content": "one\ntwo\n"})

pytestmark = pytest.mark.skipif(
    not (ACPX.exists() and NODE.exists()), reason="acpx is not there: scripts/acp-clients installs it (npm)"
)


@dataclass
class Acpx:
    server: ScriptedServer
    work: Path
    environ: dict[str, str]

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *(str(NODE), str(ACPX), "--agent", f"{sys.executable} -m tenuto acp", "--cwd", str(self.work), *words),
            env=self.environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *words: str, code: int = 0) -> str:
        process = await self.start(*words)
        out, errors = await asyncio.wait_for(process.communicate(), 90)
        assert process.returncode == code, (out.decode(), errors.decode())
        return out.decode()


@pytest.fixture
async def acpx(tmp_path, request):
    work = tmp_path / "work"
    work.mkdir()
    async with ScriptedServer(request.param) as server:
        path = f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"
        running = Acpx(server, work, {**environment(tmp_path, server), "PATH": path})
        try:
            yield running
        finally:
            await (await running.start("sessions", "close")).wait()


def scripted(script):
    return pytest.mark.parametrize("acpx", [script], indirect=True)


@scripted([Reply("Let me see.", thinking="Hm.", tool_calls=[WRITE]), Reply("Done.")])
async def test_a_prompt_goes_through_permission_to_the_diff(acpx):
    said = await acpx.run("--approve-all", "exec", "make a.txt")
    for part in ("[thinking] Hm.", "Let me see.", "write a.txt (completed)", f"diff {acpx.work}/a.txt", "Done."):
        assert part in said
    assert "[done] end_turn" in said and (acpx.work / "a.txt").read_text() == "one\ntwo\n"


@scripted([Reply(tool_calls=[WRITE]), Reply("As you wish.")])
async def test_what_is_denied_there_is_not_done(acpx):
    await acpx.run("--deny-all", "exec", "make a.txt", code=5)
    assert not (acpx.work / "a.txt").exists()


@scripted([Reply(tool_calls=[Call("bash", {"command": "echo from a terminal; exit 4"})]), Reply("It failed.")])
async def test_a_command_runs_in_its_terminal(acpx):
    said = await acpx.run("--approve-all", "exec", "run it")
    assert "terminal/create" in said and "It failed." in said
    result = acpx.server.requests[-1].items[-1].text
    assert "from a terminal" in result and "Exit code 4" in result


@scripted([Hang(), Reply("Still here.")])
async def test_a_prompt_is_cancelled_from_another_process(acpx):
    await acpx.run("sessions", "new")
    prompt = await acpx.start("prompt", "think for ever")
    async with asyncio.timeout(40):
        while not acpx.server.requests:
            await asyncio.sleep(0.05)
    await acpx.run("cancel")
    out, _ = await asyncio.wait_for(prompt.communicate(), 40)
    assert "cancelled" in out.decode()
    assert "Still here." in await acpx.run("prompt", "and now?")


def long_talk(request: Request) -> Reply:
    return Reply(SUMMARY if is_summary_request(request) else "A very long answer about lighthouses. " * 400)


@scripted(long_talk)
async def test_modes_options_and_a_compaction_as_words(acpx):
    await acpx.run("sessions", "new")
    for number in range(4):
        await acpx.run("prompt", f"go on, part {number}: {'ships and light ' * 200}")
    await acpx.run("set-mode", "plan")
    await acpx.run("set", "mode", "auto")
    refused = await acpx.start("set", "model", "openai-chat/nobody")
    _, errors = await refused.communicate()
    assert refused.returncode and b"nobody" in errors
    said = await acpx.run("--format", "json", "prompt", "/compact")
    messages = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    updates = [one["params"]["update"] for one in messages if one.get("method") == "session/update"]
    text = "".join(one["content"]["text"] for one in updates if one["sessionUpdate"] == "agent_message_chunk")
    assert "compacted (manual):" in text  # this client does not ask for compactions
