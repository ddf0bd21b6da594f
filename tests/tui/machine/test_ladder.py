"""The ladders of Esc, Ctrl+C and Ctrl+D: every rung, and that nothing is lost on any of them.

One row a rung: what is there, which keys are pressed (a number is seconds that pass), what happened.
"""

from __future__ import annotations

import pytest

from tenuto.command.outcome import Choice, Choose
from tenuto.protocol.operation import AnswerApprovalOperation, InterruptOperation
from tenuto.tui.keys.key_file import apply_text
from tenuto.tui.keys.keys import KEYS
from tenuto.tui.state.effects import Effect, Quit, RunCommand, Submit
from tenuto.tui.state.intents import (
    Cancel,
    CompletionItem,
    CompletionOffered,
    EndOfInput,
    Escape,
    FocusQueue,
    KeysLoaded,
    Leave,
    LeaveAsked,
    OpenSearch,
    ToggleHelp,
)
from tests.tui.machine.driving import Driver, approval, queue, started, user

ESC, CTRL_C, CTRL_D = Escape(), Cancel(), EndOfInput()


def draft(text: str):
    return lambda driver: driver.type(text)


def running(kind: str = "agent"):
    return lambda driver: driver.feed(started(kind))


def popup(driver: Driver) -> None:
    driver.type("/mo")
    generation = driver.state.completion_generation
    driver.feed(CompletionOffered(generation, 0, 3, (CompletionItem("/model ", "/model"),)))


def fed(*inputs):
    return lambda driver: driver.feed(*inputs)


def asked(driver: Driver) -> None:
    driver.feed(approval())
    driver.after(2)


def done(effects: list[Effect]) -> list[str]:
    """Return what happened, beside what only shows."""
    words: list[str] = []
    for effect in effects:
        match effect:
            case Submit(operation=InterruptOperation()):
                words.append("interrupt")
            case Submit(operation=AnswerApprovalOperation(decision=decision)):
                words.append(decision)
            case RunCommand(line=line):
                words.append(line)
            case Quit():
                words.append("quit")
            case _:
                pass
    return words


LADDER = [
    # what is there, keys, what happened, the draft afterwards, the top context afterwards
    ([running(), popup], [ESC], [], "/mo", "prompt"),
    ([running(), popup], [ESC, 1, ESC], ["interrupt"], "/mo", "prompt"),
    ([running(), fed(ToggleHelp())], [ESC], [], "", "empty"),
    ([running(), fed(OpenSearch())], [ESC], [], "", "empty"),
    ([running(), fed(Choose("Model", "model", (Choice("a", "a"),)))], [ESC], [], "", "empty"),
    ([running(), fed(queue((3, "a")), FocusQueue())], [ESC], [], "", "empty"),
    ([running(), draft("!ls")], [ESC], [], "ls", "prompt"),
    ([running(), asked], [ESC], ["deny"], "", "empty"),
    ([running()], [ESC], ["interrupt"], "", "empty"),
    ([running(), draft("next")], [ESC], ["interrupt"], "next", "prompt"),
    ([running()], [ESC, ESC, ESC], ["interrupt"], "", "empty"),
    ([draft("text")], [ESC], [], "text", "prompt"),
    ([draft("text")], [ESC, 0.3, ESC], [], "", "empty"),
    ([draft("text")], [ESC, 2, ESC], [], "text", "prompt"),
    ([draft("text")], [ESC, 0.3, ESC, 2, ESC, 0.3, ESC], [], "text", "prompt"),
    ([fed(user(3, "one"))], [ESC], [], "", "empty"),
    ([fed(user(3, "one"))], [ESC, 0.3, ESC], ["/rewind"], "", "empty"),
    ([], [ESC, 0.3, ESC], [], "", "empty"),
    ([running(), popup], [CTRL_C], [], "", "empty"),
    ([running(), draft("next")], [CTRL_C], [], "", "empty"),
    ([running(), draft("next")], [CTRL_C, 0.3, CTRL_C], ["interrupt"], "", "empty"),
    ([running()], [CTRL_C], ["interrupt"], "", "empty"),
    ([running("shell")], [CTRL_C], ["interrupt"], "", "empty"),
    ([running("compaction")], [CTRL_C], ["interrupt"], "", "empty"),
    ([running()], [CTRL_C, 0.3, CTRL_C], ["interrupt"], "", "empty"),
    ([running()], [CTRL_C, 0.3, CTRL_C, 0.3, CTRL_C], ["interrupt", "quit"], "", "empty"),
    ([running(), asked], [CTRL_C], ["interrupt"], "", "approval"),
    ([running(), fed(ToggleHelp())], [CTRL_C], [], "", "empty"),
    ([running(), fed(queue((3, "a")), FocusQueue())], [CTRL_C], [], "", "empty"),
    ([], [CTRL_C], [], "", "empty"),
    ([], [CTRL_C, 1, CTRL_C], ["quit"], "", "empty"),
    ([], [CTRL_C, 3, CTRL_C], [], "", "empty"),
    ([draft("text")], [CTRL_C, 0.3, CTRL_C], [], "", "empty"),
    ([draft("text")], [CTRL_C, 0.3, CTRL_C, 0.3, CTRL_C], ["quit"], "", "empty"),
    ([], [CTRL_D], [], "", "empty"),
    ([], [CTRL_D, 1, CTRL_D], ["quit"], "", "empty"),
    ([], [CTRL_D, 3, CTRL_D], [], "", "empty"),
    ([], [CTRL_C, 0.3, CTRL_D], [], "", "empty"),
    ([draft("text")], [CTRL_D, 0.3, CTRL_D], [], "text", "prompt"),
    ([running()], [CTRL_D], [], "", "empty"),
    ([running()], [LeaveAsked("/exit")], [], "", "empty"),
    ([running()], [LeaveAsked("/exit"), 5, LeaveAsked("/exit")], ["quit"], "", "empty"),
    ([running()], [LeaveAsked("/exit"), 30, LeaveAsked("/exit")], [], "", "empty"),
    ([], [LeaveAsked("/exit")], ["quit"], "", "empty"),
    ([running()], [Leave()], ["quit"], "", "empty"),
]


@pytest.mark.parametrize(("there", "keys", "happened", "text", "context"), LADDER)
def test_each_rung(there, keys, happened, text, context):
    driver = Driver()
    for make in there:
        make(driver)
    before = driver.state.draft.text
    driver.effects.clear()
    for key in keys:
        if isinstance(key, int | float):
            driver.after(key)
        else:
            driver.feed(key)
    state = driver.state
    assert done(driver.effects) == happened
    assert (state.draft.text, state.contexts[0]) == (text, context)
    if not text and before:
        assert before in state.history.prompts, "what was typed is one Up away"


@pytest.mark.parametrize(
    ("kind", "words"), [("agent", "the turn"), ("shell", "the command"), ("compaction", "the compaction")]
)
def test_who_quits_while_something_runs_is_told_what_stops(kind, words):
    driver = Driver()
    driver.feed(started(kind), EndOfInput())
    assert driver.state.hint is not None
    assert driver.state.hint.text == f"Press Ctrl+D again to quit: {words} is interrupted"
    driver.feed(LeaveAsked("/exit"))
    assert driver.state.hint.text == f"/exit again to leave: {words} is interrupted"


def test_two_presses_can_be_asked_for():
    driver = Driver()
    driver.state.interrupt_presses = 2
    driver.feed(started(), Escape())
    assert done(driver.effects) == [] and driver.state.hint is not None
    driver.after(0.5).feed(Escape())
    assert done(driver.effects) == ["interrupt"]


def test_hints_name_the_users_keys():
    driver = Driver()
    driver.feed(KeysLoaded(apply_text('"escape" = "ctrl+g"\n"cancel" = "ctrl+q"\n"editor" = "f4"\n', KEYS).bindings))
    driver.feed(Cancel())
    assert driver.state.hint is not None and driver.state.hint.text == "Press Ctrl+Q again to quit"
    driver.type("text")
    driver.feed(Escape())
    assert driver.state.hint.text == "Ctrl+G again to stash the draft"
