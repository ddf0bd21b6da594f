"""Approvals by a function of the program: what it is asked, what its answers do, and what its faults do not."""

from __future__ import annotations

import asyncio
import json
import threading

import pytest

import tenuto
from tenuto.protocol.event import ApprovalResolvedEvent, ModeChangedEvent, NoticeEvent, TaskSettledEvent
from tests.api.using import using
from tests.core.harness import PROTOCOLS
from tests.core.test_mcp import configure
from tests.server import Call, Reply


def write(name: str) -> Call:
    return Call("write", {"path": name, "content": "hello\n"})


def results(server) -> list[str]:
    return [item.text for item in server.requests[-1].items if item.kind == "result"] or [
        item.text for item in server.requests[-1].turn
    ]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("is_async", [True, False])
async def test_once_a_kind_and_a_denial_with_a_reason(tmp_path, protocol, is_async):
    asked, threads = [], []

    def answer(request):
        asked.append(request)
        threads.append(threading.current_thread())
        if request.tool == "bash":
            return tenuto.Deny("use the tool for that")
        return tenuto.Allow(kind=0) if "b.txt" in request.summary else tenuto.Allow()

    async def later(request):
        await asyncio.sleep(0)
        return answer(request)

    calls = [write("a.txt"), write("b.txt"), write("c.txt"), Call("bash", {"command": "touch d.txt"})]
    script = [*(Reply(tool_calls=[call]) for call in calls), Reply("Done.")]
    approve = later if is_async else answer
    async with using(tmp_path, script, model=f"{protocol}/test", approve=approve) as used:
        assert (await used.agent.run("go")).text == "Done."
        last = used.server.requests[-1].items[-1].text
    assert [request.tool for request in asked] == ["write", "write", "bash"], "the kind covers the third"
    assert asked[0].diffs and asked[0].kinds and asked[0].reason
    assert "They said: use the tool for that" in last
    assert sorted(path.name for path in (tmp_path / "work").iterdir()) == ["a.txt", "b.txt", "c.txt"]
    assert all((thread is threading.main_thread()) == is_async for thread in threads)


async def test_the_model_is_told_that_it_will_be_asked(tmp_path):
    async with using(tmp_path, [Reply("Fine.")], approve=lambda _request: tenuto.Allow()) as used:
        await used.agent.run("go")
        text = "\n".join(item.text for item in used.server.requests[0].items)
        assert used.agent.runtime.live.mode == "ask"
    assert "nobody answers" not in text
    assert "The user is asked" in text


async def test_what_is_allowed_permanently_holds_for_the_next_agent(tmp_path):
    def approve(request):
        asked.append(request.summary)
        return tenuto.Allow(permanently=True)

    asked: list[str] = []
    for name in ("a.txt", "b.txt"):
        script = [Reply(tool_calls=[write(name)]), Reply("Done.")]
        async with using(tmp_path, script, approve=approve) as used:
            await used.agent.run("go")
    assert asked == ["a.txt"]


class Callable:
    async def __call__(self, _request):
        raise KeyError("mine")


async def never(_request):
    await asyncio.Event().wait()


def raises(_request):
    raise ZeroDivisionError("mine")


def leaves(_request):
    raise SystemExit(3)


FAULTS = [
    (raises, "ZeroDivisionError"),
    (Callable(), "KeyError"),
    (leaves, "SystemExit"),
    (lambda _request: True, "bool"),
    (lambda _request: None, "NoneType"),
    (lambda _request: tenuto.Allow(kind=99), "kind 99"),
    (lambda _request: tenuto.Allow(kind=-1), "kind -1"),
]


@pytest.mark.parametrize(("approve", "word"), FAULTS, ids=lambda one: getattr(one, "__name__", str(one))[:20])
async def test_a_fault_denies_is_told_and_the_run_goes_on(tmp_path, approve, word):
    script = [Reply(tool_calls=[write("a.txt")]), Reply("Done.")]
    async with using(tmp_path, script, approve=approve) as used:
        assert (await used.agent.run("go")).text == "Done."
        assert any(word in event.text and "denied" in event.text for event in used.of(NoticeEvent))
    assert not (tmp_path / "work" / "a.txt").exists()


async def test_an_interrupt_lets_go_of_the_function_that_is_asked(tmp_path):
    asked, ended = asyncio.Event(), asyncio.Event()

    async def approve(_request):
        asked.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with using(tmp_path, [Reply(tool_calls=[write("a.txt")]), Reply("Fine.")], approve=approve) as used:
        task = asyncio.create_task(used.agent.run("go"))
        await asked.wait()
        await used.agent.interrupt()
        assert (await asyncio.wait_for(task, 60)).outcome == "interrupted"
        await asyncio.wait_for(ended.wait(), 60)
        assert [event.decision for event in used.of(ApprovalResolvedEvent)] == ["deny"]


async def test_closing_waits_for_no_answer_of_a_plain_function(tmp_path):
    asked, free = threading.Event(), threading.Event()

    def approve(_request):
        asked.set()
        free.wait(60)
        return tenuto.Allow()

    async with using(tmp_path, [Reply(tool_calls=[write("a.txt")])], approve=approve) as used:
        task = asyncio.create_task(used.agent.run("go"))
        await asyncio.to_thread(asked.wait)
        await asyncio.wait_for(used.agent.close(), 60)
        assert (await task).outcome == "interrupted"
    free.set()
    assert not (tmp_path / "work" / "a.txt").exists()


async def test_a_plan_is_approved_and_the_work_begins(tmp_path):
    plan = "<proposed_plan>\n# Write it\nWrite a.txt.\n</proposed_plan>"
    asked = []

    def approve(request):
        asked.append((request.kind, request.detail))
        return tenuto.Allow(mode="edits")

    script = [Reply(plan), Reply(tool_calls=[write("a.txt")]), Reply("Done.")]
    async with using(tmp_path, script, approve=approve, mode="plan") as used:
        assert (await used.agent.run("go")).text == "Done."
        assert [event.mode for event in used.of(ModeChangedEvent)] == ["edits"]
    assert asked == [("plan", "# Write it\nWrite a.txt.")]
    assert (tmp_path / "work" / "a.txt").exists()


QUESTION = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name", "minLength": 2},
        "colour": {"type": "string", "enum": ["r", "g"], "enumNames": ["Red", "Green"]},
    },
    "required": ["name"],
}


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_question_of_an_mcp_server_is_answered_field_by_field(tmp_path, is_async):
    asked = []

    def answer(request):
        if request.kind != "question":
            return tenuto.Allow()
        asked.append(request)
        labels = [one.label for one in request.answers]
        writing = next((number for number, one in enumerate(request.answers) if one.writes), None)
        if "Your name" in request.detail and writing is not None:
            return tenuto.Allow(choice=writing, text="A" if len(asked) == 1 else "Ada")
        return tenuto.Allow(choice=labels.index("Green") if "Green" in labels else 0)

    async def later(request):
        return answer(request)

    configure(tmp_path, asker=f"asking:{json.dumps(QUESTION)}")
    script = [Reply(tool_calls=[Call("mcp__asker__ask", {})]), Reply("Done.")]
    async with using(tmp_path, script, approve=later if is_async else answer) as used:
        assert (await used.agent.run("go")).text == "Done."
        told = used.server.requests[-1].items[-1].text
    assert '"content": {"name": "Ada", "colour": "g"}' in told
    assert "at least 2 characters" in asked[1].detail
    assert asked[0].summary.startswith("asker asks: Who?")


@pytest.mark.parametrize(
    ("answer", "action", "notice"),
    [
        (tenuto.Deny("not now"), "cancel", ""),
        (tenuto.Allow(choice=1), "decline", ""),
        (tenuto.Allow(choice=7), "cancel", "answer 7 of 2, counted from 0"),
        (tenuto.Allow(kind=0), "cancel", "kind 0 of 0"),
        ("yes", "cancel", "str, which is neither Allow nor Deny"),
    ],
    ids=str,
)
async def test_a_question_of_an_mcp_server_can_be_declined_and_a_wrong_answer_is_told(tmp_path, answer, action, notice):
    configure(tmp_path, asker="asking:" + json.dumps({"type": "object", "properties": {}}))
    script = [Reply(tool_calls=[Call("mcp__asker__ask", {})]), Reply("Done.")]

    def approve(request):
        return answer if request.kind == "question" else tenuto.Allow()

    async with using(tmp_path, script, approve=approve) as used:
        assert (await used.agent.run("go")).text == "Done."
        assert f'"action": "{action}"' in used.server.requests[-1].items[-1].text
        said = [event.text for event in used.of(NoticeEvent) if "approve function" in event.text]
    assert [notice in text for text in said] == ([True] if notice else []), said


async def test_a_sub_agent_asks_the_same_function(tmp_path):
    asked = []

    def approve(request):
        asked.append((request.agent, request.tool))
        return tenuto.Allow()

    def script(request):
        text = request.items[-1].text
        if request.turn:
            return Reply("Done.")
        if "write it" in text:
            return Reply(tool_calls=[write("a.txt")])
        return Reply(tool_calls=[Call("agent", {"agent": "general", "prompt": "write it", "description": "write"})])

    async with using(tmp_path, script, approve=approve) as used:
        answer = await used.agent.run("go")
        assert used.of(TaskSettledEvent)[-1].outcome == "completed", answer
    assert [tool for _, tool in asked][-1] == "write"
    assert asked[-1][0]
    assert (tmp_path / "work" / "a.txt").exists()
