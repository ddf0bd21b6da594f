from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.command.outcome import Choice, Choose, Say
from tenuto.protocol.entry import ShellEntry, TodoItem
from tenuto.protocol.event import (
    ContextUsageEvent,
    ModeChangedEvent,
    ShellFinishedEvent,
    ShellStartedEvent,
    TodoChangedEvent,
)
from tenuto.protocol.operation import ChangeModeOperation, RunShellOperation
from tenuto.protocol.usage import Usage
from tenuto.tui.state.effects import (
    Complete,
    DraftSet,
    OpenEditor,
    PanelChanged,
    Remember,
    RunCommand,
    StatusChanged,
    Submit,
    SubmitPrompt,
    Toast,
    TranscriptReset,
)
from tenuto.tui.state.intents import (
    AcceptCompletion,
    ActOnRow,
    CompletionItem,
    CompletionOffered,
    CycleMode,
    DraftChanged,
    EditDraft,
    Escape,
    FilterChanged,
    HistoryLoaded,
    HistoryNext,
    HistoryPrevious,
    MoveCompletion,
    MovePicker,
    PickChoice,
    SearchHistory,
    SendDraft,
    SendText,
    ToggleDetail,
    ToggleItem,
    ToggleTodo,
)
from tenuto.tui.state.item import NoticeItem
from tests.tui.machine.driving import SESSION, Driver, started, user

MODEL = CompletionItem("/model ", "/model", runs=True)
TITLE = CompletionItem("/title ", "/title")


def offer(driver: Driver, *items: CompletionItem, start=0, end=None) -> None:
    end = driver.state.draft.cursor if end is None else end
    driver.feed(CompletionOffered(driver.state.completion_generation, start, end, items))


# --- history ---


def test_up_and_down_walk_through_the_history_and_back_to_the_draft():
    driver = Driver()
    driver.feed(HistoryLoaded(("one", "two")))
    driver.type("dra")
    driver.feed(HistoryPrevious())
    assert driver.state.draft.text == "two"
    driver.type("two")  # the editor tells what was put into it
    driver.feed(HistoryPrevious())
    assert driver.state.draft.text == "one"
    assert driver.feed(HistoryPrevious()) == []
    driver.feed(HistoryNext(), HistoryNext())
    assert driver.state.draft.text == "dra"
    assert driver.feed(HistoryNext()) == []


def test_an_edited_prompt_of_the_history_is_a_draft_of_its_own():
    driver = Driver()
    driver.feed(HistoryLoaded(("one", "two")), HistoryPrevious())
    driver.type("two!")
    driver.feed(HistoryPrevious())
    assert driver.state.draft.text == "two"
    driver.feed(HistoryNext())
    assert driver.state.draft.text == "two!"


def test_what_was_sent_is_the_newest_even_when_the_history_comes_late():
    driver = Driver()
    assert Remember("new") in driver.feed(SendText("new"))
    driver.feed(HistoryLoaded(("old",)), HistoryPrevious())
    assert driver.state.draft.text == "new"
    assert not [each for each in driver.feed(SendText("new")) if isinstance(each, Remember)]


def test_searching_the_history_puts_the_prompt_into_the_editor():
    driver = Driver()
    driver.feed(HistoryLoaded(("fix the parser", "run tests", "fix the\nlexer")))
    driver.feed(SearchHistory())
    picker = driver.state.picker
    assert picker is not None and driver.state.contexts[0] == "picker"
    assert [picker.choices[place].value for place in picker.shown] == ["fix the\nlexer", "run tests", "fix the parser"]
    driver.feed(FilterChanged("fix"))
    assert [picker.choices[place].label for place in picker.shown] == ["fix the lexer", "fix the parser"], "by age"
    driver.feed(ActOnRow("rename"))
    assert picker.current is not None and picker.current.value == "fix the parser", "Ctrl+R again: the one before"
    driver.feed(FilterChanged("fix lex"))
    assert [picker.choices[place].label for place in picker.shown] == ["fix the lexer"]
    driver.feed(PickChoice())
    assert driver.state.draft.text == "fix the\nlexer"
    assert driver.state.picker is None
    assert [type(each) for each in Driver().feed(SearchHistory())] == [Toast]


# --- pastes ---


@given(st.text(max_size=50), st.text(min_size=1_001, max_size=3_000), st.text(max_size=50))
def test_r099_every_byte_of_a_paste_is_sent_once(before, paste, after):
    driver = Driver()
    mark = driver.state.pastes.fold(paste)
    assert len(mark) < 60
    driver.type(f"x{before}{mark}{after}.")
    [sent] = [each for each in driver.feed(SendDraft()) if isinstance(each, SubmitPrompt)]
    assert sent.text == f"x{before}{paste}{after}."
    assert len(driver.state.pastes) == 0


def test_a_folded_paste_is_never_run():
    for begin in ("!rm -rf .\n", "/exit\n"):
        driver = Driver()
        driver.type(driver.state.pastes.fold(begin * 500))
        assert SubmitPrompt(begin * 500) in driver.feed(SendDraft())


def test_a_stashed_paste_comes_back_whole():
    driver = Driver()
    paste = "line\n" * 500
    driver.type(driver.state.pastes.fold(paste))
    driver.feed(Escape(), Escape(), SendText("something else"))
    driver.after(5).feed(Escape(), Escape())
    [sent] = [each for each in driver.feed(SendDraft()) if isinstance(each, SubmitPrompt)]
    assert sent.text == paste


def test_the_users_editor_gets_the_pastes_too():
    driver = Driver()
    driver.type("see " + driver.state.pastes.fold("y" * 2_000))
    assert driver.feed(EditDraft()) == [OpenEditor("see " + "y" * 2_000)]


# --- completion ---


def test_a_slash_asks_for_completions_and_an_old_answer_is_left_out():
    driver = Driver()
    first = [each for each in driver.type("/m") if isinstance(each, Complete)]
    second = [each for each in driver.type("/mo") if isinstance(each, Complete)]
    assert [each.text for each in (*first, *second)] == ["/m", "/mo"]
    driver.feed(CompletionOffered(first[0].generation, 0, 2, (MODEL,)))
    assert driver.state.completion is None
    offer(driver, MODEL, TITLE)
    assert driver.state.contexts[0] == "completion"
    driver.type("/mo x")
    assert driver.state.completion is None


def test_an_answer_that_comes_when_the_line_was_sent_opens_nothing():
    driver = Driver()
    [asked] = [each for each in driver.type("/add-dir ..") if isinstance(each, Complete)]
    driver.feed(SendDraft())
    driver.feed(CompletionOffered(asked.generation, 9, 11, (CompletionItem("../", "../"),)))
    assert driver.state.completion is None


def test_tab_puts_the_completion_in_and_enter_runs_a_whole_command():
    driver = Driver()
    driver.type("/mo")
    offer(driver, MODEL, TITLE)
    effects = driver.feed(AcceptCompletion())
    assert DraftSet("/model ", 7) in effects
    assert not [each for each in effects if isinstance(each, RunCommand)]
    driver.type("/mo")
    offer(driver, MODEL, TITLE)
    assert RunCommand("/model") in driver.feed(AcceptCompletion(send=True))
    assert driver.state.draft.text == ""


def test_a_command_that_needs_an_argument_is_not_run_until_it_is_typed_out():
    driver = Driver()
    driver.type("/ti")
    offer(driver, TITLE)
    driver.feed(AcceptCompletion(send=True))
    assert driver.state.draft.text == "/title "
    driver.type("/title")
    offer(driver, TITLE)
    assert RunCommand("/title") in driver.feed(AcceptCompletion(send=True))


def test_a_directory_behind_a_command_is_typed_out_without_its_slash():
    driver = Driver()
    driver.type("/title ../docs")
    offer(driver, CompletionItem("../docs/", "../docs/"), start=7, end=14)
    assert RunCommand("/title ../docs/") in driver.feed(AcceptCompletion(send=True))
    driver.type("look into @docs")
    offer(driver, CompletionItem("docs/", "docs/"), start=11, end=15)
    driver.feed(AcceptCompletion(send=True))
    assert driver.state.draft.text == "look into @docs/", "in a prompt Enter goes on with what is in it"


def test_a_folder_that_is_typed_in_full_behind_a_command_wins_over_what_is_in_it():
    inside = (CompletionItem("../docs/a/", "../docs/a/"), CompletionItem("../docs/b/", "../docs/b/"))
    driver = Driver()
    driver.type("/title ../docs/")
    offer(driver, *inside, start=7, end=15)
    assert RunCommand("/title ../docs/") in driver.feed(AcceptCompletion(send=True))
    driver.type("/title ../docs/")
    offer(driver, *inside, start=7, end=15)
    driver.feed(AcceptCompletion())
    assert driver.state.draft.text == "/title ../docs/a/", "Tab goes into it"
    driver.type("/title ../docs/")
    offer(driver, *inside, start=7, end=15)
    driver.feed(MoveCompletion(1))
    driver.feed(AcceptCompletion(send=True))
    assert driver.state.draft.text == "/title ../docs/b/", "what was chosen counts"


REDO = CompletionItem("redo", "redo", runs=True)
DROP = CompletionItem("drop", "drop", runs=True)


@pytest.mark.parametrize("typed", ["drop", "do", "xyz"])
def test_enter_on_a_list_for_an_earlier_draft_runs_what_was_typed(typed):
    driver = Driver()
    driver.type("/compact ")
    offer(driver, REDO, DROP, start=9, end=9)
    driver.type(f"/compact {typed}")
    assert driver.state.completion is not None, "nothing newer was found yet"
    assert driver.feed(AcceptCompletion()) == [], "Tab puts nothing else in"
    assert RunCommand(f"/compact {typed}") in driver.feed(AcceptCompletion(send=True))


def test_enter_on_a_list_that_still_fits_takes_what_is_chosen():
    driver = Driver()
    driver.type("/compact ")
    offer(driver, REDO, DROP, start=9, end=9)
    driver.type("/compact re")
    assert RunCommand("/compact redo") in driver.feed(AcceptCompletion(send=True))


def test_a_path_is_put_in_where_the_cursor_is():
    driver = Driver()
    driver.feed(DraftChanged("look at @sr please", 11))
    offer(driver, CompletionItem("@src/a.py ", "src/a.py"), start=8, end=11)
    driver.feed(AcceptCompletion(send=True))
    assert (driver.state.draft.text, driver.state.draft.cursor) == ("look at @src/a.py please", 17)


def test_accepting_a_directory_looks_into_it():
    driver = Driver()
    driver.type("@s")
    offer(driver, CompletionItem("@src/", "src/"))
    [complete] = [each for each in driver.feed(AcceptCompletion()) if isinstance(each, Complete)]
    assert complete == Complete(driver.state.completion_generation, "@src/", 5)


def test_the_selection_goes_round():
    driver = Driver()
    driver.type("/")
    offer(driver, MODEL, TITLE)
    assert driver.state.completion is not None
    driver.feed(MoveCompletion(-1))
    assert driver.state.completion.selected == 1
    driver.feed(MoveCompletion(1))
    assert driver.state.completion.selected == 0
    driver.feed(AcceptCompletion(index=1))
    assert driver.state.draft.text == "/title "


def test_a_popup_that_was_closed_stays_closed_for_that_word():
    driver = Driver()
    driver.type("@s")
    offer(driver, CompletionItem("@src/", "src/"))
    driver.feed(Escape())
    assert driver.state.completion is None
    assert not [each for each in driver.type("@sr") if isinstance(each, Complete)]
    assert not [each for each in driver.type("@sr and") if isinstance(each, Complete)]
    assert [each for each in driver.type("@sr and @t") if isinstance(each, Complete)]


# --- picker ---


def test_picking_runs_the_command_with_the_value():
    driver = Driver()
    choices = tuple(Choice(f"openai/m{number}", f"m{number}", "fast" if number == 7 else "") for number in range(9))
    driver.feed(Choose("Model", "model", choices), MovePicker(99), MovePicker(-1))
    assert driver.state.picker is not None
    assert driver.state.picker.selected == 7
    driver.feed(FilterChanged("fast"))
    assert (driver.state.picker.shown, driver.state.picker.selected) == ([7], 0)
    driver.feed(FilterChanged("zzz"))
    assert driver.feed(PickChoice(), MovePicker(1)) == []
    driver.feed(FilterChanged(""))
    assert RunCommand("/model openai/m2") in driver.feed(PickChoice(2))
    assert driver.state.picker is None


# --- the rest ---


def test_mode_cycles_and_changes_when_the_core_says_so():
    driver = Driver()
    seen = []
    for _ in range(4):
        [effect] = driver.feed(CycleMode())
        assert isinstance(effect, Submit) and isinstance(effect.operation, ChangeModeOperation)
        seen.append(effect.operation.mode)
        assert driver.feed(ModeChangedEvent(session_id=SESSION, mode=effect.operation.mode)) == [StatusChanged()]
    assert seen == ["edits", "auto", "plan", "ask"]


def test_detail_folds_everything_and_what_comes_after():
    driver = Driver()
    driver.feed(user(1, "a"))
    version = driver.last.version
    assert TranscriptReset() in driver.feed(ToggleDetail())
    assert not driver.last.folded and driver.last.version > version
    driver.feed(user(2, "b"))
    assert not driver.last.folded
    driver.feed(ToggleItem(driver.last.id))
    assert driver.last.folded and not driver.items[0].folded
    assert driver.feed(ToggleItem(999)) == []


def test_a_commands_answer_shows_in_the_transcript():
    driver = Driver()
    driver.feed(Say("12k of 200k tokens\nsystem 3k"))
    assert isinstance(driver.last, NoticeItem) and driver.last.kind == "command"


def test_todo_and_context():
    driver = Driver()
    items = (TodoItem(text="a", status="in_progress"),)
    assert driver.feed(TodoChangedEvent(session_id=SESSION, items=items)) == [PanelChanged()]
    assert driver.state.todo == items
    driver.feed(ToggleTodo())
    assert driver.state.todo_open
    usage = ContextUsageEvent(
        session_id=SESSION, tokens=50, window=200, trigger=180, estimated=True, total=Usage(input=9, cost=0.25)
    )
    assert driver.feed(usage) == [StatusChanged()]
    assert (driver.state.status.share, driver.state.status.cost) == (0.25, 0.25)


def test_what_belongs_to_the_user_outlives_a_change_of_session():
    from tests.tui.machine.driving import opened, queue

    driver = Driver()
    driver.feed(HistoryLoaded(("old",)), ToggleDetail(), queue((1, "q")), user(2, "x"))
    driver.type("my draft")
    driver.feed(opened())
    assert driver.items == [] and driver.state.queue == []
    assert (driver.state.draft.text, driver.state.detail) == ("my draft", "expanded")
    assert driver.state.history.prompts == ["old"]


def test_a_shell_command_runs_beside_the_turn_and_the_next_one_waits_in_the_editor():
    driver = Driver()
    driver.feed(started())
    driver.type("!git status")
    [command] = [each for each in driver.feed(SendDraft()) if isinstance(each, Submit)]
    assert isinstance(command.operation, RunShellOperation) and command.operation.command == "git status"
    assert driver.state.draft.text == ""
    driver.feed(ShellStartedEvent(session_id=SESSION, command="git status"))
    driver.type("!ls")
    effects = driver.feed(SendDraft())
    assert not [each for each in effects if isinstance(each, Submit)] and any(
        isinstance(each, Toast) for each in effects
    )
    assert driver.state.draft.text == "!ls"
    driver.feed(ShellFinishedEvent(session_id=SESSION, entry=ShellEntry(command="git status", exit_code=0)))
    assert [each for each in driver.feed(SendDraft()) if isinstance(each, Submit)]
