"""What stays of sub-agents: through compactions, kill -9, forks, deletion; agents as files; a stable prefix."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest

from tenuto.core.state.reminders import AGENTS_KIND
from tenuto.protocol.entry import UsageEntry, ViewEditEntry
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.session.agents import SHORT_ID
from tenuto.session.library.catalog import find_session, list_sessions, move_to_bin, take_from_bin
from tenuto.session.session import Session
from tenuto.session.store import agent_directories
from tests.core.compacting import LONG_ANSWER, check_requests, compact, compactions, talk, write_big_file
from tests.core.harness import agent
from tests.core.test_children import by_role, is_child, results, results_in, task, view_of
from tests.server import Call, Reply, Request, ServerThread

FILE = """\
---
name: reviewer
description: Reviews a change
tools: Read, Grep, Bash(git log:*)
---
You review.
"""


async def test_j5_recall_finds_a_childs_answer_and_work_after_eleven_compactions(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "deep.txt").write_text("the vermilion lever is in the cellar\n")
    turns = 0

    def answer(request: Request) -> Reply:
        nonlocal turns
        if is_child(request):
            found = results_in(request)
            return Reply("It is quicksilver-42.") if found else Reply(tool_calls=[Call("read", {"path": "deep.txt"})])
        turns += 1
        return Reply(tool_calls=[task("Find the lever")]) if turns == 1 else Reply(LONG_ANSWER)

    async with agent(tmp_path, talk(answer), options={"window": 16_000}) as running:
        await running.ask("PARENT go")
        child = view_of(results(running)[0]).session[:SHORT_ID]
        for number in range(11):
            while len(compactions(running)) == number:
                await running.ask("PARENT " + "because " * 900)
                await compact(running)
        view = "".join(str(message) for message in running.session.get_llm_history())
        assert "vermilion" not in view
        (answered,) = await running.runtime.run_command("/recall quicksilver-42")
        assert "quicksilver-42" in answered.text  # pyright: ignore[reportAttributeAccessIssue]
        (worked,) = await running.runtime.run_command("/recall vermilion")
        assert f"In sub-agent {child}" in worked.text  # pyright: ignore[reportAttributeAccessIssue]
        recall = running.runtime.live.tools.get("recall")
        assert recall is not None
        output = await recall.run(recall.parse({"seq": f"{child}/"}), running.runtime.live.tool_context)
        assert "vermilion" in text_of(output.parts)
        assert "Find the lever" in text_of(output.parts)


async def test_j5_a_child_compacts_its_own_window_and_not_its_parents(tmp_path: Path) -> None:
    write_big_file(tmp_path)
    steps = 0

    def answer(request: Request) -> Reply:
        nonlocal steps
        if not is_child(request):
            return Reply("Done.") if results_in(request) else Reply(tool_calls=[task("Read on", "general")])
        steps += 1
        call = Call("read", {"path": "big.txt", "offset": steps})
        return Reply(f"step {steps}", tool_calls=[call]) if steps < 15 else Reply("All of it is read.")

    async with agent(tmp_path, talk(answer), options={"window": 16_000}) as running:
        await running.ask("PARENT go", timeout=60)
        (result,) = results(running)
        assert text_of(result.parts).startswith("All of it is read.")
        child = Session.open(next(agent_directories(running.session.directory)), read_only=True)
        smaller = (CompactionEntry, ViewEditEntry)
        assert any(isinstance(entry, smaller) for entry in child.everything())
        assert not any(isinstance(entry, smaller) for entry in running.session.everything())
        check_requests(running.server, 16_000)


PROGRAM = """
import asyncio, os, sys
from pathlib import Path
from tenuto.core.runtime import Runtime
from tenuto.core.start import Start
from tenuto.protocol.part import TextPart

async def main():
    start = Start(cwd=Path(sys.argv[2]), home=Path(sys.argv[1]), model="openai-chat/test", mode="auto")
    runtime = Runtime(start)
    await runtime.open()
    runtime.subscribe(lambda event: print(type(event).__name__, getattr(event, "steps", ""), flush=True))
    await runtime.submit_prompt((TextPart(text="PARENT go"),))
    await asyncio.sleep(600)

asyncio.run(main())
"""


async def test_j5_after_kill_9_the_result_says_what_the_child_had_said(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def script(request: Request) -> Reply:
        if not is_child(request):
            return Reply(tool_calls=[task("Look")])
        if results_in(request):
            return Reply("never", delay=60)
        return Reply("I see a brass key.", tool_calls=[Call("bash", {"command": "ls"})])

    with ServerThread(script) as server:
        environ = {**os.environ, **server.environ()}
        program = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "home"), str(work)],
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout is not None
        for line in program.stdout:
            if line.startswith("ChildProgressEvent 2"):
                break
        program.send_signal(signal.SIGKILL)
        program.wait()
    (summary,) = list_sessions(tmp_path / "home")
    session = Session.open(summary.directory)
    try:
        (result,) = [entry for entry in session.path() if isinstance(entry, ToolResultMessage)]
        assert result.interrupted
        assert "I see a brass key." in text_of(result.parts)
        view = view_of(result)
        assert (view.agent, view.outcome, view.steps) == ("explore", "unknown", 1)
        assert [entry.purpose for entry in session.everything() if isinstance(entry, UsageEntry)] == [
            "sub-agent explore"
        ]
    finally:
        session.close()
    child = find_session(tmp_path / "home", view.session[:SHORT_ID])
    assert child is not None
    again = Session.open(child)
    assert again.header.parent_session == summary.id
    again.close()
    reopened = Session.open(summary.directory)
    assert sum(isinstance(entry, UsageEntry) for entry in reopened.everything()) == 1, "counted once"
    reopened.close()


async def test_j5_after_kill_9_in_the_middle_of_two_the_parent_is_told_of_both_and_goes_on(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()

    def script(request: Request) -> Reply:
        if not is_child(request):
            if any("go on" in item.text for item in request.items if item.kind == "user"):
                return Reply("I go on.")
            return Reply(tool_calls=[task("Look at one"), task("Look at two", "general")])
        if results_in(request):
            return Reply("never", delay=60)
        word = "one" if "Look at one" in request.raw.decode() else "two"
        return Reply(f"I see {word}.", tool_calls=[Call("bash", {"command": "ls"})])

    with ServerThread(script) as server:
        environ = {**os.environ, **server.environ()}
        program = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(PROGRAM), str(tmp_path / "home"), str(work)],
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert program.stdout is not None
        at_second_step = (line for line in program.stdout if line.startswith("ChildProgressEvent 2"))
        next(at_second_step)
        next(at_second_step)
        program.send_signal(signal.SIGKILL)
        program.wait()
    (summary,) = list_sessions(tmp_path / "home")
    async with agent(tmp_path, script, resume=summary.id) as running:
        assert (await running.ask("go on", timeout=20)).outcome == "completed"
        told = [entry for entry in running.session.path() if isinstance(entry, ToolResultMessage)]
        assert [result.interrupted for result in told] == [True, True]
        said = "\n".join(text_of(result.parts) for result in told)
        assert "I see one." in said
        sent = running.server.requests[-1].raw.decode()
        for result in told:
            assert view_of(result).session[:SHORT_ID] in sent, "the model is told of each"
            assert "may have taken effect; check" in text_of(result.parts)
        assert not running.runtime.live.children.running


async def test_j5_children_go_along_when_a_session_is_forked_deleted_and_brought_back(tmp_path: Path) -> None:
    script = by_role([Reply(tool_calls=[task("Look")]), Reply("Done.")], lambda _: Reply("I saw a heron."))
    async with agent(tmp_path, script) as running:
        await running.ask("PARENT go")
        origin = running.session.directory
        fork = running.session.fork(tmp_path / "home")
        assert [path.name for path in agent_directories(fork.directory)] == [
            path.name for path in agent_directories(origin)
        ]
        early = running.session.fork(tmp_path / "home", 1)
        assert list(agent_directories(early.directory)) == []
        assert early.discard()
        assert fork.discard()
        assert not fork.directory.exists()
        cost = running.session.state.usage
    home = tmp_path / "home"
    assert [one.id for one in list_sessions(home)] == [origin.name], "a child is in no list"
    moved = move_to_bin(home, origin)
    assert list(agent_directories(moved))
    back = take_from_bin(home, moved)
    session = Session.open(back, read_only=True)
    assert session.state.usage == cost


async def test_j5_agents_are_files_and_a_stable_prefix_tells_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))
    folder = tmp_path / "work" / ".claude" / "agents"
    folder.mkdir(parents=True)
    broken = tmp_path / "home" / "agents"
    broken.mkdir(parents=True)
    (broken / "empty.md").write_text("---\nname: empty\n---\n")
    script = by_role(
        [Reply("One."), Reply("Two."), Reply(tool_calls=[task("Review", "reviewer")]), Reply("Three."), Reply("Four.")],
        lambda _: Reply("Fine."),
    )
    async with agent(tmp_path, script) as running:
        await running.ask("PARENT one")
        (folder / "reviewer.md").write_text(FILE)
        await running.ask("PARENT two")
        await running.ask("PARENT three")
        (folder / "reviewer.md").unlink()
        await running.ask("PARENT four")
        own = [request for request in running.server.requests if request.kind == "model" and not is_child(request)]
        assert all(later.continues(earlier) for earlier, later in pairwise(own))
        told = [
            entry.text
            for entry in running.session.path()
            if isinstance(entry, DeveloperMessage) and entry.kind == AGENTS_KIND
        ]
        assert len(told) == 2
        assert "- reviewer: Reviews a change" in told[0]
        (theirs,) = [request for request in running.server.requests if request.kind == "model" and is_child(request)]
        assert theirs.items[0].text.startswith("You review.")
        assert set(theirs.tool_names) == {"read", "grep", "bash"}
        assert any("empty.md is no agent" in event.text for event in running.of(NoticeEvent))


async def test_j5_an_agent_that_there_is_not_is_named_with_those_that_there_are(tmp_path: Path) -> None:
    script = by_role([Reply(tool_calls=[task("Look", "explorer")]), Reply("Done.")], lambda _: Reply("Never."))
    async with agent(tmp_path, script) as running:
        await running.ask("PARENT go")
        text = text_of(results(running)[0].parts)
        assert "did you mean explore?" in text
        assert "general" in text


async def test_j5_a_session_without_the_tool_keeps_its_prefix(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("One.")], environ={"TENUTO_AGENTS__ENABLED": "false"}) as running:
        await running.ask("PARENT one")
        assert "agent" not in running.server.requests[-1].tool_names
        session = running.session.id
    async with agent(tmp_path, [Reply("Two.")], resume=session) as running:
        await running.ask("PARENT two")
        assert "agent" not in running.server.requests[-1].tool_names


async def test_j5_depth_2_lets_a_child_have_children_and_their_cost_goes_up(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        if "Innermost" in request.raw.decode() and "Outer" not in request.raw.decode():
            return Reply("From far below.")
        return Reply(results_in(request)[-1].text) if results_in(request) else Reply(tool_calls=[task("Innermost")])

    script = by_role([Reply(tool_calls=[task("Outer", "general")]), Reply("Done.")], child)
    async with agent(tmp_path, script, environ={"TENUTO_AGENTS__DEPTH": "2"}) as running:
        await running.ask("PARENT go")
        (result,) = results(running)
        assert "From far below." in text_of(result.parts)
        assert len(list(agent_directories(running.session.directory))) == 2
        inner = [
            Session.open(path, read_only=True).state.usage.output
            for path in agent_directories(running.session.directory)
        ]
        assert max(inner) >= sum(inner) - max(inner), "the outer one's has the inner one's in it"
        deepest = next(r for r in running.server.requests if r.kind == "model" and "Innermost" in r.raw.decode())
        assert "agent" not in deepest.tool_names
