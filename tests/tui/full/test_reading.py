"""Searching, the block cursor and the place that is read, on the full screen."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from textual import events
from textual.widget import Widget

from tenuto.command.outcome import SetMouse
from tenuto.config.settings import UiSettings
from tenuto.protocol.event import AnyEvent, AssistantTextDeltaEvent, EarlierEntriesEvent, EarlierFoundEvent
from tenuto.tui.full.driver import TerminalDriver
from tests.tui.full.fake_runtime import SESSION, answer, opened, replay, tool, user
from tests.tui.full.support import Screen, running_app


def conversation() -> list[AnyEvent]:
    events: list[AnyEvent] = [opened()]
    for number in range(20):
        events += [
            user(f"question {number}", 10 * number + 1),
            answer(f"answer {number}\n\nof the oracle", 10 * number + 2),
        ]
    output = "\n".join(f"row {number} needle" if number == 50 else f"row {number}" for number in range(100))
    return [*events, *tool("c1", "make all", output, 500), user("thanks", 600), answer("Welcome.", 601)]


def styles_of(screen: Screen, row: int, begin: int, end: int) -> str:
    return " ".join(str(segment.style) for segment in screen.app.transcript.render_line(row).crop(begin, end))


async def test_ctrl_f_finds_what_is_folded_and_escape_goes_back() -> None:
    async with running_app(*conversation()) as screen:
        before = screen.rows()
        await screen.burst(["ctrl+f", *"needle"])
        assert "1 of 1" in screen.text()
        (row,) = (number for number, text in enumerate(screen.rows()) if "row 50 needle" in text)
        at = screen.rows()[row].index("needle")
        assert "reverse" in styles_of(screen, row, at, at + 6)
        assert "reverse" not in styles_of(screen, row, 0, at)
        await screen.burst(["escape"])
        assert screen.rows() == before
        assert screen.app.transcript.viewport.follow


async def test_matches_are_marked_as_they_are_typed_and_keys_go_round() -> None:
    async with running_app(*conversation()) as screen:
        await screen.burst(["ctrl+f", *"oracle"])
        assert "20 of 20" in screen.text()
        await screen.burst(["up", "up"])
        assert "18 of 20" in screen.text()
        assert "answer 17" in screen.text()
        await screen.burst(["enter", "n", "N", "N", "N", "N"])
        assert "1 of 20 (wrapped)" in screen.text()
        assert "question 0" in screen.text()
        await screen.burst(["escape"])
        assert "question 0" in screen.text(), "who stayed with a match stays"
        assert not screen.app.transcript.viewport.follow


async def test_what_is_typed_on_after_a_search_goes_into_the_prompt() -> None:
    async with running_app(*conversation()) as screen:
        await screen.burst([*"draft", "ctrl+f", *"oracle", "enter", *" more"])
        assert screen.app.composer.text == "draft more"
        assert screen.app.runner.state.search is None


async def test_a_stream_does_not_take_the_match_away() -> None:
    async with running_app(*conversation()) as screen:
        await screen.burst(["ctrl+f", *"welcome"])
        rows = [row for row in screen.rows()[:15] if row.strip()]
        await screen.emit(AssistantTextDeltaEvent(session_id=SESSION, text="\n\n".join(f"line {n}" for n in range(60))))
        assert [row.replace("▐", "").rstrip() for row in screen.rows()[:15] if row.strip("▐ ")][: len(rows) - 2] == [
            row.replace("▐", "").rstrip() for row in rows
        ][: len(rows) - 2]
        assert "1 new" in screen.text()
        await screen.burst(["escape"])
        assert "line 59" in screen.text(), "it follows again"


async def test_older_entries_are_searched_too() -> None:
    first, *rest = replay(10)
    older = EarlierEntriesEvent(session_id=SESSION, remaining=900, before=1)
    async with running_app(first, older, *rest) as screen:
        await screen.burst(["ctrl+f", *"zebra"])
        assert "no match · 900 older entries are not loaded" in screen.text()
        await screen.burst(["enter"])
        assert "looking through older entries" in screen.text()
        await screen.emit(EarlierFoundEvent(session_id=SESSION, query="zebra", upto=1, seq=-20))
        events = (user("a zebra!", -20), answer("indeed", -19))
        await screen.emit(
            EarlierEntriesEvent(
                session_id=SESSION, remaining=800, before=-20, last=-19, later=98, upto=1, count=2, events=events
            )
        )
        assert "1 of 1 · 800 older" in screen.text()
        assert "a zebra!" in screen.text()
        assert "98 entries lie between" in screen.text()


async def test_the_block_cursor_marks_moves_folds_and_copies() -> None:
    async with running_app(*conversation()) as screen:
        await screen.burst(["alt+up"])
        assert "y copy" in screen.text()
        (row,) = (number for number, text in enumerate(screen.rows()) if "Welcome." in text)
        assert "reverse" in styles_of(screen, row, 0, 1)
        await screen.burst(["alt+up", "alt+up"])
        assert "Enter expand" in screen.text()
        await screen.burst(["enter"])
        assert "row 2" in screen.text()
        await screen.burst(["y"])
        assert screen.app.clipboard.startswith("$ make all\nrow 0\n")
        assert screen.app.clipboard.endswith("row 99")


async def test_r099_typing_leaves_the_block_cursor_and_loses_nothing() -> None:
    async with running_app(*conversation()) as screen:
        await screen.burst(["alt+up", "ctrl+d"])
        assert screen.app.runner.state.block == 0 and "again to quit" in screen.text(), "a key of the prompt is done"
        await screen.burst(["alt+up", "ctrl+t", "f9"])
        assert screen.app.runner.state.block, "one that is for everywhere, or for nothing, leaves nothing"
        await screen.burst(["escape", *"draft", "alt+up", "enter"])
        assert screen.app.runner.state.block and not screen.runtime.prompts, "an answer does not fold; nothing is sent"
        await screen.burst(["escape", "ctrl+u", "alt+up", *"what now?"])
        assert screen.app.composer.text == "what now?"
        assert screen.app.runner.state.block == 0
        await screen.burst(["ctrl+u", "alt+up", *"rename"])
        assert screen.app.composer.text == "rename", "there is nothing to rewind to under the cursor"


async def test_a_block_opens_in_the_pager(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f'#!/bin/sh\ncp "$1" {tmp_path}/page\n')
    pager.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PAGER", str(pager))
    monkeypatch.setattr(os, "ctermid", lambda: os.devnull)
    monkeypatch.setattr("tenuto.tui.full.app.TenutoApp.suspend", lambda _app: _nothing())
    async with running_app(*conversation()) as screen:
        await screen.burst(["alt+up", "alt+up", "alt+up", "o"])
        await screen.app.workers.wait_for_complete()
        assert "row 50 needle" in (tmp_path / "page").read_text()


def _nothing() -> object:
    import contextlib

    return contextlib.nullcontext()


async def test_what_came_meanwhile_is_counted_once() -> None:
    async with running_app(*conversation()) as screen:
        await screen.burst(["pageup"])
        await screen.emit(AssistantTextDeltaEvent(session_id=SESSION, text="streaming"))
        await screen.emit(user("queued one", 700), answer("streaming", 701))
        view = screen.app.transcript
        assert "2 new" in screen.text()
        await screen.burst(["ctrl+end"])
        assert "new" not in screen.rows()[17]
        assert view.viewport.follow


async def test_with_the_wheel_alone_clicks_and_drags_are_the_terminals() -> None:
    async with running_app(*conversation(), ui=UiSettings(mouse="wheel", reduce_motion=True)) as screen:
        view = screen.app.transcript
        await screen.pilot.click("#transcript", offset=(4, 8))
        assert all(item.folded for item in screen.app.runner.state.transcript.items.values())
        await screen.pilot.mouse_down("#transcript", offset=(2, 3))
        await screen.pilot.hover("#transcript", offset=(12, 6))
        await screen.pilot.mouse_up("#transcript", offset=(12, 6))
        assert view.pointer.selection is None
        view.post_message(_wheel_up(view))
        await screen.settle()
        assert not view.viewport.follow
        screen.runtime.outcomes = [SetMouse("full")]
        await screen.burst([*"/mouse full", "enter"])
        assert view.selects
        assert "with Shift the terminal selects" in screen.text()


def _wheel_up(view: Widget) -> events.MouseScrollUp:
    return events.MouseScrollUp(view, 3, 3, 0, -1, 0, shift=False, meta=False, ctrl=False)


def test_each_way_to_use_the_mouse_asks_for_no_more_than_it_needs() -> None:
    written: list[str] = []

    class Driver(TerminalDriver):
        def __init__(self) -> None:
            self._mouse = True

        def write(self, data: str) -> None:
            written.append(data)

        def flush(self) -> None:
            pass

    driver = Driver()
    for mode, begun in (
        ("wheel", ["\x1b[?1000h\x1b[?1006h"]),
        ("off", []),
        ("full", ["\x1b[?1000h\x1b[?1002h\x1b[?1006h"]),
    ):
        written.clear()
        driver.use_mouse(mode)  # type: ignore[arg-type]
        assert [data for data in written if data.endswith("h")] == begun
        assert mode == "full" or "\x1b[?1006l\x1b[?1002l\x1b[?1000l" in written


async def test_copying_over_the_screens_edge_gives_logical_text_without_links() -> None:
    address = "https://example.org/a/path/that/is/so/long/that/it/is/wrapped/over/two/rows/of/the/screen"
    text = f"See {address} now.\n\n```python\n\tx = 1\n```"
    async with running_app(opened(), user("go", 1), answer(text, 2), size=(60, 20)) as screen:
        view = screen.app.transcript
        await screen.pilot.mouse_down("#transcript", offset=(0, 0))
        await screen.pilot.hover("#transcript", offset=(59, 19))
        view.pointer._scroll_on()
        await screen.pilot.mouse_up("#transcript", offset=(59, 13))
        assert screen.app.clipboard.strip() == "go\n\n" + text.replace("```python\n", "").replace("\n```", "").strip()
        assert "\x1b" not in screen.app.clipboard
