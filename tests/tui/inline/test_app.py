"""The app with a keyboard and a terminal: what a user sees of it, and what it asks of the core."""

from __future__ import annotations

import asyncio

import pytest

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, RowChanged
from tenuto.config.settings import UiSettings
from tenuto.protocol.entry import ShellEntry, TodoItem
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    AssistantTextDeltaEvent,
    AssistantWithdrawnEvent,
    CompactionStartEvent,
    ShellFinishedEvent,
    ShellStartedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    TodoChangedEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import DiffView
from tenuto.protocol.operation import (
    AnswerApprovalOperation,
    ChangeModeOperation,
    InterruptOperation,
    RunShellOperation,
)
from tenuto.tui.inline.app import InlineApp
from tenuto.tui.inline.output import InlineOutput
from tenuto.tui.paint import Paint
from tenuto.tui.runner import LateRuntime
from tenuto.tui.themes import ThemeChooser
from tests.tui.full.fake_runtime import SESSION, FakeRuntime, answer, opened, queue_of, replay, tool, user
from tests.tui.inline.support import Session, Terminal, pipe_keyboard, running_app

STARTED = TaskStartedEvent(session_id=SESSION, submission_id="s", kind="agent")
SETTLED = (
    TaskFinishedEvent(session_id=SESSION, submission_id="s", kind="agent", outcome="completed"),
    TaskSettledEvent(session_id=SESSION, outcome="completed"),
)


def delta(text: str) -> AssistantTextDeltaEvent:
    return AssistantTextDeltaEvent(session_id=SESSION, text=text)


async def ask(session: Session, detail: str = "rm -rf build", **more: object) -> None:
    """An approval that shows and takes answers."""
    await session.emit(
        STARTED,
        ToolStartedEvent(session_id=SESSION, call_id="c", name="bash", arguments="{}", summary=detail),
        ApprovalRequestedEvent(
            session_id=SESSION, request_id="r", call_id="c", tool="bash", summary=detail, detail=detail,
            reason="runs a command", **more,
        ),
    )  # fmt: skip
    await session.pass_time(1)
    await session.shows("Allow?")
    await session.pass_time(1)


async def test_a_prompt_is_sent_and_its_answer_stays_in_the_scrollback() -> None:
    async with running_app(size=(60, 12)) as session:
        session.type("why?\r")
        await session.until(lambda: session.runtime.prompts == ["why?"])
        await session.emit(STARTED, user("why?"))
        for number in range(30):
            await session.emit(*tool(f"c{number}", f"echo {number}", f"result {number}", 10 + 2 * number))
        await session.emit(answer("Because **it** is so.", 90), *SETTLED)
        text = await session.shows("Because it is so.")
        for number in range(30):
            assert text.count(f"Bash echo {number}\n") == 1, number
        assert text.count("▌ why?") == 1
        assert text.index("▌ why?") < text.index("Bash echo 0") < text.index("Bash echo 29") < text.index("Because")
        assert text.count("❯") == 1  # one prompt, at the bottom
        assert len(session.terminal.scrollback()) > 30


async def test_a_streamed_answer_is_printed_once_as_it_settles() -> None:
    async with running_app(size=(60, 12)) as session:
        await session.emit(STARTED, user("go"))
        paragraphs = [f"Paragraph {number} of the answer." for number in range(20)]
        for paragraph in paragraphs:
            session.runtime.emit(delta(paragraph + "\n\n"))
            session.clock.now += 1
            await session.settle()
        # What is settled has left the bottom before the answer is complete.
        assert "Paragraph 3 " in "\n".join(session.terminal.scrollback())
        await session.emit(answer("\n\n".join(paragraphs), 3), *SETTLED)
        text = await session.shows("Paragraph 19")
        assert [text.count(paragraph) for paragraph in paragraphs] == [1] * 20


async def test_an_answer_that_is_withdrawn_is_marked() -> None:
    async with running_app() as session:
        await session.emit(STARTED, user("go"))
        session.runtime.emit(delta("First paragraph.\n\nSecond paragraph.\n\nThird"))
        session.clock.now += 1
        await session.settle()
        session.runtime.emit(AssistantWithdrawnEvent(session_id=SESSION, reason="overloaded"))
        await session.emit(answer("Now for real.", 3), *SETTLED)
        text = await session.shows("Now for real.")
        assert text.index("First paragraph.") < text.index("withdrawn") < text.index("Now for real.")
        assert "Third" not in text


async def test_every_frame_is_one_write_between_marks() -> None:
    async with running_app() as session:
        before = len(session.terminal.frames)
        await session.emit(STARTED, user("go"), answer("Done.", 3), *SETTLED)
        await session.shows("Done.")
        for frame in session.terminal.frames[before:]:
            assert frame.startswith("\x1b[?2026h") and frame.endswith("\x1b[?2026l")
        (printing,) = [frame for frame in session.terminal.frames if "Done." in frame]
        assert "? keys" in printing  # the block and the bottom below it, at once


async def test_idle_paints_nothing() -> None:
    async with running_app() as session:
        await session.settle()
        before = len(session.terminal.frames)
        await session.settle()
        await session.settle()
        assert len(session.terminal.frames) == before
        assert session.app._ticker is None


async def test_typing_and_readline_keys() -> None:
    async with running_app() as session:
        session.type("one three\x1bb")
        session.type("two ")
        await session.shows("❯ one two three")
        session.type("\x05 four\x17five")
        await session.shows("❯ one two three five")
        session.type("\x15")
        await session.shows("? keys")
        session.type("\x19")
        await session.shows("❯ one two three five")
        session.type("\x1f")
        await session.shows("? keys")


@pytest.mark.parametrize("newline", ["\x1b[13;2u", "\n", "\x1b\r", "\x1b[27;2;13~", "\\\r", "\x1b[13;3u"])
async def test_all_newline_keys(newline: str) -> None:
    async with running_app() as session:
        session.type(f"first{newline}second")
        await session.shows("❯ first\n  second")
        session.type("\r")
        await session.until(lambda: session.runtime.prompts == ["first\nsecond"])


async def test_unknown_sequences_neither_type_nor_interrupt() -> None:
    async with running_app() as session:
        await session.emit(STARTED, user("go"))
        session.type("\x1b[119;5u\x1b[?1;2c\x1b]11;rgb:0/0/0\x1b\\\x1b[57441;1u\x1b[1;5R")
        session.type("ok")
        await session.shows("❯ ok")
        assert not session.runtime.operations


async def test_escape_interrupts_and_the_queue_shows() -> None:
    async with running_app() as session:
        await session.emit(STARTED, user("go"))
        session.type("and then?\r")
        await session.until(lambda: session.runtime.prompts == ["and then?"])
        await session.emit(queue_of("and then?"))
        await session.shows("queued  and then?", "1 queued")
        session.type("\x1b")
        await session.until(lambda: session.runtime.operations)
        assert isinstance(session.runtime.operations[-1], InterruptOperation)


async def test_an_approval_shows_the_exact_command_and_takes_a_number() -> None:
    async with running_app() as session:
        await ask(session, "rm -rf build && echo done")
        await session.shows("rm -rf build && echo done", "runs a command", "1. Yes, once")
        session.type("1")
        await session.until(lambda: session.runtime.operations)
        operation = session.runtime.operations[-1]
        assert isinstance(operation, AnswerApprovalOperation)
        assert (operation.decision, operation.request_id) == ("once", "r")
        await session.gone("Allow?")


async def test_an_approval_never_takes_what_was_typed_for_the_prompt() -> None:
    async with running_app() as session:
        session.type("y")
        await session.shows("❯ y")
        await session.emit(
            STARTED,
            ApprovalRequestedEvent(
                session_id=SESSION, request_id="r", call_id="c", tool="bash", summary="x", detail="x"
            ),
        )
        await session.shows("opens when you stop typing")
        await session.pass_time(1.1)
        await session.shows("Allow?")
        session.type("1y")  # under way when it opened
        await session.settle()
        assert not session.runtime.operations
        assert session.app.editor.text == "y1y"


async def test_a_denial_with_a_reason() -> None:
    async with running_app() as session:
        await ask(session)
        session.type("f")
        await session.shows("Enter send")
        session.type("use git\x1b[D\x1b[D\x1b[Dplain ")
        await session.shows("use plain git")
        session.type("\r")
        await session.until(lambda: session.runtime.operations)
        operation = session.runtime.operations[-1]
        assert isinstance(operation, AnswerApprovalOperation)
        assert (operation.decision, operation.feedback) == ("deny", "use plain git")


async def test_a_long_change_is_reachable_to_its_end() -> None:
    lines = "".join(f"+line {number}\n" for number in range(60))
    change = DiffView(path="a.py", diff=f"@@ -0,0 +1,60 @@\n{lines}", added=60, removed=0)
    async with running_app(size=(80, 20)) as session:
        await ask(session, diffs=(change,))
        await session.shows("Ctrl+E show all")
        session.type("\x05")
        for _ in range(20):
            session.type("\x1b[6~")
        await session.shows("line 59")


async def test_a_picker_filters_and_picks() -> None:
    async with running_app() as session:
        choices = tuple(Choice(f"m{number}", f"model {number}", "") for number in range(20))
        session.runtime.outcomes = [Choose("Which model?", "model", choices)]
        session.type("\x1bp")
        await session.shows("Which model?", "1 of 20")
        session.type("model 17")
        await session.until(lambda: "model 3" not in session.text())
        session.runtime.outcomes = []
        session.type("\r")
        await session.until(lambda: session.runtime.commands == ["/model", "/model m17"])
        await session.gone("Which model?")


async def test_b11_a_key_offers_the_levels_of_effort() -> None:
    async with running_app() as session:
        session.runtime.outcomes = [Choose("Effort", "effort", (Choice("low", "low"), Choice("high", "high")))]
        session.type("kept\x1bt")
        await session.shows("Effort", "high")
        session.runtime.outcomes = []
        session.type("\x1b[B\r")
        await session.until(lambda: session.runtime.commands == ["/effort", "/effort high"])
        assert session.app.editor.text == "kept"


async def test_rows_of_the_sessions_list_are_renamed_deleted_and_copied_by_keys() -> None:
    async with running_app() as session:
        rows = tuple(Choice(f"id{n}", f"session {n}", title=f"session {n}") for n in range(4))
        session.runtime.outcomes = [Choose("Resume a session", "resume", rows, acts=("rename", "delete", "fork"))]
        session.type("/resume ")
        session.type("\r")
        await session.shows("Resume a session", "Ctrl+R rename", "Ctrl+D delete", "Ctrl+G fork")
        session.type("\x1b[B\x12")
        await session.shows("title: session 1")
        session.runtime.outcomes = [RowChanged("resume", "id1", Choice("id1", "better name", title="better name"))]
        session.type("\x15better name\r")
        await session.shows("❯ better name")
        assert session.runtime.commands[-1] == "/resume id1 rename better name"
        session.runtime.outcomes = [RowChanged("resume", "id1", None)]
        session.type("\x04")
        await session.shows("delete? Enter / Esc")
        session.type("\r")
        await session.gone("better name")
        await session.shows("❯ session 2")
        assert session.runtime.commands[-1] == "/resume id1 delete yes"
        session.type("\x07")
        await session.gone("Resume a session")
        await session.until(lambda: session.runtime.commands[-1] == "/resume id2 fork")


async def test_a_background_job_is_ended_from_its_list_after_a_question() -> None:
    async with running_app() as session:
        rows = (Choice("job-1", "npm run dev", preview="listening on 3000"),)
        session.runtime.outcomes = [Choose("Background jobs", "jobs", rows, acts=("end",))]
        session.type("/jobs ")
        session.type("\r")
        await session.shows("npm run dev", "Ctrl+D end")
        session.runtime.outcomes = [RowChanged("jobs", "job-1", Choice("job-1", "npm run dev", "ended by you"))]
        session.type("\x04")
        await session.shows("end? Enter / Esc")
        session.type("\r")
        await session.shows("ended by you")
        assert session.runtime.commands[-1] == "/jobs job-1 end yes"


async def test_what_is_typed_before_a_list_is_there_is_its_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app() as session:
        session.runtime.outcomes = [Choose("Which model?", "model", (Choice("a", "alpha"), Choice("b", "beta")))]
        found, answer = asyncio.Event(), session.runtime.run_command

        async def late(line: str) -> list[CommandOutcome]:
            await found.wait()
            return await answer(line)

        monkeypatch.setattr(session.runtime, "run_command", late)
        session.type("/model ")
        session.type("\rbe")
        await session.shows("❯ be")
        found.set()
        await session.shows("❯ beta")
        session.type("ta\r")
        await session.until(lambda: session.runtime.commands == ["/model", "/model b"])


async def test_completion_of_commands() -> None:
    async with running_app() as session:
        session.type("/comp")
        await session.shows("/compact")
        session.type("\t")
        await session.shows("❯ /compact")
        session.type("\x15/nosuch")
        await session.gone("/compact")


async def test_completion_of_paths(tmp_path) -> None:
    (tmp_path / "notes of mine.txt").write_text("x")
    async with running_app(opened(cwd=str(tmp_path))) as session:
        session.type("look at @notes")
        await session.shows("notes of mine.txt")
        session.type("\t")
        await session.shows('❯ look at @"notes of mine.txt"')


async def test_r099_a_paste_of_a_megabyte_is_a_mark_and_is_sent_whole() -> None:
    text = "".join(f"line {number:06}\n" for number in range(90_000))
    async with running_app() as session:
        pasted = "see: \x1b[200~" + text.replace("\n", "\r") + "\x1b[201~ end"
        await asyncio.to_thread(session.type, pasted)
        await session.shows("[Pasted text #1 +90001 lines] end")
        session.type("\r")
        await session.until(lambda: session.runtime.prompts)
        assert session.runtime.prompts == [f"see: {text} end"]


async def test_a_paste_whose_end_is_lost_does_not_swallow_the_keyboard(monkeypatch) -> None:
    monkeypatch.setattr("tenuto.tui.inline.keys.PASTE_SECONDS", 0.05)
    async with running_app() as session:
        session.type("\x1b[200~half a paste")
        await session.shows("❯ half a paste")
        session.type(" and more")
        await session.shows("❯ half a paste and more")


async def test_shell_commands_and_modes() -> None:
    async with running_app() as session:
        session.type("!ls -la")
        await session.shows("Runs in your shell")
        session.type("\r")
        await session.until(lambda: session.runtime.operations)
        operation = session.runtime.operations[-1]
        assert isinstance(operation, RunShellOperation) and operation.command == "ls -la"
        session.type("\x1b[Z")
        await session.until(lambda: isinstance(session.runtime.operations[-1], ChangeModeOperation))


async def test_a_shell_command_runs_beside_the_turn_and_shows_above_what_comes() -> None:
    async with running_app() as session:
        await session.emit(
            STARTED, user("hello"), AssistantTextDeltaEvent(session_id=SESSION, text="Beginning of the answer. ")
        )
        session.type("!git status\r")
        await session.until(lambda: session.runtime.operations)
        operation = session.runtime.operations[-1]
        assert isinstance(operation, RunShellOperation) and operation.command == "git status"
        entry = ShellEntry(command="git status", output="nothing to commit", exit_code=0)
        await session.emit(
            ShellStartedEvent(session_id=SESSION, command="git status"),
            ShellFinishedEvent(session_id=SESSION, entry=entry),
            AssistantTextDeltaEvent(session_id=SESSION, text="End of it."),
            answer("Beginning of the answer. End of it."),
            *SETTLED,
        )
        await session.shows("nothing to commit", "Beginning of the answer. End of it.")
        everything = session.text()
        assert everything.count("nothing to commit") == 1 and everything.count("Beginning of the answer.") == 1


async def test_a_compaction_spins_and_then_the_old_state_is_back() -> None:
    async with running_app() as session:
        await session.emit(
            TaskStartedEvent(session_id=SESSION, submission_id="k", kind="compaction"),
            CompactionStartEvent(session_id=SESSION, submission_id="k", reason="manual"),
        )
        await session.shows("Compacting", "esc to cancel")


async def test_ctrl_o_prints_folded_blocks_again_from_the_last_on() -> None:
    output = "\n".join(f"row {number}" for number in range(40))
    async with running_app() as session:
        await session.emit(*tool("a", "first", output.replace("row", "old"), 1), *tool("b", "second", output, 5))
        await session.shows("+33 lines")
        assert "row 20" not in session.text()
        session.type("\x0f")
        await session.shows("row 20")
        assert "old 20" not in session.text()
        session.type("\x0f")
        await session.shows("old 20")
        session.type("\x0f")
        await session.shows("Nothing more to unfold")


async def test_the_todo_list_stays_below() -> None:
    items = (TodoItem(text="Read it", status="in_progress"), TodoItem(text="Write it"))
    async with running_app() as session:
        await session.emit(TodoChangedEvent(session_id=SESSION, items=items), answer("Hello.", 2))
        text = await session.shows("Read it", "Hello.")
        assert text.index("Hello.") < text.index("Read it") < text.index("❯")


async def test_a_text_from_a_command_goes_into_the_prompt() -> None:
    async with running_app() as session:
        session.runtime.outcomes = [Edit("a summary\nto edit")]
        session.type("/compact edit \r")
        await session.shows("❯ a summary\n  to edit")


async def test_history_and_rows() -> None:
    async with running_app(size=(30, 12)) as session:
        session.type("an earlier prompt\r")
        await session.until(lambda: session.runtime.prompts)
        session.type("a draft that is longer than one row of the screen")
        await session.settle()
        session.type("\x1b[A")  # to the first row
        session.type("X")
        await session.until(lambda: "X" in session.app.editor.text)
        assert session.app.editor.text != "an earlier prompt"
        session.type("\x1b[A")
        await session.until(lambda: session.app.editor.text == "an earlier prompt")
        session.type("\x1b[B")
        await session.until(lambda: "X" in session.app.editor.text)


async def test_a_resumed_session_prints_its_end() -> None:
    async with running_app(*replay(2_000), size=(100, 30)) as session:
        text = await session.shows("earlier items are in the session", "answer 1998")
        assert "answer 0\n" not in text
        assert text.count("question 1998") == 1
        assert len(text.split("\n")) < 400


async def test_the_ladder_of_ctrl_c_ends_the_app_and_prints_what_was_open() -> None:
    async with running_app() as session:
        await session.emit(STARTED, user("go"))
        session.runtime.emit(delta("Half an answer"))
        await session.shows("Half an answer")
        session.type("draft\x03")
        await session.shows("? keys")
        session.type("\x03")
        await session.until(lambda: session.runtime.operations)
        session.type("\x03")
        await session.shows("again to quit")
        session.type("\x03")
        await session.until(session.running.done)
        text = session.text()
        assert text.count("Half an answer") == 1
        assert "? keys" not in text  # the bottom is gone
        assert "draft" in session.app.runner.state.history.prompts


async def test_an_error_while_opening_ends_it() -> None:
    async with running_app() as session:
        session.app.failure = None

        async def broken() -> None:
            raise RuntimeError("no session")

        await session.app.common.open(broken, session.app._fail_to_open)
        await session.until(session.running.done)
        assert str(session.app.failure) == "no session"


async def test_a_change_of_width_repaints_the_bottom_when_it_is_stable() -> None:
    async with running_app(size=(80, 24), TERM="linux") as session:
        await session.emit(answer("Kept.", 2))
        await session.shows("Kept.")
        before = len(session.terminal.frames)
        session.terminal.screen.resize(24, 60)
        session.app.application._on_resize()
        session.type("abc")
        await session.settle()
        assert len(session.terminal.frames) == before  # not before the width is stable
        session.terminal.screen.resize(24, 50)
        session.app.application._on_resize()
        await session.shows("❯ abc")
        text = session.text()
        assert text.count("Kept.") == 1
        assert text.count("❯") == 1
        assert session.app.runner.columns == 50


async def test_no_motion_where_it_is_not_wanted() -> None:
    async with running_app(ui=UiSettings(reduce_motion=True)) as session:
        await session.emit(STARTED)
        await session.shows("● Working")


async def test_who_is_told_to_leave_before_there_is_a_prompt_leaves() -> None:
    async def opening() -> None:
        await asyncio.sleep(600)

    home = FakeRuntime().home
    themes, terminal = ThemeChooser("dark", {}, home), Terminal(80, 24)
    with pipe_keyboard() as (keyboard, _):
        output = InlineOutput(terminal, terminal.size, synchronised=True)
        app = InlineApp(
            LateRuntime(home), opening, keyboard, output, paint=Paint(themes.theme, "true"), themes=themes,
            ui=UiSettings(), environ={"TERM": "xterm-256color"},
        )  # fmt: skip
        app.leave()
        await asyncio.wait_for(app.run(), 20)
    assert app.failure is None
