"""A long session on the full screen, answered from a real log: wherever one goes, the screen and the machine agree."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tenuto.core.state.live import LiveSession
from tenuto.core.transcript import earlier_events, find_earlier, recent_events
from tenuto.protocol.event import ReplayFinishedEvent
from tenuto.protocol.operation import FindEarlierOperation, ShowEarlierOperation
from tenuto.session.session import Session
from tests.session.long import write_session
from tests.tui.full.fake_runtime import SESSION, answer, opened
from tests.tui.full.support import Screen, running_app

KEYS = (
    "ctrl+home", "ctrl+end", "pageup", "pageup", "pageup", "pagedown", "shift+up", "shift+down", "ctrl+o",
    "alt+up", "alt+down", "escape", "ctrl+f", "enter", "n", "N", "up", "down",
)  # fmt: skip
WORDS = ("part 49 of", "Answer 1", "result 2", "hippopotamus", "summary")


@pytest.fixture
def live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> LiveSession:
    monkeypatch.setattr("tenuto.core.transcript.SHOWN_ENTRIES", 60)
    monkeypatch.setattr("tenuto.tui.machine.reading.KEPT_PARTS", 3)
    directory = write_session(tmp_path / "home", tmp_path, 1_500, 750_000, "openai-chat/test")
    session = Session.open(directory, read_only=True)
    return cast("LiveSession", SimpleNamespace(id=SESSION, session=session))


async def answer_questions(screen: Screen, live: LiveSession) -> None:
    """Answer what the screen asks until it asks nothing any more."""
    for _ in range(300):
        if not screen.runtime.operations:
            return
        question = screen.runtime.operations.pop(0)
        if isinstance(question, ShowEarlierOperation):
            await screen.emit(earlier_events(live, question))
        elif isinstance(question, FindEarlierOperation):
            await screen.emit(find_earlier(live, question))
    raise AssertionError("it asks and asks")


def check(screen: Screen) -> None:
    view, state = screen.app.transcript, screen.app.runner.state
    assert view.order.ids == list(state.transcript.items)
    assert len(view.viewport.heights) == len(view.order.ids)
    assert view.viewport._total == sum(view.viewport.heights)
    assert set(state.gaps) <= set(view.order.ids)
    bounds = [(gap.after, gap.before) for item_id in view.order.ids if (gap := state.gaps.get(item_id))]
    assert bounds == sorted(bounds)
    assert len(state.parts) <= 3
    assert any(row.strip() for row in screen.rows()[:10])


@pytest.mark.parametrize("seed", [*range(2), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 6))])
async def test_wherever_one_goes_the_screen_is_of_what_is_loaded(live: LiveSession, seed: int) -> None:
    ways = random.Random(seed)
    events = (opened(resumed=True), *recent_events(live), ReplayFinishedEvent(session_id=SESSION))
    async with running_app(*events) as screen:
        for number in range(80):
            match ways.randrange(12):
                case 0:
                    await screen.pilot.resize_terminal(ways.choice((40, 80, 120)), ways.choice((15, 24, 40)))
                case 1:
                    await screen.burst(["escape", "escape", "ctrl+f", *ways.choice(WORDS), "enter"])
                case 2:
                    await screen.emit(answer(f"a live answer {number}", seq=10_000 + number))
                case 3:
                    await screen.pilot.mouse_down("#transcript", offset=(5, 3))
                    await screen.pilot.mouse_up("#transcript", offset=(9, 6))
                case _:
                    await screen.burst([ways.choice(KEYS)])
            if ways.random() < 0.8:
                await answer_questions(screen, live)
            check(screen)
        await answer_questions(screen, live)
        await screen.burst(["escape", "escape", "escape", "ctrl+u", "ctrl+end"])
        await answer_questions(screen, live)
        check(screen)


async def test_paging_up_reads_all_of_the_session_and_keeps_little(live: LiveSession) -> None:
    events = (opened(resumed=True), *recent_events(live), ReplayFinishedEvent(session_id=SESSION))
    seen: set[str] = set()
    async with running_app(*events) as screen:
        most = 0
        for _ in range(400):
            before = screen.rows()[:18]
            await screen.burst(["pageup"])
            await answer_questions(screen, live)
            seen |= {row.strip("▐ ▌") for row in screen.rows()[:18]}
            most = max(most, len(screen.app.runner.state.transcript.items))
            if screen.rows()[:18] == before:
                break
    said = {f"Please go on with part {seq} of the work." for seq in range(25, 1_500, 24) if seq % 480 != 24}
    assert said <= seen
    assert most < 6 * 60, "of fifteen hundred"
