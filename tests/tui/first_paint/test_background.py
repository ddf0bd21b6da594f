"""The program asks a terminal for its background: whatever that answers, and whenever, colours and draft are right."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tenuto.tui.terminal.colours import QUERY
from tests.examples import in_turn
from tests.tui.first_paint.pseudo import COLUMNS, ROWS, TENUTO, Pseudo, replay

pytestmark = pytest.mark.terminal
DARK, LIGHT = b"\x1b]11;rgb:1616/1818/1d1d\x07", b"\x1b]11;rgb:fafa/f8f8/f0f0\x1b\\"
FENCE = b"\x1b[?62;22;52c"
ACCENTS = {"dark": "e5a663", "light": "9a4a00", "contrast-light": "6b2f00"}
OPEN_EDITOR = b"\x07"
PATIENCE = 120.0
"""Seconds; a hang guard, not a measure."""
SCREENS = {"full": TENUTO, "inline": (*TENUTO, "--inline")}
Answer = Sequence[tuple[float, bytes]]


class Asked(Pseudo):
    """A terminal that answers the question for its background with these pieces, each after so many seconds."""

    def __init__(self, folder: Path, command: Sequence[str], answer: Answer, **environ: str) -> None:
        super().__init__(folder, command, **environ)
        self._answer = list(answer)
        self._due: list[tuple[float, bytes]] = []
        whole = b"".join(piece for _, piece in answer)
        self._ends = {0, len(whole), *(len(part) for part in (DARK, LIGHT) if whole.startswith(part))}
        self._answered = 0

    @property
    def asked(self) -> int:
        return self.output.count(QUERY.encode())

    def read(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while True:
            super().read(min(0.005, max(0.0, deadline - time.monotonic())))
            if self.asked and self._answer:
                at = time.monotonic()
                for wait, piece in self._answer:
                    at += wait
                    self._due.append((at, piece))
                self._answer = []
            while self._due and time.monotonic() >= self._due[0][0]:
                self._answered += os.write(self.master, self._due.pop(0)[1])
            if time.monotonic() >= deadline:
                return

    def type_slowly(self, text: str, least: float, most: float, source: random.Random) -> None:
        """Type with pauses. No terminal puts a key into the middle of an answer."""
        for character in text:
            while self._answered not in self._ends:
                self.read(0.005)
            self.type(character.encode())
            self.read(source.uniform(least, most))

    def wait_until_answered(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while self._answer or self._due:
            assert time.monotonic() < deadline, "it was not asked"
            self.read(0.02)

    def accent(self) -> str:
        """The colour of the prompt's glyph."""
        screen = replay(self.output)
        for row in range(ROWS - 1, -1, -1):
            if screen.display[row].startswith("❯"):
                return screen.buffer[row][0].fg
        return ""

    def wait_for_accent(self, name: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while self.accent() != ACCENTS[name]:
            assert time.monotonic() < deadline, f"{self.accent()} is not the accent of {name}"
            self.read(0.05)


def editor_that_keeps(folder: Path) -> tuple[str, Path]:
    drafted, script = folder / "drafted", folder / "editor.sh"
    script.write_text(f'cp "$1" {drafted}.part && mv {drafted}.part {drafted}\n')
    return f"sh {script}", drafted


def pieces(data: bytes, wait: float) -> Answer:
    return [(wait, data[place : place + 1]) for place in range(len(data))]


ANSWERS: dict[str, tuple[Answer, str]] = {
    "light": ([(0, LIGHT + FENCE)], "light"),
    "dark": ([(0, DARK + FENCE)], "dark"),
    "fence-only": ([(0, FENCE)], "dark"),
    "late": ([(0.8, LIGHT), (0.05, FENCE)], "light"),
    "in-pieces": (pieces(LIGHT + FENCE, 0.004), "light"),
    "slow-pieces": (pieces(LIGHT + FENCE, 0.03), "light"),
}


@pytest.mark.parametrize(("kind", "screen"), in_turn([*ANSWERS, "nothing"], list(SCREENS)))
def test_the_theme_follows_the_answer_and_the_draft_is_what_was_typed(tmp_path: Path, screen: str, kind: str) -> None:
    answer, wanted = ANSWERS.get(kind, ([], "dark"))
    editor, drafted = editor_that_keeps(tmp_path)
    with Asked(tmp_path, SCREENS[screen], answer, EDITOR=editor) as program:
        program.read_until(QUERY.encode())
        program.type_slowly("hello é漢 wörld", 0.03, 0.03, random.Random(0))
        program.wait_until_answered()
        program.wait_for_accent(wanted)
        program.type(OPEN_EDITOR)
        program.read_until(drafted)
        assert drafted.read_text() == "hello é漢 wörld"
        assert program.asked == 1


@pytest.mark.parametrize("seed", [*range(4), *(pytest.param(seed, marks=pytest.mark.full) for seed in range(100, 140))])
def test_answers_and_keys_in_any_order_and_pieces(tmp_path: Path, seed: int) -> None:
    source = random.Random(seed)
    screen = source.choice(list(SCREENS))
    answer: list[tuple[float, bytes]] = []
    for part in (source.choice([LIGHT, DARK]), FENCE):
        cut = source.randrange(1, len(part)) if source.random() < 0.7 else len(part)
        answer += [(source.uniform(0, 0.4), part[:cut]), (source.uniform(0, 0.12), part[cut:])]
    wanted = "light" if LIGHT[7:12] in b"".join(piece for _, piece in answer) else "dark"
    text = "".join(source.choice("abcxyzé漢😀 ") for _ in range(30)).strip() or "x"
    editor, drafted = editor_that_keeps(tmp_path)
    with Asked(tmp_path, SCREENS[screen], [piece for piece in answer if piece[1]], EDITOR=editor) as program:
        program.read_until(QUERY.encode())
        program.type_slowly(text, 0, 0.05, source)
        program.wait_until_answered()
        program.wait_for_accent(wanted)
        program.type(OPEN_EDITOR)
        program.read_until(drafted)
        assert drafted.read_text() == text


@pytest.mark.parametrize("screen", SCREENS)
def test_a_change_of_the_background_is_followed(tmp_path: Path, screen: str) -> None:
    with Asked(tmp_path, SCREENS[screen], [(0, DARK + FENCE)]) as program:
        program.read_until(b"\x1b[?2031h")
        program.read_until(b"offline/tenuto")
        program.wait_for_accent("dark")
        program.type(b"\x1b[?997;2n")
        program.wait_for_accent("light")
        program.type(b"\x1b[?997;1n")
        program.wait_for_accent("dark")
        assert program.leave() == 0
        assert program.output.rfind(b"\x1b[?2031l") > program.output.rfind(b"\x1b[?2031h")


@pytest.mark.parametrize("screen", SCREENS)
@pytest.mark.parametrize(
    ("settings", "environ", "accent"),
    [
        ('[ui]\ntheme = "contrast-light"\n', {}, "contrast-light"),
        ("", {"TENUTO_UI__THEME": "light"}, "light"),
        ("", {"TERM": "screen-256color", "COLORFGBG": "0;15"}, "light"),
    ],
)
def test_where_it_is_known_or_does_harm_nothing_is_asked(
    tmp_path: Path, screen: str, settings: str, environ: dict[str, str], accent: str
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text(settings)
    with Asked(tmp_path, SCREENS[screen], [], **environ) as program:
        program.read_until(b"offline/tenuto")
        program.wait_for_accent(accent)
        assert program.asked == 0


def test_the_full_screen_asks_where_there_was_no_first_light(tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "settings.toml").write_text("ui = {inline = false}\n")
    with Asked(tmp_path, TENUTO, [(0, LIGHT + FENCE)]) as program:
        program.read_until(b"offline/tenuto")
        program.wait_for_accent("light")
        assert program.asked == 1


def test_the_first_light_takes_the_colours_before_the_app_is_there(tmp_path: Path) -> None:
    program_without_app = (
        "import sys, time\n"
        "from tenuto.cli import main\n"
        "main._run_program = lambda arguments, early: time.sleep(600)\n"
        "sys.argv = ['tenuto']\n"
        "main.main()\n"
    )
    with Asked(tmp_path, (sys.executable, "-c", program_without_app), [(0, LIGHT + FENCE)]) as program:
        program.type(b"ab")
        program.wait_for_accent("light")
        assert "❯ ab" in program.screen()
        assert len(program.screen()[0]) <= COLUMNS


@pytest.mark.parametrize("wait", [0.0, 0.03, 0.06])
def test_an_answer_that_is_due_when_the_program_is_left_is_not_typed_into_the_shell(
    tmp_path: Path, wait: float
) -> None:
    program_without_app = (
        "import sys, time\n"
        "from tenuto.cli import main\n"
        "main._run_program = lambda arguments, early: time.sleep(600)\n"
        "sys.argv = ['tenuto']\n"
        "main.main()\n"
    )
    with Asked(tmp_path, (sys.executable, "-c", program_without_app), [(wait, LIGHT + FENCE)]) as program:
        program.read_until(QUERY.encode())
        program.type(b"\x03")
        assert program.wait() == 130
        program.wait_until_answered()
        program.read(0.1)
        assert program.is_restored()
        os.set_blocking(program.slave, False)
        with pytest.raises(BlockingIOError):
            os.read(program.slave, 100)
