"""Pins: word for word in every request, told once, gone when they are taken back."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.outcome import Choose
from tenuto.command.registry import run_command
from tenuto.protocol.entry import PinEntry, UnpinEntry
from tenuto.protocol.event import NoticeEvent
from tenuto.protocol.message import AssistantMessage, CompactionEntry, DeveloperMessage, SystemMessage, UserMessage
from tenuto.protocol.part import text_of
from tests.core.compacting import compact, fill, is_summary_request, log_of, talk
from tests.core.compacting import compactions as entries
from tests.core.harness import PROTOCOLS, agent, reopened
from tests.examples import one_of
from tests.server import Call, Reply, Request, ScriptedServer

PIN = "Never touch legacy/.\n  The port is 8443 “always”."


def requests_to_work(server: ScriptedServer) -> list[Request]:
    return [request for request in server.requests if request.kind == "model" and not is_summary_request(request)]


def sent(request: Request) -> str:
    return "\n".join(item.text for item in request.items)


async def command(running, line: str) -> str:
    (said,) = await run_command(running.runtime, line)
    return said.text


@pytest.mark.parametrize("protocol", one_of(PROTOCOLS, 1))
async def test_r033_a_pin_stands_word_for_word_in_every_request_through_three_compactions(tmp_path, protocol):
    async with ScriptedServer(talk(), window=32_000) as server:
        async with reopened(tmp_path, server, model=f"{protocol}/test") as running:
            await fill(running, 2)
            before = len(server.requests)
            assert "Pinned (#1)" in await command(running, f"/pin {PIN}")
            for _ in range(3):
                await fill(running, 4)
                await compact(running)
            assert len(entries(running)) == 3
            await running.ask("and now?")
        async with reopened(tmp_path, server, model=f"{protocol}/test", resume_latest=True) as running:
            await running.ask("after a restart")
            assert f"<pins>\n{PIN}\n</pins>" in entries(running)[-1].replacement[0].text
        later = requests_to_work(server)[2:]
        assert len(later) == 14
        assert all(PIN in sent(request) for request in later)
        assert not any(PIN in sent(request) for request in server.requests[:before])
        assert not any(request.refused for request in server.requests)


async def test_a_pin_is_told_once_and_nothing_already_sent_changes(tmp_path):
    async with agent(tmp_path, talk("fine")) as running:
        await running.ask("one")
        await command(running, f"/pin {PIN}")
        await running.ask("two")
        await running.ask("three")
        first, second, third = requests_to_work(running.server)
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items
        assert third.prefix_items[: len(second.prefix_items)] == second.prefix_items
        assert sent(third).count(PIN) == 1
        notes = [entry for entry in running.session.path() if isinstance(entry, DeveloperMessage) and not entry.kind]
        assert not notes, "environment and mode are not told again because of a pin"


async def test_without_a_text_the_last_message_is_pinned(tmp_path):
    async with agent(tmp_path, talk("fine")) as running:
        assert "no message to pin" in await command(running, "/pin")
        await running.ask("always answer in Dutch")
        assert "Pinned (#1)" in await command(running, "/pin")
        (pin,) = running.session.state.pins
        message = running.session.find(pin.target)
        assert isinstance(message, UserMessage)
        assert pin.text == text_of(message.parts) == "always answer in Dutch"
        assert "pinned already" in await command(running, "/pin always answer in Dutch")


async def test_pins_have_a_twentieth_of_the_window_together(tmp_path):
    async with agent(tmp_path, talk("fine"), options={"window": 20_000}) as running:
        await command(running, "/pin " + "word " * 700)
        before = log_of(running)
        refused = await command(running, "/pin " + "more " * 500)
        assert "not pinned" in refused
        assert "1,000" in refused
        assert log_of(running) == before
        await command(running, "/pin short")
        assert len(running.session.state.pins) == 2


async def test_pins_are_listed_with_the_numbers_that_unpin_takes(tmp_path):
    async with agent(tmp_path, talk("fine")) as running:
        assert "No pins" in await command(running, "/pins")
        assert "No pins" in await command(running, "/unpin 1")
        for text in ("first", "second\nline", "third"):
            await command(running, f"/pin {text}")
        listed = await command(running, "/pins")
        assert listed.startswith("1. first\n2. second\n   line\n3. third\n")
        assert "second" in await command(running, "/unpin 2")
        assert (await command(running, "/pins")).startswith("1. first\n2. third\n")
        assert "no pin 3" in await command(running, "/unpin 3")
        assert "not the number" in await command(running, "/unpin third")
        (choose,) = await run_command(running.runtime, "/unpin")
        assert isinstance(choose, Choose)
        assert [choice.value for choice in choose.choices] == ["1", "2"]
        assert sum(isinstance(entry, UnpinEntry) for entry in running.session.entries()) == 1


async def test_the_model_is_told_when_a_pin_is_taken_back_and_when_it_comes_again(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 32_000}) as running:
        await command(running, f"/pin {PIN}")
        await fill(running)
        await compact(running)
        await command(running, "/unpin 1")
        await running.ask("without it")
        request = requests_to_work(running.server)[-1]
        assert "took back this pin" in sent(request)
        await command(running, f"/pin {PIN}")
        await running.ask("with it again")
        request = requests_to_work(running.server)[-1]
        assert sent(request).rindex(PIN) > sent(request).index("took back this pin")
        await command(running, "/unpin 1")
        await fill(running)
        await compact(running)
        assert "<pins>" not in entries(running)[-1].replacement[0].text


async def test_a_pin_made_while_a_task_runs_is_told_before_its_next_step(tmp_path):
    go_on = asyncio.Event()

    async def script(request: Request):
        if any(item.kind == "result" for item in request.items):
            return Reply("done")
        await go_on.wait()
        return Reply(tool_calls=[Call("glob", {"pattern": "*"})])

    async with agent(tmp_path, script) as running:
        await running.send("look around")
        while not running.server.requests:
            await asyncio.sleep(0.01)
        await command(running, f"/pin {PIN}")
        go_on.set()
        settled = await asyncio.wait_for(running.runtime.wait_settled(), 60)
        assert settled.outcome == "completed", settled.error
        first, second = requests_to_work(running.server)[:2]
        assert PIN not in sent(first)
        assert PIN in sent(second)
        assert second.prefix_items[: len(first.prefix_items)] == first.prefix_items


async def test_a_compaction_that_forgot_the_pins_is_made_good_by_a_note(tmp_path):
    async with agent(tmp_path, talk("fine")) as running:
        await command(running, f"/pin {PIN}")
        await running.ask("one")
        last = running.session.path()[-1].seq
        running.session.append(
            CompactionEntry(summary="s", first_kept_index=last + 1, replacement=(SystemMessage(text="Earlier: one."),))
        )
        await running.ask("two")
        assert sent(requests_to_work(running.server)[-1]).count(PIN) == 1
        assert [entry.text for entry in running.session.entries() if isinstance(entry, PinEntry)] == [PIN]


async def test_pins_that_are_too_long_for_a_smaller_window_do_not_stop_a_compaction(tmp_path):
    long, short = "legacy " * 1_500, "the port is 8443"
    async with ScriptedServer(talk(), window=64_000) as server:
        async with reopened(tmp_path, server) as running:
            await running.ask("hello")
            await command(running, f"/pin {long}")
            await command(running, f"/pin {short}")
            await running.ask("hello again")
            assert long.strip() in sent(requests_to_work(server)[-1])
    async with ScriptedServer(talk(), window=16_000) as server:
        async with reopened(tmp_path, server, resume_latest=True) as running:
            await fill(running, 3)
            assert any("1 of 2 pins are not sent" in event.text for event in running.of(NoticeEvent))
            await compact(running)
            for entry in entries(running):
                assert entry.rung == "same prefix"
                assert f"<pins>\n{short}\n</pins>" in entry.replacement[0].text
            assert (await running.ask("go on")).outcome == "completed"
            assert len(running.session.state.pins) == 2
            assert not any(request.refused for request in server.requests)


async def test_any_message_can_be_pinned_by_its_number_and_removed_from_the_list(tmp_path):
    async with agent(tmp_path, talk("the answer is 47")) as running:
        await running.ask("one")
        await running.ask("two")
        answer = next(entry for entry in running.session.path() if isinstance(entry, AssistantMessage))
        assert "Pinned (#1): the answer is 47" in await command(running, f"/pin #{answer.seq}")
        (pin,) = running.session.state.pins
        assert (pin.text, pin.target) == ("the answer is 47", answer.seq)
        assert "no message" in await command(running, "/pin #99999")
        assert "Pinned (#2)" in await command(running, "/pin #hashtags are no numbers")
        assert "1. the answer is 47" in await command(running, "/pins")
        assert "Unpinned: the answer is 47" in await command(running, "/pins remove 1")
        assert [entry.text for entry in running.session.state.pins] == ["#hashtags are no numbers"]
        (choose,) = await run_command(running.runtime, "/pins remove")
        assert isinstance(choose, Choose)
