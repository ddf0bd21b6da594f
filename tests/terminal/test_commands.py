"""Slash commands, completion and the user's own shell commands."""

from __future__ import annotations

import pytest

from tests.examples import one_of
from tests.server import Reply, Request
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.screen import Screen

pytestmark = pytest.mark.terminal

OTHER_MODEL = "openai-chat/test-small"


def answer(request: Request) -> Reply:
    return Reply(f"You said {said(request)}.")


@pytest.fixture
def screen(place: Workplace) -> Screen:
    place.serve(answer)
    return place.start()


def footer(shown: str) -> str:
    return shown.split("\n")[-1]


def test_help_names_every_command(screen: Screen) -> None:
    screen.submit("/help")
    shown = screen.wait_for("What is sent while something runs is queued.")
    screen.wait_until(lambda _: screen.cursor() == (2, 28), "the cursor in the prompt")
    while "what you can type here" not in shown:  # it is longer than some screens
        before = screen.capture()
        screen.keys("PageUp")
        screen.wait_until(lambda now, before=before: now != before, "the page above")
        shown += screen.capture()
    for name in ("model", "mode", "new", "resume", "fork", "compact", "context", "cost", "title", "reload", "exit"):
        assert f"/{name}" in shown


def test_a_question_mark_shows_the_keys(screen: Screen) -> None:
    screen.type("?")
    screen.wait_for_all("Esc close", "Shift+Tab")
    screen.keys("Escape")
    screen.wait_gone("Esc close")
    screen.submit("what? why?")
    screen.wait_settled("You said what? why?.")


def test_the_model_is_picked_and_the_next_request_goes_to_it(place: Workplace, screen: Screen) -> None:
    screen.submit("/model")
    screen.wait_for_all("type to filter", f"❯ {MODEL} ")  # it opens on the present model
    screen.type(OTHER_MODEL)
    screen.wait_for(f"❯ {OTHER_MODEL} ")
    screen.keys("Enter")
    screen.wait_until(lambda shown: OTHER_MODEL in footer(shown), "the other model in the footer")
    screen.submit("hello")
    screen.wait_settled("You said hello.")
    assert place.server is not None
    assert place.server.requests[-1].body["model"] == "test-small"


def test_the_filter_of_a_picker_finds_rows_and_esc_changes_nothing(screen: Screen) -> None:
    screen.submit("/model")
    screen.wait_for("type to filter")
    screen.type("chat small")
    screen.wait_until(lambda shown: f"❯ {OTHER_MODEL}" in shown and "anthropic/" not in shown, "the filtered rows")
    screen.keys("Escape")
    shown = screen.wait_gone("Esc close")
    assert MODEL in footer(shown)
    assert OTHER_MODEL not in footer(shown)


def test_the_mode_is_changed_by_command_by_picker_and_by_key(screen: Screen) -> None:
    screen.submit("/mode plan")
    screen.wait_until(lambda shown: footer(shown).startswith("plan ·"), "plan")
    screen.submit("/mode")
    screen.wait_for_all("type to filter", "❯ plan")
    screen.keys("Up")
    screen.wait_for("❯ auto")
    screen.keys("Enter")
    screen.wait_until(lambda shown: footer(shown).startswith("auto ·"), "auto")
    screen.keys("BTab")
    screen.wait_until(lambda shown: footer(shown).startswith("plan ·"), "plan again")


def test_new_and_resume_keep_both_sessions_and_the_model_of_each(screen: Screen) -> None:
    screen.submit("the first session")
    screen.wait_settled("You said the first session.")
    screen.submit(f"/model {OTHER_MODEL}")
    screen.wait_until(lambda shown: OTHER_MODEL in footer(shown), "the other model")
    screen.submit("/title Number one")
    screen.wait_until(lambda _: "Number one" in screen.tmux("display-message", "-p", "#{pane_title}"), "the title")
    screen.submit("/new")
    screen.wait_gone("the first session")
    screen.wait_until(lambda shown: OTHER_MODEL in footer(shown), "a new session goes on with the model in use")
    screen.submit("the second session")
    screen.wait_settled("You said the second session.")
    screen.submit(f"/model {MODEL}")
    screen.wait_until(lambda shown: OTHER_MODEL not in footer(shown), "the first model")
    screen.submit("/resume")
    screen.wait_for("❯ Number one")
    screen.keys("Enter")
    shown = screen.wait_settled("You said the first session.")
    assert "second" not in shown
    screen.wait_until(lambda shown: OTHER_MODEL in footer(shown), "the session's own model")
    screen.submit("and on")
    screen.wait_settled("You said and on.")


def test_cost_and_context_show_numbers(screen: Screen) -> None:
    screen.submit("hello")
    screen.wait_settled("You said hello.")
    screen.submit("/cost")
    screen.wait_for("cache read")
    screen.submit("/context")
    screen.wait_for_all("compacts over", "system prompt", "200,000")


def test_exit_leaves(screen: Screen) -> None:
    screen.submit("/exit")
    code, left = screen.wait_exit()
    assert code == 0
    assert "tenuto --resume" not in left, "nothing was said: there is nothing to come back to"


def test_an_unknown_command_is_answered_and_not_sent(place: Workplace, screen: Screen) -> None:
    screen.submit("/modle x")
    screen.wait_for("did you mean /mode")
    assert place.server is not None
    assert not place.server.requests


def test_a_slash_offers_commands_and_what_is_typed_out_is_what_runs(screen: Screen) -> None:
    screen.type("/")
    screen.wait_until(lambda shown: "❯ /help" in shown and "/approvals" in shown, "the commands")
    screen.type("tit")
    screen.wait_until(lambda shown: "❯ /title" in shown and "/help" not in shown, "what matches")
    screen.keys("Tab")
    screen.wait_until(
        lambda shown: "❯ /title TEXT\n" in shown and screen.cursor()[0] == 2 + len("/title "), "the command"
    )
    screen.keys("C-u")
    screen.type("/mode")
    screen.keys("Enter")
    screen.wait_for("only look and plan")


def test_an_at_sign_offers_files(place: Workplace, screen: Screen) -> None:
    screen.type("look at @pri")
    screen.wait_for("❯ shop/price.py")
    screen.keys("Enter")
    screen.wait_for("❯ look at @shop/price.py")
    screen.type("now")
    screen.wait_for("@shop/price.py now")
    screen.keys("Enter")
    screen.wait_settled("You said look at @shop/price.py now")
    assert place.server is not None
    assert said(place.server.requests[-1]) == "look at @shop/price.py now"


def test_the_model_sees_a_shell_command_with_one_mark_and_not_with_two(place: Workplace, screen: Screen) -> None:
    screen.submit("!echo se''en")
    screen.wait_for("    seen")
    screen.submit("!!echo hid''den")
    screen.wait_until(lambda shown: "    hidden" in shown and "not shown to the model" in shown, "the hidden one")
    screen.submit("and now?")
    screen.wait_settled("You said")
    assert place.server is not None
    sent = place.server.requests[-1].raw.decode()
    assert "seen" in sent
    assert "hidden" not in sent
    assert "hid''den" not in sent


def test_a_shell_command_is_ended_by_esc(screen: Screen) -> None:
    screen.submit("!echo begun; sleep 600")
    screen.wait_for("    begun")
    screen.keys("Escape")
    screen.wait_settled("begun")
    screen.submit("hello")
    screen.wait_until(lambda shown: "You said" in shown, "an answer")


@pytest.mark.parametrize("arguments", one_of([(), ("--inline",)]), ids=["full", "inline"])
def test_a_recall_that_takes_long_says_so_and_ends_by_escape(place, arguments):
    """A regular expression that would take years, as a long session takes seconds."""
    place.serve(lambda request: Reply("a" * 60 + "!"))
    screen = place.start(*arguments)

    def send(text: str) -> None:
        screen.type(text)
        screen.wait_for(f"❯ {text}")
        screen.keys("Enter")

    send("hello")
    screen.wait_settled("aaaa!")
    send("/recall /(a+)+$/")
    screen.wait_for_all("/recall is at work · Searching, entries: ", "· Esc stop")
    screen.keys("Escape")
    screen.wait_for("/recall was stopped")
    screen.wait_gone("is at work")
    send("/recall hello")
    screen.wait_for("1 match")
