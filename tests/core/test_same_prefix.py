"""Summaries in place in the running agent: several of them, a cold cache, overflow, and what the user is told."""

from __future__ import annotations

import itertools
import time

import pytest

from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import SystemMessage
from tenuto.tui.render.items import render_item
from tenuto.tui.state.item import CompactionItem
from tests.core.compacting import (
    LONG_ANSWER,
    SUMMARY,
    compact,
    compactions,
    fill,
    is_in_place,
    summary_requests,
    talk,
)
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.requirements.compaction.support import write_settings
from tests.server import HttpError, Reply, Request, ScriptedServer

WINDOW = {"window": 32_000}


def numbered():
    """Summaries that can be told apart."""
    made = itertools.count(1)
    return lambda _request: Reply(SUMMARY.replace("Keep the tests green.", f"SUMMARY-{next(made)}"))


def rounds(events: list[NoticeEvent]) -> list[str]:
    return [event.text for event in events if "summarised" in event.text and "times" in event.text]


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_the_next_one_in_place_has_the_earlier_summary_in_the_view_and_stands_for_it(tmp_path, protocol):
    async with agent(tmp_path, talk(summary=numbered()), model=f"{protocol}/test", options=WINDOW) as running:
        for number in range(3):
            await fill(running, 5)
            await compact(running)
            before = running.server.requests[-2]
            asked = summary_requests(running.server)[number]
            assert is_in_place(asked)
            assert asked.continues(before)
            assert "<previous-summary>" not in asked.items[-1].text
            assert f"SUMMARY-{number}" in asked.raw.decode() or not number
            view = running.session.get_llm_history()
            summaries = [message.text for message in view[1:] if isinstance(message, SystemMessage)]
            assert len(summaries) == 1
            assert f"SUMMARY-{number + 1}" in summaries[0]
        assert [entry.rung for entry in compactions(running)] == ["same prefix"] * 3
        assert not running.server.refusals


async def test_from_the_fifth_one_on_it_is_said_once_what_many_cost(tmp_path):
    async with ScriptedServer(talk(), **WINDOW) as server:
        async with reopened(tmp_path, server) as running:
            for number in range(1, 7):
                await fill(running, 4)
                await compact(running)
                assert len(rounds(running.of(NoticeEvent))) == (number >= 5)
            (told,) = rounds(running.of(NoticeEvent))
            assert all(word in told for word in ("5 times", "/new", "/fork", "/recall"))
        async with reopened(tmp_path, server, resume_latest=True) as running:
            assert not rounds(running.of(NoticeEvent))
            await fill(running, 4)
            await compact(running)
            assert "7 times" in rounds(running.of(NoticeEvent))[0]


async def test_a_cold_cache_makes_a_transcript_the_cheaper_way(tmp_path):
    now = time.time()
    async with agent(tmp_path, talk(), options=WINDOW, clock=lambda: now) as running:
        await fill(running)
        now += 301
        await compact(running)
        assert compactions(running)[0].rung == "serialised"
        assert not is_in_place(summary_requests(running.server)[0])


async def test_after_an_undo_the_cache_has_not_what_is_in_the_view(tmp_path):
    from tenuto.command.registry import run_command

    async with agent(tmp_path, talk(), options=WINDOW) as running:
        await fill(running)
        await compact(running)
        await run_command(running.runtime, "/compact undo")
        await compact(running)
        assert [entry.rung for entry in compactions(running)] == ["same prefix", "serialised"]


async def test_after_a_refusal_the_same_request_is_not_made_with_more_in_it(tmp_path):
    def answer(request: Request):
        if request.tokens > 20_000:
            return HttpError(400, "input is too long for requested model")
        return Reply(LONG_ANSWER)

    async with agent(tmp_path, talk(answer), options={"listed_window": 200_000}) as running:
        await fill(running, 22)
        assert {entry.rung for entry in compactions(running) if entry.reason == "overflow"} == {"serialised"}
        refused = [after for before, after in itertools.pairwise(running.server.requests) if before.status == 400]
        assert refused
        assert not any(is_in_place(request) for request in refused)


async def test_the_prompt_of_the_settings_is_the_one_that_is_sent(tmp_path):
    write_settings(tmp_path, '[compaction.prompts]\nsame_prefix = "Fasse zusammen."\n')

    def script(request: Request):
        return Reply(SUMMARY) if "Fasse zusammen." in request.last_user else Reply(LONG_ANSWER)

    async with agent(tmp_path, script, options=WINDOW) as running:
        await fill(running)
        await compact(running)
        assert "\n\nFasse zusammen.\n\n" in running.server.requests[-1].last_user
        assert compactions(running)[0].rung == "same prefix"


async def test_the_block_shows_what_came_from_the_cache_and_which_names_were_kept(tmp_path):
    script = talk(Reply(f"The server is on localhost:8443. {LONG_ANSWER}"))
    async with agent(tmp_path, script, options=WINDOW) as running:
        await fill(running)
        await compact(running)
        (entry,) = compactions(running)
        usage, names = entry.usage, entry.details.names
        lines = render_item(CompactionItem(reason="manual", entry=entry, running=False, final=True), 200)
        shown = "".join(line.text for line in lines)
        assert f"cache {100 * usage.cache_read // usage.sent} %" in shown
        assert usage.cache_read > usage.sent // 2
        assert f"names {names.kept}/{names.found} kept" in shown
