"""Sub-agents over HTTP: a task in a session of its own, whose last answer comes back."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tenuto.core.start import Limits
from tenuto.guard.rules import read_rule
from tenuto.protocol.entry import UsageEntry
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ChildEndedEvent,
    ChildProgressEvent,
    ToolOutputEvent,
    ToolResultEvent,
)
from tenuto.protocol.message import AgentView, AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation, InterruptOperation
from tenuto.protocol.part import text_of
from tenuto.session.session import Session
from tenuto.session.store import AGENTS
from tests.core.harness import PROTOCOLS, Agent, agent
from tests.server import Call, HttpError, Item, Reply, Request, Tokens

Answer = Callable[[Request], Reply]
pytestmark = pytest.mark.matrix


def task(prompt: str, kind: str = "explore", **more: str) -> Call:
    return Call("agent", {"prompt": prompt, "agent": kind, **more})


def is_child(request: Request) -> bool:
    """Whether a request is a sub-agent's: it knows nothing of the conversation."""
    return not any("PARENT" in item.text for item in request.items if item.kind == "user")


def results_in(request: Request) -> list[Item]:
    return [item for item in request.items if item.kind == "result"]


def by_role(parent: list[Reply], children: Answer):
    left = list(parent)

    def script(request: Request):
        return children(request) if is_child(request) else (left.pop(0) if left else Reply("Done."))

    return script


def results(running: Agent) -> list[ToolResultMessage]:
    return [event.message for event in running.of(ToolResultEvent)]


def view_of(result: ToolResultMessage) -> AgentView:
    return next(view for view in result.ui if isinstance(view, AgentView))


def explorer(request: Request) -> Reply:
    """Reads the file that its task names, then answers with what is in it."""
    name = next(name for name in ("a.txt", "broken") if f"Look into {name}" in request.raw.decode())
    found = results_in(request)
    if name == "broken":
        return HttpError(400, "this model is out of order")
    return Reply(f"In {name} stands: {found[-1].text}") if found else Reply(tool_calls=[Call("read", {"path": name})])


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_j5_two_explorers_work_side_by_side_and_one_that_fails_says_so(tmp_path: Path, protocol: str) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("apples\n")
    calls = [task("Look into a.txt", description="Read a"), task("Look into broken")]
    script = by_role([Reply(tool_calls=calls), Reply("Both are back.")], explorer)
    async with agent(tmp_path, script, model=f"{protocol}/test") as running:
        assert (await running.ask("PARENT go")).outcome == "completed"
        good, bad = results(running)
        assert "In a.txt stands:" in text_of(good.parts)
        assert "apples" in text_of(good.parts)
        assert not good.is_error
        assert "The sub-agent failed" in text_of(bad.parts)
        assert "out of order" in text_of(bad.parts)
        assert bad.is_error
        assert (view_of(good).outcome, view_of(good).steps, view_of(bad).outcome) == ("completed", 2, "failed")
        for view in (view_of(good), view_of(bad)):
            child = Session.open(running.session.directory / AGENTS / view.session, read_only=True)
            assert child.header.parent_session == running.session.id
        ended = running.of(ChildEndedEvent)
        assert {event.outcome for event in ended} == {"completed", "failed"}
        assert all(event.session_id == running.session.id for event in running.events), "none of a child's own events"
        assert max(event.steps for event in running.of(ChildProgressEvent)) == 2
        assert "read a.txt\n" in [event.text for event in running.of(ToolOutputEvent)]


async def test_j5_a_child_knows_its_task_alone_and_has_its_own_prompt_and_tools(tmp_path: Path) -> None:
    script = by_role(
        [Reply(tool_calls=[task("Look"), task("Do", "general")]), Reply("Done.")], lambda _: Reply("I did.")
    )
    async with agent(tmp_path, script) as running:
        await running.ask("PARENT secret")
        look, do = [request for request in running.server.requests if request.kind == "model" and is_child(request)]
        if look.last_user.startswith("Do"):
            look, do = do, look
        assert set(look.tool_names) == {"read", "grep", "glob", "bash", "recall"}
        assert "agent" not in do.tool_names
        assert {"edit", "write", "bash"} <= set(do.tool_names)
        assert "secret" not in look.raw.decode()
        assert look.items[0].text.startswith("You look things up")
        assert "You work for another agent" in do.items[0].text


async def test_j5_what_children_use_is_summed_and_their_answers_cost_the_parent_a_line(tmp_path: Path) -> None:
    script = by_role([Reply(tool_calls=[task("Look"), task("Look")]), Reply("Done.")], lambda _: Reply("x" * 100_000))
    async with agent(tmp_path, script) as running:
        await running.ask("PARENT go")
        session = running.session
        counted = [entry for entry in session.everything() if isinstance(entry, UsageEntry)]
        assert [entry.purpose for entry in counted] == ["sub-agent explore"] * 2
        own = [entry.usage for entry in session.path() if isinstance(entry, AssistantMessage) and entry.usage]
        assert session.state.usage.output == sum(usage.output for usage in own) + sum(
            entry.usage.output for entry in counted
        )
        for result in results(running):
            assert len(text_of(result.parts)) < 40_000
            assert result.truncated
            assert "recall" in text_of(result.parts).splitlines()[-1]


async def answer_all(running: Agent, decision: str) -> None:
    for request in running.of(ApprovalRequestedEvent):
        await running.runtime.submit(
            AnswerApprovalOperation(
                session_id=request.session_id,
                request_id=request.request_id,
                decision=decision,  # pyright: ignore
            )
        )


def writer(request: Request) -> Reply:
    made = results_in(request)
    return (
        Reply(f"Result: {made[-1].text}")
        if made
        else Reply(tool_calls=[Call("write", {"path": "new.txt", "content": "n\n"})])
    )


@pytest.mark.parametrize("decision", ["session", "deny"])
async def test_j5_a_child_asks_in_the_parents_name_and_always_holds_for_the_parent(
    tmp_path: Path, decision: str
) -> None:
    script = by_role([Reply(tool_calls=[task("Write", "general")]), Reply("Done.")], writer)
    async with agent(tmp_path, script, mode="ask") as running:
        await running.send("PARENT go")
        asked = await running.until(ApprovalRequestedEvent)
        (result_call,) = [
            part for entry in running.session.path() if isinstance(entry, AssistantMessage) for part in entry.tool_calls
        ]
        assert asked.agent == "general: Write"
        assert asked.call_id == result_call.id
        assert asked.session_id != running.session.id
        await answer_all(running, decision)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert (tmp_path / "work" / "new.txt").exists() == (decision == "session")
        assert bool(running.session.state.approvals) == (decision == "session")
        (result,) = results(running)
        assert bool(result.files) == (decision == "session"), "the parent can take it back"


async def test_j5_an_explorer_changes_nothing_in_any_mode(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        made = [item.text for item in results_in(request)]
        if made:
            return Reply("\n".join(made))
        return Reply(
            tool_calls=[
                Call("bash", {"command": "touch made"}),
                Call("write", {"path": "x", "content": ""}),
                Call("bash", {"command": "ls"}),
            ]
        )

    script = by_role([Reply(tool_calls=[task("Try")]), Reply("Done.")], child)
    async with agent(tmp_path, script, mode="auto") as running:
        await running.ask("PARENT go")
        text = text_of(results(running)[0].parts)
        assert "This agent only looks" in text
        assert "There is no tool named write" in text
        assert list((tmp_path / "work").iterdir()) == []


async def test_j5_a_child_has_the_rules_the_directories_and_the_environment_of_its_parent(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    beside.mkdir()
    own = "from-the-rule"
    calls = [
        Call("bash", {"command": f"touch {own}"}),
        Call("write", {"path": str(beside / "new.txt"), "content": "n\n"}),
        Call("write", {"path": str(tmp_path / "outside.txt"), "content": "n\n"}),
        Call("bash", {"command": "echo key=[$SOME_API_KEY] > seen; true"}),
    ]

    def child(request: Request) -> Reply:
        made = [item.text for item in results_in(request)]
        return Reply("\n".join(made)) if made else Reply(tool_calls=calls)

    script = by_role([Reply(tool_calls=[task("Try", "general")]), Reply("Done.")], child)
    changes = {
        "mode": "auto",
        "interactive": False,
        "sandboxed": False,
        "rules": (read_rule("bash(touch *)", "deny"),),
        "directories": (str(beside),),
        "environ": {"SOME_API_KEY": "sk-0123456789abcdefghij"},
    }
    async with agent(tmp_path, script, **changes) as running:
        await running.ask("PARENT go")
        assert not (tmp_path / "work" / own).exists(), "denied to all"
        assert (beside / "new.txt").exists(), "a directory that was added"
        assert not (tmp_path / "outside.txt").exists()
        assert (tmp_path / "work" / "seen").read_text() == "key=[]\n"
        assert running.runtime.live.task.refused >= 1


async def test_j5_a_childs_end_leaves_the_parents_sandbox_as_it_was(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        made = results_in(request)
        return Reply(made[-1].text) if made else Reply(tool_calls=[Call("bash", {"command": "echo x > $TMPDIR/left"})])

    look = Call("bash", {"command": "cat $TMPDIR/left > seen"})
    script = by_role([Reply(tool_calls=[task("Try", "general")]), Reply(tool_calls=[look])], child)
    async with agent(tmp_path, script, mode="auto") as running:
        sandbox = running.runtime.live.tool_context.sandbox
        if sandbox is None or not sandbox.holds:
            pytest.skip("there is no sandbox on this machine")
        await running.ask("PARENT go")
        assert (tmp_path / "work" / "seen").read_text() == "x\n", "both work in one sandbox"


async def test_j5_a_child_reads_the_full_outputs_that_it_is_pointed_to(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        made = results_in(request)
        if not made:
            return Reply(tool_calls=[Call("bash", {"command": "yes padding | head -n 20000; echo the-end"})])
        if len(made) == 1:
            (path,) = re.findall(r"/\S+/outputs/[^\s\]]+", made[0].text)
            read = f"grep -c padding {path.rstrip('.:')}; echo x > {path.rstrip('.:')}-more; ls {tmp_path}/home"
            return Reply(tool_calls=[Call("bash", {"command": read})])
        return Reply(made[-1].text)

    script = by_role([Reply(tool_calls=[task("Try", "general")])], child)
    async with agent(tmp_path, script, mode="auto") as running:
        sandbox = running.runtime.live.tool_context.sandbox
        if sandbox is None or not sandbox.holds:
            pytest.skip("there is no sandbox on this machine")
        await running.ask("PARENT go")
        (said,) = [text_of(one.parts) for one in running.session.path() if isinstance(one, ToolResultMessage)]
        assert "20000" in said, said
        assert not list((tmp_path / "home").rglob("*-more")), "it can be read, and nothing be written there"


async def test_j5_an_interrupt_ends_all_and_keeps_what_there_was(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        if results_in(request):
            return Reply("never", delay=60)
        return Reply("So far: half.", tool_calls=[Call("bash", {"command": "ls"})])

    script = by_role([Reply(tool_calls=[task("One"), task("Two")]), Reply("Done.")], child)
    async with agent(tmp_path, script) as running:
        await running.send("PARENT go")
        while len([e for e in running.of(ChildProgressEvent) if e.steps == 2]) < 2:
            await asyncio.sleep(0.01)
        await running.runtime.submit(InterruptOperation(session_id=running.session.id))
        assert (await running.runtime.wait_settled()).outcome == "interrupted"
        both = results(running)
        assert [result.interrupted for result in both] == [True, True]
        assert all("So far: half." in text_of(result.parts) for result in both)
        assert not running.runtime.live.children.running


async def test_j5_one_can_be_stopped_and_the_parent_goes_on(tmp_path: Path) -> None:
    script = by_role(
        [Reply(tool_calls=[task("Slow"), task("Quick")]), Reply("Done.")],
        lambda request: Reply("late", delay=60) if "Slow" in request.last_user else Reply("quick"),
    )
    async with agent(tmp_path, script) as running:
        await running.send("PARENT go")
        while len(running.runtime.live.children.running) != 1:
            await asyncio.sleep(0.01)
        (child,) = running.runtime.live.children.running
        await running.runtime.submit(InterruptOperation(session_id=child))
        assert (await asyncio.wait_for(running.runtime.wait_settled(), 60)).outcome == "completed"
        slow, quick = results(running)
        assert slow.interrupted
        assert text_of(quick.parts).startswith("quick")


async def test_j5_a_limit_of_steps_ends_a_child_with_what_it_said(tmp_path: Path) -> None:
    script = by_role(
        [Reply(tool_calls=[task("Look")]), Reply("Done.")],
        lambda request: Reply(
            f"Step {len(results_in(request))}",
            tool_calls=[Call("bash", {"command": f"echo {len(results_in(request))}"})],
        ),
    )
    async with agent(tmp_path, script, environ={"TENUTO_AGENTS__MAX_STEPS": "3"}) as running:
        await running.ask("PARENT go")
        (result,) = results(running)
        assert "is not done: stopped after 3 turns ([agents] max_steps)" in text_of(result.parts)
        assert "Step" in text_of(result.parts)
        assert view_of(result).outcome == "limit_reached"


async def test_j5_the_limit_of_cost_counts_a_sub_agent_while_it_runs(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        call = Call("bash", {"command": f"echo {len(results_in(request))}"})
        return Reply(tool_calls=[call], usage=Tokens(input=100_000, output=1_000))

    script = by_role([Reply(tool_calls=[task("Look")]), Reply("Done.")], child)
    async with agent(tmp_path, script, limits=Limits(cost=1.0)) as running:
        model = running.runtime.live.model
        model.facts = replace(model.facts, input_price=3.0, output_price=15.0)
        settled = await running.ask("PARENT go")
        assert settled.outcome == "limit_reached", settled
        assert 1 <= (running.session.state.usage.cost or 0) < 2
        assert view_of(results(running)[0]).outcome == "limit_reached"


async def test_j5_the_limit_of_turns_counts_sub_agents_and_says_so(tmp_path: Path) -> None:
    def child(request: Request) -> Reply:
        made = len(results_in(request))
        return Reply(f"Step {made}", tool_calls=[Call("bash", {"command": f"echo {made}"})])

    script = by_role([Reply(tool_calls=[task("Look"), task("Look", "general")])], child)
    async with agent(tmp_path, script, limits=Limits(turns=7), mode="auto") as running:
        settled = await running.ask("PARENT go")
        assert settled.outcome == "limit_reached"
        assert settled.error == "stopped after 7 turns, 6 of them by sub-agents (--max-turns)"
        assert len([request for request in running.server.requests if request.kind == "model"]) == 7
        for result in results(running):
            assert view_of(result).outcome == "limit_reached"
            assert "6 of them by sub-agents (--max-turns)" in text_of(result.parts)
