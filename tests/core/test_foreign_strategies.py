"""Strategies of somebody else that answer badly, block, or never end (seeds-001-002-004 F4, F5, F6 and polish g)."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

import tenuto
from tenuto.compaction.strategy import CompactionOutcome, LadderCompaction, LLMSummaryCompaction
from tenuto.core.errors import TaskFailedError
from tenuto.protocol.event import CompactionEndEvent, CompactionStartEvent, NoticeEvent
from tenuto.protocol.message import CompactionEntry, SystemMessage
from tenuto.protocol.model import ModelRequest
from tenuto.protocol.part import text_of
from tests.core.compacting import SUMMARY, compact, fill, interrupt, is_summary_request, until, user, words
from tests.core.harness import agent
from tests.core.test_strategies import Own
from tests.server import Reply, Request, ScriptedServer

WINDOW = {"window": 32_000}
NOTES = SystemMessage(text="my notes")
EXITS = {"exit": SystemExit(3), "interrupt": KeyboardInterrupt(), "own": type("Own", (BaseException,), {})("x")}


def script(request: Request) -> Reply:
    return Reply(SUMMARY) if is_summary_request(request) else Reply("fine " + words(900))


def limit(seconds: float) -> dict[str, str]:
    return {"TENUTO_EXTENSIONS__HOOK_TIMEOUT": str(seconds)}


def told(running) -> list[str]:
    return [event.text for event in running.of(NoticeEvent) if "strategy" in event.text]


def check_closure(running) -> None:
    """Every start has its end (R-016)."""
    starts = running.of(CompactionStartEvent)
    assert len(starts) == len(running.of(CompactionEndEvent))


def raising(error: BaseException):
    def act(_ctx):
        raise error

    return act


def sent(running) -> str:
    return " ".join(item.text for item in running.server.requests[-1].items if item.kind == "user")


async def test_f4_an_index_behind_the_end_does_not_hide_what_is_said_later(tmp_path):
    own = Own(lambda _ctx: CompactionOutcome(first_kept_index=999_999, replacement=(NOTES,)))
    async with agent(tmp_path, script, options=WINDOW, compaction=own) as running:
        await fill(running)
        await compact(running)
        assert "999999 is not a place" in told(running)[0]
        assert (await running.ask("said later")).outcome == "completed"
        assert "said later" in sent(running)
        check_closure(running)


@pytest.mark.parametrize(
    ("action", "what"),
    [
        (lambda _ctx: CompactionOutcome(first_kept_index="7", replacement=(NOTES,)), "first_kept_index"),
        (lambda _ctx: CompactionOutcome(first_kept_index=3, replacement=({"role": "user"},)), "replacement"),
        (lambda _ctx: CompactionOutcome(first_kept_index=3, replacement=(NOTES,), details=object()), "details"),
        (lambda _ctx: CompactionOutcome(first_kept_index=3, replacement=(NOTES,), notes=(1, None)), "notes"),
        (lambda _ctx: [SystemMessage(text=None)], "place 0"),
        (raising(asyncio.CancelledError()), "cancelled itself"),
        *((raising(error), "end the program") for error in EXITS.values()),
    ],
)
async def test_f5_in_the_middle_of_a_task_too_the_ladder_does_the_work(tmp_path, action, what):
    """At the threshold: what a strategy does wrong costs the task nothing, and the start event has its end."""
    async with agent(tmp_path, script, options={"window": 16_000}, compaction=Own(action)) as running:
        for number in range(12):
            settled = await running.ask(f"question {number} {words(300)}")
            assert settled.outcome == "completed", settled.error
            if running.of(CompactionEndEvent):
                break
        check_closure(running)
        end = running.of(CompactionEndEvent)[0]
        assert end.entry is not None
        assert end.entry.rung != "Own"
        assert what in told(running)[0]


@pytest.mark.parametrize("given", [Own, object(), lambda ctx: ctx])
async def test_what_is_no_strategy_at_all_is_named_for_what_it_is(tmp_path, given):
    async with agent(tmp_path, script, options=WINDOW, compaction=given) as running:
        await fill(running)
        await compact(running)
        (text,) = [event.text for event in running.of(NoticeEvent) if event.level == "error"]
        assert "`compaction` argument is no strategy" in text
        assert "internal error" not in text
        assert running.of(CompactionEndEvent)[0].entry is not None


async def test_f6_a_strategy_that_blocks_freezes_nothing_and_esc_ends_it_at_once(tmp_path):
    release = threading.Event()
    inside = threading.Event()

    def block(_ctx):
        inside.set()
        release.wait(60)

    async with agent(tmp_path, script, options=WINDOW, compaction=Own(block)) as running:
        await fill(running)
        before = len(list(running.session.path()))
        work = asyncio.ensure_future(compact(running))
        await until(inside.is_set)  # and this loop runs while the strategy blocks
        await interrupt(running)
        finished = await work
        assert not release.is_set()
        assert finished.outcome == "interrupted"
        assert running.of(CompactionEndEvent)[0].aborted
        assert len(list(running.session.path())) == before
        await compact(running)
        assert "has not come back" in told(running)[0], "it is not waited for again"
        assert running.of(CompactionEndEvent)[1].entry is not None
        check_closure(running)
        release.set()


async def test_f6_one_that_swallows_its_cancellation_keeps_nobody_in_the_program(tmp_path):
    """`Agent.__aexit__` returns, and polish g: `ctx.cancel` is set when the strategy sees `CancelledError`."""
    seen: list[bool] = []
    inside = threading.Event()

    async def stubborn(ctx):
        while True:
            try:
                inside.set()
                await asyncio.sleep(3600)
            except asyncio.CancelledError:
                seen.append(ctx.cancel.is_set())

    (tmp_path / "work").mkdir()
    async with ScriptedServer(script, **WINDOW) as server:
        environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.base_url}/v1", "HOME": str(tmp_path)}
        async with tenuto.Agent(
            tmp_path / "work",
            model="openai-chat/test",
            home=tmp_path / "home",
            environ=environ,
            compaction=Own(stubborn),
        ) as running:
            for number in range(6):
                await running.run(f"question {number} {words(300)}")
            work = asyncio.ensure_future(running.compact())
            await until(inside.is_set)
            await running.interrupt()
            with pytest.raises(TaskFailedError):
                await work
        await until(lambda: seen)
        assert seen[0] is True


async def test_f6_one_that_hangs_is_left_after_its_time(tmp_path):
    own = Own(lambda _ctx: asyncio.sleep(3600))
    async with agent(tmp_path, script, options=WINDOW, compaction=own, environ=limit(0.3)) as running:
        await fill(running)
        await compact(running)
        assert "no answer within 0.3 seconds" in told(running)[0]
        assert running.of(CompactionEndEvent)[0].entry is not None
        await until(own.contexts[0].cancel.is_set)


async def test_f6_a_model_may_take_longer_than_the_time_limit(tmp_path):
    """Time runs out only while nothing is asked of the program, by the client or by a built-in strategy."""

    async def slow(request: Request) -> Reply:
        if is_summary_request(request):
            await asyncio.sleep(0.8)
            return Reply(SUMMARY)
        return Reply("fine " + words(900))

    async def act(ctx):
        request = ModelRequest(model=ctx.llm.facts, messages=(SystemMessage(text="s"), user("write notes")))
        async for _part in ctx.llm.client.stream(request):
            pass
        return await LLMSummaryCompaction().compact(ctx)

    async with agent(tmp_path, slow, options=WINDOW, compaction=Own(act), environ=limit(0.3)) as running:
        await fill(running)
        await compact(running)
        assert not told(running)
        entry = running.of(CompactionEndEvent)[0].entry
        assert entry is not None
        assert entry.rung == "serialised"
        assert entry.usage is not None
        assert entry.usage.output > 100, "both answers are counted"


async def test_f6_what_is_injected_works_from_its_own_thread(tmp_path):
    """Client, meter, session and settings; a built-in strategy inside; and not on the program's thread."""
    home = tmp_path / "home"
    (home / "strategies").mkdir(parents=True)
    (home / "strategies" / "mine.py").write_text(
        textwrap.dedent(
            """
            import threading
            from tenuto.compaction.measure.meter import Meter
            from tenuto.compaction.strategy import Message, SessionView, LLMSummaryCompaction
            from tenuto.config.settings import Settings
            from tenuto.protocol.model import Finished, ModelClient, ModelRequest
            from tenuto.protocol.message import SystemMessage, UserMessage
            from tenuto.protocol.part import TextPart, text_of

            LOADED_ON = threading.current_thread().name


            class Mine:
                def __init__(self, client: ModelClient, meter: Meter, session: SessionView, settings: Settings):
                    self.client, self.meter, self.session, self.settings = client, meter, session, settings
                    self.built_on = threading.current_thread().name

                async def compact(self, ctx):
                    entries = len(list(self.session.entries()))
                    size = self.meter.estimate_all(ctx.history)
                    asked = UserMessage(parts=(TextPart(text="MY-OWN-REQUEST"),))
                    request = ModelRequest(model=ctx.llm.facts, messages=(SystemMessage(text="s"), asked))
                    said = ""
                    async for part in self.client.stream(request):
                        if isinstance(part, Finished):
                            said = text_of(part.message.parts)
                    inner = await LLMSummaryCompaction().compact(ctx)
                    names = {LOADED_ON, self.built_on, threading.current_thread().name}
                    facts = [entries > 5, size > 100, len(self.session.path()) > 5, self.session.get_llm_history()]
                    text = f"threads {len(names)} {names.pop()} facts {all(facts)} said {bool(said)} {inner.rung}"
                    return [ctx.history[0], Message(role="user", content=text), *ctx.history[-1:]]
            """
        )
    )
    environ = {"TENUTO_COMPACTION__STRATEGY": "mine:Mine"}
    async with agent(tmp_path, script, options=WINDOW, environ=environ) as running:
        await fill(running)
        await compact(running)
        assert not told(running)
        first = text_of(running.session.get_llm_history()[1].parts)
        assert first == "threads 1 strategy mine:Mine facts True said True serialised"


async def test_f6_a_module_that_blocks_while_it_is_imported_does_not_block_the_program(tmp_path):
    folder = tmp_path / "home" / "strategies"
    folder.mkdir(parents=True)
    (folder / "mine.py").write_text("import time\ntime.sleep(3600)\n")
    environ = {"TENUTO_COMPACTION__STRATEGY": "mine:Mine", **limit(0.2)}
    async with agent(tmp_path, script, options=WINDOW, environ=environ) as running:
        await fill(running)
        await compact(running)
        assert "mine:Mine cannot be loaded: no answer within 0.2 seconds" in told(running)[0]
        assert running.of(CompactionEndEvent)[0].entry is not None


class Ladder(LadderCompaction):
    """A class of one's own that inherits from a built-in one, and fails."""

    async def compact(self, ctx):
        await super().compact(ctx)
        raise ValueError("a fault of mine")


async def test_f5_a_class_that_inherits_from_a_built_in_one_is_no_built_in_one(tmp_path):
    async with agent(tmp_path, script, options=WINDOW, compaction=Ladder()) as running:
        await fill(running)
        await compact(running)
        assert "a fault of mine" in told(running)[0]
        assert [entry for entry in running.session.path() if isinstance(entry, CompactionEntry)]


def test_f6_a_blocked_strategy_does_not_keep_the_process_from_ending(tmp_path):
    """In a process of its own, because a thread of this one would keep nobody."""
    (tmp_path / "work").mkdir()
    (tmp_path / "run.py").write_text(
        textwrap.dedent(
            """
            import asyncio, sys, threading, time
            from pathlib import Path
            import tenuto
            from tests.core.compacting import words
            from tests.core.test_foreign_strategies import script
            from tests.server import ScriptedServer

            inside = threading.Event()

            class Blocks:
                async def compact(self, ctx):
                    inside.set()
                    time.sleep(3600)

            async def main():
                here = Path(sys.argv[1])
                async with ScriptedServer(script, window=32_000) as server:
                    environ = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": f"{server.base_url}/v1", "HOME": str(here)}
                    places = {"cwd": here / "work", "home": here / "home", "environ": environ}
                    async with tenuto.Agent(model="openai-chat/test", compaction=Blocks(), **places) as running:
                        for number in range(6):
                            await running.run(f"question {number} {words(300)}")
                        asyncio.ensure_future(running.compact())
                        while not inside.is_set():
                            await asyncio.sleep(0.01)

            asyncio.run(main())
            print("left")
            """
        )
    )
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, str(tmp_path / "run.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=root,
        env={"PYTHONPATH": str(root), "PATH": "/usr/bin:/bin"},
    )
    assert done.stdout == "left\n", done.stderr
