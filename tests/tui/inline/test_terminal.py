"""The real program with `--inline` in a real terminal; tmux wraps rows again at another width, as most of them do."""

from __future__ import annotations

import os
import re
import signal

import pytest

from tests.server import Call, Reply, Request
from tests.terminal.conftest import MODEL, Workplace, said
from tests.terminal.screen import Screen
from tests.terminal.test_leaving import state_of

pytestmark = pytest.mark.terminal
FAULT = """
from tenuto.tui import chrome

footer_line = chrome.footer_line


def footer_or_fail(state, width, *rest):
    if state.draft.text == "break the screen":
        raise RuntimeError("a fault in painting")
    return footer_line(state, width, *rest)


chrome.footer_line = footer_or_fail
"""
SLOW = " ".join(f"word{number}" for number in range(60))


def submit(screen: Screen, text: str) -> None:
    screen.type(text)
    screen.wait_for(text[-20:])
    screen.keys("Enter")


def script(request: Request) -> Reply:
    text = said(request)
    if text == "slow":
        return Reply(SLOW, delay_per_event=0.05, chunk_size=8)
    if text == "list" and not any(item.kind == "result" for item in request.items):
        return Reply("I look.", tool_calls=[Call("bash", {"command": "touch made-by-the-model"})])
    return Reply(f"An **answer** to {text}.")


def begin(place: Workplace, *arguments: str, **environ: str) -> tuple[Screen, tuple[str, str]]:
    place.serve(script)
    screen = place.open(**environ)
    before = state_of(screen)
    screen.start("--inline", "--model", MODEL, *arguments)
    screen.wait_for(MODEL)
    submit(screen, "hello")
    screen.wait_settled("An answer to hello.")
    return screen, before


def test_smoke_every_block_once_on_the_normal_screen(place: Workplace) -> None:
    place.serve(script)
    screen = place.open()
    screen.type(f"echo before''hand; tenuto --inline --model {MODEL}")
    screen.keys("Enter")
    screen.wait_for("? keys")
    assert screen.tmux("display-message", "-p", "-t", "main", "#{alternate_on}").strip() == "0"
    for number in range(12):
        submit(screen, f"question {number}")
        screen.wait_settled(f"An answer to question {number}.")
    whole = screen.whole()
    for number in range(12):
        assert whole.count(f"An answer to question {number}.") == 1
        assert whole.count(f"▌ question {number}\n") == 1
    assert whole.count("❯") == 1
    assert "beforehand\n" in whole  # what the terminal had before is still there


def test_r043_a_text_typed_while_an_answer_streams_is_queued(place: Workplace) -> None:
    screen, _ = begin(place)
    submit(screen, "slow")
    screen.wait_for("word3")
    submit(screen, "second")
    screen.wait_for("1 queued")
    screen.wait_settled("An answer to second.")
    whole = screen.whole()
    assert whole.count("word59") == 1
    assert whole.count("▌ second") == 1
    assert "queued" not in screen.capture()


def test_esc_interrupts(place: Workplace) -> None:
    screen, _ = begin(place)
    submit(screen, "slow")
    screen.wait_for("word3")
    screen.keys("Escape")
    screen.wait_settled("interrupted")
    assert "word59" not in screen.whole()


def test_an_approval_and_what_the_answer_does(place: Workplace) -> None:
    screen, _ = begin(place)
    submit(screen, "list")
    screen.wait_for("touch made-by-the-model")
    screen.answer("Allow?", "1")
    screen.wait_settled("An answer to list.")
    assert (place.work / "made-by-the-model").exists()
    assert screen.whole().count("Bash touch made-by-the-model") == 1


def test_another_width_leaves_one_prompt_and_each_block_once(place: Workplace) -> None:
    screen, _ = begin(place)
    screen.type("a draft")
    screen.wait_for("❯ a draft")
    for columns in (60, 45, 120, 80):
        screen.resize(columns, 30)
        screen.wait_until(lambda shown: "❯ a draft" in shown and MODEL[:6] in shown.rstrip().split("\n")[-1], "bottom")
        screen.wait_until(lambda _: screen.whole().count("An answer to hello.") == 1, "the answer, once")
    screen.keys("Enter")
    screen.wait_settled("An answer to a draft.")
    whole = screen.whole()
    assert whole.count("An answer to hello.") == 1
    assert whole.count("❯") == 1
    assert whole.count("▌ a draft") == 1


def test_r080_ctrl_c_twice_leaves_what_was_printed_and_the_way_back(place: Workplace) -> None:
    screen, before = begin(place)
    screen.keys("C-c")
    screen.wait_for("Press Ctrl+C again to quit")
    screen.keys("C-c")
    code, left = screen.wait_exit()
    assert code == 0
    assert "An answer to hello." in left
    assert "❯" not in left
    assert state_of(screen) == before
    hint = re.search(r"tenuto --resume (\S+)", left)
    assert hint is not None, left
    screen.start("--inline", "--resume", hint[1])
    screen.wait_settled("▌ hello", "An answer to hello.")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_r080_a_signal_leaves_the_terminal_as_it_was(place: Workplace, number: signal.Signals) -> None:
    screen, before = begin(place)
    screen.type("not sent yet")
    screen.wait_for("❯ not sent yet")
    os.kill(screen.program_pid(), number)
    code, left = screen.wait_exit()
    assert code == 128 + number
    assert "tenuto --resume" in left
    assert state_of(screen) == before
    history = "".join(file.read_text() for file in (place.home / "history").iterdir())
    assert "not sent yet" in history


def test_r080_a_fault_of_ours_leaves_the_terminal_as_it_was(place: Workplace) -> None:
    folder = place.folder / "fault"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(FAULT)
    screen, before = begin(place, PYTHONPATH=str(folder))
    screen.type("break the screen")
    code, left = screen.wait_exit()
    assert code == 1
    assert "a fault in painting" in left
    assert "Traceback" not in left
    assert "Traceback" in (place.home / "stderr.log").read_text()
    assert state_of(screen) == before


def test_suspend_and_the_users_editor(place: Workplace) -> None:
    editor = place.folder / "editor"
    editor.write_text('#!/bin/sh\nprintf " from the editor" >> "$1"\n')
    editor.chmod(0o755)
    screen, _ = begin(place, EDITOR=str(editor))
    screen.type("words")
    screen.wait_for("❯ words")
    screen.keys("C-g")
    screen.wait_for("from the editor")
    screen.keys("C-z")
    screen.wait_for("Stopped")
    screen.type("fg")
    screen.keys("Enter")
    screen.wait_for("❯ words")
    screen.keys("Enter")
    screen.wait_settled("An answer to words")


@pytest.mark.parametrize("own", [True, False])
def test_the_setting_and_what_was_typed_before_it_was_known(place: Workplace, own: bool) -> None:
    file = place.home / "settings.toml" if own else place.work / ".tenuto" / "settings.toml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("[ui]\ninline = true\n")
    place.serve(script)
    screen = place.open()
    screen.start("--model", MODEL, ready=False)
    screen.type("typed early")
    screen.wait_for("❯ typed early")
    screen.wait_for(MODEL)
    screen.keys("Enter")
    screen.wait_settled("An answer to typed early.")
    assert screen.tmux("display-message", "-p", "-t", "main", "#{alternate_on}").strip() == "0"


def test_screen_readers_get_lines_without_drawing(place: Workplace) -> None:
    place.serve(script)
    screen = place.open()
    screen.type(f"clear; tenuto --screen-reader --model {MODEL}; echo exit''code=$?")
    screen.keys("Enter")
    screen.wait_until(lambda shown: ">" in shown.split("\n"), "the prompt")
    screen.type("list")
    screen.keys("Enter")
    screen.wait_for("Answer with a number")
    screen.answer("1. Yes, once", "1")
    screen.keys("Enter")
    shown = screen.wait_for("An answer to list.")
    assert (place.work / "made-by-the-model").exists()
    assert shown.replace("shell> ", "").isascii(), shown
    screen.type("/exit")
    screen.keys("Enter")
    code, left = screen.wait_exit()
    assert code == 0 and "tenuto --resume" in left
