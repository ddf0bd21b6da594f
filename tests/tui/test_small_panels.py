"""What a panel leaves out on a small screen, and that it says so."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

from tenuto.command.outcome import Choice, Choose
from tenuto.protocol.approval import approval_options
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.event import ApprovalRequestedEvent, TodoChangedEvent
from tenuto.protocol.part import ImagePart
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.approval import approval_panel
from tenuto.tui.panels.lists import completion_panel, picker_panel, side_panel
from tenuto.tui.panels.panel import image_chips
from tenuto.tui.panels.reading import block_panel
from tenuto.tui.render.options import UNICODE
from tenuto.tui.state.intents import (
    AnswerApprovalWith,
    CompletionItem,
    CompletionOffered,
    MoveCompletion,
    Tick,
    ToggleTodo,
)
from tests.tui.full.fake_runtime import queue_of
from tests.tui.kinds import kinds
from tests.tui.machine.driving import Driver, user
from tests.tui.pictures import scenes

COMMANDS = tuple(CompletionItem(f"/c{number} ", f"/c{number}", "does it") for number in range(27))


def completing(count: int) -> Driver:
    driver = Driver()
    driver.type("/c")
    driver.feed(CompletionOffered(driver.state.completion_generation, 0, 2, COMMANDS[:count]))
    return driver


def rows_of(driver: Driver, rows: int) -> list[str]:
    return [line.text.strip() for line in completion_panel(driver.state, 40, rows).lines]


def test_completions_that_do_not_fit_are_counted():
    driver = completing(27)
    assert len(rows_of(driver, 20)) == 8
    assert rows_of(driver, 20)[-1] == "1 of 27"
    driver.feed(MoveCompletion(-1))
    shown = rows_of(driver, 5)
    assert len(shown) == 5
    assert shown[-1] == "27 of 27"
    assert shown[-2].startswith("❯ /c26")


def test_completions_that_all_fit_need_no_count():
    assert [row.split()[-3] for row in rows_of(completing(8), 20)][1:] == [f"/c{number}" for number in range(1, 8)]


@pytest.mark.parametrize(("width", "rows"), [(24, 12), (40, 9), (40, 20), (80, 24)])
def test_j1_a_question_of_a_server_can_be_read_to_its_end(width, rows):
    """Where its title is cut, all of it stands among what can be scrolled through."""
    lines = asked(width, rows, scenes.asking_a_question(), full=True)
    begun = " ".join(" ".join(asked(width, 200, scenes.asking_a_question())).split())
    assert "when?" in begun and "at least 1" in begun
    assert any("asks" in line for line in lines) and any("1. As proposed" in line for line in lines)


def asked(width: int, rows: int, events: list[object], *, full: bool = False) -> list[str]:
    driver = Driver()
    driver.feed(*events)  # type: ignore[arg-type]
    driver.after(9.0).feed(Tick())
    assert driver.state.approvals.current is not None
    panel = approval_panel(driver.state, width, rows, UNICODE, LineEditor(), full=full, scroll=0)
    assert len(panel.lines) <= rows
    return [line.text for line in panel.lines]


@pytest.mark.parametrize("rows", [9, 11, 14])
@pytest.mark.parametrize("scene", [scenes.asking_for_a_change, scenes.asking_for_a_command])
def test_an_approval_says_on_a_small_screen_how_it_is_answered(rows, scene):
    events = scene()
    lines = asked(40, rows, events)
    assert "Esc deny" in lines[-1]
    request = next(event for event in events if isinstance(event, ApprovalRequestedEvent))
    for number, _option in enumerate(approval_options(request), 1):
        assert any(f"{number}. " in line for line in lines)


@pytest.mark.parametrize("rows", [9, 11])
def test_what_is_left_out_of_a_change_is_counted_and_can_be_read(rows):
    lines = asked(40, rows, scenes.asking_for_a_change())
    assert not any("changes a file (mode" in line for line in lines), "the change is worth more than why it is asked"
    assert any("below · Ctrl+E show all" in line for line in lines)
    assert "+" in lines[0]
    assert "−" in lines[0]
    whole = asked(40, rows, scenes.asking_for_a_change(), full=True)
    assert sum(line.startswith("    ") for line in whole) >= 5, "the answers that are not selected make room"
    assert "Esc collapse" in whole[-1]


@pytest.mark.parametrize("width", [20, 30, 40, 60])
def test_a_single_row_of_what_would_happen_counts_the_others(width):
    events = list(scenes.asking_for_a_change())
    (row,) = (line for line in asked(width, 7, events) if line.lstrip().startswith("10 -"))
    assert re.search(r"  \+\d+( · Ctrl\+E)?$", row), row
    assert ("Ctrl+E" in row) == (width >= 40)


@pytest.mark.parametrize("scene", [scenes.asking_for_a_change, scenes.asking_for_a_command])
def test_without_a_row_for_the_keys_the_question_says_what_escape_does(scene):
    lines = asked(50, 7, scene())
    assert lines[0].endswith("Esc deny")
    assert all(any(f"{number}. " in line for line in lines) for number in (1, 2, 3, 4))


@pytest.mark.parametrize("rows", range(5, 12))
@pytest.mark.parametrize("scene", [scenes.asking_for_a_change, scenes.asking_for_a_command])
def test_with_five_answers_the_key_that_denies_is_always_named(rows, scene):
    events = list(scene())
    lines = asked(40, rows, events)
    denial = [line for line in lines if "Esc deny" in line or line.endswith("4. No  n  Esc")]
    assert len(denial) == 1, lines
    assert any("def area(radius)" in line or "rm -r build && make" in line for line in lines)


def test_the_answers_to_a_plan_are_said_shorter_where_there_is_no_room():
    request = ApprovalRequestedEvent(
        session_id="s", request_id="r", call_id="c", tool="plan", summary="", detail="Do it.", reason="", kind="plan"
    )
    assert any("Yes, in mode edits: files without asking" in line for line in asked(80, 14, [scenes.OPENED, request]))
    for width in (40, 36):
        lines = asked(width, 10, [scenes.OPENED, request])
        answers = [line for line in lines if line.strip(" ❯")[:2] in ("1.", "2.", "3.", "4.")]
        assert len(answers) == 4
        assert not any("…" in line for line in answers), answers


def test_a_feedback_stands_below_the_words_of_its_answer():
    driver = Driver()
    driver.feed(*scenes.asking_for_a_change())  # type: ignore[arg-type]
    driver.after(9.0).feed(Tick(), AnswerApprovalWith("f"))
    line = LineEditor("because")
    lines = [row.text for row in approval_panel(driver.state, 80, 20, UNICODE, line, full=False, scroll=0).lines]
    place = next(place for place, row in enumerate(lines) if "tell the model" in row)
    assert lines[place + 1].index("because") == lines[place].index("No, and tell")


@pytest.mark.parametrize("rows", range(2, 7))
@pytest.mark.parametrize("scene", [scenes.asking_for_a_change, scenes.asking_for_a_command])
def test_the_smallest_screens_show_what_would_happen_and_the_selected_answer(rows, scene):
    lines = asked(60, rows, scene())
    assert any("1. Yes, once" in line for line in lines)
    assert any("def area(radius)" in line or "rm -r build && make" in line for line in lines)


def test_a_change_begins_with_what_changes():
    lines = asked(80, 14, scenes.asking_for_a_change())
    (first, *_) = (line for line in lines if line.lstrip()[:1].isdigit())
    assert "10 - def area(radius):" in first
    assert any("2 above, " in line for line in lines)


def working_driver() -> Driver:
    driver = Driver()
    driver.feed(*scenes.working_through_a_list())  # type: ignore[arg-type]
    driver.feed(queue_of("and charge the orders again", "then write it down"))
    return driver


@pytest.mark.parametrize("rows", range(8))
@pytest.mark.parametrize("whole", [False, True])
def test_the_list_and_the_queue_keep_to_the_rows_they_get(rows, whole):
    driver = working_driver()
    if whole:
        driver.feed(ToggleTodo())
    lines = [line.text for line in side_panel(driver.state, 40, UNICODE, rows).lines]
    assert len(lines) <= rows
    if rows:
        assert any("queued" in line for line in lines)
    if rows > 1:
        assert any("Write a failing test" in line for line in lines), "what is being done is the last to go"
    if rows == 2:
        assert lines[0].endswith("1 of 4 done")


def test_an_item_that_is_cut_says_so():
    driver = Driver()
    items = tuple(TodoItem(text=f"item {number} is far too long for one row") for number in range(7))
    driver.feed(*scenes.working_through_a_list()[:-1], TodoChangedEvent(session_id=scenes.SESSION, items=items))  # type: ignore[arg-type]
    lines = [line.text for line in side_panel(driver.state, 30, UNICODE).lines]
    assert [line.endswith("…") for line in lines] == [True, True, True, True, False]


def test_the_block_cursor_says_how_it_moves():
    driver = Driver()
    driver.feed(user(1, "hello"))
    driver.state.block = next(iter(driver.state.transcript.items))
    for width in (40, 80):
        assert block_panel(driver.state, width).lines[-1].text.strip().startswith("↑ ↓ moves · ")


def test_an_answer_without_room_is_said_shorter_before_what_it_allows_is_cut():
    for width, allowed in ((80, " for this exact command"), (50, ": this"), (40, ": this")):
        lines = asked(width, 10, [scenes.OPENED, *asking_for_a_short_command()])
        always = [line for line in lines if " this session" in line or " this project" in line]
        assert [f"{allowed}  " in line for line in always] == [True, True], (width, lines)
        assert any("tell the model what to do" in line and "…" not in line for line in lines), (width, lines)


def asking_for_a_short_command() -> list[ApprovalRequestedEvent]:
    (request,) = (event for event in scenes.asking_for_a_command() if isinstance(event, ApprovalRequestedEvent))
    return [replace(request, detail="make all", summary="make all", kinds=kinds("this exact command"))]


def test_facts_of_a_row_are_there_whole_or_not_at_all():
    driver = Driver()
    detail = "just now · 7 messages · 7a26deda"
    driver.feed(Choose("Resume a session", "resume", (Choice("a", "a session about prices of orders", detail),)))
    for width, shown in ((40, "just now"), (70, "just now · 7 messages"), (100, detail)):
        texts = (line.text for line in picker_panel(driver.state, width, 12, LineEditor()).lines)
        (row,) = (text for text in texts if "just now" in text)
        assert row.rstrip().endswith(f"  {shown}"), row


def test_the_key_of_a_chip_is_named_where_there_is_room():
    driver = Driver()
    image = ImagePart(sha256="x", media_type="image/png", name="shot.png", width=64, height=48)
    driver.state.draft = replace(driver.state.draft, images=(image,))
    assert [len(image_chips(driver.state, width).lines) for width in (40, 80)] == [1, 1]
    assert ["Backspace" in image_chips(driver.state, width).lines[0].text for width in (40, 80)] == [False, True]
    assert "…" not in image_chips(driver.state, 40).lines[0].text


def test_a_call_of_a_server_is_named_once():
    request = ApprovalRequestedEvent(
        session_id="s", request_id="r", call_id="c", tool="mcp__git__git_add", summary='git: git_add {"files": []}',
        detail="git_add of the MCP server git\n{}", reason="calls a tool of an MCP server (mode: ask)",
    )  # fmt: skip
    lines = asked(80, 14, [scenes.OPENED, request])
    assert any('Allow? MCP git: git_add {"files": []}' in line for line in lines)
