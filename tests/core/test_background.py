"""A summary that is prepared beside a running task (issue F 14, R-060): nobody waits for it.

The last of the eight capabilities. Nothing here looks at a clock: a summary that is answered only after the task has
made further requests proves that the task did not wait for it.
"""

from __future__ import annotations

import asyncio

import pytest

from tenuto.compaction.ways.preview import prepare
from tenuto.core.compacting import preparation
from tenuto.core.compacting.preparation import PURPOSE
from tenuto.protocol.entry import BranchEntry, PinEntry, UndoEntry, UnpinEntry, UsageEntry, ViewEdit, ViewEditEntry
from tenuto.protocol.event import CompactionProgressEvent, ContextUsageEvent, NoticeEvent
from tenuto.protocol.message import AssistantMessage, ToolResultMessage
from tenuto.protocol.operation import ChangeModelOperation
from tests.core.compacting import (
    SUMMARY,
    begin_compaction,
    check_requests,
    compactions,
    interrupt,
    is_summary_request,
    reads,
    step_requests,
    summary_requests,
    until,
    write_big_file,
)
from tests.core.harness import BESIDE, IN_ORDER, PROTOCOLS, agent, reopened
from tests.core.test_compaction_crash import victim
from tests.core.test_foreign_strategies import Own
from tests.examples import one_of
from tests.extension.extending import WATCH, extend
from tests.server import Hang, HttpError, Reply, Request, ScriptedServer
from tests.session.build import check_pairs

WINDOW = {"window": 21_334}
"""The trigger is 16,000: from 12,800 on a summary is prepared."""
LINES = 140
"""A step is between 500 and 900 tokens: a few steps lie between where a summary is begun and the trigger."""


class Slow:
    """Answers a summary request only after the task has made `later` more requests of its own."""

    def __init__(self, steps: int, later: int = 2) -> None:
        self.seen = 0
        self.waited: list[int] = []
        self._later = later
        self._steps = reads(steps)

    async def __call__(self, request: Request):
        if not is_summary_request(request):
            self.seen += 1
            return self._steps(request)
        began = self.seen
        while self.seen < began + self._later:
            await asyncio.sleep(0.005)
        self.waited.append(self.seen - began)
        return Reply(SUMMARY)


def told(running) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if event.kind == "prepared"]


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
async def test_a_task_of_60_steps_never_waits_for_a_summary(tmp_path, protocol):
    """Headless. Every summary was answered after further steps; had one step waited for it, this would never end."""
    write_big_file(tmp_path, LINES)
    script = Slow(60)
    async with agent(
        tmp_path, script, model=f"{protocol}/test", options=WINDOW, interactive=False, environ=BESIDE
    ) as running:
        settled = await running.ask("THE-TASK", timeout=120)
        assert settled.outcome == "completed", settled.error
        made = compactions(running)
        assert len(made) >= 2
        assert {entry.rung for entry in made} == {"prepared"}
        asked = len(summary_requests(running.server))
        assert asked - len(script.waited) in (0, 1), "the task may end before the last one is answered"
        assert len(script.waited) - len(made) in (0, 1), "one may be ready for what comes next"
        stages = {event.stage for event in running.of(CompactionProgressEvent)}
        assert not any(stage.startswith("summarising") for stage in stages), "no model is asked while the task stands"
        check_requests(running.server, 32_000)
        assert len(step_requests(running.server)) == 61
        assert all(request.raw.count(b"THE-TASK") == 1 for request in step_requests(running.server))
        check_pairs(running.session.get_llm_history())
        assert all(entry.tokens_after < entry.trigger for entry in made)


async def test_one_that_is_late_is_waited_for_and_not_asked_for_again(tmp_path):
    """Due before it is ready: the same request is finished, and no second one begun."""
    write_big_file(tmp_path, LINES)
    release = asyncio.Event()
    steps = reads(40)

    async def script(request: Request):
        if is_summary_request(request):
            await release.wait()
            return Reply(SUMMARY)
        return steps(request)

    async with agent(tmp_path, script, options=WINDOW, environ=BESIDE) as running:
        work = asyncio.ensure_future(running.ask("the task", timeout=60))
        await until(lambda: any("begun beside" in event.stage for event in running.of(CompactionProgressEvent)))
        assert len(summary_requests(running.server)) == 1
        release.set()
        assert (await work).outcome == "completed"
        assert compactions(running)[0].rung == "prepared"


async def test_switched_off_nothing_is_asked_beside_a_task(tmp_path):
    write_big_file(tmp_path, LINES)
    async with agent(tmp_path, reads(40), options=WINDOW, environ=IN_ORDER) as running:
        assert (await running.ask("the task", timeout=60)).outcome == "completed"
        assert compactions(running)
        assert "prepared" not in {entry.rung for entry in compactions(running)}
        assert not told(running)


async def test_a_local_server_without_a_key_is_not_asked_for_two_things_at_once(tmp_path):
    write_big_file(tmp_path, LINES)
    async with agent(tmp_path, reads(40), options=WINDOW, environ={**BESIDE, "OPENAI_API_KEY": ""}) as running:
        assert running.runtime.live.models.answers_one_at_a_time("openai-chat")
        assert (await running.ask("the task", timeout=60)).outcome == "completed"
        assert compactions(running)
        assert "prepared" not in {entry.rung for entry in compactions(running)}


async def test_a_strategy_of_somebody_else_makes_its_summaries_itself(tmp_path):
    write_big_file(tmp_path, LINES)
    own = Own(lambda _ctx: None)
    async with agent(tmp_path, reads(30), options=WINDOW, compaction=own, environ=BESIDE) as running:
        await running.ask("the task", timeout=60)
        assert not told(running)


async def test_an_extension_that_is_asked_before_anything_is_tried_is_asked_first(tmp_path):
    """It is loaded only when a summary is due: then no request was made either."""
    write_big_file(tmp_path, LINES)
    extend(tmp_path, WATCH)
    async with agent(tmp_path, reads(40), options=WINDOW, environ=BESIDE) as running:
        assert (await running.ask("the task", timeout=60)).outcome == "completed"
        assert compactions(running)
        assert "prepared" not in {entry.rung for entry in compactions(running)}
        assert not told(running)


async def until_ready(running) -> asyncio.Future[object]:
    """Run a task until a summary is ready and the model is at its next step, which hangs."""
    work = asyncio.ensure_future(running.ask("the task", timeout=60))
    await until(lambda: running.runtime.live.compaction.background.ready is not None)
    return work


def stopping(steps: int):
    """Read until a summary was asked for; the step after that hangs until it is interrupted, under the trigger."""
    script = reads(steps)
    asked = False

    def answer(request: Request):
        nonlocal asked
        if is_summary_request(request):
            asked = True
            return Reply(SUMMARY)
        return Hang() if asked else script(request)

    return answer


def undo(running) -> None:
    running.session.append(UndoEntry(target=running.session.path()[2].seq))


def branch(running) -> None:
    answers = [entry.seq for entry in running.session.path() if isinstance(entry, AssistantMessage)]
    running.session.append(BranchEntry(parent=answers[2]))


def edit(running) -> None:
    result = next(entry for entry in running.session.path() if isinstance(entry, ToolResultMessage))
    running.session.append(ViewEditEntry(edits=(ViewEdit(target=result.seq, kind="hidden", text="hidden"),)))


def pin(running) -> None:
    running.session.append(PinEntry(text="never touch legacy/"))


def unpin(running) -> None:
    running.session.append(UnpinEntry(target=1))


async def switch(running) -> None:
    await running.runtime.submit(ChangeModelOperation(session_id=running.runtime.session_id, model="openai-chat/other"))


@pytest.mark.parametrize("change", [undo, branch, edit, pin, unpin, switch])
async def test_what_changes_in_between_drops_it_and_its_cost_stays(tmp_path, change):
    write_big_file(tmp_path, LINES)
    async with agent(tmp_path, stopping(60), options=WINDOW, environ=BESIDE) as running:
        live = running.runtime.live
        work = await until_ready(running)
        (entry,) = [entry for entry in running.session.entries() if isinstance(entry, UsageEntry)]
        assert entry.purpose == PURPOSE
        assert entry.usage.output > 0
        (ready,) = told(running)
        assert "is ready for the next compaction" in ready
        assert "tokens read" in ready
        assert running.of(ContextUsageEvent)[-1].total == running.session.state.usage
        before = running.session.state.usage
        done = change(running)
        if done is not None:
            await done
        await interrupt(running)
        await work
        preparation.drop_outdated(live)
        assert live.compaction.background.ready is None
        assert "is dropped" in told(running)[1]
        assert running.session.state.usage == before


async def test_what_only_comes_behind_it_changes_nothing(tmp_path):
    write_big_file(tmp_path, LINES)
    async with agent(tmp_path, stopping(60), options=WINDOW, environ=BESIDE) as running:
        work = await until_ready(running)
        await interrupt(running)
        await work
        preparation.drop_outdated(running.runtime.live)
        assert running.runtime.live.compaction.background.ready is not None
        asked = len(summary_requests(running.server))
        await running.runtime.wait_for(await begin_compaction(running))
        assert compactions(running)[-1].rung == "prepared", "a manual compaction takes it over too"
        assert len(summary_requests(running.server)) == asked


def hanging(steps: int):
    script = reads(steps)

    def answer(request: Request):
        return Hang() if is_summary_request(request) else script(request)

    return answer


async def test_esc_ends_it_with_the_task(tmp_path):
    write_big_file(tmp_path, LINES)
    async with agent(tmp_path, hanging(60), options=WINDOW, environ=BESIDE) as running:
        work = asyncio.ensure_future(running.ask("the task", timeout=60))
        await until(lambda: summary_requests(running.server))
        await interrupt(running)
        assert (await work).outcome == "interrupted"
        await until(lambda: summary_requests(running.server)[0].aborted)
        assert not running.runtime.live.compaction.background.is_running
        assert not compactions(running)


async def test_it_is_never_written_beside_a_manual_compaction(tmp_path):
    write_big_file(tmp_path, LINES)
    hangs = True
    steps = reads(60)

    def script(request: Request):
        if not is_summary_request(request):
            return steps(request)
        return Hang() if hangs else Reply(SUMMARY)

    async with agent(tmp_path, script, options=WINDOW, environ=BESIDE) as running:
        await running.send("the task")
        await until(lambda: summary_requests(running.server))
        hangs = False
        await running.runtime.wait_for(await begin_compaction(running))
        first, second = summary_requests(running.server)[:2]
        assert first.aborted
        assert first.ended <= second.received or not first.ended
        assert [entry.reason for entry in compactions(running)] == ["manual"]


async def test_one_that_fails_backs_off_and_the_task_goes_on(tmp_path):
    write_big_file(tmp_path, LINES)
    steps = reads(25)

    def script(request: Request):
        if is_summary_request(request):
            return HttpError(401, "no")
        return steps(request)

    async with agent(tmp_path, script, options=WINDOW, environ=BESIDE) as running:
        settled = await running.ask("the task", timeout=120)
        assert settled.outcome == "completed", settled.error
        failures = [text for text in told(running) if "could be prepared" in text]
        assert 1 <= len(failures) <= 6
        assert compactions(running), "the ladder did without it"


async def test_what_failed_in_one_round_is_tried_anew_in_the_next(tmp_path, monkeypatch):
    """Whatever the failure was, one that nobody thought of too: told, the task goes on, and it is not for ever."""
    write_big_file(tmp_path, LINES)
    tried = 0

    async def broken(ctx):
        nonlocal tried
        tried += 1
        if tried == 1:
            raise ZeroDivisionError
        return await prepare(ctx)

    monkeypatch.setattr(preparation, "prepare", broken)
    async with agent(tmp_path, reads(45), options=WINDOW, environ=BESIDE) as running:
        live = running.runtime.live
        assert (await running.ask("the task", timeout=60)).outcome == "completed"
        assert tried > 1
        assert len([text for text in told(running) if "could be prepared" in text]) == 1
        assert "prepared" in {entry.rung for entry in compactions(running)}
        await until(lambda: not live.compaction.background.is_running)


async def test_kill_in_the_middle_loses_nothing(tmp_path):
    write_big_file(tmp_path, LINES)
    steps = hanging(60)
    greeted = False

    def script(request: Request):
        return steps(request) if greeted else Reply("hi")

    async with ScriptedServer(script, **WINDOW) as server:
        async with reopened(tmp_path, server, environ=BESIDE) as running:
            log = running.session.directory / "events.jsonl"
            assert (await running.ask("hello")).outcome == "completed"
        greeted = True
        async with victim(tmp_path, server) as process:
            await process.send("say the task")
            await until(lambda: summary_requests(server), 60)
            await process.kill()
        written = log.read_bytes()
        assert written.count(b'"tool_result"') > 3
        assert b'"compaction"' not in written
        async with reopened(tmp_path, server, resume_latest=True, environ=BESIDE) as running:
            assert not running.session.damage
            assert log.read_bytes().startswith(written)
            check_pairs(running.session.get_llm_history())
            assert running.runtime.live.compaction.background.ready is None
