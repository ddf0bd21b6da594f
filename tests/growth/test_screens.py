"""The screen with a transcript of any length, and an answer of any length: what shows is what costs."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any

import pytest
from textual import events

from tenuto.protocol.event import AssistantTextDeltaEvent, TaskFinishedEvent
from tenuto.tui.full import transcript
from tenuto.tui.inline.printer import MOST_ROWS, Printer
from tenuto.tui.render import live
from tenuto.tui.render import markdown as markdown_lines
from tenuto.tui.render.live import ItemRenderer, StreamRenderer
from tenuto.tui.render.markdown import Document, References, render_markdown
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.item import AssistantItem
from tenuto.tui.state.pieces import PIECE_CHARACTERS
from tests.growth.counting import LARGE, SMALL, Count, calls_of, python_calls
from tests.server.scripts import END_MARK, markdown
from tests.tui.full.fake_runtime import SESSION, answer, opened, replay, tool
from tests.tui.full.support import running_app as full_screen
from tests.tui.inline.support import running_app as inline_screen

STEPS = 60


async def test_widgets_and_rows_of_a_long_transcript():
    mounted, drawn = {}, {}
    for items in (SMALL, LARGE):
        with calls_of(live, "render_item") as rendered:
            async with full_screen(*replay(items), size=(100, 30)) as screen:
                mounted[items] = len(list(screen.app.screen.walk_children()))
                assert len(screen.app.transcript.order.ids) == items
                assert len(screen.app.transcript.cache) <= transcript.MAX_LINES
        drawn[items] = rendered.number
    assert mounted[LARGE] == mounted[SMALL] < 40, "one widget paints the transcript"
    assert drawn[LARGE] == drawn[SMALL] < 40, "items that show"


async def test_work_of_a_key_and_of_a_new_item_behind_a_long_transcript():
    work = {}
    for items in (SMALL, LARGE):
        async with full_screen(*replay(items), size=(100, 30)) as screen:
            view = screen.app.transcript
            screen.runtime.emit(answer("one first", 10**6))
            view.repaint()

            def append(screen=screen, view=view) -> None:
                screen.runtime.emit(answer("one *more*", 10**6 + 1))
                view.repaint()

            work[items] = python_calls(append), python_calls(view.repaint)
    assert work[LARGE][0] < 1.2 * work[SMALL][0]
    assert work[LARGE][1] < 1.2 * work[SMALL][1] + 20


@pytest.mark.parametrize("screen", [full_screen, inline_screen], ids=["full", "inline"])
async def test_frames_of_many_steps(screen: Callable[..., AbstractAsyncContextManager[Any]]):
    """What comes faster than anybody reads is shown together; what somebody waits for is not waited with."""
    async with screen(opened()) as shown:
        surface = shown.app
        with calls_of(surface, "show") as frames:
            for number in range(STEPS):
                shown.runtime.emit(*tool(f"call {number}", f"ls {number}", "a file", 2 * number + 1))
        assert frames.number <= 2, "the clock stands still, and so does what is shown"
        with calls_of(surface, "show") as frames:
            shown.runtime.emit(TaskFinishedEvent(session_id=SESSION, kind="agent", outcome="completed"))
        assert frames.number == 1
        assert not surface.common.is_behind


async def test_work_of_a_step_behind_a_long_history_on_the_screen():
    """A call and its result, with the frame that shows them."""
    work = {}
    for items in (SMALL, LARGE):
        async with full_screen(*replay(items), size=(100, 30)) as screen:

            def step(number: int, screen=screen) -> None:
                screen.runtime.emit(*tool(f"call {number}", "ls", "a file", 10**6 + 2 * number))
                screen.app.common.show()
                screen.app.screen._compositor.render_strips()

            step(0)
            work[items] = python_calls(lambda: [step(number) for number in range(1, 1 + STEPS)]) / STEPS
    assert work[LARGE] < 1.1 * work[SMALL]


async def test_work_of_a_key_behind_a_long_transcript_on_the_full_screen():
    """From the editor on: the key is done and its row is painted."""
    work = {}
    for items in (SMALL, LARGE):
        async with full_screen(*replay(items), size=(100, 30)) as screen:

            def press(screen=screen) -> None:
                with suppress(StopIteration):
                    screen.app.composer.take(events.Key("x", "x"), paints=True).send(None)

            press()
            work[items] = python_calls(lambda: [press() for _ in range(STEPS)]) / STEPS
            assert screen.app.composer.text == "x" * (STEPS + 1)
    assert work[LARGE] < 1.05 * work[SMALL]
    assert work[LARGE] < 700, "what the editor takes for a key today, and a third more"


def test_rows_that_one_frame_prints_of_an_answer_that_came_at_once():
    printer = Printer(RenderOptions)
    item = AssistantItem(id=1, text=markdown(400))
    printer.add(item)
    rows = []
    while printer.is_behind or not rows:
        taken = printer.take(100)
        assert len(taken) <= MOST_ROWS
        assert len(printer.live(100, 10)) <= 10
        rows += taken
    item.final = True
    item.version += 1
    assert [line.text for line in rows + printer.take(100)] == [
        line.text for line in ItemRenderer(RenderOptions)(item, 100)
    ]


def streamed(kilobytes: int, at_once: int) -> StreamRenderer:
    """Stream so much, looking at the end of it after each piece."""
    stream, text = StreamRenderer(100), markdown(kilobytes)
    for begin in range(0, len(text), at_once):
        stream.feed(text[begin : begin + at_once])
        lines = stream.lines()
        assert lines[-1:]
    return stream


def test_work_of_a_streamed_answer_grows_with_its_length():
    work = {kilobytes: python_calls(lambda size=kilobytes: streamed(size, 1_000)) for kilobytes in (8, 80)}
    assert work[80] < 14 * work[8], "what was drawn lately is remembered, which helps the short one more"


@pytest.mark.parametrize("at_once", [1_000, 1_000_000], ids=["as it comes", "all in one"])
def test_memory_of_a_streamed_answer(at_once: int):
    """At its peak, beside the text itself: rows that nobody looks at are packed, and little is parsed together."""
    live.warm_up()
    peaks = {}
    streamed(200, at_once)  # what is remembered of drawing is as large as it gets
    for kilobytes in (40, 400):
        tracemalloc.start()
        try:
            stream = streamed(kilobytes, at_once)
            peaks[kilobytes] = tracemalloc.get_traced_memory()[1]
            assert len(stream.lines()) > 30 * kilobytes
        finally:
            tracemalloc.stop()
    assert peaks[400] - peaks[40] < 9 * 360 * 1024, "the text itself has four bytes a letter; rows would have twenty"


async def test_what_is_parsed_of_a_long_answer_is_what_shows(monkeypatch: pytest.MonkeyPatch):
    """While it comes, when it is there, and where it is read; and what is read is what the whole would be."""
    parsed = Count()

    def counted(text: str, references: References) -> Document:
        parsed.number += len(text)
        return real(text, references)

    real = markdown_lines.parse
    for module in (live, markdown_lines):
        monkeypatch.setattr(module, "parse", counted)
    for kilobytes in (100, 1_000):
        text = markdown(kilobytes)
        parsed.number = 0
        async with full_screen(opened(), size=(100, 30)) as screen:
            view = screen.app.transcript
            for begin in range(0, len(text), 200_000):
                piece = text[begin : begin + 200_000]
                await screen.emit(AssistantTextDeltaEvent(session_id=SESSION, text=piece))
                screen.clock.now += 1
            await screen.emit(answer(text, 2))
            assert END_MARK in screen.text()
            view.scroll_to_start()
            await screen.settle()
            assert "A long answer" in screen.text()
            looks = len(range(0, len(text), 200_000)) + 2
            assert parsed.number < 3 * PIECE_CHARACTERS * looks
            assert parsed.number < len(text) / 2 or kilobytes < 1_000
            if kilobytes == 100:
                rows = [line for place in range(len(view.order.ids)) for line in view.lines_of(place)]
                assert rows == render_markdown(text, view._text_width)
