"""The API without `async`."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading

import pytest

import tenuto
from tenuto.protocol.event import AssistantTextDeltaEvent, TaskSettledEvent
from tenuto.session.library.catalog import list_sessions
from tests.api.using import options_of
from tests.core.compacting import is_summary_request
from tests.server import Call, Hang, Reply, ServerThread


def threads() -> set[str]:
    return {thread.name for thread in threading.enumerate() if thread.name in {"tenuto", "approvals"}}


def test_one_line(tmp_path):
    with ServerThread([Reply("Because."), Reply('{"sum": 3}')]) as server:
        options = options_of(tmp_path, server)
        answer = tenuto.run("why?", **options)
        assert (answer.text, answer.outcome) == ("Because.", "completed")
        with tenuto.SyncAgent(**options, resume=answer.session_id) as agent:
            assert agent.run("sum", schema={"type": "object"}).value == {"sum": 3}
        assert len(server.requests) == 2
    assert threads() == set()


def test_a_script_streams_compacts_undoes_and_forks(tmp_path):
    def script(request):
        return Reply("## Goal\nGo on.") if is_summary_request(request) else Reply("fine " * 600)

    with ServerThread(script, window=32_000) as server:
        with tenuto.SyncAgent(**options_of(tmp_path, server)) as agent:
            heard = []
            agent.subscribe(heard.append)
            for number in range(6):
                *events, answer = agent.stream(f"question {number} " + "because " * 300)
                assert "".join(one.text for one in events if isinstance(one, AssistantTextDeltaEvent)) == answer.text
            assert agent.preview().tokens_before
            entry = agent.compact()
            assert agent.undo().tokens_after > entry.tokens_after
            agent.redo()
            with agent.fork() as other:
                assert other.run("and here?").session_id not in {"", agent.session_id}
            for event in agent.stream("leave"):
                if isinstance(event, AssistantTextDeltaEvent):
                    break
            agent.interrupt()
            assert agent.usage.output > 0
            assert any(isinstance(event, TaskSettledEvent) for event in heard)
    assert threads() == set()


def test_its_own_errors_come_through(tmp_path):
    with ServerThread([Reply("Fine.")]) as server:
        options = options_of(tmp_path, server)
        agent = tenuto.SyncAgent(**options)
        with pytest.raises(tenuto.AgentClosedError, match="not open"):
            agent.run("go")
        with agent:
            with pytest.raises(tenuto.UsageError, match="empty"):
                agent.run("")
            assert agent.run("go").text == "Fine."
        agent.close()
        with pytest.raises(tenuto.AgentClosedError):
            agent.run("go")
        with pytest.raises(tenuto.UsageError, match="no-such-session"):
            tenuto.run("go", **options, resume="no-such-session")
    assert threads() == set()


def test_it_works_where_a_loop_runs_already(tmp_path):
    async def cell():
        return tenuto.run("go", **options)

    with ServerThread([Reply("Fine.")]) as server:
        options = options_of(tmp_path, server)
        assert asyncio.run(cell()).text == "Fine."


def test_a_plain_approve_function_and_a_tool(tmp_path):
    def add(first: int, second: int) -> int:
        """Add two numbers."""
        return first + second

    script = [Reply(tool_calls=[Call("add", {"first": 1, "second": 2})]), Reply("Three.")]
    with ServerThread(script) as server:
        answer = tenuto.run("add", **options_of(tmp_path, server), tools=[add], approve=lambda _request: tenuto.Allow())
        assert answer.text == "Three."
        assert server.requests[-1].items[-1].text == "3"


PROGRAM = """
import sys, tenuto
print("begin", flush=True)
tenuto.run("wait", cwd=sys.argv[1], model="openai-chat/test")
"""


def test_an_interrupt_of_the_keyboard_ends_a_script_with_its_session_kept(tmp_path):
    with ServerThread(lambda _request: Hang()) as server:
        environ = {**os.environ, **server.environ(), "TENUTO_HOME": str(tmp_path / "home")}
        program = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(tmp_path)], env=environ, stderr=subprocess.PIPE, text=True
        )
        for _ in range(600):
            if server.requests:
                break
            threading.Event().wait(0.05)
        program.send_signal(signal.SIGINT)
        _, errors = program.communicate(timeout=120)
    assert "KeyboardInterrupt" in errors
    (session,) = list_sessions(tmp_path / "home")
    assert session.error == ""
