"""The user's keys and the queue on the full screen."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tenuto.command.outcome import Choice, Choose, EditFile, ReadOwnFiles, ShowKeys
from tenuto.protocol.operation import EditQueueOperation, InterruptOperation
from tests.tui.full.fake_runtime import SESSION, opened
from tests.tui.full.support import Screen, running_app
from tests.tui.machine import driving

KEYS = """\
"detail" = "f6"
"escape" = ["f8", "esc"]
"mode.cycle" = "ctrl+x m"
"edit.line_start" = "f7"
"todo" = "cmd+t"
"""


def started():
    return msgspec.structs.replace(driving.started(), session_id=SESSION)


def queue(*rows: tuple[int, str]):
    return msgspec.structs.replace(driving.queue(*rows), session_id=SESSION)


async def use_keys(screen: Screen, text: str = KEYS) -> None:
    (screen.runtime.home / "keys.toml").write_text(text)
    screen.runtime.outcomes = [ReadOwnFiles()]
    await screen.burst([*"/reload", "escape", "enter"])
    screen.runtime.outcomes = []


async def test_own_keys_work_and_show_from_the_next_reload_on() -> None:
    async with running_app(opened(), size=(110, 40)) as screen:
        await use_keys(screen)
        assert "keys.toml:5: “cmd+t”" in screen.text()
        await screen.emit(started())
        assert "f8 to interrupt" in screen.text()
        await screen.burst([*"word", "f7", "x", "f8"])
        assert screen.app.composer.text == "xword"
        assert isinstance(screen.runtime.operations[-1], InterruptOperation)
        await screen.burst(["ctrl+x"])
        assert "Ctrl+X …" in screen.text()
        await screen.burst(["m"])
        assert "Ctrl+X …" not in screen.text() and screen.app.composer.text == "xword"
        assert screen.runtime.operations[-1].mode == "edits"  # type: ignore[union-attr]
        await screen.burst(["f1", *"tool output"])
        assert "F6" in screen.text() and "Ctrl+O" not in screen.text()


async def test_a_chord_that_was_not_meant_loses_no_key_and_interrupts_nothing() -> None:
    async with running_app(opened(), started()) as screen:
        await screen.burst(["a", "ctrl+x", "b", "ctrl+x", "escape", "c"])
        assert (screen.app.composer.text, screen.runtime.operations) == ("abc", [])


async def test_alt_with_a_letter_that_nobody_bound_types_nothing() -> None:
    from textual import events

    async with running_app(opened()) as screen:
        for key, character in (("alt+z", "z"), ("alt+f", "f"), ("a", "a")):
            screen.app.post_message(events.Key(key, character))
        await screen.settle()
        assert screen.app.composer.text == "a"


async def test_the_keys_are_listed_with_the_place_of_their_file() -> None:
    async with running_app(opened(), size=(120, 40)) as screen:
        await use_keys(screen)
        screen.runtime.outcomes = [ShowKeys()]
        await screen.burst([*"/keys", "escape", "enter"])
        assert "/keys edit opens it" in screen.text() and "keys.toml" in screen.text()


async def test_help_is_searched_and_scrolled_in_24_rows() -> None:
    async with running_app(opened()) as screen:
        await screen.burst(["?"])
        assert "type to search" in screen.text() and "Esc close" in screen.text()
        await screen.burst(["pagedown", "down"])
        assert "At the start of a prompt" not in screen.text()
        await screen.burst([*"steer", "enter"][:-1])
        assert "Ctrl+S" in screen.text() and "Shift+Tab" not in screen.text()
        await screen.burst([*"qqq"])
        assert "nothing matches" in screen.text()
        await screen.burst(["escape"])
        assert "type to search" not in screen.text() and screen.app.composer.text == ""
        await screen.burst(["?", "?"])
        assert not screen.app.runner.state.help_open


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 15)])
async def test_the_queue_has_the_keyboard_until_something_is_typed(size: tuple[int, int]) -> None:
    async with running_app(opened(), started(), queue((3, "one"), (4, "two"), (5, "three")), size=size) as screen:
        await screen.burst(["alt+q", "up", "d"])
        await screen.emit(queue((3, "one"), (5, "three")))
        await screen.burst(["K"])
        assert "❯ queued  three" in screen.text() and "delete" in screen.text()
        done = [(each.target, each.action, each.before) for each in screen.runtime.operations]  # type: ignore[union-attr]
        assert done == [(4, "delete", 0), (5, "move", 3)]
        await screen.burst([*"now"])
        assert screen.app.composer.text == "now" and "❯ queued" not in screen.text()


async def test_a_click_takes_a_queued_prompt_into_the_editor() -> None:
    async with running_app(opened(), started(), queue((3, "one"), (4, "two"))) as screen:
        row = next(place for place, text in enumerate(screen.rows()) if "queued  two" in text)
        await screen.pilot.click(offset=(12, row))
        [operation] = screen.runtime.operations
        assert isinstance(operation, EditQueueOperation) and (operation.target, operation.action) == (4, "take_back")


async def test_the_file_of_the_keys_is_made_and_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    from tenuto.command.outcome import EditKeys

    async with running_app(opened()) as screen:
        opened_files: list[str] = []
        monkeypatch.setattr(
            screen.app.common,
            "carry_out",
            lambda effect: opened_files.append(effect.path) if isinstance(effect, EditFile) else None,
        )
        screen.runtime.outcomes = [EditKeys()]
        await screen.burst([*"/keys edit", "escape", "enter"])
        path = screen.runtime.home / "keys.toml"
        assert opened_files == [str(path)]
        assert '# "mode.cycle" = "shift+tab"' in path.read_text() and path.stat().st_mode & 0o777 == 0o600


async def test_an_instruction_file_is_opened_from_its_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with running_app(opened()) as screen:
        opened_files: list[str] = []
        carry_out = screen.app.common.carry_out

        def note(effect: object) -> None:
            if isinstance(effect, EditFile):
                opened_files.append(effect.path)
            else:
                carry_out(effect)

        monkeypatch.setattr(screen.app.common, "carry_out", note)
        path = str(tmp_path / "AGENTS.md")
        screen.runtime.outcomes = [Choose("Instructions", "memory", (Choice(path, path),))]
        await screen.burst([*"/memory", "escape", "enter"])
        screen.runtime.outcomes = [EditFile(path)]
        await screen.burst(["enter"])
        assert screen.runtime.commands == ["/memory", f"/memory {path}"]
        assert opened_files == [path]
