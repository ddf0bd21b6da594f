"""Plans and approvals below the scrollback: the same answers, and the plan as a block above afterwards."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tenuto.protocol.event import ApprovalRequestedEvent, ApprovalResolvedEvent, ToolResultEvent, ToolStartedEvent
from tenuto.protocol.message import PlanView, ToolResultMessage
from tenuto.protocol.operation import AnswerApprovalOperation
from tenuto.protocol.part import TextPart
from tests.tui.full.fake_runtime import SESSION
from tests.tui.full.test_plans_and_approvals import BIG
from tests.tui.inline.support import Session, running_app
from tests.tui.inline.test_app import STARTED, ask
from tests.tui.kinds import kinds

PLAN = "# Quick\n\n1. **measure**\n\n" + "\n".join(f"- step {number}" for number in range(40))


async def ask_about_plan(session: Session) -> None:
    await session.emit(
        STARTED,
        ToolStartedEvent(session_id=SESSION, call_id="c", name="plan", arguments='{"plan":"# Quick"}'),
        ApprovalRequestedEvent(
            session_id=SESSION, request_id="p", call_id="c", tool="plan", summary="", detail=PLAN, kind="plan"
        ),
    )
    await session.pass_time(1)
    await session.shows("Go ahead with this plan?")
    await session.pass_time(1)


def given(session: Session) -> list[tuple[str, str | None, str]]:
    operations = [each for each in session.runtime.operations if isinstance(each, AnswerApprovalOperation)]
    return [(each.decision, each.mode, each.plan) for each in operations]


@pytest.mark.parametrize("size", [(120, 40), (80, 24), (40, 15)])
async def test_a_plan_is_read_to_its_end_approved_and_stays_in_the_scrollback(size) -> None:
    async with running_app(size=size) as session:
        await ask_about_plan(session)
        await session.shows("Quick", "1. Yes, in mode edits")
        for _ in range(60):
            session.type("\x1b[6~")
        await session.shows("step 39")
        session.type("3")
        await session.until(lambda: given(session) == [("once", "auto", "")])
        await session.gone("Go ahead")
        view = PlanView(text=PLAN, outcome="approved", mode="auto")
        result = ToolResultMessage(call_id="c", name="plan", parts=(TextPart(text="go"),), ui=(view,))
        await session.emit(
            ApprovalResolvedEvent(session_id=SESSION, request_id="p", decision="once"),
            ToolResultEvent(session_id=SESSION, message=result),
        )
        await session.shows("approved", "1. measure")


async def test_the_plan_is_changed_in_the_users_own_editor(tmp_path: Path, monkeypatch) -> None:
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\nprintf '# Mine alone\\n' > \"$1\"\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(os, "ctermid", lambda: os.devnull)  # a test run may have no terminal of its own
    async with running_app() as session:
        await ask_about_plan(session)
        session.type("\x07")
        await session.shows("as you changed it", "Mine alone")
        await session.pass_time(1)
        session.type("\r")
        await session.until(lambda: given(session))
        [(decision, mode, plan)] = given(session)
        assert (decision, mode, plan.strip()) == ("once", "edits", "# Mine alone")


async def test_the_title_is_the_editors_while_it_is_open(tmp_path: Path, monkeypatch) -> None:
    opened, ready = tmp_path / "opened", tmp_path / "ready"
    editor = tmp_path / "editor"
    editor.write_text(f"#!/bin/sh\n: > {opened}\nwhile [ ! -e {ready} ]; do sleep 0.02; done\n")
    editor.chmod(editor.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("EDITOR", str(editor))
    monkeypatch.delenv("VISUAL", raising=False)
    monkeypatch.setattr(os, "ctermid", lambda: os.devnull)
    async with running_app() as session:
        session.type("\x07")
        await session.until(opened.exists, "the editor")
        session.terminal.frames.clear()
        await session.emit(STARTED)
        await session.until(lambda: session.app.runner.state.terminal_title.startswith("✳"))
        assert "\x1b]0;" not in session.terminal.raw
        ready.touch()
        await session.until(lambda: "\x1b]0;✳" in session.terminal.raw, "the title behind it")


async def test_going_on_planning_takes_words() -> None:
    async with running_app() as session:
        await ask_about_plan(session)
        session.type("4")
        await session.shows("Enter send")
        session.type("smaller steps\r")
        await session.until(lambda: session.runtime.operations)
        operation = session.runtime.operations[-1]
        assert isinstance(operation, AnswerApprovalOperation)
        assert (operation.decision, operation.feedback) == ("deny", "smaller steps")


async def test_whoever_types_on_keeps_every_letter_and_answers_nothing() -> None:
    async with running_app() as session:
        await ask(session)
        session.type("hello, any 1?")
        await session.shows("❯ hello, any 1?")
        await session.gone("Allow?")
        await session.pass_time(1.1)
        await session.shows("Allow?")
        await session.pass_time(1)
        session.type("\r")
        await session.shows("Choose with")
        assert given(session) == [] and session.runtime.prompts == []
        session.type("\x1b[B\r")
        await session.until(lambda: given(session) == [("once", None, "")])
        assert session.app.editor.text == "hello, any 1?"


async def test_a_request_says_how_many_follow_it() -> None:
    async with running_app(size=(60, 20)) as session:
        await ask(session, behind=2)
        await session.shows("Allow? Bash  1 of 3")
        session.type("y")
        await session.gone("Allow?")
        await ask(session, asked=1, behind=1)
        await session.shows("Allow? Bash  2 of 3")


async def test_always_in_this_project_names_what_it_allows() -> None:
    async with running_app() as session:
        await ask(session, "curl x", kinds=kinds("https://example.com"))
        await session.shows(
            "ask again this session for https://example.com", "ask again in this project for https://example.com"
        )
        session.type("p")
        await session.until(lambda: given(session) == [("project", None, "")])


async def test_s20_a_number_over_a_draft_goes_into_the_draft() -> None:
    async with running_app() as session:
        session.type("my draft ")
        await session.shows("❯ my draft")
        await ask(session, kinds=kinds("x"))
        await session.pass_time(3)
        session.type("3")
        await session.until(lambda: session.app.editor.text == "my draft 3")
        assert given(session) == []


@pytest.mark.parametrize("size", [(40, 15), (100, 30), (200, 60)])
async def test_f6_f7_ctrl_e_takes_the_screen_and_escape_gives_it_back_before_it_denies(size) -> None:
    async with running_app(size=size) as session:
        await ask(session, diffs=(BIG,), kinds=kinds("src/**"))
        session.type("\x05")
        await session.shows("Ctrl+E collapse")
        await session.settle()
        rows = session.terminal.rows()
        assert sum("old" in row or "new" in row for row in rows) >= size[1] - 7
        for _ in range(60):
            session.type("\x1b[6~")
        await session.shows("new 79")
        session.type("\x1b")
        await session.until(lambda: "collapse" not in "\n".join(session.terminal.rows()))
        assert given(session) == []
        session.type("\x1b")
        await session.until(lambda: given(session) == [("deny", None, "")])
