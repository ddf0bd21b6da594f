"""The first screen of a new session: who is there, where, and a tip; gone with the first prompt."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.protocol.event import NoticeEvent
from tenuto.tui.launch import Opening, hint_after
from tenuto.tui.runner import LateRuntime
from tenuto.tui.state.intents import SendDraft
from tenuto.tui.state.item import UserItem
from tenuto.tui.welcome import TIPS, next_tip, welcome_text
from tenuto.version import __version__
from tests.core.harness import make_start
from tests.tui.full import support as full
from tests.tui.full.fake_runtime import SESSION, user
from tests.tui.inline import support as inline
from tests.tui.machine.driving import Driver

GREETING = NoticeEvent(
    session_id=SESSION, text=welcome_text("a/model", "/home/me/x", "/home/me", TIPS[0]), kind="welcome"
)


def test_the_tips_take_turns_and_a_home_that_takes_nothing_stops_none(tmp_path: Path) -> None:
    assert [next_tip(tmp_path) for _ in range(len(TIPS) + 1)] == [*TIPS, TIPS[0]]
    (tmp_path / "told" / "tips").write_text("no number")
    assert next_tip(tmp_path) == TIPS[0]
    (tmp_path / "file").write_text("")
    assert next_tip(tmp_path / "file") == TIPS[0]


def test_it_goes_with_the_first_prompt_and_is_nothing_to_come_back_to() -> None:
    driver = Driver()
    driver.feed(NoticeEvent(session_id="s", text="a warning", level="warning"))
    driver.feed(NoticeEvent(session_id="s", text="Tenuto", kind="welcome"))
    assert len(driver.items) == 2
    driver.type("hello")
    driver.feed(SendDraft())
    assert [type(item) for item in driver.items[1:]] == [UserItem]
    only = Driver()
    only.feed(NoticeEvent(session_id="s", text="Tenuto", kind="welcome"))
    assert hint_after(only.state, temporary=False) == ""


async def test_the_full_screen_shows_it_until_the_first_prompt() -> None:
    async with full.running_app() as screen:
        await screen.emit(GREETING)
        for words in (f"Tenuto {__version__}", "a/model · ~/x", "Tip: "):
            assert words in screen.text()
        await screen.emit(user("hello"))
        assert "Tip: " not in screen.text()
        assert "hello" in screen.text()


async def test_inline_it_stays_in_the_scrollback() -> None:
    async with inline.running_app() as session:
        await session.emit(GREETING)
        await session.shows(f"Tenuto {__version__}", "Tip: ")
        await session.emit(user("hello"))
        await session.shows("hello", "Tip: ")


@pytest.mark.parametrize(
    ("environ", "texts", "told"), [({}, [], 2), ({"TENUTO_UI__TIPS": "false"}, [], 1), ({}, ["hi"], 0)]
)
async def test_only_who_has_sent_nothing_is_greeted(tmp_path: Path, environ: dict, texts: list, told: int) -> None:
    start = make_start(tmp_path, {**environ, "HOME": str(tmp_path)}, model="offline/tenuto")
    late = LateRuntime(start.home)
    events: list[NoticeEvent] = []
    late.subscribe(lambda event: events.append(event) if isinstance(event, NoticeEvent) else None)
    opening = Opening(start, late, list(texts))

    async def send(_text: str) -> None:
        return

    await opening.open(send)
    try:
        greetings = [event.text for event in events if event.kind == "welcome"]
        assert len(greetings) == bool(told)
        if told:
            assert greetings[0].splitlines()[1] == "offline/tenuto · ~/work"
            assert len(greetings[0].splitlines()) == 1 + told
    finally:
        await opening.close(Driver().state)
