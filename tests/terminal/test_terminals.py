"""Real terminals by what they really answer and send: recorded in `terminals/*.toml`, read on both screens."""

from __future__ import annotations

import contextlib
import os
import re
import select
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from textual import events

from tenuto.tui.full.driver import InputReader
from tenuto.tui.inline.keys import Press
from tenuto.tui.inline.output import NOT_PAINTED_AGAIN, PAINTED_AGAIN
from tenuto.tui.keys.bindings import normal_key
from tests.examples import in_turn
from tests.server import Reply
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.modes import Modes
from tests.terminal.pseudo import UNKNOWN_TO_PYTE, PseudoTerminal
from tests.tui.key_bytes import key_reader

FILES = sorted((Path(__file__).parent / "terminals").glob("*.toml"))
TERMINALS: dict[str, dict[str, Any]] = {file.stem: tomllib.loads(file.read_text("utf-8")) for file in FILES}
SCREENS = {"full": (), "inline": ("--inline",)}
GROUND = re.compile(rb"rgb:[0-9a-f/]+")
ACCENTS = {"dark": (b"rgb:1010/1414/1818", b"38;2;229;166;99m"), "light": (b"rgb:fafa/fafa/fafa", b"38;2;154;74;0m")}
"""The ground of a terminal, and the prompt's glyph on it in all colours."""
XTERM_ALT = 1036


def full_screen(data: str) -> list[str]:
    reader = InputReader()
    keys = [*reader.feed(data.encode()), *reader.idle(float("inf"))]
    return [normal_key(key.key) for key in keys if isinstance(key, events.Key)]


def inline(data: str) -> list[str]:
    reader = key_reader()
    keys = [*reader.feed(data.encode()), *reader.give_up()]
    return [normal_key(key.name) for key in keys if isinstance(key, Press)]


@pytest.mark.parametrize("read", [full_screen, inline])
@pytest.mark.parametrize("name", TERMINALS)
def test_every_key_that_was_recorded_is_that_key(name: str, read: Callable[[str], list[str]]) -> None:
    terminal = TERMINALS[name]
    for key, data in [*terminal["keys"].items(), *terminal.get("locked", {}).items()]:
        assert read(data) == ["backspace" if key == "ctrl+h" and data == "\x08" else key], (key, data)


class RealTerminal(PseudoTerminal):
    """The program in a terminal that answers as that one does, on a ground of this colour."""

    def __init__(self, place: Workplace, terminal: Mapping[str, Any], ground: bytes, *arguments: str) -> None:
        assert place.server is not None
        self._said = {
            asked.encode(): GROUND.sub(ground, answer.encode()) for asked, answer in terminal["answers"].items()
        }
        self.keys = {**terminal["keys"], **terminal.get("locked", {})}
        environ = {**place.server.environ(), "COLORTERM": "", **terminal["environ"]}
        super().__init__(place.work, place.home, environ, "--model", MODEL, *arguments)

    def press(self, *keys: str) -> None:
        """Press keys, with NumLock on where that was recorded."""
        for key in keys:
            self.write(self.keys[key].encode())

    def read(self, seconds: float = 0.05) -> None:
        ready, _, _ = select.select([self.descriptor], [], [], seconds)
        if not ready:
            return
        with contextlib.suppress(OSError):
            data = os.read(self.descriptor, 65_536)
            self.output += data
            # In the order in which it was asked.
            for asked in sorted(self._said, key=data.find):
                for _ in range(data.count(asked)):
                    os.write(self.descriptor, self._said[asked])
            self._stream.feed(UNKNOWN_TO_PYTE.sub(b"", data))


PAIRS = [
    (name, screen)
    for place, name in enumerate(TERMINALS)
    for screen in sorted(SCREENS, reverse=bool(place % 2))  # else each screen would always have the same ground
]


@pytest.fixture
def opened(request: pytest.FixtureRequest, place: Workplace) -> Iterator[Callable[[str], RealTerminal]]:
    name, screen = request.param
    place.serve(lambda _request: Reply("An answer."))
    running: list[RealTerminal] = []

    def open_on(ground: str) -> RealTerminal:
        running.append(RealTerminal(place, TERMINALS[name], ACCENTS[ground][0], *SCREENS[screen]))
        return running[0]

    yield open_on
    for terminal in running:
        terminal.close()


@pytest.mark.terminal
@pytest.mark.parametrize(("opened", "ground"), in_turn(PAIRS, list(ACCENTS)), indirect=["opened"])
def test_from_the_first_frame_to_the_last_in_a_real_terminal(
    opened: Callable[[str], RealTerminal], ground: str
) -> None:
    terminal = opened(ground)
    terminal.wait_for(MODEL)
    terminal.write("ab é".encode())
    terminal.press("left", "alt+left", "delete")
    terminal.wait_for("❯ b é")
    terminal.press("ctrl+j")
    terminal.write(b"X")
    terminal.wait_for("  Xb é")
    assert ACCENTS[ground][1] in terminal.output, "the theme goes by the ground, in all colours"
    terminal.write(b"\x03")
    terminal.wait_for("❯ Ask for something")
    terminal.write(b"\x04")
    terminal.wait_for("again to quit")
    terminal.write(b"\x04")
    terminal.read_until_quiet()
    before, after = Modes(), Modes()
    after.feed(terminal.output)
    if f"\x1b[?{XTERM_ALT}h".encode() in terminal.output:
        assert terminal.output.rfind(b"\x1b[?1036r") > terminal.output.rfind(b"\x1b[?1036h")
        after.on.discard(XTERM_ALT)
    assert after.state() == before.state()
    assert b"\x1b[?12l" not in terminal.output, "whether the cursor blinks is the user's"
    assert not re.search(r"rgb:|\[\?|\$y|\d;\d+c", terminal.text()), "no answer is left on the screen"


@pytest.mark.terminal
def test_kitty_is_told_which_rows_are_painted_again_and_that_they_are_not_at_the_end(place: Workplace) -> None:
    place.serve(lambda _request: Reply("An answer."))
    terminal = RealTerminal(place, TERMINALS["kitty"], ACCENTS["dark"][0], "--inline")
    try:
        terminal.wait_for(MODEL)
        terminal.write(b"hello\r")
        terminal.wait_for("An answer.")
        terminal.read_until_quiet()
        last = terminal.output.rfind(b"An answer.")
        assert PAINTED_AGAIN.encode() in terminal.output[last:], "the rows below what was printed last are marked"
        for columns, rows in ((100, 40), (60, 40), (90, 45)):
            terminal.resize(columns, rows)
            # What kitty does: the rows that are painted again are empty, and the cursor is where it was.
            marked = next(row for row in range(rows) if terminal.screen.display[row].startswith("❯")) - 1
            for row in range(marked, rows):
                terminal.screen.buffer[row].clear()
            painted = terminal.read_until_quiet()
            assert painted.count(PAINTED_AGAIN.encode()) == 1
            shown = terminal.text().split("\n")
            assert [line[:5] for line in shown if line.startswith("❯")] == ["❯ Ask"], "once, and all of it"
            assert sum("An answer." in line for line in shown) == 1
        terminal.write(b"\x04\x04")
        terminal.read_until_quiet()
        taken_back = terminal.output.rfind(NOT_PAINTED_AGAIN.encode())
        assert taken_back > terminal.output.rfind(PAINTED_AGAIN.encode())
    finally:
        terminal.close()
