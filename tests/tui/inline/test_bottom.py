"""The rows below the transcript: when they are painted, and where the cursor stands in them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.terminal import BLANK
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.event import AnyEvent, TaskFinishedEvent, TaskSettledEvent, TaskStartedEvent, TodoChangedEvent
from tenuto.protocol.message import TodoView
from tenuto.tui.inline.bottom import CellRows
from tenuto.tui.inline.prompt import break_prompt
from tenuto.tui.paint import Paint
from tenuto.tui.render.line import plain
from tenuto.tui.render.width import cell_width
from tenuto.tui.themes import ThemeChooser
from tests.tui.full.fake_runtime import SESSION, FakeRuntime, answer, replay, user
from tests.tui.inline.support import Session, Terminal, running_app
from tests.tui.pictures.scenes import OPENED, STARTED, call, working_through_a_list

PASTE = "\x1b[200~{}\x1b[201~"


def cursor_of(session: Session) -> tuple[int, str]:
    """Return the cursor's column, and its row."""
    cursor = session.terminal.screen.cursor
    return cursor.x, session.terminal.rows()[cursor.y]


async def test_a_key_is_painted_while_the_loop_has_always_something_else_to_do() -> None:
    async with running_app() as session:
        busy, turns, painted = True, 0, 0

        def keep_busy() -> None:
            nonlocal turns
            turns += 1
            time.sleep(0.001)
            if busy:
                asyncio.get_running_loop().call_soon(keep_busy)

        keep_busy()
        await asyncio.sleep(0.02)
        begun = turns
        session.type("k")
        while "❯ k" not in session.text():
            await asyncio.sleep(0)
        painted = turns - begun
        busy = False
        assert painted <= 2


@pytest.mark.parametrize(
    ("text", "column", "row"),
    [
        ("word", 6, "❯ word"),
        ("a\tb", 5, "❯ a b"),
        ("字é", 5, "❯ 字é"),
        ("x" * 38, 2, ""),  # a full row: the next key goes to the one below
        ("x" * 40, 4, "  xx"),
        ("one\ntwo", 5, "  two"),
        ("\x07bell", 6, "❯ bell"),
    ],
)
async def test_r100_the_cursor_stands_behind_what_is_written(text: str, column: int, row: str) -> None:
    async with running_app(size=(40, 20)) as session:
        session.type(PASTE.format(text))
        await session.until(lambda: session.app.editor.text)
        await session.settle()
        x, shown = cursor_of(session)
        assert x == column
        assert not row or shown == row


async def test_a_long_draft_scrolls_with_the_cursor() -> None:
    async with running_app(size=(40, 15)) as session:
        session.type(PASTE.format("\n".join(f"row {number}" for number in range(12))))
        await session.shows("  row 7", "  row 11")
        assert "row 6" not in session.text()
        session.type("\x1b[A" * 9)
        await session.until(lambda: cursor_of(session)[1] == "  row 2")
        session.type("\x1b[A" * 2)
        await session.until(lambda: cursor_of(session)[1] == "❯ row 0")
        assert "row 5" not in session.text()


async def test_a_list_leaves_half_of_the_screen_to_what_is_above() -> None:
    async with running_app(*replay(20), size=(80, 30)) as session:
        session.type("?")
        await session.shows("Esc close")
        rows = session.terminal.rows()
        begin = next(number for number, row in enumerate(rows) if row.startswith("  Keys"))
        assert begin >= 10 and any(row.strip() for row in rows[:begin])


async def test_rows_that_go_leave_nothing_behind() -> None:
    async with running_app(size=(60, 24)) as session:
        before = session.terminal.rows()
        session.type("?")
        await session.shows("Esc close")
        session.type("\x1b")
        await session.gone("Esc close")
        await session.settle()
        assert session.terminal.rows() == before


def listing(number: int, *done: bool) -> list[AnyEvent]:
    """A call that writes the todo list, with as many items as there are words on whether they are done."""
    items = tuple(
        TodoItem(text=f"Item {place}", status="done" if is_done else "pending") for place, is_done in enumerate(done)
    )
    return [
        *call(number, "todo", "{}", "noted", TodoView(items=items)),
        TodoChangedEvent(session_id=SESSION, items=items),
    ]


def below_the_list(session: Session) -> str:
    """The rows between the end of what is printed and the prompt."""
    rows = session.terminal.rows()
    prompt = next(place for place, row in enumerate(rows) if row.startswith("❯"))
    return "\n".join(rows[prompt - 5 : prompt])


async def test_the_todo_list_is_pinned_once_the_printed_one_is_out_of_sight() -> None:
    async with running_app(OPENED, user("Go."), STARTED, size=(80, 20)) as session:
        await session.emit(*listing(1, True, False, False))
        await session.shows("1 of 3 done", "☐ Item 2")
        assert session.text().count("☐ Item 2") == 1, "it stands right above"
        session.type("\x14")
        await session.until(lambda: session.text().count("☐ Item 2") == 2, "it was asked for")
        session.type("\x14")
        await session.until(lambda: session.text().count("☐ Item 2") == 1)
        session.type("\x14")  # away, and as it was again
        for number in range(2, 6):
            await session.emit(*call(number, "bash", '{"command":"make"}', "one\ntwo"))
        assert session.text().count("☐ Item 2") == 2
        assert "☐ Item 2" in below_the_list(session)
        await session.emit(*listing(6, True, True, False))
        assert "☐ Item 2" not in below_the_list(session).partition("Working")[2], "the new one stands above"
        await session.emit(TodoChangedEvent(session_id=SESSION, items=(TodoItem(text="Another"),)))
        assert "☐ Another" in below_the_list(session), "one that was not printed is pinned"


@pytest.mark.parametrize("keys", ["\x06", "?", "\x1b[1;3A"])
async def test_a_rule_stands_between_what_goes_on_and_what_is_open(keys: str) -> None:
    async with running_app(*working_through_a_list(), size=(60, 24)) as session:
        await session.shows("☐ Run the tests")
        rows = session.terminal.rows()
        assert rows[rows.index("    ☐ Run the tests") + 1] == "─" * 60
        session.type(keys)
        await session.shows("Esc ")
        rows = session.terminal.rows()
        place = rows.index("─" * 60)
        assert rows.count("─" * 60) == 1
        assert rows[place - 1].strip() and rows[place + 1].strip(), "nothing but the rule between them"


async def test_a_small_screen_has_no_rule() -> None:
    async with running_app(*working_through_a_list(), size=(60, 12)) as session:
        await session.shows("Write a failing test")
        assert "─" * 60 not in session.text()


async def test_what_is_printed_next_takes_the_rows_that_a_list_has_left() -> None:
    async with running_app(*replay(6), size=(60, 24)) as session:
        session.type("?")
        await session.shows("Esc close")
        session.type("\x1b")
        await session.gone("Esc close")
        await session.settle()
        scrolled, rows = len(session.terminal.scrollback()), session.terminal.rows()
        empty = len(rows) - 1 - max(place for place, row in enumerate(rows) if row)
        assert empty > 3
        await session.emit(answer("One row.", seq=40))
        assert len(session.terminal.scrollback()) == scrolled, "nothing is scrolled away for it"
        assert "One row." in session.terminal.rows()[len(rows) - empty - 2]


def test_r100_what_people_see_as_a_character_is_one_and_takes_its_own_cells() -> None:
    cells = CellRows(Paint(ThemeChooser("dark", {}, FakeRuntime().home).theme, "true"))
    cells.turn(80)
    row = cells.row(((f"👨‍👩‍👧x{BLANK}e\u0301!", "text"),))
    assert [cell.text for cell in row] == ["👨‍👩‍👧", f"x{BLANK}", "e\u0301", "!"]
    assert [cell.width for cell in row] == [2, 1, 1, 1]


def test_a_row_that_is_still_the_same_is_not_made_again_but_in_other_colours() -> None:
    home = FakeRuntime().home
    paint = Paint(ThemeChooser("dark", {}, home).theme, "true")
    cells, line = CellRows(paint), plain("字 word", "dim")
    cells.turn(80)
    first = cells.row(line.spans)
    assert [cell.text for cell in first[:3]] == ["字", " ", "w"]
    cells.turn(80)
    assert cells.row(line.spans) is first
    cells.turn(5)
    assert sum(cell.width for cell in cells.row(line.spans)) == 5
    cells.turn(80)
    dark = cells.row(line.spans)[0].codes
    paint.choose(ThemeChooser("light", {}, home).theme)
    cells.turn(80)
    assert cells.row(line.spans)[0].codes != dark


async def test_a_line_that_goes_away_by_itself_wakes_nothing_before(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app() as session:
        app, loop = session.app, asyncio.get_running_loop()
        waits: list[float] = []

        def call_later(wait: float, callback: Callable[..., None], *arguments: Any) -> asyncio.TimerHandle:
            if callback == app._tick:
                waits.append(wait)
            return later(wait, callback, *arguments)

        later = loop.call_later
        monkeypatch.setattr(loop, "call_later", call_later)
        app.chrome.show_toast("something was done", "dim")
        app.show()
        await session.shows("something was done")
        assert app._ticker is not None and min(waits) > 2
        await session.emit(TaskStartedEvent(session_id=SESSION, submission_id="s", kind="agent"))
        await session.shows("Working")
        assert min(waits) < 1, "what moves is not kept waiting"
        await session.emit(
            TaskFinishedEvent(session_id=SESSION, submission_id="s", kind="agent", outcome="completed"),
            TaskSettledEvent(session_id=SESSION, outcome="completed"),
        )
        session.clock.now += 10
        await session.gone("something was done")
        await session.until(lambda: app._ticker is None)


@pytest.mark.parametrize("columns", [1, 2, 3])
async def test_r100_a_terminal_with_no_cell_for_the_text_has_a_prompt_all_the_same(columns: int) -> None:
    async with running_app(size=(columns, 24)) as session:
        session.type("key")
        await session.until(lambda: session.app.runner.state.draft.text == "key")


async def test_r100_nothing_is_painted_between_a_new_width_and_where_that_has_put_the_rows() -> None:
    """pyte cuts rows, and so does this terminal by its name: where the rows are is known by then."""
    async with running_app(size=(80, 24), XTERM_VERSION="XTerm(390)") as session:
        session.type("x" * 60)
        await session.shows("x" * 60)
        session.terminal.screen.resize(24, 40)
        before = len(session.terminal.frames)
        session.type("end")
        await session.settle()
        assert len(session.terminal.frames) == before, "word of the width is on its way, and so is what it has done"
        await session.shows("end")
        assert session.text().count("❯") == 1 and sum("ask · " in row for row in session.terminal.rows()) == 1


async def test_what_a_terminal_shows_of_an_emoji_beyond_its_cells_goes_with_it() -> None:
    """pyte adds up what is joined: a family of four takes eight cells there, and two here."""
    async with running_app(size=(60, 24)) as session:
        session.type("ab👩‍👩‍👧‍👦 same rest")
        await session.shows("same rest")
        column, row = cursor_of(session)
        assert row.endswith(" same rest") and column == len("❯ ab") + 2 + len(" same rest")
        session.type("\x01\x1b[C\x1b[C\x04")  # to the emoji, and away with it
        await session.shows("❯ ab same rest")
        session.type("👍🏽")
        await session.until(lambda: cursor_of(session)[0] == len("❯ ab") + 2)
        row = cursor_of(session)[1]
        assert row.endswith(" same rest") and "🏽" not in row


async def test_konsole_keeps_its_cursor_when_the_keyboard_is_given_back() -> None:
    """It takes the end of kitty's keys for "put the cursor where it was saved": a printed row went with the prompt."""
    async with running_app(size=(60, 24)) as session:
        terminal = session.terminal
        terminal.write = lambda data: Terminal.write(terminal, data.replace("\x1b[<u", "\x1b8"))  # type: ignore[method-assign]
        await session.emit(answer("First.\n\nLast.", 2))
        await session.shows("First.", "Last.")
        async with session.app.application.lend():
            assert "First." in session.text() and "Last." in session.text() and "❯" not in session.text()
            assert terminal.screen.cursor.y == next(y for y, row in enumerate(terminal.rows()) if "Last." in row) + 1
        await session.shows("❯")
        assert session.text().count("Last.") == 1


@given(st.text(st.sampled_from("ab \t\n字é-"), max_size=60), st.integers(1, 12))
def test_the_rows_of_a_prompt_have_every_character_once_and_fit(text: str, width: int) -> None:
    rows = break_prompt(text, width)
    assert "\n".join(text[start:end] for start, end in rows).replace("\n", "") == text.replace("\n", "")
    assert all(before[1] in (after[0], after[0] - 1) for before, after in pairwise(rows))
    for start, end in rows:
        shown = text[start:end].rstrip()
        assert cell_width(shown) <= width or len(shown) == 1


async def test_a_prompt_is_broken_between_words_and_the_cursor_follows() -> None:
    async with running_app(size=(24, 16)) as session:
        editor = session.app.editor
        session.type("alpha beta gamma delta epsilon")
        await session.until(lambda: "❯ alpha beta gamma delta" in session.text() and "\n  epsilon" in session.text())
        session.type("\x1b[A")
        await session.until(lambda: editor.cursor == 7)
        session.type("\x05\x1bb")
        await session.until(lambda: editor.cursor == 23)
        assert cursor_of(session) == (2, "  epsilon")
        session.type("\x1b[D")
        await session.until(lambda: editor.cursor == 22)
        assert cursor_of(session)[1] == "❯ alpha beta gamma delta", "on the blank at the end of the row"
