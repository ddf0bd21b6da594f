"""Plans and approvals on the full screen: what shows, what a key or a click does, what is never lost."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.message import DiffView
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.tui.chrome import FOCUS_SECONDS
from tenuto.tui.state.intents import PlanEdited, Tick
from tests.examples import one_of
from tests.tui.full.fake_runtime import SESSION
from tests.tui.full.support import Screen, running_app
from tests.tui.full.test_app import STARTED, request
from tests.tui.kinds import kinds

pytestmark = pytest.mark.matrix

PLAN = "# Quick\n\n1. **measure**\n\n" + "\n".join(f"- step {number}" for number in range(40))


async def ask(screen: Screen, *requests: ApprovalRequestedEvent) -> None:
    screen.clock.now += 5
    await screen.emit(STARTED, *requests)
    screen.clock.now += 1


def plan() -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        session_id=SESSION, request_id="p", call_id="c", tool="plan", summary="", detail=PLAN, kind="plan"
    )


def given(screen: Screen) -> list[tuple[str, str | None, str]]:
    operations = [each for each in screen.runtime.operations if isinstance(each, AnswerApprovalOperation)]
    return [(each.decision, each.mode, each.plan) for each in operations]


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 15)])
async def test_a_plan_is_read_to_its_end_and_approved(size) -> None:
    async with running_app(size=size) as screen:
        await ask(screen, plan())
        text = screen.text()
        assert "Go ahead with this plan?" in text
        assert "Quick" in text and "# Quick" not in text, "it is Markdown"
        assert "1. Yes, in mode edits" in text and "4. No" in text
        await screen.burst(["pagedown"] * 60)
        assert "step 39" in screen.text()
        await screen.burst(["2"])
        assert given(screen) == [("once", "ask", "")]
        assert "Go ahead" not in screen.text()


async def test_a_changed_plan_shows_and_is_what_is_approved() -> None:
    async with running_app() as screen:
        await ask(screen, plan())
        screen.app.runner.handle(PlanEdited("p", "# Mine alone"))
        await screen.settle()
        assert "as you changed it" in screen.text() and "Mine alone" in screen.text()
        screen.clock.now += 1
        await screen.burst(["enter"])
        assert given(screen) == [("once", "edits", "# Mine alone")]


async def test_letters_that_are_no_answers_begin_a_prompt_and_nothing_is_answered() -> None:
    async with running_app() as screen:
        await ask(screen, request())
        await screen.burst([*"hello, any 1?"])
        assert screen.app.composer.text == "hello, any 1?"
        assert given(screen) == []
        assert "Allow?" not in screen.text()
        screen.clock.now += 2
        screen.app.runner.handle(Tick())
        await screen.settle()
        assert "Allow?" in screen.text()
        screen.clock.now += 1
        await screen.burst(["y", "enter"])
        assert given(screen) == []
        assert screen.runtime.prompts == ["hello, any 1?y"], "Enter went where the typing went"


async def test_over_a_draft_an_editing_key_edits_the_draft() -> None:
    async with running_app() as screen:
        await screen.burst([*"draft"])
        await ask(screen, request())
        assert "Allow?" in screen.text()
        await screen.burst(["left", "left", "backspace"])
        assert screen.app.composer.text == "drft"
        assert given(screen) == []


async def test_a_click_that_turns_to_the_terminal_answers_nothing() -> None:
    async with running_app() as screen:
        await ask(screen, request())
        row = next(y for y, text in enumerate(screen.rows()) if "1. Yes, once" in text)
        screen.app.on_app_blur()
        await screen.pilot.click(offset=(8, row))
        screen.app.on_app_focus()
        await screen.pilot.click(offset=(8, row))
        screen.clock.now += FOCUS_SECONDS - 0.01
        await screen.pilot.click(offset=(8, row))
        assert given(screen) == []
        screen.clock.now += 0.02
        await screen.pilot.click(offset=(8, row))
        assert given(screen) == [("once", None, "")]


async def test_several_requests_are_counted_and_escape_denies_one() -> None:
    async with running_app() as screen:
        await ask(screen, request(1), replace(request(2), asked=1), replace(request(3), asked=2))
        assert "1 of 3" in screen.text()
        await screen.burst(["escape", "escape"])
        assert "2 of 3" in screen.text()
        assert given(screen) == [("deny", None, "")]


async def test_a_request_says_how_many_follow_it() -> None:
    async with running_app() as screen:
        await ask(screen, replace(request(1), behind=2))
        assert "1 of 3" in screen.text()
        await screen.burst(["y"])
        assert "of 3" not in screen.text(), "nothing is asked while it runs"
        await ask(screen, replace(request(2), asked=1, behind=1))
        assert "2 of 3" in screen.text()


@pytest.mark.parametrize(("rows", "times"), [(24, 1), (40, 2)])
async def test_what_will_not_be_asked_again_is_named_whole_before_anybody_says_yes(rows, times) -> None:
    pattern = "/home/somebody/with/a/very/long/path/" + "deep/" * 20 + "**"
    async with running_app(size=(80, rows)) as screen:
        asked = ApprovalRequestedEvent(
            session_id=SESSION, request_id="r", call_id="c", tool="read", summary="x", detail="x",
            kinds=kinds(pattern),
        )  # fmt: skip
        await ask(screen, asked)
        shown = "".join(screen.rows()).replace(" ", "").count("deep/")
        assert shown // 20 == times, "an answer that is cut repeats the beginning"
        await screen.burst(["p"])
        assert given(screen) == [("project", None, "")]


async def test_s20_a_number_over_a_draft_goes_into_the_draft() -> None:
    async with running_app() as screen:
        await screen.burst([*"my draft "])
        await ask(screen, request())
        screen.clock.now += 3
        await screen.burst(["3"])
        assert given(screen) == []
        assert screen.app.composer.text == "my draft 3"


BIG = DiffView(
    path="src/big.py",
    diff="@@ -1,80 +1,80 @@\n" + "".join(f"-old {number}\n+new {number}\n" for number in range(80)),
    added=80,
    removed=80,
)


def change() -> ApprovalRequestedEvent:
    return replace(request(), tool="edit", summary="src/big.py", detail="src/big.py", diffs=(BIG,))


@pytest.mark.parametrize("size", one_of([(40, 15), (100, 30), (200, 60)]))
async def test_f7_ctrl_e_gives_a_change_the_whole_screen_and_it_scrolls_to_its_end(size) -> None:
    async with running_app(size=size) as screen:
        await ask(screen, change())
        folded = sum("old" in row or "new" in row for row in screen.rows())
        await screen.burst(["ctrl+e"])
        rows = screen.rows()
        shown = sum("old" in row or "new" in row for row in rows)
        assert shown >= size[1] - 7 and shown > folded
        assert "Allow?" in rows[1] and rows[-1].startswith("❯"), "the prompt stays"
        assert any("Ctrl+E collapse" in row for row in rows)
        seen = "\n".join(rows)
        for _ in range(40):
            await screen.burst(["pagedown"])
            seen += screen.text()
        assert all(f"new {number}" in seen for number in range(80))
        assert "new 79" in screen.text()
        await screen.burst(["pageup"] * 40)
        assert "old 0" in screen.text()
        await screen.burst(["3"])
        assert given(screen) == [("project", None, "")]


async def test_f7_the_folded_panel_uses_the_room_of_a_large_screen() -> None:
    async with running_app(size=(200, 60)) as screen:
        await ask(screen, change())
        assert sum("old" in row or "new" in row for row in screen.rows()) >= 25


async def test_f6_escape_leaves_the_whole_view_first_and_denies_second() -> None:
    async with running_app(size=(100, 30)) as screen:
        await ask(screen, change())
        before = screen.text()
        await screen.burst(["ctrl+e"])
        assert "Esc collapse" in screen.text()
        await screen.burst(["escape"])
        assert given(screen) == []
        assert screen.text() == before
        await screen.burst(["escape"])
        assert given(screen) == [("deny", None, "")]
