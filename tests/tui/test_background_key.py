"""Ctrl+B: a command that runs goes on in the background; on every other prompt it moves the caret."""

from __future__ import annotations

from tenuto.protocol.event import TaskStartedEvent, ToolStartedEvent
from tenuto.protocol.operation import MoveToBackgroundOperation
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.panels.panel import BACKGROUND_HINT_SECONDS, status_line
from tenuto.tui.state.effects import Submit
from tests.tui.machine.driving import SESSION
from tests.tui.render.test_golden_panels import Machine


def running(name: str) -> tuple[Machine, Keyboard]:
    machine = Machine()
    keyboard = Keyboard(machine, lambda: None, {}, lambda: machine.driver.now)  # type: ignore[arg-type]
    machine.driver.feed(
        TaskStartedEvent(session_id=SESSION, submission_id="one", kind="agent"),
        ToolStartedEvent(session_id=SESSION, submission_id="one", call_id="c", name=name, arguments="{}", summary="x"),
    )
    machine.driver.effects.clear()
    return machine, keyboard


def asked(machine: Machine) -> bool:
    return any(
        isinstance(effect, Submit) and isinstance(effect.operation, MoveToBackgroundOperation)
        for effect in machine.driver.effects
    )


def test_it_moves_a_running_command_and_says_so_after_a_while():
    machine, keyboard = running("bash")
    now = machine.driver.now
    assert "background" not in status_line(machine.state, now, 100, None, None).text
    said = status_line(machine.state, now + BACKGROUND_HINT_SECONDS, 100, None, None).text
    assert "Ctrl+B to the background" in said
    assert "esc to interrupt" in said
    keyboard.press("ctrl+b")
    assert asked(machine)


def test_it_does_nothing_of_the_kind_while_no_command_runs():
    machine, keyboard = running("read")
    keyboard.press("ctrl+b")
    assert not asked(machine)
    assert "background" not in status_line(machine.state, machine.driver.now + 60, 100, None, None).text


def test_over_a_draft_it_is_a_key_of_the_editor():
    machine, keyboard = running("bash")
    machine.driver.type("a draft")
    keyboard.press("ctrl+b")
    assert not asked(machine)
