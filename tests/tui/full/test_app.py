"""The app as a user meets it: keys in, rows on the screen and operations out."""

from __future__ import annotations

import asyncio

import pytest
from textual import events
from textual.geometry import Size

from tenuto.command.outcome import Choice, Choose, CommandOutcome, RowChanged
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.event import (
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    AssistantTextDeltaEvent,
    AssistantThinkingDeltaEvent,
    AssistantWithdrawnEvent,
    ContextUsageEvent,
    ShellFinishedEvent,
    ShellStartedEvent,
    TaskFinishedEvent,
    TaskSettledEvent,
    TaskStartedEvent,
    ToolCallDeltaEvent,
)
from tenuto.protocol.operation import AnswerApprovalOperation, InterruptOperation, RunShellOperation
from tenuto.protocol.usage import Usage
from tenuto.tui.full.app import TenutoApp
from tenuto.tui.full.resizing import ResizingScreen
from tenuto.tui.full.transcript import TranscriptView
from tenuto.tui.runner import LateRuntime
from tenuto.tui.state.intents import Tick
from tenuto.tui.themes import ThemeChooser
from tests.tui.full.fake_runtime import SESSION, FakeRuntime, answer, opened, queue_of, replay, tool, user
from tests.tui.full.support import running_app
from tests.tui.kinds import kinds
from tests.tui.pictures import scenes

pytestmark = pytest.mark.matrix

STARTED = TaskStartedEvent(session_id=SESSION, submission_id="one", kind="agent")
FINISHED = TaskFinishedEvent(session_id=SESSION, submission_id="one", kind="agent", outcome="completed")
SETTLED = TaskSettledEvent(session_id=SESSION, outcome="completed")


def request(number: int = 1, **more: str) -> ApprovalRequestedEvent:
    return ApprovalRequestedEvent(
        session_id=SESSION,
        request_id=f"r{number}",
        call_id=f"c{number}",
        tool="bash",
        summary="rm -r build",
        detail=more.get("detail", "rm -r build && make all"),
        reason="deletes files",
        kinds=kinds("rm -r build"),
    )


async def test_a_prompt_goes_out_and_the_answer_comes_in() -> None:
    async with running_app() as screen:
        await screen.burst([*"hello world", "enter"])
        assert screen.runtime.prompts == ["hello world"]
        assert screen.app.composer.text == ""
        assert "hello world" in screen.text(), "echoed before the core has answered"
        await screen.emit(
            STARTED, user("hello world"), AssistantTextDeltaEvent(session_id=SESSION, text="Good **day**")
        )
        assert "esc to interrupt" in screen.text()
        await screen.emit(answer("Good **day**"), FINISHED, SETTLED)
        assert "  Good day" in screen.rows()
        assert "esc to interrupt" not in screen.text()


async def test_r099_keys_of_one_burst_keep_their_order() -> None:
    """Textual alone makes `字v` of it: printable keys are inserted before bindings have bubbled."""
    async with running_app() as screen:
        await screen.burst(["字", "left", "v", "end", "b", "backspace", "c", "home", "delete", "x", "ctrl+e", "!"])
        assert screen.app.composer.text == "x字c!"


async def test_four_keys_make_a_new_line_and_enter_sends() -> None:
    async with running_app() as screen:
        await screen.burst(["a", "shift+enter", "b", "ctrl+j", "c", "alt+enter", "d", "\\", "enter", "e"])
        assert screen.app.composer.text == "a\nb\nc\nd\ne"
        assert screen.app.composer.size.height == 5
        await screen.burst(["enter"])
        assert screen.runtime.prompts == ["a\nb\nc\nd\ne"]


async def test_readline_keys_cut_and_yank() -> None:
    async with running_app() as screen:
        composer = screen.app.composer
        await screen.burst([*"one two three", "ctrl+w", "ctrl+w", "ctrl+y", "ctrl+y"])
        assert composer.text == "one two threetwo three", "cuts in a row are one text"
        await screen.burst(["ctrl+a", "alt+d", "ctrl+k", "ctrl+underscore"])
        assert composer.text == " two threetwo three"
        await screen.burst(["ctrl+u", "ctrl+e", "alt+b", "ctrl+k", "ctrl+y", "!"])
        assert composer.text == " two threetwo three!"


async def test_up_and_down_go_through_history_at_the_first_and_last_row_only() -> None:
    async with running_app() as screen:
        await screen.burst([*"first", "enter", *"second", "enter", *"dra", "ctrl+j", *"ft", "up", "X"])
        composer = screen.app.composer
        assert composer.text == "drXa\nft"
        await screen.burst(["up"])
        assert composer.text == "second"
        await screen.burst(["up"])
        assert composer.text == "first"
        await screen.burst(["down", "down"])
        assert composer.text == "drXa\nft"


async def test_escape_interrupts_a_task() -> None:
    async with running_app() as screen:
        await screen.emit(STARTED)
        await screen.burst(["escape"])
        assert [type(operation) for operation in screen.runtime.operations] == [InterruptOperation]


async def test_the_completion_popup_completes_and_escape_closes_it() -> None:
    async with running_app() as screen:
        await screen.burst([*"/mod"])
        assert any("/model" in row and "❯" in row for row in screen.rows())
        await screen.burst(["tab"])
        assert screen.app.composer.text == "/model "
        await screen.burst(["ctrl+u", *"/co", "escape"])
        assert not any("/compact" in row for row in screen.rows())
        assert screen.app.composer.text == "/co"


async def test_a_picker_filters_and_runs_the_command_with_what_was_picked() -> None:
    async with running_app() as screen:
        choices = tuple(Choice(f"id{n}", f"model {n}", "big" if n == 7 else "small") for n in range(20))
        screen.runtime.outcomes = [Choose("Which model?", "model", choices)]
        await screen.burst([*"kept", "ctrl+j"])
        await screen.burst(["alt+p"])
        assert "Which model?" in screen.text()
        await screen.burst([*"bog", "backspace", "backspace", *"ig"])
        assert "model 7" in screen.text()
        assert "model 8" not in screen.text()
        screen.runtime.outcomes = []
        await screen.burst(["enter"])
        assert screen.runtime.commands == ["/model", "/model id7"]
        assert screen.app.composer.text == "kept\n", "a panel keeps the draft"


async def test_b11_a_key_offers_the_levels_of_effort() -> None:
    async with running_app() as screen:
        screen.runtime.outcomes = [Choose("Effort", "effort", (Choice("low", "low"), Choice("high", "high")))]
        await screen.burst([*"kept", "alt+t"])
        assert "Effort" in screen.text()
        screen.runtime.outcomes = []
        await screen.burst(["down", "enter"])
        assert screen.runtime.commands == ["/effort", "/effort high"]
        assert screen.app.composer.text == "kept"


async def test_rows_of_the_sessions_list_are_renamed_deleted_and_copied_by_keys() -> None:
    async with running_app() as screen:
        rows = tuple(Choice(f"id{n}", f"session {n}", title=f"session {n}") for n in range(4))
        screen.runtime.outcomes = [Choose("Resume a session", "resume", rows, acts=("rename", "delete", "fork"))]
        await screen.burst([*"/resume", "enter", "enter"])
        assert "Ctrl+R rename · Ctrl+D delete · Ctrl+G fork" in screen.text()
        before = list(screen.runtime.commands)
        screen.runtime.outcomes = [RowChanged("resume", "id1", Choice("id1", "better name", title="better name"))]
        await screen.burst(["down", "ctrl+r"])
        assert "title: session 1" in screen.text()
        await screen.burst(["ctrl+u", *"better  nome", "left", "left", "ctrl+h", "a", "enter"])
        assert screen.runtime.commands == [*before, "/resume id1 rename better name"]
        assert any("❯ better name" in row for row in screen.rows())
        screen.runtime.outcomes = [RowChanged("resume", "id1", None)]
        await screen.burst(["ctrl+d"])
        assert any("better name" in row and "delete? Enter / Esc" in row for row in screen.rows())
        await screen.burst(["escape"])
        assert "delete?" not in screen.text() and "better name" in screen.text()
        await screen.burst(["delete", "enter"])
        assert screen.runtime.commands[-1] == "/resume id1 delete yes"
        assert "better name" not in screen.text()
        assert any("❯ session 2" in row for row in screen.rows()), "the cursor stays near"
        await screen.burst([*"sesxsion", *["left"] * 5, "ctrl+d"])
        assert screen.runtime.commands[-1] == "/resume id1 delete yes", "inside the filter's text the key edits it"
        assert "session 3" in screen.text()
        await screen.burst(["end", "ctrl+g"])
        assert screen.runtime.commands[-1] == "/resume id0 fork"
        assert "Resume a session" not in screen.text()


async def test_a_background_job_is_ended_from_its_list_after_a_question() -> None:
    async with running_app() as screen:
        rows = (Choice("job-1", "npm run dev", preview="listening on 3000"),)
        screen.runtime.outcomes = [Choose("Background jobs", "jobs", rows, acts=("end",))]
        await screen.burst([*"/jobs", "enter", "enter"])
        assert "listening on 3000" in screen.text() and "Ctrl+D end" in screen.text()
        screen.runtime.outcomes = [RowChanged("jobs", "job-1", Choice("job-1", "npm run dev", "ended by you"))]
        await screen.burst(["ctrl+d"])
        assert "end? Enter / Esc" in screen.text()
        await screen.burst(["enter"])
        assert screen.runtime.commands[-1] == "/jobs job-1 end yes"
        assert "ended by you" in screen.text()


async def test_a_shell_command_runs_beside_the_turn_and_shows_above_what_comes() -> None:
    async with running_app() as screen:
        await screen.emit(
            STARTED, user("hello"), AssistantTextDeltaEvent(session_id=SESSION, text="Beginning of the answer. ")
        )
        await screen.burst([*"!git status", "enter"])
        operation = screen.runtime.operations[-1]
        assert isinstance(operation, RunShellOperation) and operation.command == "git status"
        entry = ShellEntry(command="git status", output="nothing to commit", exit_code=0)
        await screen.emit(
            ShellStartedEvent(session_id=SESSION, command="git status"),
            ShellFinishedEvent(session_id=SESSION, entry=entry),
            AssistantTextDeltaEvent(session_id=SESSION, text="End of it."),
            answer("Beginning of the answer. End of it."),
            FINISHED,
            SETTLED,
        )
        text = screen.text()
        assert text.count("nothing to commit") == 1 and text.count("Beginning of the answer. End of it.") == 1


async def test_what_is_typed_before_a_list_is_there_is_its_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app() as screen:
        screen.runtime.outcomes = [Choose("Which model?", "model", (Choice("a", "alpha"), Choice("b", "beta")))]
        found, answer = asyncio.Event(), screen.runtime.run_command

        async def late(line: str) -> list[CommandOutcome]:
            await found.wait()
            return await answer(line)

        monkeypatch.setattr(screen.runtime, "run_command", late)
        await screen.burst([*"/model ", "enter", *"be"])
        assert screen.app.composer.text == "be"
        found.set()
        await screen.settle()
        assert "❯ beta" in screen.text() and "alpha" not in screen.text()
        assert screen.app.composer.text == ""
        await screen.burst([*"ta", "enter"])
        assert screen.runtime.commands == ["/model", "/model b"]


async def test_an_approval_shows_the_command_keeps_the_draft_and_takes_an_answer() -> None:
    async with running_app() as screen:
        await screen.burst([*"draft"])
        screen.clock.now += 5
        await screen.emit(STARTED, request())
        assert "rm -r build && make all" in screen.text()
        assert "deletes files" in screen.text()
        await screen.burst([*"y!"])
        assert screen.runtime.operations == [], "keys that were under way answer nothing"
        assert screen.app.composer.text == "drafty!", "and are not lost"
        assert "Allow?" not in screen.text(), "it makes room until the next pause"
        screen.clock.now += 2
        screen.app.runner.handle(Tick())
        screen.clock.now += 1
        await screen.burst(["enter"])
        assert screen.runtime.operations == [], "Enter may have been meant for the draft"
        await screen.burst(["down", "down", "enter"])
        [operation] = screen.runtime.operations
        assert isinstance(operation, AnswerApprovalOperation)
        assert operation.decision == "session"
        assert "Allow?" not in screen.text()
        assert screen.app.composer.text == "drafty!"


async def test_feedback_to_a_denial_is_written_in_the_panel() -> None:
    async with running_app() as screen:
        screen.clock.now += 5
        await screen.emit(STARTED, request())
        screen.clock.now += 1
        await screen.burst(["f", *"use mv insted", "left", "left", "left", "a", "ctrl+e", "."])
        await screen.emit()
        assert "use mv insated." in screen.text()
        await screen.burst(["enter"])
        [operation] = screen.runtime.operations
        assert isinstance(operation, AnswerApprovalOperation)
        assert (operation.decision, operation.feedback) == ("deny", "use mv insated.")


async def test_a_long_command_is_never_cut_silently() -> None:
    async with running_app() as screen:
        screen.clock.now += 5
        await screen.emit(STARTED, request(detail="\n".join(f"step {n}" for n in range(60))))
        screen.clock.now += 1
        assert "Ctrl+E show all" in screen.text()
        await screen.burst(["ctrl+e", *["pagedown"] * 12])
        assert "step 59" in screen.text()
        await screen.emit(ApprovalResolvedEvent(session_id=SESSION, request_id="r1", decision="once"))
        assert "step 59" not in screen.text()


async def test_help_lists_the_keys() -> None:
    async with running_app() as screen:
        await screen.burst(["?"])
        assert "At the start of a prompt" in screen.text()
        await screen.burst(["pagedown"] * 30)
        assert "Ctrl+O" in screen.text()
        await screen.burst(["escape"])
        assert "Ctrl+O" not in screen.text()


async def test_the_footer_shows_the_context_and_the_queue() -> None:
    async with running_app(opened(cwd="/tmp"), size=(110, 20)) as screen:
        usage = Usage(input=1, output=1, cost=0.5)
        await screen.emit(
            ContextUsageEvent(
                session_id=SESSION, tokens=12_400, window=200_000, trigger=None, estimated=True, total=usage
            ),
            STARTED,
            queue_of("later please"),
        )
        footer = screen.rows()[-1]
        assert "ask · offline/offline · /tmp" in footer
        assert "1 queued · ↑1 ↓1 · $0.50" in footer
        assert "~12k/200k 7%" in footer
        assert any("queued" in row and "later please" in row for row in screen.rows())


async def test_ten_thousand_items_mount_and_scroll_by_exact_rows() -> None:
    async with running_app(*replay(10_000)) as screen:
        view = screen.app.transcript
        assert len(view.viewport.heights) == 10_000
        assert len(view.cache) < 100, "only what is on the screen was rendered"
        await screen.burst(["pageup"])
        first = [row.rstrip("▐ ") for row in screen.rows()[:18]]
        await screen.burst(["shift+up"])
        assert [row.rstrip("▐ ") for row in screen.rows()[1:18]] == first[:17]
        await screen.burst(["ctrl+home"])
        assert "question 0:" in screen.rows()[0]
        assert "↓ End" in screen.text()
        await screen.emit(user("something new", 90_000))
        assert "question 0:" in screen.rows()[0], "a reader is not moved"
        assert "↓ 1 new" in screen.text()
        await screen.burst(["ctrl+end"])
        assert "something new" in screen.text()
        assert len(view.cache) <= 3_000


@pytest.mark.parametrize("size", [(40, 15), (80, 24)])
async def test_the_mark_that_leads_to_the_end_lies_beside_the_text(size: tuple[int, int]) -> None:
    async with running_app(*replay(60), size=size) as screen:
        view, seen = screen.app.transcript, 0
        await screen.burst(["pageup"])
        for _ in range(12):
            await screen.burst(["shift+up"])
            place = next(row for row, text in enumerate(screen.rows()) if "↓ End" in text)
            lines = [view.lines_of(index)[line] for index, line in view.shown]
            fits = [line.width + len(" ↓ End ") < size[0] for line in lines]
            assert fits[place] or not any(fits[-3:])
            assert view.is_on_mark(size[0] - 3, place)
            assert not view.is_on_mark(size[0] - 3, place - 1)
            seen += place < view.size.height - 1
        assert seen or size[0] == 80, "long texts are there, too"


async def test_one_row_is_between_the_transcript_and_a_list_at_rest() -> None:
    async with running_app(*scenes.working_through_a_list(), size=(80, 24)) as screen:
        assert screen.app.runner.state.running
        assert len(screen.app.chrome.status.lines) == 2
        await screen.emit(*scenes.ENDED)
        assert not screen.app.runner.state.running
        assert screen.app.chrome.side.lines
        assert len(screen.app.chrome.status.lines) == 1
        screen.app.chrome.show_toast("Something was done", "dim")
        await screen.settle()
        rows = screen.rows()
        place = next(place for place, row in enumerate(rows) if "Something was done" in row)
        assert not rows[place - 1].strip(), "it stands apart from the transcript"
        assert rows[place + 1].strip() == "☑ Read the code"


async def test_r100_the_cursor_is_at_the_caret_in_cells() -> None:
    async with running_app() as screen:
        await screen.burst([*"字字é😀a", "left"])
        composer = screen.app.composer
        x, y = composer.cursor_screen_offset
        assert (x, y) == (2 + 2 + 2 + 1 + 2, composer.region.y)
        assert screen.app.cursor_position == (x, y)


async def test_r100_another_width_keeps_what_is_being_read() -> None:
    async with running_app(*replay(200)) as screen:
        await screen.burst(["pageup"] * 10)
        top = next(row for row in screen.rows() if "question" in row or "answer" in row)
        await screen.pilot.resize_terminal(60, 24)
        await screen.settle()
        await screen.settle()
        assert top.split()[1] in screen.text()
        assert screen.app.transcript.size == Size(60, screen.app.transcript.size.height)
        assert all(len(row) <= 60 for row in screen.rows())


async def test_r100_a_frame_between_a_size_and_word_of_it_is_of_the_new_width(monkeypatch) -> None:
    hear = TranscriptView.on_resize

    def hear_late(view: TranscriptView) -> None:
        view.repaint()
        hear(view)

    async with running_app(opened(), user("word " * 300), size=(40, 24)) as screen:
        monkeypatch.setattr(TranscriptView, "on_resize", hear_late)
        view = screen.app.transcript
        for columns in (120, 50, 100):
            await screen.pilot.resize_terminal(columns, 24)
            await screen.settle()
            assert screen.app.is_running
            assert view.viewport.heights == [len(view.lines_of(index)) for index in range(len(view.viewport.heights))]


@pytest.mark.parametrize("has_frame", [True, False])
async def test_r100_two_sizes_that_come_together_do_not_answer_each_other_for_ever(has_frame, monkeypatch) -> None:
    lay_out, sizes = ResizingScreen._screen_resized, []

    def count(real: ResizingScreen, size: Size) -> None:
        sizes.append(size)
        assert len(sizes) < 50
        lay_out(real, size)

    async with running_app(*replay(20)) as screen:
        real = screen.app.screen
        assert isinstance(real, ResizingScreen)
        real.may_hold = has_frame
        monkeypatch.setattr(ResizingScreen, "_screen_resized", count)
        for size in (Size(50, 12), Size(80, 24)):
            real.post_message(events.Resize(size, size))
            real.call_later(lambda: None)  # Textual joins those that stand side by side
        await screen.settle()
        assert real.size == Size(80, 24)
        assert sizes


async def test_what_is_sent_while_reading_further_up_shows_with_what_comes_of_it() -> None:
    async with running_app(*replay(200)) as screen:
        await screen.burst(["pageup"] * 10)
        assert not screen.app.transcript.viewport.follow
        await screen.burst([*"and now", "enter"])
        await screen.settle()
        assert screen.app.transcript.viewport.follow
        assert "and now" in screen.text()


async def test_r099_a_megabyte_of_paste_is_sent_to_the_last_byte() -> None:
    pasted = "".join(f"line {number} 字\t€ \x1b[31m\n" for number in range(60_000))
    assert len(pasted.encode()) > 1_000_000
    async with running_app() as screen:
        await screen.burst([*"see "])
        screen.app.post_message(events.Paste(pasted))
        await screen.burst([*" there"])
        assert len(screen.app.composer.text) < 60
        assert "Pasted text" in screen.text()
        await screen.burst(["enter"])
        assert screen.runtime.prompts == [f"see {pasted} there"]


async def test_a_short_paste_stays_visible_without_control_characters() -> None:
    async with running_app() as screen:
        screen.app.post_message(events.Paste("red \x1b[31mapple\nand\tpear"))
        await screen.settle()
        assert screen.app.composer.text == "red [31mapple\nand\tpear"


async def test_a_click_on_a_head_unfolds_and_a_drag_copies_logical_text() -> None:
    output = "\n".join(f"row {number}" for number in range(40))
    async with running_app(opened(), *tool("c1", "make all", output, 2), answer("word " * 40, 9)) as screen:
        view = screen.app.transcript
        assert "row 20" not in screen.text()
        head = next(place for place, row in enumerate(screen.rows()) if "make all" in row)
        await screen.pilot.click("#transcript", offset=(5, head))
        assert "row 39" in screen.text()
        await screen.burst(["end"])
        first = next(place for place, row in enumerate(screen.rows()) if "word" in row)
        await screen.pilot.mouse_down("#transcript", offset=(2, first))
        await screen.pilot.hover("#transcript", offset=(60, first + 2))
        assert view.pointer.selected == ("word " * 40).strip()
        await screen.pilot.mouse_up("#transcript", offset=(60, first + 2))
        assert screen.app.clipboard == ("word " * 40).strip()
        await screen.burst(["escape"])
        assert view.pointer.selected == ""


async def test_escape_closes_what_is_in_front_of_a_selection_with_the_first_press() -> None:
    async with running_app(opened(), answer("word " * 40, 2)) as screen:
        first = next(place for place, row in enumerate(screen.rows()) if "word" in row)
        await screen.pilot.mouse_down("#transcript", offset=(2, first))
        await screen.pilot.hover("#transcript", offset=(40, first))
        await screen.pilot.mouse_up("#transcript", offset=(40, first))
        assert screen.app.transcript.pointer.selected
        await screen.burst(["f1"])
        assert "PageUp/PageDown" in screen.text()
        await screen.burst(["escape"])
        assert "PageUp/PageDown" not in screen.text() and not screen.app.transcript.pointer.selected


async def test_a_click_on_the_row_that_counts_what_is_folded_unfolds_it() -> None:
    output = "\n".join(f"row {number}" for number in range(40))
    async with running_app(opened(), *tool("c1", "make all", output, 2)) as screen:
        more = next(place for place, row in enumerate(screen.rows()) if "… +" in row)
        await screen.pilot.click("#transcript", offset=(8, more + 1))
        assert "… +" in screen.text()
        await screen.pilot.click("#transcript", offset=(5, more))
        assert "… +" not in screen.text()


async def test_several_items_may_go_in_one_step() -> None:
    async with running_app(opened(), user("a", 1), answer("b", 2)) as screen:
        await screen.emit(
            STARTED,
            AssistantThinkingDeltaEvent(session_id=SESSION, text="hm, well"),
            AssistantTextDeltaEvent(session_id=SESSION, text="half an answer"),
            ToolCallDeltaEvent(session_id=SESSION, index=0, name="bash", characters=12),
        )
        screen.app.runner._flush()
        await screen.settle()
        assert "half an answer" in screen.text()
        await screen.emit(AssistantWithdrawnEvent(session_id=SESSION, reason="the stream broke"))
        assert "half an answer" not in screen.text()
        await screen.emit(answer("whole", 5))
        assert "whole" in screen.text()


async def test_detail_unfolds_everything_and_keeps_what_is_being_read() -> None:
    output = "\n".join(f"row {number}" for number in range(40))
    items = [event for number in range(30) for event in tool(f"c{number}", f"make {number}", output, 2 * number + 2)]
    async with running_app(opened(), *items) as screen:
        await screen.burst(["pageup"] * 3)
        view = screen.app.transcript
        top = view.order.ids[view.viewport.index]
        await screen.burst(["ctrl+o"])
        assert "row 7" in screen.text()
        assert view.order.ids[view.viewport.index] == top
        await screen.burst(["ctrl+o"])
        assert view.order.ids[view.viewport.index] == top


async def test_what_is_sent_before_the_runtime_is_there_waits_for_it() -> None:
    runtime, gate = FakeRuntime(), asyncio.Event()
    late = LateRuntime(runtime.home)

    async def opening() -> None:
        await gate.wait()
        late.attach(runtime)
        runtime.emit(opened())
        late.ready()

    app = TenutoApp(late, opening, themes=ThemeChooser("dark", {}, runtime.home))
    async with app.run_test(size=(80, 24)) as pilot:
        for key, character in (("h", "h"), ("i", "i"), ("enter", None)):
            app.post_message(events.Key(key, character))
        await pilot.pause()
        assert runtime.prompts == []
        gate.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert runtime.prompts == ["hi"]
    await app.finish()


async def test_quit_ends_the_app_with_zero() -> None:
    async with running_app() as screen:
        await screen.burst(["ctrl+c"])
        assert "again to quit" in screen.text()
        await screen.burst(["ctrl+c"])
        assert not screen.app.is_running
        assert screen.app.return_code == 0


async def test_a_small_screen_still_shows_the_question_and_every_answer() -> None:
    async with running_app(size=(50, 12)) as screen:
        screen.clock.now += 5
        await screen.emit(STARTED, request())
        for wanted in ("rm -r build && make all", "1. Yes", "4. No", "Esc deny", "\n❯", "ask ·"):
            assert wanted in screen.text()


async def test_the_caret_stays_in_view_when_the_screen_gets_narrow() -> None:
    async with running_app(size=(80, 30)) as screen:
        await screen.burst([*"some words that wrap later on when it is narrow", *["ctrl+j", "z"] * 9, "!"])
        await screen.pilot.resize_terminal(30, 30)
        for _ in range(3):
            await screen.settle()
        assert "z!" in screen.text()


async def test_who_is_told_to_leave_before_there_is_a_screen_leaves() -> None:
    runtime = FakeRuntime()

    async def opening() -> None:
        await asyncio.sleep(600)

    themes = ThemeChooser("dark", {}, runtime.home)
    app = TenutoApp(LateRuntime(runtime.home), opening, themes=themes, home=runtime.home)
    app.leave()
    await asyncio.wait_for(app.run_async(headless=True), 20)
    await app.finish()
    assert app.failure is None
