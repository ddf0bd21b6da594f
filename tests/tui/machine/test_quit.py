from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tenuto.command.outcome import Choice, Choose
from tenuto.protocol.operation import InterruptOperation
from tenuto.tui.machine.quit import ESCAPE_AGAIN, INTERRUPT_PATIENCE, QUIT_AGAIN
from tenuto.tui.state.effects import DraftSet, Quit, Remember, RunCommand, Submit, TranscriptReset
from tenuto.tui.state.intents import (
    Cancel,
    CompletionItem,
    CompletionOffered,
    EndOfInput,
    Escape,
    Leave,
    LeaveAsked,
    SendDraft,
    Tick,
    ToggleHelp,
)
from tests.tui.machine.driving import Driver, approval, finished, started, user


def interrupts(effects) -> int:
    return sum(isinstance(each, Submit) and isinstance(each.operation, InterruptOperation) for each in effects)


def test_esc_closes_one_context_at_a_time_and_only_then_interrupts():
    driver = Driver()
    driver.feed(started())
    driver.type("!/mo")
    driver.type("/mo")
    driver.feed(
        CompletionOffered(driver.state.completion_generation, 0, 3, (CompletionItem("/model ", "/model"),)),
        ToggleHelp(),
        Choose("Model", "model", (Choice("a", "a"),)),
        approval(),
    )
    driver.after(5).feed(Tick())
    seen = []
    for _ in range(5):
        seen.append(driver.state.contexts[0])
        effects = driver.after(2).feed(Escape())
    assert seen == ["approval", "picker", "help", "completion", "prompt"]
    assert interrupts(effects) == 1
    assert driver.state.draft.text == "/mo"


def test_esc_leaves_shell_mode_and_keeps_the_text():
    driver = Driver()
    driver.feed(started())
    driver.type("!ls")
    assert interrupts(driver.feed(Escape())) == 0
    assert driver.state.draft.text == "ls"
    assert interrupts(driver.feed(Escape())) == 1


def test_a_task_is_asked_to_stop_once():
    driver = Driver()
    driver.feed(started())
    assert interrupts(driver.feed(Escape(), Escape(), Escape())) == 1
    assert driver.state.spinner.label == "Interrupting"
    assert interrupts(driver.after(INTERRUPT_PATIENCE).feed(Escape())) == 1
    driver.feed(finished(outcome="interrupted"), started())
    assert interrupts(driver.feed(Escape())) == 1


def test_interrupt_can_be_set_to_need_two_presses():
    driver = Driver()
    driver.state.interrupt_presses = 2
    driver.feed(started())
    assert interrupts(driver.feed(Escape())) == 0
    assert driver.state.hint is not None
    assert interrupts(driver.after(ESCAPE_AGAIN + 0.1).feed(Escape())) == 0
    assert interrupts(driver.after(0.2).feed(Escape())) == 1


def test_esc_twice_puts_the_draft_aside_and_brings_it_back():
    driver = Driver()
    driver.type("a long thought")
    assert DraftSet("", 0) not in driver.feed(Escape())
    assert driver.state.draft.text == "a long thought"
    effects = driver.after(0.3).feed(Escape())
    assert DraftSet("", 0) in effects and Remember("a long thought") in effects
    driver.after(5).feed(Escape())
    assert DraftSet("a long thought", 14) in driver.after(0.3).feed(Escape())
    assert driver.state.hint is None, "nothing is left to be said about it"


def test_esc_twice_on_an_empty_prompt_goes_back_to_a_message():
    driver = Driver()
    driver.feed(user(3, "one"))
    assert RunCommand("/rewind") not in driver.feed(Escape())
    assert driver.state.hint is not None and "earlier message" in driver.state.hint.text
    assert RunCommand("/rewind") in driver.after(0.3).feed(Escape())
    assert RunCommand("/rewind") not in driver.after(0.3).feed(Escape()), "a third one is a first one"
    driver.after(5).type("a draft")
    driver.feed(Escape())
    assert RunCommand("/rewind") not in driver.after(0.3).feed(Escape())
    driver.after(5).feed(Escape())
    assert DraftSet("a draft", 7) in driver.after(0.3).feed(Escape()), "what was put aside comes back first"


def test_esc_with_nothing_to_do_does_nothing():
    driver = Driver()
    assert driver.feed(Escape(), Escape()) == []


def test_what_runs_in_the_background_is_named_before_it_ends():
    driver = Driver()
    driver.state.status.jobs = 2
    assert Quit() not in driver.feed(LeaveAsked("/exit"))
    assert driver.state.hint is not None and driver.state.hint.text == "/exit again to leave: 2 background jobs end"
    assert Quit() in driver.after(5).feed(LeaveAsked("/exit"))
    driver.feed(started(), EndOfInput())
    assert driver.state.hint.text.endswith("to quit: the turn is interrupted, 2 background jobs end")


def test_typing_between_two_presses_makes_the_second_a_first_one():
    driver = Driver()
    driver.feed(Cancel())
    assert driver.state.hint is not None
    driver.after(0.5).type("x")
    assert driver.state.hint is None
    driver.feed(Cancel())
    assert Quit() not in driver.after(0.5).feed(Cancel()), "a draft was cleared in between"
    assert Quit() in driver.after(0.5).feed(Cancel())
    driver.after(5).feed(EndOfInput())
    driver.type("y")
    driver.type("")
    assert Quit() not in driver.after(0.5).feed(EndOfInput())
    driver.after(5).type("text")
    driver.feed(Escape())
    driver.after(0.2).type("text!")
    driver.feed(Escape())
    assert driver.state.draft.text == "text!"


def test_two_slow_escapes_are_not_a_double_one():
    driver = Driver()
    driver.type("text")
    driver.feed(Escape())
    driver.after(ESCAPE_AGAIN + 0.1).feed(Escape())
    assert driver.state.draft.text == "text"


def test_the_press_that_interrupted_does_not_count_towards_a_stash():
    driver = Driver()
    driver.feed(started())
    driver.type("next thing")
    driver.feed(Escape(), finished(outcome="interrupted"))
    driver.after(0.2).feed(Escape())
    assert driver.state.draft.text == "next thing"


def test_ctrl_c_ladder():
    driver = Driver()
    driver.feed(started())
    driver.type("draft")
    effects = driver.feed(Cancel())
    assert Remember("draft") in effects and DraftSet("", 0) in effects and interrupts(effects) == 0
    assert interrupts(driver.feed(Cancel())) == 1
    driver.feed(finished(outcome="interrupted"))
    assert Quit() not in driver.after(1).feed(Cancel())
    assert driver.state.hint is not None and "Ctrl+C" in driver.state.hint.text
    assert Quit() in driver.after(1).feed(Cancel())


def test_the_hint_goes_away_and_so_does_the_first_press():
    driver = Driver()
    driver.feed(Cancel())
    assert driver.state.animating
    driver.after(QUIT_AGAIN + 0.1).feed(Tick())
    assert driver.state.hint is None and not driver.state.animating
    assert Quit() not in driver.feed(Cancel())


def test_a_task_that_does_not_stop_can_be_left():
    driver = Driver()
    driver.feed(started(), Cancel())
    assert Quit() not in driver.after(0.2).feed(Cancel())
    assert Quit() in driver.after(0.2).feed(Cancel())


def test_ctrl_c_closes_a_list_first():
    driver = Driver()
    driver.feed(started(), Choose("Model", "model", (Choice("a", "a"),)))
    assert interrupts(driver.feed(Cancel())) == 0
    assert driver.state.picker is None


def test_ctrl_d_quits_when_pressed_twice_on_an_empty_draft():
    driver = Driver()
    driver.type("x")
    assert driver.feed(EndOfInput(), EndOfInput()) == []
    driver.type("")
    assert Quit() not in driver.feed(EndOfInput())
    assert Quit() not in driver.after(QUIT_AGAIN + 0.1).feed(EndOfInput())
    assert Quit() in driver.after(0.1).feed(EndOfInput())


def test_leaving_keeps_every_text():
    driver = Driver()
    driver.type("first")
    driver.feed(Escape(), Escape())
    driver.type("second")
    effects = driver.feed(Leave())
    assert effects[-1] == Quit()
    assert Remember("second") in effects
    assert driver.state.history.prompts == ["first", "second"]


@given(st.lists(st.sampled_from(["c", "esc", "d", "type", "wait", "send", "start", "finish"]), max_size=25))
def test_no_key_sequence_loses_a_text_or_quits_at_once(presses):
    """Every text that was in the editor is there, stashed, in the history or sent; no single key quits."""
    driver = Driver()
    typed: list[str] = []
    quit_keys = 0
    for press in presses:
        match press:
            case "type":
                typed.append(f"text {len(typed)}")
                driver.type(f"{driver.state.draft.text}{typed[-1]}")
            case "wait":
                driver.after(3).feed(Tick())
            case "start":
                driver.feed(started())
            case "finish":
                driver.feed(finished())
            case _:
                intent = {"c": Cancel(), "esc": Escape(), "d": EndOfInput(), "send": SendDraft()}[press]
                effects = driver.after(0.3).feed(intent)
                if Quit() in effects:
                    assert quit_keys
                    return
                quit_keys = quit_keys + 1 if press in "cd" else quit_keys
        kept = [driver.state.draft.text, driver.state.ladder.stash, *driver.state.history.prompts]
        assert all(any(text in place for place in kept) for text in typed)
        assert TranscriptReset() not in driver.effects


def test_a_hint_on_what_runs_goes_when_that_ends():
    driver = Driver()
    driver.feed(started(), LeaveAsked("/exit"))
    assert driver.state.hint is not None
    assert "/exit again" in driver.state.hint.text
    driver.feed(finished())
    assert driver.state.hint is None
    driver.feed(started(), EndOfInput())
    assert "the turn is interrupted" in (driver.state.hint.text if driver.state.hint else "")
    driver.feed(finished())
    assert driver.state.hint is None


def test_the_first_of_two_presses_to_interrupt_counts_for_nothing_else():
    driver = Driver()
    driver.state.interrupt_presses = 2
    driver.feed(started())
    driver.type("half a thought")
    driver.feed(Escape(), finished())
    assert driver.state.hint is None
    driver.feed(Escape())
    assert driver.state.draft.text == "half a thought"
