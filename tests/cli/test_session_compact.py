"""`tenuto sessions compact` as a real process: the plan as data, the compaction without a screen, its exit codes."""

from __future__ import annotations

import asyncio
import json
import os
import signal
from pathlib import Path

import msgspec

from tenuto.compaction.ways.preview import PlanDescription
from tenuto.session.session import Session
from tests.core.compacting import SUMMARY, compactions, fill, is_summary_request, talk
from tests.core.harness import reopened
from tests.program import TENUTO
from tests.server import Hang, Reply, ScriptedServer

Result = tuple[int, str, str]


async def start(tmp_path: Path, server: ScriptedServer, *arguments: str) -> asyncio.subprocess.Process:
    environ = {**os.environ, **server.environ(), "TENUTO_HOME": str(tmp_path / "home")}
    return await asyncio.create_subprocess_exec(
        *TENUTO, "sessions", "compact", *arguments,
        env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip


async def run(tmp_path: Path, server: ScriptedServer, *arguments: str) -> Result:
    process = await start(tmp_path, server, *arguments)
    out, err = await asyncio.wait_for(process.communicate(), 60)
    return process.returncode or 0, out.decode(), err.decode()


async def stored(tmp_path: Path, server: ScriptedServer) -> tuple[str, Path]:
    """Leave a session of six turns behind; return its id and its log."""
    async with reopened(tmp_path, server) as running:
        await fill(running)
        return running.session.id, running.session.directory / "events.jsonl"


async def test_a_dry_run_is_the_plan_as_data_and_changes_nothing(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        session_id, log = await stored(tmp_path, server)
        before, asked = log.read_bytes(), len(server.requests)
        code, out, err = await run(tmp_path, server, session_id, "--dry-run", "--json")
        assert (code, err) == (0, "")
        plan = msgspec.json.decode(out, type=PlanDescription)
        assert plan.cut > 0 and plan.entries_kept > 0 and plan.entries_summarised > 0
        assert 0 < plan.tokens_kept < plan.tokens_before < plan.trigger < plan.window == 32_000
        assert plan.rung == plan.requests[0].rung and plan.requests[-1].rung == "digest"
        assert all(request.tokens < plan.window for request in plan.requests)
        code, out, _ = await run(tmp_path, server, session_id[:19], "--dry-run")
        assert code == 0
        assert f"#{plan.cut}" in out and "would try" in out
        assert log.read_bytes() == before
        assert not [request for request in server.requests[asked:] if request.kind == "model"]


async def test_it_compacts_an_idle_session_as_the_dry_run_said(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        session_id, log = await stored(tmp_path, server)
        _, out, _ = await run(tmp_path, server, session_id, "--dry-run", "--json")
        cut = json.loads(out)["cut"]
        code, out, err = await run(tmp_path, server, session_id, "keep", "the", "port")
        assert (code, err) == (0, "")
        assert out.startswith("compacted: ") and out.count("\n") == 1
        session = Session.open(log.parent, read_only=True)
        (entry,) = [entry for entry in session.path() if entry.__struct_config__.tag == "compaction"]
        assert (entry.first_kept_index, entry.focus) == (cut, "keep the port")  # type: ignore[union-attr]
        code, out, err = await run(tmp_path, server, session_id)
        assert (code, out) == (0, "")
        assert "nothing to compact" in err
        async with reopened(tmp_path, server, resume=session_id) as running:
            assert len(compactions(running)) == 1
            assert (await running.ask("go on")).outcome == "completed"
        assert not any(request.refused for request in server.requests)


async def test_the_events_are_real_ones(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        session_id, _ = await stored(tmp_path, server)
        code, out, _ = await run(tmp_path, server, session_id, "--json")
        names = [json.loads(line)["event"] for line in out.splitlines()]
        assert code == 0
        order = ["task_started", "compaction_start", "compaction_progress", "compaction_end", "task_finished"]
        assert [name for place, name in enumerate(names) if name in order and name not in names[:place]] == order
        progress = [line for line in map(json.loads, out.splitlines()) if line["event"] == "compaction_progress"]
        assert any(line["summary_tokens"] for line in progress)
        assert not any("text" in line for line in progress)  # the end has the whole


async def test_a_session_that_is_open_elsewhere_is_refused_with_who_has_it(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server) as running:
            await fill(running, 2)
            for more in ((), ("--dry-run",)):
                code, out, err = await run(tmp_path, server, running.session.id, *more)
                assert (code, out) == (1, "")
                assert f"open in process {os.getpid()}" in err


async def test_bad_usage_is_two_a_failure_one_and_an_interrupt_130(tmp_path):
    def script(request):
        return Hang() if is_summary_request(request) else Reply("fine " * 600)

    async with ScriptedServer(script, window=32_000) as server:
        session_id, log = await stored(tmp_path, server)
        assert (await run(tmp_path, server))[0] == 2
        assert (await run(tmp_path, server, "nonesuch"))[0] == 2
        before, asked = log.read_bytes(), len(server.requests)
        process = await start(tmp_path, server, session_id)
        while not any(is_summary_request(request) for request in server.requests[asked:]):
            await asyncio.sleep(0.02)
        process.send_signal(signal.SIGINT)
        out, err = await asyncio.wait_for(process.communicate(), 30)
        assert (process.returncode, out) == (130, b"")
        assert b"cancelled" in err
        assert log.read_bytes() == before
        assert SUMMARY not in log.read_text()


async def test_what_an_earlier_run_did_is_not_told_as_news_in_print_mode(tmp_path):
    async with ScriptedServer(talk(), window=32_000) as server:
        session_id, _ = await stored(tmp_path, server)
        await run(tmp_path, server, session_id)
        environ = {**os.environ, **server.environ(), "TENUTO_HOME": str(tmp_path / "home")}
        process = await asyncio.create_subprocess_exec(
            *TENUTO, "-p", "-r", session_id, "/pins",
            env=environ, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, err = await asyncio.wait_for(process.communicate(), 60)
        assert out.startswith(b"No pins")
        assert b"compacted" not in err
