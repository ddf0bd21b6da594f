"""Ctrl+T: every press of it changes what shows (`daily-user.md` F13)."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tenuto.config.settings import UiSettings
from tenuto.protocol.event import TodoChangedEvent
from tenuto.protocol.message import TodoItem
from tenuto.tui.chrome import Chrome
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.render.options import UNICODE
from tests.tui.full import support as full
from tests.tui.full.fake_runtime import SESSION
from tests.tui.inline import support as inline
from tests.tui.pictures import scenes
from tests.tui.render.test_golden_panels import Machine

ITEMS = tuple(TodoItem(text=f"Item {number}", status="pending") for number in range(9))
KEY = "\x14"


def changed(items: tuple[TodoItem, ...]) -> TodoChangedEvent:
    return TodoChangedEvent(session_id=SESSION, items=items)


def surroundings(machine: Machine) -> tuple[Chrome, Keyboard]:
    actions = {}
    clock = lambda: machine.driver.now  # noqa: E731
    keyboard = Keyboard(machine, lambda: None, actions, clock)  # type: ignore[arg-type,return-value]
    chrome = Chrome(machine, keyboard, UiSettings(reduce_motion=True), "/home/me", glyphs=UNICODE, clock=clock)
    actions["todo"] = chrome.put_todo_away
    machine.driver.feed(scenes.OPENED)
    return chrome, keyboard


@example(items=[("done", 4), ("done", 4), ("in_progress", 7)], width=20, height=12)
@given(
    st.lists(st.tuples(st.sampled_from(["done", "in_progress", "pending"]), st.integers(1, 60)), min_size=1),
    st.integers(20, 200),
    st.integers(4, 60),
)
def test_f13_every_press_changes_what_shows_of_any_list_on_any_screen(items, width, height):
    machine = Machine()
    chrome, keyboard = surroundings(machine)
    machine.driver.feed(changed(tuple(TodoItem(text="word " * words, status=status) for status, words in items)))

    def shown() -> list[str]:
        return [line.text for line in chrome.side(width, chrome.side_share(height))]

    before = shown()
    for _ in range(4):
        keyboard.press("ctrl+t")
        now = shown()
        assert now != before
        before = now


@pytest.mark.parametrize("count", [1, 5, 9])
async def test_f13_one_press_puts_a_short_list_away_on_the_full_screen(count: int) -> None:
    async with full.running_app() as screen:
        await screen.emit(changed(ITEMS[:count]))
        assert "Item 0" in screen.text()
        presses = 1 if count <= 5 else 2
        for _ in range(presses):
            assert "Item 0" in screen.text()
            await screen.burst(["ctrl+t"])
        assert "Item 0" not in screen.text()
        await screen.burst(["ctrl+t"])
        assert "Item 0" in screen.text()


@pytest.mark.parametrize("count", [1, 5, 9])
async def test_f13_one_press_puts_a_short_list_away_inline(count: int) -> None:
    async with inline.running_app() as session:
        await session.emit(changed(ITEMS[:count]))
        await session.shows("Item 0")
        if count > 5:
            session.type(KEY)
            await session.shows("Item 8")
        session.type(KEY)
        await session.gone("Item 0")
        session.type(KEY)
        await session.shows("Item 0")


def test_f13_of_a_long_list_the_first_press_shows_the_rest() -> None:
    machine = Machine()
    chrome, keyboard = surroundings(machine)
    machine.driver.feed(changed(ITEMS))
    assert len(chrome.side(80, 30)) == 5
    keyboard.press("ctrl+t")
    assert len(chrome.side(80, 30)) == len(ITEMS)
