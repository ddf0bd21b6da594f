"""Scrolling up to the older part of a long session."""

from __future__ import annotations

from tenuto.protocol.event import EarlierEntriesEvent
from tenuto.protocol.operation import ShowEarlierOperation
from tests.tui.full.fake_runtime import SESSION, answer, replay, user
from tests.tui.full.support import Screen, running_app


def earlier(remaining: int, before: int, *numbers: int) -> EarlierEntriesEvent:
    events = [event for n in numbers for event in (user(f"older {n}?", seq=n), answer(f"reply {n}", seq=n + 1))]
    return EarlierEntriesEvent(session_id=SESSION, remaining=remaining, before=before, events=tuple(events))


def read_rows(screen: Screen) -> list[str]:
    rows = [row.rstrip("▐ ") for row in screen.rows()[:18]]
    return [row for row in rows if "question 0:" in row or "answer 0" in row]


async def test_scrolling_up_to_the_start_brings_older_entries_and_moves_nobody() -> None:
    first, *rest = replay(20)
    async with running_app(first, earlier(900, 1), *rest) as screen:
        assert not screen.runtime.operations, "nothing is asked for before somebody is there"
        await screen.burst(["ctrl+home"])
        assert "900 earlier entries: scroll up" in screen.rows()[0]
        (asked,) = screen.runtime.operations
        assert isinstance(asked, ShowEarlierOperation)
        assert asked.before == 1
        await screen.burst(["shift+up"])
        assert len(screen.runtime.operations) == 1, "once"
        below = read_rows(screen)
        await screen.emit(earlier(800, -40, *range(-40, 0, 2)))
        assert "question 0:" in "".join(screen.rows()[:2]), "what was read stays, below the gap to what is older"
        assert read_rows(screen) == below
        await screen.burst(["shift+up"] * 4)
        assert "reply -2" in screen.text()
        await screen.burst(["ctrl+home"])
        assert "800 earlier entries" in screen.rows()[0]
        assert len(screen.runtime.operations) == 2
