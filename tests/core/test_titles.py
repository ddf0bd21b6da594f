"""Titles from the small model: one short request beside the work, and never over a user's own."""

from __future__ import annotations

import asyncio

from tenuto.protocol.entry import UsageEntry
from tenuto.protocol.event import NoticeEvent, TitleChangedEvent
from tenuto.session.library.catalog import list_sessions
from tests.core.harness import agent
from tests.server import HttpError, Reply, Request

TITLES = {"TENUTO_SESSION__TITLES": "true"}
SMALL = TITLES | {"TENUTO_SESSION__TITLE_MODEL": "openai-chat/small"}


def names(request: Request) -> bool:
    return "Name a conversation" in str(request.body)


def script(request: Request) -> Reply:
    return Reply("“Mend the parser of quotes.”") if names(request) else Reply("Done.")


def asked(running) -> list[Request]:
    return [request for request in running.server.requests if names(request)]


async def test_the_first_exchange_is_named_once_by_the_small_model_and_its_cost_is_counted(tmp_path):
    async with agent(tmp_path, script, environ=SMALL) as running:
        await running.ask("mend it")
        event = await running.until(TitleChangedEvent)
        assert event.title == "Mend the parser of quotes"
        (request,) = asked(running)
        assert request.body["model"] == "small"
        assert "mend it" in str(request.body)
        assert "Done." in str(request.body)
        (cost,) = [entry for entry in running.session.entries() if isinstance(entry, UsageEntry)]
        assert (cost.purpose, cost.model) == ("title", "openai-chat/small")
        await running.ask("and on")
        assert len(asked(running)) == 1
    assert list_sessions(tmp_path / "home")[0].name == "Mend the parser of quotes"


async def test_a_title_of_the_users_stands_also_when_it_came_while_the_model_was_asked(tmp_path):
    came = asyncio.Event()

    async def slow(request: Request) -> Reply:
        if names(request):
            await came.wait()
        return script(request)

    async with agent(tmp_path, slow, environ=SMALL) as running:
        await running.ask("mend it")
        async with asyncio.timeout(60):
            while not asked(running):
                await asyncio.sleep(0.005)
        await running.runtime.run_command("/title my own")
        came.set()
        async with asyncio.timeout(60):
            while not running.session.state.usage.total or not [
                entry for entry in running.session.entries() if isinstance(entry, UsageEntry)
            ]:
                await asyncio.sleep(0.005)
        assert running.session.state.title == "my own"
    assert list_sessions(tmp_path / "home")[0].title == "my own"


async def test_a_model_that_cannot_name_it_is_no_news_and_the_rule_has_named_it(tmp_path):
    def refuse(request: Request) -> Reply | HttpError:
        return HttpError(500, "no") if names(request) else Reply("Done.")

    async with agent(tmp_path, refuse, environ=SMALL) as running:
        await running.ask("mend it. Then rest")
        async with asyncio.timeout(60):
            while not asked(running):
                await asyncio.sleep(0.005)
        await running.ask("and on")
        assert not [event for event in running.of(NoticeEvent) if event.level != "info"]
        assert len(asked(running)) == 1
        (said,) = await running.runtime.run_command("/title")
        assert "“mend it”" in said.text
    assert list_sessions(tmp_path / "home")[0].name == "mend it"


async def test_nobody_is_asked_without_a_small_model_or_with_titles_off(tmp_path):
    for place, environ in (("a", TITLES), ("b", SMALL | {"TENUTO_SESSION__TITLES": "false"})):
        (tmp_path / place).mkdir()
        async with agent(tmp_path / place, script, environ=environ) as running:
            await running.ask("mend it")
            await running.ask("and on")
            assert len(running.server.requests) == 2
            assert running.session.state.title == ""


async def test_nobody_reads_on_in_a_title_that_has_no_end(tmp_path):
    def endless(request: Request) -> Reply:
        if names(request):
            return Reply("word " * 20_000, chunk_size=500, delay_per_event=0.001)
        return Reply("Done.")

    async with agent(tmp_path, endless, environ=SMALL) as running:
        await running.ask("mend it. Then rest")
        async with asyncio.timeout(60):
            while not asked(running) or any(task.get_name() == "title" for task in asyncio.all_tasks()):
                await asyncio.sleep(0.005)
        assert not running.of(TitleChangedEvent)
        counted = [entry for entry in running.session.entries() if isinstance(entry, UsageEntry)]
        assert not counted, "what it cost stands at its end, which was not read"
