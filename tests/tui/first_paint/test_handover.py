"""Keys typed from the first millisecond on, into the real program in a real terminal: none is lost or out of order."""

from __future__ import annotations

import random
import time
from pathlib import Path

import msgspec
import pytest

from tests.tui.first_paint.model import LETTERS, Prompt, encode, random_tokens
from tests.tui.first_paint.pseudo import PATIENCE, TENUTO, Pseudo

pytestmark = pytest.mark.terminal
MARK = "▮"
"""Typed last: it shows where the cursor was."""
OPEN_EDITOR = b"\x07"


def pieces_of(tokens: list[str], source: random.Random) -> list[bytes]:
    """Return what is written at a time: some sequences and characters come in two pieces."""
    pieces: list[bytes] = []
    for token in tokens:
        data = encode(token)
        cut = source.randrange(1, len(data)) if len(data) > 1 and source.random() < 0.25 else len(data)
        # A terminal never parts an ESC, or ESC O, from its sequence for long enough to be taken for a key.
        cut = max(cut, 2) if data[0] == 0x1B else cut
        cut = len(data) if data.startswith(b"\x1bO") else cut
        pieces += [data[:cut], data[cut:]]
    return [piece for piece in pieces if piece]


def queued_texts(home: Path) -> list[str]:
    logs = list(home.glob("sessions/*/*/events.jsonl"))
    lines = [line for log in logs for line in log.read_bytes().split(b"\n")[:-1]]  # the last may be half written
    entries = [msgspec.json.decode(line) for line in lines]
    return [entry["parts"][0]["text"] for entry in entries if entry["type"] == "queued"]


SCREENS = {"full": TENUTO, "inline": (*TENUTO, "--inline")}
PAINTED = "❯ ".encode()


def run_and_compare(folder: Path, tokens: list[str], source: random.Random, screen: str) -> None:
    # Until the terminal is raw the kernel edits the line, byte by byte: only what it leaves alone is typed then.
    prelude = [f"type:{source.choice(LETTERS.strip())}" for _ in range(source.randint(0, 3))]
    prelude += ["enter"] * (source.random() < 0.3)
    model = Prompt(home_skips=screen == "full")
    for token in (*prelude, *tokens):
        model.press(token)
    drafted = folder / "drafted"
    script = folder / "editor.sh"
    script.write_text(f'cp "$1" {drafted}.part && mv {drafted}.part {drafted}\n')
    with Pseudo(folder, SCREENS[screen], EDITOR=f"sh {script}") as program:
        for token in prelude:
            program.type(encode(token))
            program.read(source.uniform(0, 0.01))
        program.read_until(PAINTED)
        for piece in pieces_of(tokens, source):
            program.type(piece)
            program.read(source.uniform(0, 0.04))
        program.type(MARK.encode() + OPEN_EDITOR)
        program.read_until(drafted)
        deadline = time.monotonic() + PATIENCE
        while len(queued_texts(program.home)) < len(model.sent) and time.monotonic() < deadline:
            program.read(0.05)
        text = drafted.read_text()
        sent = queued_texts(program.home)
    assert sent == model.sent
    assert text == model.text[: model.cursor] + MARK + model.text[model.cursor :]


@pytest.mark.parametrize("seed", [*range(14), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(14, 50))])
def test_any_keys_give_the_text_the_cursor_and_the_prompts_of_the_model(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    screen = "inline" if seed % 2 else "full"
    run_and_compare(tmp_path, random_tokens(source), source, screen)


@pytest.mark.full
@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize("seed", range(100, 300))
def test_two_hundred_more(tmp_path: Path, seed: int, screen: str) -> None:
    source = random.Random(seed)
    run_and_compare(tmp_path, random_tokens(source), source, screen)


@pytest.mark.parametrize("screen", SCREENS)
def test_a_prompt_of_the_command_line_comes_before_what_was_sent_early(tmp_path: Path, screen: str) -> None:
    with Pseudo(tmp_path, (*SCREENS[screen], "from the command line")) as program:
        program.read_until(PAINTED)
        program.type(b"typed early\r")
        deadline = time.monotonic() + PATIENCE
        while len(queued_texts(program.home)) < 2 and time.monotonic() < deadline:
            program.read(0.05)
        assert queued_texts(program.home) == ["from the command line", "typed early"]


def test_an_earlier_session_is_continued_with_the_keys_typed_early(tmp_path: Path) -> None:
    with Pseudo(tmp_path) as program:
        program.type(b"first\r")
        deadline = time.monotonic() + PATIENCE
        while not queued_texts(program.home) and time.monotonic() < deadline:
            program.read(0.05)
        assert program.leave() == 0
    with Pseudo(tmp_path, (*TENUTO, "--continue")) as program:
        program.type(b"second\r")
        while len(queued_texts(program.home)) < 2 and time.monotonic() < deadline + PATIENCE:
            program.read(0.05)
        assert queued_texts(program.home) == ["first", "second"]
        assert len(list(program.home.glob("sessions/*/*/events.jsonl"))) == 1


@pytest.mark.parametrize("screen", SCREENS)
def test_a_long_paste_that_begins_early_is_folded_and_sent_whole(tmp_path: Path, screen: str) -> None:
    pasted = "\n".join(f"line {number} é" for number in range(3_000))
    with Pseudo(tmp_path, SCREENS[screen]) as program:
        program.read_until(PAINTED)
        program.type(b"see ")
        data = b"\x1b[200~" + pasted.replace("\n", "\r").encode() + b"\x1b[201~"
        for begin in range(0, len(data), 1_000):
            program.type(data[begin : begin + 1_000])
            program.read(0.002)
        program.read_until(b"+3000 lines")
        program.type(b"\r")
        deadline = time.monotonic() + PATIENCE
        while not queued_texts(program.home) and time.monotonic() < deadline:
            program.read(0.05)
        assert queued_texts(program.home) == [f"see {pasted}"]
