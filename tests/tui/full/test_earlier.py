"""Scrolling up to the older part of a long session."""

from __future__ import annotations

from msgspec.structs import replace

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


def shown(screen: Screen) -> list[str]:
    return [row.rstrip("▐ ") for row in screen.rows()[:18]]


FIRST_ROW = slice(0, 1)


async def scroll_until(screen: Screen, key: str, text: str, row: slice = slice(0, 18)) -> None:
    for _ in range(200):
        if text in "".join(screen.rows()[row]):
            return
        await screen.burst([key])
    raise AssertionError(f"{text!r} does not come")


async def test_scrolling_up_to_the_start_brings_older_entries_and_moves_nobody() -> None:
    first, *rest = replay(20)
    async with running_app(first, earlier(900, 1), *rest) as screen:
        assert not screen.runtime.operations, "nothing is asked for before somebody is there"
        await scroll_until(screen, "shift+up", "earlier entries: scroll up", FIRST_ROW)
        assert "900 earlier entries: scroll up" in screen.rows()[0]
        (asked,) = screen.runtime.operations
        assert isinstance(asked, ShowEarlierOperation)
        assert (asked.before, asked.at) == (1, 0)
        await screen.burst(["shift+up"])
        assert len(screen.runtime.operations) == 1, "once"
        below = read_rows(screen)
        await screen.emit(earlier(800, -40, *range(-40, 0, 2)))
        assert "question 0:" in "".join(screen.rows()[:2]), "what was read stays, below the gap to what is older"
        assert read_rows(screen) == below
        await screen.burst(["shift+up"] * 4)
        assert "reply -2" in screen.text()
        await scroll_until(screen, "shift+up", "earlier entries: scroll up", FIRST_ROW)
        assert "800 earlier entries" in screen.rows()[0]
        assert len(screen.runtime.operations) == 2


def beginning(later: int) -> EarlierEntriesEvent:
    """The first turns of a session whose last ones begin with the entry 1000."""
    return replace(earlier(0, 1, *range(1, 41, 2)), last=40, later=later, upto=1000, count=40)


async def test_home_goes_to_where_the_session_began_and_end_comes_back() -> None:
    first, *rest = replay(20)
    async with running_app(first, earlier(900, 1000), *rest) as screen:
        last = shown(screen)
        await screen.burst(["ctrl+home"])
        (asked,) = screen.runtime.operations
        assert isinstance(asked, ShowEarlierOperation)
        assert (asked.before, asked.after, asked.at) == (1000, 0, 1), "the beginning and not what comes before the rest"
        await screen.emit(beginning(860))
        assert "older 1?" in "".join(screen.rows()[:2])
        assert len(screen.runtime.operations) == 1, "what lies between is not loaded"
        await screen.burst(["ctrl+end"])
        assert shown(screen) == last
        await screen.burst(["ctrl+home"])
        assert "older 1?" in "".join(screen.rows()[:2])
        assert len(screen.runtime.operations) == 1


async def test_what_lies_between_comes_when_one_scrolls_on_to_it() -> None:
    first, *rest = replay(20)
    async with running_app(first, earlier(900, 1000), *rest) as screen:
        await screen.burst(["ctrl+home"])
        await screen.emit(beginning(860))
        await scroll_until(screen, "shift+down", "860 entries lie between")
        asked = screen.runtime.operations[-1]
        assert isinstance(asked, ShowEarlierOperation)
        assert (asked.before, asked.after, asked.at) == (1000, 40, 41)
        rows = [row.rstrip("▐ ") for row in screen.rows()[:17]]
        await screen.emit(replace(earlier(0, 41, 41, 43), last=44, later=856, upto=1000, count=4))
        assert [row.rstrip("▐ ") for row in screen.rows()[:16]] == rows[:16], "what was read stays where it was"
        await screen.burst(["shift+down"] * 4)
        assert "older 41?" in screen.text()


async def test_who_scrolls_away_before_the_beginning_is_there_stays_where_he_went() -> None:
    first, *rest = replay(20)
    async with running_app(first, earlier(900, 1000), *rest) as screen:
        await screen.burst(["ctrl+home", "ctrl+end"])
        last = shown(screen)
        await screen.emit(beginning(860))
        assert shown(screen) == last
