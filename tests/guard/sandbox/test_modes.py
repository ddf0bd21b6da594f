"""Which mode asks what: in a sandbox, without one, and for a command that is to leave it."""

from __future__ import annotations

import asyncio
import contextlib
import os

import pytest

from tenuto.guard.approval import judge
from tenuto.guard.sandbox.machine import find_machine
from tenuto.guard.subject import Allow, ApprovalSubject, Ask
from tenuto.protocol.entry import ApprovalEntry
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent, ToolStartedEvent
from tenuto.protocol.operation import AnswerApprovalOperation, MoveToBackgroundOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent, one_call_each
from tests.server import Call

NO_KIND = {"TENUTO_SANDBOX__KIND": "seatbelt", "TENUTO_SANDBOX__ENABLED": "true"}
"""A kind that no Linux has."""
needs_some = pytest.mark.skipif(
    not find_machine().kind or os.environ.get("TENUTO_SANDBOX__ENABLED") == "false",
    reason=f"no sandbox is used here; this machine has {find_machine()}",
)


def tool_texts(running) -> list[str]:
    from tenuto.protocol.message import ToolResultMessage

    return [text_of(entry.parts) for entry in running.session.path() if isinstance(entry, ToolResultMessage)]


async def test_auto_without_a_sandbox_asks_as_edits_does(tmp_path):
    script = one_call_each(Call("bash", {"command": "echo x > made"}))
    async with agent(tmp_path, script, interactive=False, environ=NO_KIND) as running:
        await running.ask("go")
        (text,) = tool_texts(running)
        assert "--no-sandbox" in text
        assert not (tmp_path / "work" / "made").exists()
        assert any("no sandbox" in event.text for event in running.of(NoticeEvent))


@pytest.mark.parametrize("changes", [{"sandboxed": False}, {"environ": {"TENUTO_SANDBOX__ENABLED": "false"}}])
async def test_the_user_can_do_without_one(tmp_path, changes):
    script = one_call_each(Call("bash", {"command": f"echo x > {tmp_path}/made"}))
    changes = dict(changes)
    environ = {**NO_KIND, **changes.pop("environ", {})}
    async with agent(tmp_path, script, interactive=False, environ=environ, **changes) as running:
        await running.ask("go")
        assert not running.of(ApprovalRequestedEvent)


@needs_some
async def test_auto_runs_unasked_in_the_sandbox_and_what_is_blocked_is_told(tmp_path):
    script = one_call_each(Call("bash", {"command": "echo x > made; echo x > /usr/tenuto-test"}))
    async with agent(tmp_path, script, interactive=False) as running:
        await running.ask("go")
        (text,) = tool_texts(running)
        assert "The sandbox may have blocked this" in text
        assert "/usr/tenuto-test" in text
        assert "outside" in text
        assert (tmp_path / "work" / "made").exists()


@needs_some
@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
async def test_to_leave_the_sandbox_asks_in_every_mode(tmp_path, mode):
    command = f"echo x > {tmp_path}/made"
    script = one_call_each(Call("bash", {"command": command, "outside": "it writes the list"}))
    async with agent(tmp_path, script, mode=mode) as running:
        await running.send("go")
        asked = await running.until(ApprovalRequestedEvent)
        assert "outside the sandbox: it writes the list" in asked.reason
        assert asked.session_pattern != command
        assert not (tmp_path / "made").exists()
        await running.runtime.submit(
            AnswerApprovalOperation(session_id=running.session.id, request_id=asked.request_id, decision="once")
        )
        await running.runtime.wait_settled()
        assert (tmp_path / "made").exists()


@needs_some
async def test_to_leave_the_sandbox_is_refused_where_nobody_can_be_asked_unless_a_rule_allows_it(tmp_path):
    command = f"echo x > {tmp_path}/made"
    script = one_call_each(Call("bash", {"command": command, "outside": "it writes the list"}))
    async with agent(tmp_path, script, interactive=False) as running:
        await running.ask("go")
        assert "outside the sandbox" in tool_texts(running)[0]
        assert not (tmp_path / "made").exists()
    subject = ApprovalSubject(kind="execute", tool="bash", summary="", detail="pytest -q", leaves_sandbox="network")
    rule = ApprovalEntry(tool="bash", pattern="pytest *", scope="run")
    assert isinstance(judge("auto", subject, [], tmp_path), Ask)
    assert isinstance(judge("auto", subject, [rule], tmp_path), Allow)


def test_an_answer_for_a_command_inside_covers_none_outside(tmp_path):
    inside = ApprovalEntry(tool="bash", pattern="make")
    subject = ApprovalSubject(
        kind="execute", tool="bash", summary="", detail="make", pattern="make (outside the sandbox)", leaves_sandbox="x"
    )
    assert isinstance(judge("edits", subject, [inside], tmp_path), Ask)


def test_a_command_that_reads_only_and_wants_to_leave_asks_as_well(tmp_path):
    subject = ApprovalSubject(kind="execute", tool="bash", summary="", detail="git status", leaves_sandbox="x")
    for mode in ("ask", "edits", "auto"):
        assert isinstance(judge(mode, subject, [], tmp_path), Ask)


async def test_a_project_cannot_switch_it_off(tmp_path):
    work = tmp_path / "work"
    (work / ".tenuto").mkdir(parents=True)
    (work / ".tenuto" / "settings.toml").write_text("[sandbox]\nenabled = false\nnetwork = true\n")
    async with agent(tmp_path, one_call_each(), environ={"TENUTO_SANDBOX__ENABLED": "true"}) as running:
        sandbox = running.runtime.live.tool_context.sandbox
        assert sandbox is not None
        assert sandbox.wanted
        assert not running.runtime.live.settings.sandbox.network


async def test_a_command_of_the_user_is_not_held(tmp_path):
    from tenuto.protocol.operation import RunShellOperation

    async with agent(tmp_path, one_call_each()) as running:
        operation = RunShellOperation(session_id=running.session.id, command=f"echo x > {tmp_path}/made")
        await running.runtime.submit(operation)
        async with asyncio.timeout(20):
            while not (tmp_path / "made").exists():
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("sandboxed", [True, False])
async def test_a_running_command_can_be_moved_to_the_background(tmp_path, sandboxed):
    if sandboxed and os.environ.get("TENUTO_SANDBOX__ENABLED") == "false":
        pytest.skip(f"no sandbox is used here; this machine has {find_machine()}")
    script = one_call_each(Call("bash", {"command": "echo begun; sleep 3; echo over"}))
    async with agent(tmp_path, script, sandboxed=sandboxed) as running:
        await running.send("go")
        await running.until(ToolStartedEvent)
        context = running.runtime.live.tool_context
        async with asyncio.timeout(20):
            while not context.waited_for:
                await asyncio.sleep(0.02)
        await asyncio.sleep(0.5)
        await running.runtime.submit(MoveToBackgroundOperation(session_id=running.session.id))
        async with asyncio.timeout(20):
            while not tool_texts(running):
                await asyncio.sleep(0.02)
        text = tool_texts(running)[0]
        assert "The user moved this command to the background: job-1" in text
        assert "begun" in text
        (job,) = context.jobs.all()
        assert job.is_running
        assert job.asked_for
        assert job.is_confined is sandboxed
        async with asyncio.timeout(20):
            while job.is_running:
                await asyncio.sleep(0.05)
        assert "over" in job.process.collector.text(1000, 100).text
        with contextlib.suppress(Exception):
            await running.runtime.wait_settled()


def test_the_footer_says_all_the_time_that_there_is_no_sandbox():
    from tenuto.tui.chrome import footer_line
    from tenuto.tui.state.state import StatusLine, UiState

    for width in (200, 40, 20):
        for items in ((), ("model",)):
            state = UiState(status=StatusLine(mode="auto", model="x" * 50, sandboxed=False))
            said = footer_line(state, width, "/", items).text
            assert "no sandbox" in said
    state = UiState(status=StatusLine(mode="auto", model="x"))
    assert "no sandbox" not in footer_line(state, 200, "/").text
