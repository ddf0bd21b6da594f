"""What goes wrong in a sub-agent stays there: its agent is told in a result, and goes on. And who watches one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from tenuto.protocol.event import (
    AssistantMessageEvent,
    ChildProgressEvent,
    ChildTranscriptEvent,
    NoticeEvent,
    TaskSettledEvent,
)
from tenuto.protocol.operation import MoveToBackgroundOperation, WatchChildOperation
from tenuto.protocol.part import text_of
from tests.core.harness import agent
from tests.core.test_children import by_role, results, results_in, task, view_of
from tests.server import Call, HttpError, Reply, Request


def crashes(request: Request) -> Reply:
    return HttpError(400, "this model has crashed")


def floods(request: Request) -> Reply:
    made = results_in(request)
    return Reply("Read.") if made else Reply(tool_calls=[Call("bash", {"command": "yes flood | head -c 100000000"})])


def answers_without_end(request: Request) -> Reply:
    return Reply("so " * 200_000)


def loops(request: Request) -> Reply:
    return Reply(tool_calls=[Call("bash", {"command": "ls nowhere"})])


def goes_round(request: Request) -> Reply:
    return Reply(tool_calls=[Call("bash", {"command": "ls"})])


def is_refused(request: Request) -> Reply:
    made = results_in(request)
    return Reply("I may not.") if made else Reply(tool_calls=[Call("write", {"path": "/etc/x", "content": "x"})])


def says_nothing(request: Request) -> Reply:
    return Reply("")


FAULTS: dict[str, tuple[Callable[[Request], Reply], str]] = {
    "crash": (crashes, "The sub-agent failed"),
    "flood of a command": (floods, "Read."),
    "flood of an answer": (answers_without_end, "so so"),
    "endless failing loop": (loops, "ls nowhere"),
    "endless loop": (goes_round, ""),
    "refused approval": (is_refused, "1 call of it needed an approval that nobody could give."),
    "silence": (says_nothing, ""),
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_j5_a_fault_of_a_child_is_one_result_and_the_others_go_on(tmp_path, fault: str) -> None:
    child, told = FAULTS[fault]

    def script(request: Request) -> Reply:
        return Reply("I am well.") if "Stay well" in request.raw.decode() else child(request)

    calls = [task("Go wrong", "general"), task("Stay well")]
    parent = by_role([Reply(tool_calls=calls), Reply("Both are back.")], script)
    async with agent(
        tmp_path, parent, mode="auto", interactive=False, environ={"TENUTO_AGENTS__MAX_STEPS": "12"}
    ) as it:
        assert (await it.ask("PARENT go", timeout=60)).outcome == "completed"
        bad, good = results(it)
        assert told in text_of(bad.parts)
        assert len(text_of(bad.parts)) < 60_000, "bounded"
        assert text_of(good.parts).startswith("I am well.")
        assert f'recall with seq "{view_of(bad).session[:8]}/"' in text_of(bad.parts)
        assert not it.runtime.live.children.running


async def test_j5_who_watches_a_child_is_told_what_was_and_what_comes_and_nothing_afterwards(tmp_path) -> None:
    def child(request: Request) -> Reply:
        if not results_in(request):
            return Reply("First.", tool_calls=[Call("bash", {"command": "ls"})])
        if len(results_in(request)) == 1:
            return Reply("Second.", tool_calls=[Call("bash", {"command": "while [ ! -e go ]; do sleep 0.05; done"})])
        return Reply("Third.")

    script = by_role([Reply(tool_calls=[task("Look", "general")]), Reply("Done.")], child)
    async with agent(tmp_path, script) as running:
        await running.send("PARENT go")
        async with asyncio.timeout(60):
            while not any(event.steps == 2 and event.in_command for event in running.of(ChildProgressEvent)):
                await asyncio.sleep(0.01)
        (name,) = running.runtime.live.children.running
        watch = WatchChildOperation(session_id=running.session.id, child=name)
        await running.runtime.submit(watch)
        first = await running.until(ChildTranscriptEvent)
        assert first.working
        said = [text_of(one.message.parts) for one in first.events if isinstance(one, AssistantMessageEvent)]
        assert said == ["First.", "Second."]
        (tmp_path / "work" / "go").write_text("")
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert settled.session_id == running.session.id
        live = [event for event in running.of(AssistantMessageEvent) if event.session_id == name]
        assert [text_of(event.message.parts) for event in live] == ["Third."]
        assert {event.session_id for event in running.of(TaskSettledEvent)} == {running.session.id}
        await running.runtime.submit(watch)
        again = await running.until(ChildTranscriptEvent, 2)
        assert not again.working
        said = [text_of(one.message.parts) for one in again.events if isinstance(one, AssistantMessageEvent)]
        assert said == ["First.", "Second.", "Third."]
        await running.runtime.submit(WatchChildOperation(session_id=running.session.id, child="none"))
        assert "there is no sub-agent" in running.of(NoticeEvent)[-1].text


async def test_j5_a_command_of_a_child_goes_to_the_background_and_the_child_goes_on(tmp_path) -> None:
    def child(request: Request) -> Reply:
        made = results_in(request)
        if not made:
            return Reply(tool_calls=[Call("bash", {"command": "echo begun; sleep 600"})])
        return Reply(f"It said: {made[0].text}")

    script = by_role([Reply(tool_calls=[task("Look", "general")]), Reply("Done.")], child)
    async with agent(tmp_path, script, environ={"TENUTO_AGENT__JOB_WAIT": "0"}) as running:
        await running.send("PARENT go")
        async with asyncio.timeout(60):
            while not any(event.in_command for event in running.of(ChildProgressEvent)):
                await asyncio.sleep(0.01)
            while not any(
                child.live.tool_context.waited_for for child in running.runtime.live.children.running.values()
            ):
                await asyncio.sleep(0.01)
        await running.runtime.submit(MoveToBackgroundOperation(session_id=running.session.id))
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert "The user moved this command to the background" in text_of(results(running)[0].parts)
