"""One script, three front-ends: the same items in the same order on both screens and in the JSON lines."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import ExitStack

import msgspec
import pytest

from tenuto.protocol.event import AnyEvent, SessionOpenedEvent
from tenuto.tui.inline.printer import Printer
from tenuto.tui.machine.step import step
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.state import UiState
from tests.server import scripts
from tests.terminal.conftest import MODEL, Workplace
from tests.terminal.screen import BIN

pytestmark = pytest.mark.terminal
PROMPT = "fix the failing tests"
DONE = "all tests pass now"
COLUMNS = 100
COMPARED = 60
"""Characters of a row: the scroll bar takes a column of the full screen, so long rows are cut elsewhere there."""


def blocks(text: str) -> list[str]:
    """The first rows of the items, and what they say, without what time or room changes."""
    rows = [row.rstrip("▐ ") for row in text.split("\n")]
    begin = next(number for number, row in enumerate(rows) if row.startswith(f"▌ {PROMPT}"))
    end = max(number for number, row in enumerate(rows) if DONE in row)
    return [re.sub(r"[0-9.]+s\b", "", row.partition(" · ")[0])[:COMPARED] for row in rows[begin : end + 1] if row]


def shown_by(place: Workplace, *arguments: str) -> list[str]:
    place.serve(scripts.fix_tests)
    screen = place.start(*arguments, "--mode", "auto", PROMPT, columns=COLUMNS, rows=90)
    screen.wait_settled(DONE)
    return blocks(screen.whole() if arguments else screen.capture())


def items_of_json(place: Workplace, *arguments: str) -> UiState:
    """Return what the events of print mode make of the machine; nothing but what the lines say goes into it."""
    assert place.server is not None
    environ = {
        "PATH": f"{BIN}:{os.environ['PATH']}", "LANG": "C.UTF-8", "HOME": str(place.folder),
        "TENUTO_HOME": str(place.home), **place.server.environ(),
    }  # fmt: skip
    done = subprocess.run(
        [BIN / "tenuto", "-p", "--json", "--model", MODEL, *arguments],
        cwd=place.work, env=environ, capture_output=True, text=True, timeout=60, check=True, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    lines = [line for line in done.stdout.splitlines() if '"event"' in line]
    state = UiState()
    for line in lines:
        event = msgspec.json.decode(line, type=AnyEvent)
        assert state.session_id or isinstance(event, SessionOpenedEvent)
        state, _effects = step(state, event, 0.0, COLUMNS)
    return state


def as_json(place: Workplace) -> list[str]:
    place.serve(scripts.fix_tests)
    printer = Printer(RenderOptions)
    for item in items_of_json(place, "--mode", "auto", PROMPT).transcript.ordered():
        printer.add(item)
    return blocks("\n".join(line.text for line in printer.take(COLUMNS)))


def test_full_inline_and_json_give_the_same_items_in_the_same_order(tmp_path, tmux) -> None:
    with ExitStack() as stack:
        places: list[Workplace] = []
        for name in ("full", "inline", "json"):
            (tmp_path / name).mkdir()
            places.append(Workplace(tmp_path / name, stack))
        full, inline, lines = shown_by(places[0]), shown_by(places[1], "--inline"), as_json(places[2])
    assert len(inline) > 8
    assert inline == full
    assert inline == lines
