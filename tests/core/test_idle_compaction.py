"""Compacting ahead of time: off by default, visible when on, never beside a task (R-060)."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.core.compacting import preparation
from tenuto.protocol.entry import BranchEntry
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, NoticeEvent
from tenuto.protocol.message import CompactionEntry
from tenuto.protocol.usage import Usage
from tests.core.compacting import SUMMARY, is_summary_request, summary_requests, words
from tests.core.harness import agent
from tests.server import HttpError, Reply, Request

WINDOW = {"window": 21_334}
"""The trigger is 16 000: half of it is 8 000, seven tenths are 11 200."""


def script(request: Request) -> Reply:
    return Reply(SUMMARY) if is_summary_request(request) else Reply("fine " + words(900))


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(preparation, "QUIET", 0.05)
    monkeypatch.setattr(preparation, "BEFORE_EXPIRY", preparation.CACHE_LIFETIME)


def settings(**switches: str) -> dict[str, str]:
    return {f"TENUTO_COMPACTION__{name.upper()}": value for name, value in switches.items()}


async def fill(running, tokens: int) -> None:
    number = 0
    while running.runtime.live.measure().tokens < tokens:
        number += 1
        assert (await running.ask(f"question {number} {words(300)}")).outcome == "completed"


def ready(running) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if "ready for the next compaction" in event.text]


async def prepared(running) -> None:
    async with asyncio.timeout(60):
        while running.runtime.live.compaction.background.ready is None:
            await asyncio.sleep(0.01)


async def test_both_are_off_by_default(tmp_path):
    async with agent(tmp_path, script, options=WINDOW, environ=settings(background="false")) as running:
        await fill(running, 13_000)
        await asyncio.sleep(0.4)
        assert not summary_requests(running.server)
        assert not running.of(CompactionStartEvent)


async def test_a_summary_is_prepared_while_idle_and_used_by_the_next_compaction(tmp_path):
    async with agent(tmp_path, script, options=WINDOW, environ=settings(ahead="true")) as running:
        await fill(running, 12_500)
        await prepared(running)
        assert len(ready(running)) == 1, "visible"
        asked = len(summary_requests(running.server))
        first = running.runtime.live.compaction.background.ready.first_kept_index
        await fill(running, 15_000)
        while not running.of(CompactionEndEvent):
            await running.ask("and on " + words(300))
        (end,) = running.of(CompactionEndEvent)
        assert end.entry is not None
        assert (end.entry.rung, end.entry.reason, end.entry.first_kept_index) == ("prepared", "threshold", first)
        assert "Keep the tests green" in end.entry.summary
        assert end.tokens_after < end.tokens_before
        assert len(summary_requests(running.server)) == asked, "no model was asked for it"
        assert running.runtime.live.compaction.background.ready is None
        assert (await running.ask("go on")).outcome == "completed"
        assert running.session.state.usage != Usage(), "what it cost is counted"


async def test_a_prepared_summary_is_not_used_with_a_focus_after_a_branch_or_with_a_long_tail(tmp_path):
    async with agent(tmp_path, script, options=WINDOW, environ=settings(ahead="true")) as running:
        await fill(running, 12_500)
        await prepared(running)
        await running.runtime.run_command("/compact the names")
        end = await running.until(CompactionEndEvent)
        assert end.entry.rung != "prepared", "with a focus another summary is wanted"
        await fill(running, 12_500)
        await prepared(running)
        path = running.session.path()
        user = next(
            entry for entry in reversed(path) if entry.seq < running.runtime.live.compaction.background.ready.covered
        )
        running.session.append(BranchEntry(parent=user.seq))
        await running.runtime.run_command("/compact")
        end = await running.until(CompactionEndEvent, 2)
        assert end.entry is None or end.entry.rung != "prepared"


async def test_r060_a_long_uncovered_tail_makes_it_useless(tmp_path):
    def long_answers(request: Request) -> Reply:
        if is_summary_request(request):
            return Reply(SUMMARY)
        return Reply("fine " + words(12_000 if "LONG" in request.items[-1].text else 900))

    async with agent(tmp_path, long_answers, options=WINDOW, environ=settings(ahead="true")) as running:
        await fill(running, 12_500)
        await prepared(running)
        await running.ask("LONG")
        await running.ask("next")
        (end, *_rest) = running.of(CompactionEndEvent)
        assert end.entry.rung != "prepared"


async def test_a_prompt_ends_the_preparation_where_nothing_may_run_beside_a_task(tmp_path):
    def slow(request: Request) -> Reply:
        return Reply(SUMMARY, delay=30) if is_summary_request(request) else Reply("fine " + words(900))

    switches = settings(ahead="true", background="false")
    async with agent(tmp_path, slow, options=WINDOW, environ=switches) as running:
        await fill(running, 11_500)
        async with asyncio.timeout(60):
            while not summary_requests(running.server):
                await asyncio.sleep(0.01)
        assert (await running.ask("at once")).outcome == "completed"
        assert running.runtime.live.compaction.background.ready is None


async def test_a_failure_is_told_and_changes_nothing(tmp_path):
    def broken(request: Request):
        return HttpError(401, "no") if is_summary_request(request) else Reply("fine " + words(900))

    async with agent(tmp_path, broken, options=WINDOW, environ=settings(ahead="true")) as running:
        await fill(running, 11_500)
        async with asyncio.timeout(60):
            while not any("ahead of time" in event.text for event in running.of(NoticeEvent)):
                await asyncio.sleep(0.01)
        assert (await running.ask("go on")).outcome == "completed"


async def test_a_large_session_is_compacted_while_idle_and_only_once(tmp_path):
    async with agent(tmp_path, script, options=WINDOW, environ=settings(idle="true")) as running:
        await fill(running, 8_000)
        end = await running.until(CompactionEndEvent)
        assert end.reason == "idle"
        assert end.entry is not None
        async with asyncio.timeout(60):  # on a slow machine one may have come between two prompts, too
            while not isinstance(running.session.path()[-1], CompactionEntry):
                await asyncio.sleep(0.01)
        count = len(running.of(CompactionEndEvent))
        await asyncio.sleep(0.4)
        assert len(running.of(CompactionEndEvent)) == count, "nothing was said since"
        assert (await running.ask("go on")).outcome == "completed"


async def test_headless_never_compacts_ahead(tmp_path):
    async with agent(
        tmp_path, script, options=WINDOW, environ=settings(idle="true", ahead="true"), interactive=False
    ) as running:
        await fill(running, 12_000)
        await asyncio.sleep(0.3)
        assert not running.of(CompactionStartEvent)
        assert not summary_requests(running.server)


async def test_nothing_waits_for_an_idle_moment_of_a_session_that_is_closed(tmp_path):
    """A task that is cut off by the end settles in it, and began the timer anew: "no session is open"."""

    def slow(request: Request) -> Reply:
        return Reply("fine " + words(900), delay=30 if request.items[-1].text == "again" else 0)

    async with agent(tmp_path, slow, options=WINDOW, environ=settings(idle="true", ahead="true")) as running:
        await fill(running, 11_500)
        asked = len(running.server.requests)
        work = asyncio.create_task(running.ask("again"))
        async with asyncio.timeout(60):
            while len(running.server.requests) == asked:
                await asyncio.sleep(0.01)
    work.cancel()
    waiting = [task for task in asyncio.all_tasks() if "AheadOfTime" in repr(task.get_coro())]
    assert not waiting
