"""Interrupted, killed, typed into: a compaction is wholly there or not at all (T-10, T-11, R-043, R-046, R-047)."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import time
from pathlib import Path

import msgspec
import pytest

from tenuto.protocol.event import CompactionStartEvent
from tenuto.session.session import Session
from tenuto.session.view.projection import project
from tests.core.harness import Agent
from tests.requirements.compaction.support import SUMMARY, begin_compaction, ends, interrupt, log_of, until
from tests.requirements.recovery.ladder import (
    HISTORY,
    REASONS,
    answering,
    asks_for_summary,
    check_usable,
    made_smaller,
    options_for,
    provoke,
    step_answer,
    summary_requests,
    with_history,
    write_history,
)
from tests.server import Reply, Request, ServerThread
from tests.terminal.pseudo import PseudoTerminal
from tests.terminal.screen import READY

# --- T-10 ---

TYPED = ("first: look at it", "second: mend it", "third: test it")


def entries_of(home: Path) -> list[dict]:
    (log,) = home.glob("sessions/*/*/events.jsonl")
    return [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]


def asked_in_turn(requests: list[Request]) -> list[str]:
    """Which of the typed texts each request asks for last."""
    texts = ["".join(item.text for item in request.items if item.kind == "user") for request in requests]
    return [max(TYPED, key=text.rfind) for text in texts if any(typed in text for typed in TYPED)]


@pytest.mark.terminal
def test_t10_r043_typed_during_a_compaction_killed_and_resumed_three_messages_are_there_in_order(tmp_path):
    """The real program in a pseudo-terminal; the compaction takes five seconds, the kill comes before its end."""
    write_history(tmp_path, 12)
    home, script = tmp_path / "home", answering(Reply("well done"), Reply(SUMMARY, delay=5))
    arguments = ("-c", "--model", "openai-chat/test", "--mode", "auto")
    with ServerThread(script, window=21_334) as server:
        first = PseudoTerminal(tmp_path / "work", home, server.environ(), *arguments)
        try:
            first.wait_for(READY)
            first.write(b"/compact\r")
            first.wait_for("Compacting")
            for text in TYPED:
                first.write(text.encode() + b"\r")
                first.wait_for(text)
            first.wait_for("3 queued")  # the last may still be in the prompt
            os.kill(first.pid, signal.SIGKILL)
        finally:
            first.close()
        kinds = [entry.get("type") for entry in entries_of(home)]
        assert kinds.count("queued") == 3, "on disk at once"
        assert "compaction" not in kinds
        seen = len(server.requests)
        again = PseudoTerminal(tmp_path / "work", home, server.environ(), *arguments)
        try:
            for text in TYPED:
                shown = again.wait_for(text)
            assert [shown.find(text) for text in TYPED] == sorted(shown.find(text) for text in TYPED)
            assert len(server.requests) == seen, "nothing is sent before the user says so"
            again.write(b"\r")
            again.wait_for("well done")
            again.wait_until(lambda: len(server.requests) >= seen + 3, "the requests")
            assert asked_in_turn(server.requests[seen:]) == list(TYPED)
            assert not any(map(asks_for_summary, server.requests[seen:]))
            # The first request may go before a busy machine has read the server's list, which has the window.
            assert [refusal for refusal in server.refusals if "maximum context" not in refusal] == []
        finally:
            again.close()


# --- T-11 ---

MOMENTS = 10
LATEST = 0.35
"""Seconds after the start of a compaction that takes about a third of a second."""


async def press_esc(tmp_path: Path, reason: str, moment: float) -> bool:
    """Interrupt a compaction so many seconds after its start; returns whether it was done already."""
    tmp_path.mkdir()
    slow = Reply(SUMMARY, delay=0.08, delay_per_event=0.02)
    script = answering(step_answer(reason), slow)
    async with with_history(tmp_path, script, HISTORY.get(reason, 12), options=options_for(reason)) as running:
        before = log_of(running)
        start = begin_compaction(running) if reason == "manual" else provoke(running, reason)
        working = asyncio.ensure_future(start)
        await running.until(CompactionStartEvent)
        await asyncio.sleep(moment)
        await interrupt(running)
        await asyncio.wait_for(working, 60)
        await asyncio.wait_for(running.runtime.wait_settled(), 60)
        await check_whole(running, reason, before)
        await check_usable(running, reason)
        return not ends(running)[0].aborted


async def check_whole(running: Agent, reason: str, before: bytes) -> None:
    """The history is the old one or the new one, nothing runs on, and a reader of the log sees the same."""
    made, end = made_smaller(running), ends(running)[0]
    assert len(made) == (0 if end.aborted else 1)
    if reason == "manual" and end.aborted:
        assert log_of(running) == before
    session = running.session
    view = list(session.get_llm_history())
    assert project(session.path(), running.runtime.live.facts.id) == view
    assert Session.open(session.directory, read_only=True).get_llm_history() == view
    assert running.runtime.executor.tasks.running(session.id) is None
    await until(lambda: all(request.ended for request in summary_requests(running.server)))


async def test_t11_r046_r047_esc_at_ten_random_moments_leaves_the_old_history_or_the_new_one(tmp_path):
    seed = int(os.environ.get("TENUTO_TEST_SEED") or time.time_ns() % 1_000_000)
    print(f"TENUTO_TEST_SEED={seed}")
    source = random.Random(seed)
    plan = [(REASONS[number % len(REASONS)], source.uniform(0, LATEST)) for number in range(MOMENTS)]
    done = [await press_esc(tmp_path / str(number), reason, moment) for number, (reason, moment) in enumerate(plan)]
    print([f"{reason} at {moment:.3f}: {was_done}" for (reason, moment), was_done in zip(plan, done, strict=True)])
