"""Background jobs: waited for, read on, typed into, stopped; their end wakes the agent (B5)."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.protocol.event import NoticeEvent, UserMessageEvent
from tests.core.harness import PROTOCOLS, agent, one_call_each
from tests.server import Call


def bash(command: str, stdin: str = "none") -> Call:
    return Call("bash", {"command": command, "background": True, "stdin": stdin})


def jobs(action: str, **more: object) -> Call:
    return Call("jobs", {"action": action, **more})


async def results(tmp_path, *steps: Call, **changes) -> list[str]:
    async with agent(tmp_path, one_call_each(*steps), **changes) as running:
        assert (await running.ask("go")).outcome == "completed"
        return [item.text for item in running.server.requests[-1].items if item.kind == "result"]


async def test_b5_waiting_gives_the_output_since_and_the_end(tmp_path):
    command = "echo first; while [ ! -e go ]; do sleep 0.02; done; echo second; exit 3"
    begun, first, _, waited, again = await results(
        tmp_path,
        bash(command),
        jobs("output"),
        Call("bash", {"command": "touch go"}),
        jobs("wait", seconds=20),
        jobs("output", job="1"),
    )
    assert "as job-1" in begun
    assert "first" in begun + first
    assert "is running" in first
    assert "ended with exit code 3\nsecond" in waited
    assert "(nothing new)" in again


@pytest.mark.parametrize("stdin", ["pipe", "tty"])
async def test_b5_a_job_is_typed_into(tmp_path, stdin):
    texts = await results(
        tmp_path,
        bash("read line; echo got:$line; test -t 0 && echo tty-$((6*7)); cat > rest.txt", stdin),
        jobs("write", text="hello\n"),
        jobs("write", text="more\n"),
        jobs("write", text=""),
        jobs("wait", seconds=20),
    )
    assert "got:hello" in "".join(texts)
    assert ("tty-42" in "".join(texts)) == (stdin == "tty")
    assert "ended with exit code 0" in texts[-1] + texts[-2]
    assert (tmp_path / "work" / "rest.txt").read_text() == "more\n"


async def test_b5_a_job_is_stopped_with_all_that_it_started(tmp_path):
    _, stopped, listed = await results(tmp_path, bash("sleep 300 & sleep 300"), jobs("stop"), jobs("list"))
    assert "ended with exit code" in stopped
    assert "ended with exit code" in listed


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (jobs("wait"), "There are no background jobs"),
        (jobs("write", job="job-1", text="x"), "There are no background jobs"),
    ],
)
async def test_b5_without_a_job_it_says_so(tmp_path, call, words):
    (text,) = await results(tmp_path, call)
    assert words in text


async def test_b5_what_cannot_be_done_is_said(tmp_path):
    texts = await results(
        tmp_path,
        bash("sleep 300"),
        jobs("write", text="x"),
        bash("sleep 300"),
        jobs("stop", job="job-7"),
        jobs("output"),
    )
    assert "takes no input" in texts[1]
    assert "no job “job-7”; there are job-1, job-2" in texts[3]
    assert "Name the job" in texts[4]


async def test_b5_typing_is_judged_like_a_command(tmp_path):
    """A shell that was allowed must not be a way round the question."""
    calls = [bash("bash", "pipe"), jobs("write", text="touch made\n")]
    async with agent(tmp_path, one_call_each(calls[0]), mode="auto") as running:
        await running.ask("go")
        from tenuto.protocol.operation import ChangeModeOperation

        await running.runtime.submit(ChangeModeOperation(session_id=running.session.id, mode="plan"))
        running.server.script = one_call_each(calls[1])
        await running.ask("type")
        results = [item.text for item in running.server.requests[-1].items if item.kind == "result"]
    assert "Plan mode is on" in results[-1]
    assert not (tmp_path / "work" / "made").exists()


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_b5_the_end_of_a_job_begins_a_turn(tmp_path, protocol):
    command = "while [ ! -e go ]; do sleep 0.02; done; echo BUILD-OK"
    async with agent(tmp_path, one_call_each(bash(command)), model=f"{protocol}/test") as running:
        await running.ask("build")
        assert len(running.server.requests) == 2
        (tmp_path / "work" / "go").touch()
        message = await running.until(UserMessageEvent, 2)
        assert message.origin == "continuation"
        await asyncio.wait_for(running.runtime.wait_settled(), 20)
        assert "ended with exit code 0" in "\n".join(item.text for item in running.server.requests[-1].items)
        assert len(running.server.requests) == 3


@pytest.mark.parametrize("how", ["setting", "interrupt", "seen"])
async def test_b5_nothing_is_woken_where_nobody_wants_it(tmp_path, how):
    command = "while [ ! -e go ]; do sleep 0.02; done"
    steps = [bash(command)]
    if how == "seen":
        steps += [Call("bash", {"command": "touch go"}), jobs("wait", seconds=20)]
    environ = {"TENUTO_AGENT__WAKE": "false"} if how == "setting" else {}
    async with agent(tmp_path, one_call_each(*steps), environ=environ) as running:
        await running.ask("build")
        if how == "interrupt":
            running.runtime.live.task.last_outcome = "interrupted"
        asked = len(running.server.requests)
        (tmp_path / "work" / "go").touch()
        (job,) = running.runtime.live.tool_context.jobs.all()
        await asyncio.wait_for(job.process.exited, 20)
        await asyncio.sleep(0.6)
        assert len(running.server.requests) == asked


async def test_b5_a_run_that_ends_by_itself_waits_for_its_jobs(tmp_path):
    command = "sleep 0.7; echo BUILD-OK > built"
    async with agent(tmp_path, one_call_each(bash(command)), interactive=False, ends_by_itself=True) as running:
        await running.ask("build")
        assert (tmp_path / "work" / "built").exists()
        assert len(running.server.requests) == 3
        assert running.session.state.queue == ()


async def test_b5_it_waits_no_longer_than_it_may(tmp_path):
    environ = {"TENUTO_AGENT__JOB_WAIT": "0.5"}
    options = {"interactive": False, "ends_by_itself": True, "environ": environ}
    async with agent(tmp_path, one_call_each(bash("sleep 300")), **options) as running:
        settled = await running.ask("serve")
        assert settled.outcome == "completed"
        assert any("still ran after 0.5 s" in event.text for event in running.of(NoticeEvent))


async def test_b5_jobs_that_run_at_the_end_are_named_once(tmp_path):
    environ = {"TENUTO_AGENT__FINAL_CHECK": "true"}
    options = {"interactive": False, "ends_by_itself": True, "environ": environ}
    async with agent(tmp_path, one_call_each(bash("sleep 300"), None, jobs("stop")), **options) as running:
        await running.ask("serve")
        notes = [item.text for item in running.server.requests[-1].items if "Still running: job-1" in item.text]
        assert len(notes) == 1
        assert len(running.server.requests) == 4


async def test_b5_each_prompt_of_a_held_run_waits_for_its_own_jobs(tmp_path):
    """The time that one prompt had waited was missing at the next."""
    environ = {"TENUTO_AGENT__JOB_WAIT": "2"}
    options = {"interactive": False, "ends_by_itself": True, "environ": environ}
    first, second = bash("sleep 300"), bash("sleep 0.6; touch built")
    async with agent(tmp_path, one_call_each(first, None, second), **options) as running:
        await running.ask("serve")
        (job,) = running.runtime.live.tool_context.jobs.all()
        await running.runtime.live.tool_context.jobs.end(job)
        job.reported = True
        await running.ask("build")
        assert (tmp_path / "work" / "built").exists()
