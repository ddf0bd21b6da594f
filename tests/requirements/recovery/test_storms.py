"""Sessions in bad weather: prompts, compactions, undos, restarts, while summaries and steps fail at random.

Whatever happens, no request is over the window or refused for its shape, the live view is what a reader of the log
computes, and every provider would take it (R-001, R-003, R-016, R-028, R-048). Seeds are numbered; `TENUTO_TEST_SEED`
names the first.
"""

from __future__ import annotations

import os
import random
import re
from pathlib import Path

import pytest

from tenuto.session.view.projection import project
from tests.core.harness import PROTOCOLS, Agent, reopened
from tests.requirements.compaction.support import SUMMARY, compact, write_big_file
from tests.requirements.recovery.ladder import answering, check_all_providers, told, words
from tests.requirements.recovery.test_ladder_failures import FAULTS
from tests.server import Call, Reply, Request, ScriptedServer
from tests.server.reply import AnyReply
from tests.session.build import check_pairs

FIRST = int(os.environ.get("TENUTO_TEST_SEED") or 0)
FEW, MANY, TOGETHER = 6, 400, 20
COMMANDS = ("/compact undo", "/compact redo", "/pin the port is 8443", "/context")
CALLS = (
    Call("glob", {"pattern": "*"}),
    Call("read", {"path": "big.txt", "limit": 300}),
    Call("read", {"path": "no-such-file"}),
    Call("no_such_tool", {}),
    Call("bash", {"command": "seq 1 600"}),
    Call("todo", {"items": [{"text": "an item", "status": "done"}]}),
    Call("read", "{broken"),
)
READABLE = ("too long", "does not fit", "stopped: ")
"""What a task may fail with in such weather: a provider that refuses time and again, a model that goes in circles."""


class Weather:
    """What the server answers, by chance."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self.fault = ""

    def step(self, request: Request) -> AnyReply:
        """Mostly answer, mostly with calls, often with thinking; now and then refuse the request as too long."""
        source = self.source
        thinking = "hm " * source.choice([0, 0, 1, 150])
        if request.items[-1].kind != "result" and source.random() < 0.5:
            calls = [source.choice(CALLS) for _ in range(source.randrange(1, 4))]
            return Reply(words(source.randrange(10, 900)), thinking, tool_calls=calls, chunk_size=4_000)
        if source.random() < 0.05:
            return FAULTS["summariser overflow"]
        return Reply(words(source.randrange(10, 1_500)), thinking, chunk_size=4_000)

    def summary(self, _request: Request) -> AnyReply:
        """Fail in the way of the hour, mostly."""
        failing = self.fault and self.source.random() < 0.8
        return FAULTS[self.fault] if failing else Reply(SUMMARY)


async def act(running: Agent, weather: Weather) -> None:
    """Do something that a user does."""
    source = weather.source
    weather.fault = source.choice(["", "", *FAULTS])
    chance = source.random()
    if chance < 0.2:
        await compact(running)
    elif chance < 0.3:
        await running.runtime.run_command(source.choice(COMMANDS))
    else:
        settled = await running.ask(f"question {words(source.randrange(5, 3_000))}")
        assert settled.outcome == "completed" or any(reason in settled.error for reason in READABLE), settled.error


async def check(running: Agent) -> None:
    """What must hold after everything."""
    view = list(running.session.get_llm_history())
    check_pairs(view)
    assert project(running.session.path(), running.runtime.live.facts.id) == view
    await check_all_providers(running)


async def weather_through(seed: int, tmp_path: Path) -> None:
    tmp_path.mkdir()
    (tmp_path / "home").mkdir()
    write_big_file(tmp_path)
    source = random.Random(seed)
    weather = Weather(source)
    model, window = f"{source.choice(PROTOCOLS)}/test", source.choice([10_000, 16_000, 24_000, 32_000])
    listed = source.choice([window, window, 200_000])
    options = {"window": window, "listed_window": listed, "check_thinking": True}
    has_stopped = False
    """After two compactions of no use the user has to act (R-005), and only a refusal compacts."""
    async with ScriptedServer(answering(weather.step, weather.summary), **options) as server:
        for run in range(3):
            async with reopened(tmp_path, server, model=model, resume_latest=run > 0) as running:
                if run == 0:
                    await running.ask("hello")
                for _ in range(source.randrange(3, 9)):
                    await act(running, weather)
                    await check(running)
                has_stopped |= any("twice in a row" in text for text in told(running))
        assert not server.faults
        assert all(re.search("context|too long|max_tokens", refusal) for refusal in server.refusals), "for size alone"
        assert len(server.refusals) <= 6, "the true window is learned"
        if listed == window and not has_stopped:
            assert not server.refusals, server.refusals
            assert max(request.tokens for request in server.requests) <= window


async def weather_all(seeds: range, tmp_path: Path) -> None:
    for seed in seeds:
        try:
            await weather_through(seed, tmp_path / str(seed))
        except BaseException as error:
            error.add_note(f"TENUTO_TEST_SEED={seed}")
            raise


async def test_r003_sessions_come_through_whatever_fails(tmp_path):
    await weather_all(range(FIRST, FIRST + FEW), tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("first", range(FIRST, FIRST + MANY, TOGETHER))
async def test_r003_four_hundred_of_them(tmp_path, first: int):
    await weather_all(range(first, first + TOGETHER), tmp_path)
