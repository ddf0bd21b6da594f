"""What stands around the transcript: the footer, what moves, and what stays when the full screen goes."""

from __future__ import annotations

import asyncio
import re
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.command.context_rows import context_rows
from tenuto.config.settings import UiSettings
from tenuto.config.sources import load_settings
from tenuto.protocol.event import AssistantTextDeltaEvent, TaskStartedEvent
from tenuto.protocol.usage import ContextPart, ContextReport, Usage
from tenuto.tui.chrome import ITEMS, RENDERERS, footer_line, parting_lines, unknown_items
from tenuto.tui.render.items import render_item
from tenuto.tui.render.options import motion_of
from tenuto.tui.state.item import AssistantItem, Item, UserItem
from tenuto.tui.state.state import QueueRow, UiState
from tests.tui.full.fake_runtime import SESSION
from tests.tui.full.support import running_app as running_full
from tests.tui.inline.support import running_app as running_inline


def busy_state() -> UiState:
    state = UiState()
    status = state.status
    status.model, status.effort, status.mode = "anthropic/claude-sonnet-4", "high", "edits"
    status.cwd, status.branch, status.dirty = "/home/me/code/shop", "feature/cart", True
    status.tokens, status.window, status.trigger, status.estimated = 50_000, 200_000, 160_000, False
    status.total = Usage(input=10_000, cache_read=90_000, output=4_200, cost=1.25)
    status.jobs = 2
    state.queue.append(QueueRow(5, "later"))
    return state


def text(width: int, items=(), command=()) -> str:
    return footer_line(busy_state(), width, "/home/me", items, command).text


def test_everything_shows_where_there_is_room():
    shown = text(200)
    assert shown.startswith("edits · anthropic/claude-sonnet-4:high · ~/code/shop · feature/cart*")
    assert "1 queued · 2 jobs · ↑100k ↓4.2k 90% cached · $1.25 · " in shown
    assert shown.endswith("━━━━━━━━┿━ 50k/200k 25%")


def test_what_matters_least_goes_first_and_nothing_overlaps():
    seen = [text(width) for width in range(200, 7, -1)]
    for shown, narrower in pairwise(seen):
        assert len(shown.split(" · ")) >= len(narrower.split(" · ")) - 1
    assert "cached" not in text(120) and "━" not in text(120) and "$1.25" in text(120)
    narrow = text(40)
    assert narrow.startswith("edits · ") and len(narrow) <= 40
    assert text(12).startswith("edits")


def test_the_mark_of_compaction_and_the_colours_of_seventy_and_ninety():
    state = busy_state()
    for tokens, style in ((100_000, "meter.low"), (141_000, "meter.middle"), (181_000, "meter.high")):
        state.status.tokens = tokens
        spans = footer_line(state, 200, "").spans
        assert any(name == style and "━" in piece for piece, name in spans)
        assert sum(piece.count("┿") for piece, _name in spans) == 1
    state.status.trigger = None
    assert "┿" not in footer_line(state, 200, "").text


@given(tokens=st.integers(1, 300_000), window=st.integers(1_000, 200_000))
def test_the_footer_and_context_say_the_same_percentage(tokens, window):
    state = busy_state()
    state.status.tokens, state.status.window = tokens, window
    part = ContextPart(name="user", tokens=tokens)
    report = ContextReport(
        parts=(part,), tokens=tokens, estimated=False, window=window, known=True, trigger=window, free=0, reserve=0
    )
    title = "".join(piece for piece, _style in context_rows(report, 80)[0])
    said = re.search(r"(\d+) %\)", title)
    assert said is not None
    assert footer_line(state, 200, "").text.removesuffix(" over").endswith(f" {said[1]}%")


def test_the_order_is_the_users():
    assert text(80, ("context", "gap", "mode", "nonsense")).split() == ["━━━━━━━━┿━", "50k/200k", "25%", "edits"]
    assert text(80, ("branch", "model")) == "feature/cart* · anthropic/claude-sonnet-4:high"
    assert unknown_items(("context", "gap", "nonsense")) == ["nonsense"]


def test_the_line_of_the_users_command_shows_and_can_be_all():
    command = [("on call: ", "status"), ("RED", "status fg=1")]
    assert "feature/cart* · on call: RED " in text(220, (), command)
    assert text(60, ("command",), command) == "on call: RED"
    line = footer_line(busy_state(), 60, "", ("command",), command)
    assert ("RED", "status fg=1") in line.spans


@given(
    st.integers(1, 200),
    st.lists(st.sampled_from([*ITEMS, *RENDERERS, "x"]), max_size=12),
    st.text(st.sampled_from("ab 字é😀"), max_size=80),
)
def test_no_footer_is_wider_than_the_screen(width, items, word):
    state = busy_state()
    state.status.cwd = state.status.branch = word
    line = footer_line(state, width, "", items, [(word, "status")])
    assert line.width <= width


# --- what stays on the normal screen ---


def items(count: int) -> list[Item]:
    made: list[Item] = []
    for number in range(count):
        made.append(UserItem(id=2 * number + 1, text=f"question {number}", seq=2 * number + 1, final=True))
        made.append(AssistantItem(id=2 * number + 2, text=f"answer {number}\n\nand more", final=True))
    return made


def texts(what: str, rows: int, count: int = 20) -> list[str]:
    return [line.text.strip() for line in parting_lines(items(count), what, 80, rows, render_item)]  # type: ignore[arg-type]


def test_the_last_screenful_fits_with_the_hint_and_the_prompt_below():
    shown = texts("screen", 24)
    assert shown[-1] == "and more"
    assert "answer 19" in shown
    assert 15 < len(shown) <= 20
    assert shown[0]


def test_a_short_conversation_is_there_from_its_beginning():
    assert texts("screen", 24, 1)[0].endswith("question 0")


def test_only_the_answer_or_nothing():
    assert texts("answer", 5) == ["answer 19", "", "and more"]
    assert texts("off", 24) == []
    assert texts("screen", 24, 0) == texts("answer", 24, 0) == []


def test_the_cost_does_not_grow_with_the_conversation():
    many = items(20_000)
    many[0] = None  # type: ignore[call-overload]
    assert parting_lines(many, "screen", 80, 24, render_item), "the beginning is not looked at"


# --- `ui.reduce_motion` ---


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
