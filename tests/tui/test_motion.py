"""Less motion is fewer paints and fewer bytes, and nothing is lost by it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tenuto.config.settings import UiSettings, load_settings
from tenuto.protocol.event import AssistantTextDeltaEvent, TaskStartedEvent
from tenuto.tui.chrome.motion import motion_of
from tests.tui.full.fake_runtime import SESSION
from tests.tui.full.support import running_app as running_full
from tests.tui.inline.support import running_app as running_inline

SECONDS = 20.0
WORDS = 300
STARTED = TaskStartedEvent(session_id=SESSION, submission_id="one", kind="agent")


@pytest.mark.parametrize(
    ("value", "spins", "step"),
    [("true", False, 1), ("false", True, 1), ('"on"', False, 1), ('"off"', True, 1), ('"strict"', False, 5)],
)
def test_the_setting_is_a_word_or_as_it_was_yes_and_no(tmp_path: Path, value: str, spins: bool, step: int) -> None:
    (tmp_path / "settings.toml").write_text(f"[ui]\nreduce_motion = {value}\n")
    for environ in ({}, {"TENUTO_UI__REDUCE_MOTION": value.strip('"')}):
        settings, problems = load_settings(tmp_path, None, environ)
        assert problems == []
        assert (motion_of(settings.ui).spins, motion_of(settings.ui).step) == (spins, step)


def test_a_word_that_nobody_knows_is_told(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('[ui]\nreduce_motion = "very"\n')
    settings, problems = load_settings(tmp_path, None, {})
    assert motion_of(settings.ui).spins
    assert "reduce_motion" in problems[0]


async def bytes_of_waiting(wanted: str) -> int:
    """Return the bytes that are written while something runs for twenty seconds and says nothing."""
    async with running_inline(ui=UiSettings(reduce_motion=wanted)) as session:
        await session.emit(STARTED)
        session.terminal.frames.clear()
        for _ in range(int(SECONDS / 0.25)):
            session.clock.now += 0.25
            session.app._tick()
            await asyncio.sleep(0.02)
        await session.settle()
        return sum(len(frame.encode()) for frame in session.terminal.frames)


async def test_waiting_costs_less_the_less_moves() -> None:
    off, on, strict = [await bytes_of_waiting(wanted) for wanted in ("off", "on", "strict")]
    assert on < off / 2
    assert strict < on / 2


async def paints_of_an_answer(wanted: str) -> tuple[int, str]:
    """Return how often the full screen paints its transcript while an answer of some length comes in."""
    async with running_full(ui=UiSettings(reduce_motion=wanted)) as screen:
        await screen.emit(STARTED)
        painted = 0
        before = screen.app.transcript.repaint

        def repaint() -> None:
            nonlocal painted
            painted += 1
            before()

        screen.app.transcript.repaint = repaint  # type: ignore[method-assign]
        runner = screen.app.runner
        runner._clock = asyncio.get_running_loop().time
        for number in range(WORDS):
            screen.runtime.emit(AssistantTextDeltaEvent(session_id=SESSION, text=f"word{number} "))
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.6)
        await screen.settle()
        return painted, screen.text()


async def test_an_answer_is_painted_less_often_and_is_all_there() -> None:
    usual, _ = await paints_of_an_answer("on")
    strict, text = await paints_of_an_answer("strict")
    assert strict < usual / 2
    assert f"word{WORDS - 1}" in text


async def test_seconds_count_in_fives() -> None:
    shown: list[str] = []
    async with running_inline(ui=UiSettings(reduce_motion="strict")) as session:
        await session.emit(STARTED)
        for _ in range(24):
            await session.pass_time(0.5)
            row = next(row for row in session.terminal.rows() if "esc to" in row)
            if not shown or shown[-1] != row:
                shown.append(row)
    assert 2 <= len(shown) <= 4
    assert len({row[:1] for row in shown}) == 1
