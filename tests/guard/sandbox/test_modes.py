"""Which mode asks what: in a sandbox, without one, and for a command that is to leave it."""

from __future__ import annotations

import asyncio
import contextlib
import os

import msgspec
import pytest

from tenuto.guard.approval import judge
from tenuto.guard.kinds import kinds_of
from tenuto.guard.rules import read_rule
from tenuto.guard.sandbox.machine import find_machine
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent, ToolOutputEvent, ToolStartedEvent
from tenuto.protocol.operation import AnswerApprovalOperation, MoveToBackgroundOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent, one_call_each
from tests.guard.subjects import ROOT, run
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
        assert [kind.rules for kind in asked.kinds] == [(f"bash(outside: {command})",)], "no kind, only the exact line"
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


COMMANDS = ("make", "npm publish", "npm publish --tag x", "git status", "outside: make", "make *")


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_a_rule_for_commands_covers_none_outside_unless_it_says_so(mode):
    for command in COMMANDS:
        held = msgspec.structs.replace(run(command), confined=True)
        leaving = msgspec.structs.replace(run(command), leaves_sandbox="network")
        inner = [read_rule(text) for kind in kinds_of(held, [ROOT]) for text in kind.rules]
        inner += [
            read_rule(text) for text in ("bash", "bash(make *)", "bash(npm *)", "bash(git *)", "bash(npm publish)")
        ]
        assert isinstance(judge(mode, leaving, inner, [ROOT]), Ask), command
        (kind,) = kinds_of(leaving, [ROOT])
        assert isinstance(judge(mode, leaving, [read_rule(text) for text in kind.rules], [ROOT]), Allow), command
        for other in COMMANDS:
            what = msgspec.structs.replace(run(other), leaves_sandbox="network")
            verdict = judge(mode, what, [read_rule(text) for text in kind.rules], [ROOT])
            assert isinstance(verdict, Allow) is (other == command), (command, other)


def test_a_rule_for_outside_covers_kinds_and_every_command():
    leaving = msgspec.structs.replace(run("npm publish --tag x"), leaves_sandbox="network")
    for text in ("bash(outside: npm publish *)", "bash(outside:npm publish:*)", "bash(outside: *)", "bash(outside:)"):
        assert isinstance(judge("auto", leaving, [read_rule(text)], [ROOT]), Allow), text
        assert isinstance(judge("ask", run("npm publish --tag x"), [read_rule(text)], [ROOT]), Allow), text
    for text in ("bash(outside: npm install *)", "bash(outside: npm publish)"):
        assert isinstance(judge("auto", leaving, [read_rule(text)], [ROOT]), Ask), text


@pytest.mark.parametrize("facts", [{"confined": True}, {"leaves_sandbox": "network"}])
def test_rules_that_ask_or_deny_count_in_the_sandbox_and_outside_of_it(facts):
    what = msgspec.structs.replace(run("npm publish"), **facts)
    for text in ("bash", "bash(npm *)", "bash(npm publish)"):
        asked = judge("auto", what, [read_rule(text, "ask"), read_rule("bash(outside:)")], [ROOT])
        assert isinstance(asked, Ask)
        assert asked.rule == text
        assert isinstance(judge("auto", what, [read_rule(text, "deny")], [ROOT]), Refuse)
    leaves = "leaves_sandbox" in facts
    for text in ("bash(outside:)", "bash(outside: npm *)", "bash(outside: npm publish)"):
        assert isinstance(judge("auto", what, [read_rule(text, "deny")], [ROOT]), Refuse) is leaves


@needs_some
async def test_rules_that_ask_or_deny_count_in_auto_when_the_sandbox_holds_the_command(tmp_path):
    script = one_call_each(Call("bash", {"command": "touch made"}))
    async with agent(tmp_path, script, interactive=False, rules=(read_rule("bash(touch *)", "deny"),)) as running:
        await running.ask("go")
        assert "The user's own rule denies" in tool_texts(running)[0]
        assert not (tmp_path / "work" / "made").exists()


def test_a_command_that_reads_only_and_wants_to_leave_asks_as_well(tmp_path):
    subject = ApprovalSubject(kind="execute", tool="bash", summary="", detail="git status", leaves_sandbox="x")
    for mode in ("ask", "edits", "auto"):
        assert isinstance(judge(mode, subject, [], [str(tmp_path)]), Ask)


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
    script = one_call_each(Call("bash", {"command": "echo begun; while [ ! -e go ]; do sleep 0.05; done; echo over"}))
    async with agent(tmp_path, script, sandboxed=sandboxed) as running:
        await running.send("go")
        await running.until(ToolStartedEvent)
        context = running.runtime.live.tool_context
        async with asyncio.timeout(20):
            while not context.waited_for or not any("begun" in one.text for one in running.of(ToolOutputEvent)):
                await asyncio.sleep(0.02)
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
        (tmp_path / "work" / "go").touch()
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
