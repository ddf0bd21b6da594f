"""Answers that stand: for a session, for good in a directory, taken back."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.outcome import Choose
from tenuto.command.registry import run_command
from tenuto.protocol.event import ApprovalRequestedEvent, NoticeEvent, ToolResultEvent
from tenuto.protocol.message import DenialView
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent, reopened
from tests.server import Call, Reply, ScriptedServer

COMMAND = "echo one > made.txt"
RUN = Reply(tool_calls=[Call("bash", {"command": COMMAND})])


def script(request):
    return RUN if request.items[-1].kind == "user" else Reply("done")


async def answer(running, decision: str) -> None:
    request = running.of(ApprovalRequestedEvent)[-1]
    await running.runtime.submit(
        AnswerApprovalOperation(session_id=running.runtime.session_id, request_id=request.request_id, decision=decision)
    )


async def ask_and_answer(running, decision: str) -> ApprovalRequestedEvent:
    asked = len(running.of(ApprovalRequestedEvent))
    await running.send("run it")
    request = await running.until(ApprovalRequestedEvent, asked + 1)
    await answer(running, decision)
    await asyncio.wait_for(running.runtime.wait_settled(), 60)
    return request


async def is_asked(running) -> bool:
    """Send a prompt and say whether its command had to be asked for; then it is denied."""
    asked = len(running.of(ApprovalRequestedEvent))
    results = len(running.of(ToolResultEvent))
    await running.send("run it")
    async with asyncio.timeout(60):
        while len(running.of(ApprovalRequestedEvent)) == asked and len(running.of(ToolResultEvent)) == results:
            await asyncio.sleep(0.005)
    was_asked = len(running.of(ApprovalRequestedEvent)) > asked
    if was_asked:
        await answer(running, "deny")
    await asyncio.wait_for(running.runtime.wait_settled(), 60)
    return was_asked


async def test_what_the_user_says_to_a_denial_reaches_the_model_and_stays_on_the_call(tmp_path):
    async with ScriptedServer(script) as server, reopened(tmp_path, server, mode="ask") as running:
        await running.send("run it")
        request = await running.until(ApprovalRequestedEvent)
        await running.runtime.submit(
            AnswerApprovalOperation(
                session_id=running.runtime.session_id,
                request_id=request.request_id,
                decision="deny",
                feedback="use tox",
            )
        )
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        result = running.of(ToolResultEvent)[-1].message
        assert result.denied and result.ui == (DenialView(feedback="use tox"),)
        assert "use tox" in text_of(result.parts)


BATCH = ["echo one > 1.txt", "ls", "echo two > 2.txt", "echo three > 3.txt"]


@pytest.mark.parametrize(("mode", "counts"), [("ask", [(0, 2), (1, 1), (2, 0)]), ("auto", [])])
async def test_each_question_says_how_many_calls_of_the_answer_are_asked_about(tmp_path, mode, counts):
    calls = Reply(tool_calls=[Call("bash", {"command": command}) for command in BATCH])
    async with (
        ScriptedServer([calls, Reply("done")]) as server,
        reopened(tmp_path, server, mode=mode) as running,
    ):
        await running.send("run them")
        for number, _count in enumerate(counts, 1):
            await running.until(ApprovalRequestedEvent, number)
            await answer(running, "once")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert [(event.asked, event.behind) for event in running.of(ApprovalRequestedEvent)] == counts


async def test_what_is_allowed_meanwhile_is_counted_no_more(tmp_path):
    commands = ("echo 1 > a", "echo 1 > a", "echo 2 > a")
    calls = Reply(tool_calls=[Call("bash", {"command": command}) for command in commands])
    async with (
        ScriptedServer([calls, calls, Reply("done")]) as server,
        reopened(tmp_path, server, mode="ask") as running,
    ):
        await running.send("run them")
        await running.until(ApprovalRequestedEvent, 1)
        await answer(running, "session")
        await running.until(ApprovalRequestedEvent, 2)
        await answer(running, "deny")
        await running.until(ApprovalRequestedEvent, 3)
        await answer(running, "deny")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        counted = [(event.asked, event.behind) for event in running.of(ApprovalRequestedEvent)]
        assert counted == [(0, 2), (1, 0), (0, 0)], "an answer begins anew"


async def test_a_call_that_has_ended_does_not_wait_for_the_answer_to_another(tmp_path):
    fetch = Call("fetch", {"url": "http://127.0.0.1:9/x"})
    calls = Reply(tool_calls=[Call("glob", {"pattern": "*"}), fetch, Call("glob", {"pattern": "*.py"})])
    async with (
        ScriptedServer([calls, Reply("done")]) as server,
        reopened(tmp_path, server, mode="ask") as running,
    ):
        await running.send("look")
        await running.until(ApprovalRequestedEvent)
        first = await running.until(ToolResultEvent)
        assert first.message.name == "glob"
        await answer(running, "deny")
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        names = [event.message.name for event in running.of(ToolResultEvent)]
        assert names == ["glob", "fetch", "glob"], "they are stored in the order of the calls"


async def test_calls_that_run_side_by_side_are_asked_about_at_once_and_counted(tmp_path):
    calls = Reply(tool_calls=[Call("fetch", {"url": f"http://127.0.0.1:9/{place}"}) for place in range(3)])
    async with (
        ScriptedServer([calls, Reply("done")]) as server,
        reopened(tmp_path, server, mode="ask") as running,
    ):
        await running.send("fetch them")
        await running.until(ApprovalRequestedEvent, 3)
        assert [(event.asked, event.behind) for event in running.of(ApprovalRequestedEvent)] == [(0, 0), (1, 0), (2, 0)]
        for request in running.of(ApprovalRequestedEvent):
            await running.runtime.submit(
                AnswerApprovalOperation(
                    session_id=running.runtime.session_id, request_id=request.request_id, decision="deny"
                )
            )
        await asyncio.wait_for(running.runtime.wait_settled(), 60)


async def test_always_in_this_project_holds_in_later_sessions_there_and_nowhere_else(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, mode="ask") as running:
            request = await ask_and_answer(running, "project")
            assert [kind.rules for kind in request.kinds] == [(f"bash({COMMAND})",)]
            assert not await is_asked(running)
            assert running.session.state.approvals == (), "it is in no log"
            [told] = [event.text for event in running.of(NoticeEvent) if "/approvals" in event.text]
            assert COMMAND in told and str(tmp_path / "work") in told
        async with reopened(tmp_path, server, mode="ask") as running:
            assert not await is_asked(running)
        async with reopened(tmp_path, server, mode="ask", cwd=other) as running:
            assert await is_asked(running)
        async with reopened(tmp_path, server, mode="plan") as running:
            assert not await is_asked(running)
            assert running.of(ToolResultEvent)[-1].message.denied, "plan mode refuses what is allowed elsewhere"


async def test_a_project_cannot_allow_itself_anything(tmp_path):
    place = tmp_path / "work" / ".tenuto"
    place.mkdir(parents=True)
    text = f'[[allow]]\ntool = "bash"\npattern = "{COMMAND}"\ndirectory = "{tmp_path / "work"}"\n'
    (place / "approvals.toml").write_text(text)
    (place / "settings.toml").write_text(text)
    async with agent(tmp_path, script, mode="ask") as running:
        assert await is_asked(running)


async def test_what_cannot_be_written_down_holds_for_the_session_and_says_so(tmp_path):
    async with agent(tmp_path, script, mode="ask") as running:
        (tmp_path / "home" / "approvals.toml").write_text("[[allow")
        await ask_and_answer(running, "project")
        assert [entry.pattern for entry in running.session.state.approvals] == [COMMAND]
        texts = [event.text for event in running.of(NoticeEvent) if event.level == "warning"]
        assert any("nothing in it is allowed" in text for text in texts)
        assert any("for this session only" in text for text in texts)
        assert not await is_asked(running)


@pytest.mark.parametrize("decision", ["session", "project"])
async def test_what_stands_is_listed_and_can_be_taken_back(tmp_path, decision):
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, mode="ask") as running:
            (said,) = await run_command(running.runtime, "/approvals")
            assert "No rules" in said.text
            await ask_and_answer(running, decision)
            (choose,) = await run_command(running.runtime, "/permissions")
            assert isinstance(choose, Choose)
            leave, row = choose.choices
            assert leave.present and not leave.value, "Enter by itself takes nothing back"
            assert row.label == f"1. allow bash({COMMAND})"
            (said,) = await run_command(running.runtime, "/approvals remove 7")
            assert "not the number" in said.text
            await run_command(running.runtime, f"/{choose.command} {row.value}")
            assert await is_asked(running)
            (said,) = await run_command(running.runtime, "/approvals")
            assert "No rules" in said.text
        async with reopened(tmp_path, server, mode="ask", resume_latest=True) as running:
            assert running.session.state.approvals == ()
            assert await is_asked(running)


async def test_answers_of_other_directories_are_listed_too(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    async with ScriptedServer(script) as server:
        async with reopened(tmp_path, server, mode="ask", cwd=other) as running:
            await ask_and_answer(running, "project")
        async with reopened(tmp_path, server, mode="ask") as running:
            (choose,) = await run_command(running.runtime, "/approvals")
            assert choose.choices[1].detail == str(other)
            await run_command(running.runtime, "/approvals remove 1")
            assert running.runtime.live.saved_approvals.all() == ()


async def test_rules_of_every_source_are_listed_added_and_revoked(tmp_path):
    async with ScriptedServer(script) as server, reopened(tmp_path, server, mode="ask") as running:
        for words in ("bash(echo *)", "--project bash(ls *)", "--always --deny bash(rm *)"):
            (said,) = await run_command(running.runtime, f"/approvals add {words}")
            assert said.text.startswith("Added: ")
        assert 'deny = ["bash(rm *)"]' in (tmp_path / "home" / "settings.toml").read_text()
        (choose,) = await run_command(running.runtime, "/approvals")
        rows = [(row.label, row.detail) for row in choose.choices[1:]]
        assert rows == [
            ("1. deny bash(rm *)", "your settings"),
            ("2. allow bash(echo *)", "this session"),
            ("3. allow bash(ls *)", "this project"),
        ]
        for row in choose.choices[1:]:
            (said,) = await run_command(running.runtime, f"/approvals {row.value}")
            assert said.text.startswith("Revoked: ")
        (said,) = await run_command(running.runtime, "/approvals")
        assert "No rules" in said.text
        (said,) = await run_command(running.runtime, "/approvals add bsh(x)")
        assert "did you mean bash" in said.text.lower()


async def test_an_added_directory_is_part_of_the_workspace_also_after_a_resume(tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    write = Reply(tool_calls=[Call("write", {"path": str(other / "a"), "content": "x"})])

    def writes(request):
        return write if request.items[-1].kind == "user" else Reply("done")

    async with ScriptedServer(writes) as server:
        async with reopened(tmp_path, server, mode="edits") as running:
            assert await is_asked(running)
            (said,) = await run_command(running.runtime, f"/add-dir {other}")
            assert str(other) in said.text
            assert not await is_asked(running)
            (said,) = await run_command(running.runtime, "/status")
            assert f"{other} (added)" in said.text
        (other / "a").unlink()
        async with reopened(tmp_path, server, mode="edits", resume_latest=True) as running:
            assert not await is_asked(running)
            await run_command(running.runtime, f"/add-dir remove {other}")
            (other / "a").unlink()
            assert await is_asked(running)
