"""Tools, hooks, strategies and events that a program gives its agent."""

from __future__ import annotations

import asyncio
import threading
from typing import Annotated

import pytest

import tenuto
from tenuto.extension import Extension, Result, ToolCall
from tenuto.protocol.event import NoticeEvent, ToolOutputEvent, ToolResultEvent
from tests.api.using import options_of, using
from tests.core.compacting import is_summary_request
from tests.core.harness import PROTOCOLS
from tests.server import Call, Reply, ScriptedServer


@pytest.mark.parametrize("protocol", PROTOCOLS)
async def test_a_function_is_a_tool_by_its_hints(tmp_path, protocol):
    def price(item: Annotated[str, "what is bought"], count: int = 1) -> float:
        """Return the price of something in euros."""
        return {"tea": 3.5}[item] * count

    script = [
        Reply(tool_calls=[Call("price", {"item": "tea", "count": 2})]),
        Reply(tool_calls=[Call("price", {"item": "gold"})]),
        Reply(tool_calls=[Call("price", {"thing": "tea"})]),
        Reply("Seven."),
    ]
    async with using(tmp_path, script, model=f"{protocol}/test", tools=[price]) as used:
        assert (await used.agent.run("what are two teas?")).text == "Seven."
        assert "price" in used.server.requests[0].tool_names
        assert b"what is bought" in used.server.requests[0].raw
        said = [event.message.parts[0].text for event in used.of(ToolResultEvent)]
        errors = [event.message.is_error for event in used.of(ToolResultEvent)]
    assert said[0] == "7.0"
    assert "KeyError: 'gold'" in said[1]
    assert "test_own.py" in said[1]
    assert errors == [False, True, True]


async def test_an_async_tool_runs_on_the_loop_of_the_agent_and_a_plain_one_beside_it(tmp_path):
    seen = []
    here = asyncio.get_running_loop()

    async def waits(call: ToolCall) -> str:
        """Wait a moment."""
        call.emit("half\n")
        await asyncio.sleep(0.01)
        seen.append(asyncio.get_running_loop() is here)
        return "waited"

    def blocks() -> str:
        """Block."""
        seen.append(threading.current_thread() is threading.main_thread())
        return "blocked"

    script = [Reply(tool_calls=[Call("waits", {})]), Reply(tool_calls=[Call("blocks", {})]), Reply("Done.")]
    async with using(tmp_path, script, tools=[waits, blocks]) as used:
        assert (await used.agent.run("go")).text == "Done."
        assert [event.text for event in used.of(ToolOutputEvent)] == ["half\n"]
    assert seen == [True, False]


async def test_a_tool_asks_for_approval_like_every_other(tmp_path):
    def send(text: str) -> str:
        """Send a text to everybody."""
        sent.append(text)
        return "sent"

    sent: list[str] = []
    asked = []

    def approve(request):
        asked.append((request.tool, request.kinds[0].covers, request.detail.splitlines()[0]))
        return tenuto.Allow(kind=0)

    calls = [Reply(tool_calls=[Call("send", {"text": text})]) for text in ("a", "b")]
    async with using(tmp_path, [*calls, Reply("Done.")], tools=[send], approve=approve) as used:
        await used.agent.run("go")
    assert asked == [("send", "send", "send of the extension program")]
    assert sent == ["a", "b"]
    async with using(tmp_path, [*calls, Reply("Done.")], tools=[send], mode="ask") as used:
        answer = await used.agent.run("go")
    assert [call.name for call in answer.refused] == ["send", "send"]
    assert sent == ["a", "b"]


async def test_a_setup_brings_hooks_events_and_a_strategy(tmp_path):
    heard = []

    class Keeps:
        async def compact(self, ctx):
            heard.append("strategy")
            return

    def setup(api: Extension) -> None:
        api.strategy("keeps", Keeps)

        @api.on("session_before_compact")
        def before(event):
            heard.append("before")
            return {"cancel": True, "cancel_reason": "not now"}

        @api.on("tool_result")
        def result(event):
            heard.append(event.message.name)

        @api.tool(read_only=True)
        def look() -> Result:
            """Look."""
            return Result(text="nothing there")

    def script(request):
        if is_summary_request(request):
            return Reply("## Goal\nGo on.")
        return Reply("fine " * 600) if request.turn else Reply(tool_calls=[Call("look", {})])

    async with using(tmp_path, script, server={"window": 32_000}, extensions=[setup], mode="plan") as used:
        for number in range(6):
            await used.agent.run(f"question {number} " + "because " * 300)
        with pytest.raises(tenuto.TenutoError, match="not now"):
            await used.agent.compact()
    assert heard.count("look") == 6
    assert heard[-1] == "before"
    script_options = {"server": {"window": 32_000}, "settings": {"compaction": {"strategy": "keeps"}}}
    async with using(tmp_path, script, extensions=[setup], **script_options, mode="plan") as used:
        plan = await used.agent.preview()
        assert plan.strategy == "Keeps"


async def test_what_the_program_brings_is_there_although_extensions_are_off(tmp_path):
    (tmp_path / "home" / "extensions").mkdir(parents=True)
    (tmp_path / "home" / "extensions" / "theirs.py").write_text(
        'def setup(tenuto):\n    @tenuto.tool\n    def theirs() -> str:\n        "Theirs."\n        return ""\n'
    )

    def mine() -> str:
        """Mine."""
        return "mine"

    for enabled in (True, False):
        settings = {"extensions": {"enabled": enabled}}
        async with using(tmp_path, [Reply("Fine.")], tools=[mine], settings=settings) as used:
            await used.agent.run("go")
            names = used.server.requests[0].tool_names
        assert ("mine" in names, "theirs" in names) == (True, enabled)


def broken(_api) -> None:
    raise ZeroDivisionError("mine")


def read(path: str) -> str:
    """Take a name that is taken."""
    return path


@pytest.mark.parametrize(
    ("options", "word"),
    [({"extensions": [broken]}, "ZeroDivisionError"), ({"tools": [read]}, "Tenuto itself has it")],
    ids=["setup", "name"],
)
async def test_what_cannot_be_used_is_refused_at_the_opening(tmp_path, options, word):
    async with ScriptedServer([]) as server:
        with pytest.raises(tenuto.UsageError, match=word):
            async with tenuto.Agent(**options_of(tmp_path, server, **options)):
                pass


async def test_a_broken_extension_of_the_user_only_says_so(tmp_path):
    (tmp_path / "home" / "extensions").mkdir(parents=True)
    (tmp_path / "home" / "extensions" / "theirs.py").write_text("1 / 0\n")

    def mine() -> str:
        """Mine."""
        return "mine"

    async with using(tmp_path, [Reply("Fine.")], tools=[mine]) as used:
        assert (await used.agent.run("go")).text == "Fine."
        assert used.of(NoticeEvent) is not None


async def test_a_fork_has_the_same_tools_on_its_own(tmp_path):
    def mine() -> str:
        """Mine."""
        return "mine"

    def script(request):
        return Reply("Done.") if request.turn else Reply(tool_calls=[Call("mine", {})])

    async with using(tmp_path, script, tools=[mine]) as used:
        await used.agent.run("one")
        async with used.agent.fork() as other:
            await other.run("two")
        await used.agent.run("three")
        assert [request.items[-1].text for request in used.server.requests if request.turn] == ["mine"] * 3
