"""What stands around the transcript looks like, at three widths: panels, queue, status and the last line."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tenuto.config.settings import UiSettings
from tenuto.protocol.event import AnyEvent, CompactionProgressEvent, CompactionStartEvent, ModeChangedEvent, RetryEvent
from tenuto.tui.chrome import Chrome
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.render.options import UNICODE
from tenuto.tui.state import intents
from tenuto.tui.state.intents import Intent
from tests.tui.full.fake_runtime import SESSION, queue_of
from tests.tui.machine.driving import Driver
from tests.tui.pictures import scenes
from tests.tui.render import golden

ROWS = 24
LATER = 8.0


class Machine:
    """A driver as the surroundings see it."""

    def __init__(self) -> None:
        self.driver = Driver()
        self.state = self.driver.state

    def handle(self, intent: Intent) -> None:
        self.driver.feed(intent)

    def fold_paste(self, text: str) -> str:
        return text


SCENES: dict[str, Sequence[AnyEvent | Intent]] = {
    "a command to allow": [*scenes.asking_for_a_command()],
    "a change to allow": [*scenes.asking_for_a_change()],
    "a question of a server": [*scenes.asking_a_question()],
    "a list to pick from": [scenes.OPENED, scenes.tree()],
    "queue and todo": [
        *scenes.working_through_a_list(),
        queue_of("and charge the orders again", "日本語の行 then more"),
    ],
    "a compaction": [
        scenes.OPENED,
        scenes.TaskStartedEvent(session_id=SESSION, submission_id="two", kind="compaction"),
        CompactionStartEvent(session_id=SESSION, reason="threshold"),
        CompactionProgressEvent(session_id=SESSION, stage="summarising", summary_tokens=1_234),
    ],
    "a retry": [
        scenes.OPENED,
        scenes.STARTED,
        RetryEvent(session_id=SESSION, attempt=2, attempts=5, wait=20.0, reason="the provider is overloaded"),
    ],
    "idle, nearly full": [
        scenes.OPENED,
        ModeChangedEvent(session_id=SESSION, mode="auto"),
        scenes.ContextUsageEvent(
            session_id=SESSION, tokens=172_000, window=200_000, trigger=167_000, estimated=True, total=scenes.USED.total
        ),
    ],
}


def drawn(sheet: golden.Sheet, inputs: Sequence[AnyEvent | Intent]) -> None:
    machine = Machine()
    keyboard = Keyboard(machine, lambda: None, {}, lambda: machine.driver.now)  # type: ignore[arg-type,return-value]
    chrome = Chrome(
        machine, keyboard, UiSettings(reduce_motion=True), "/home/me", glyphs=UNICODE, clock=lambda: machine.driver.now
    )
    machine.driver.feed(*inputs)
    machine.driver.after(LATER).feed(intents.Tick())
    sheet.add([chrome.status(sheet.width), *chrome.side(sheet.width, ROWS), *chrome.panel(sheet.width, ROWS)])
    sheet.add([chrome.footer(sheet.width)])


@pytest.mark.parametrize("width", [40, 80, 120])
def test_panels(width: int) -> None:
    sheet = golden.Sheet(width)
    for title, inputs in SCENES.items():
        sheet.title(title)
        drawn(sheet, inputs)
    golden.check(f"panels-{width}", sheet.text())


@pytest.mark.parametrize("scene", ["a compaction", "a retry"])
def test_a_narrow_screen_still_says_what_esc_does(scene: str) -> None:
    sheet = golden.Sheet(40)
    drawn(sheet, SCENES[scene])
    assert "esc to " in sheet.text().split("\n")[0]
