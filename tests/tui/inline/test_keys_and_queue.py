"""The user's keys and the queue on the inline screen, with the bytes that terminals send."""

from __future__ import annotations

import msgspec
import pytest

from tenuto.command.outcome import Choice, Choose, EditFile, ReadOwnFiles
from tenuto.protocol.operation import InterruptOperation
from tests.tui.full.fake_runtime import SESSION, opened
from tests.tui.inline.support import running_app
from tests.tui.key_bytes import bytes_of
from tests.tui.machine import driving


def started():
    return msgspec.structs.replace(driving.started(), session_id=SESSION)


def queue(*rows: tuple[int, str]):
    return msgspec.structs.replace(driving.queue(*rows), session_id=SESSION)


async def test_own_keys_work_and_show_from_the_next_reload_on() -> None:
    async with running_app(opened(), size=(110, 40)) as session:
        (session.runtime.home / "keys.toml").write_text(
            '"escape" = ["f12", "esc"]\n"mode.cycle" = "ctrl+x m"\n"edit.line_start" = "f5"\n"todo" = "cmd+t"\n'
        )
        session.runtime.outcomes = [ReadOwnFiles()]
        session.type("/reload \r")
        await session.shows("keys.toml:4: “cmd+t”")
        await session.emit(started())
        await session.shows("f12 to interrupt")
        session.type("word" + bytes_of("f5") + "x" + bytes_of("f12"))
        await session.shows("xword")
        await session.settle()
        assert isinstance(session.runtime.operations[-1], InterruptOperation)
        session.type("\x18")
        await session.shows("Ctrl+X …")
        session.type("m")
        await session.gone("Ctrl+X …")
        assert session.runtime.operations[-1].mode == "edits"  # type: ignore[union-attr]
        assert session.app.editor.text == "xword"


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (40, 15)])
async def test_the_queue_has_the_keyboard_until_something_is_typed(size: tuple[int, int]) -> None:
    rows = queue((3, "one"), (4, "two"), (5, "three"))
    async with running_app(opened(), started(), rows, size=size) as session:
        session.type("\x1bq\x1b[Ad")
        await session.settle()
        await session.emit(queue((3, "one"), (5, "three")))
        session.type("K")
        await session.shows("❯ queued  three", "delete")
        await session.until(lambda: len(session.runtime.operations) == 2, "both")
        done = [(each.target, each.action, each.before) for each in session.runtime.operations]  # type: ignore[union-attr]
        assert done == [(4, "delete", 0), (5, "move", 3)]
        session.type("now")
        await session.gone("❯ queued")
        assert session.app.editor.text == "now"


@pytest.mark.parametrize(
    "data", ["\x1bz", "\x1b[122;3u", "\x1b[27;3;122~", "\x1b[57441;1u", "\x1b[119:87;9u", "\x1b[999;9~"]
)
async def test_a_key_that_nobody_bound_neither_types_nor_interrupts(data: str) -> None:
    async with running_app(opened(), started()) as session:
        session.type(f"a{data}b")
        await session.until(lambda: session.app.editor.text == "ab", "ab")
        await session.settle()
        assert session.runtime.operations == []


async def test_help_is_searched() -> None:
    async with running_app(opened()) as session:
        session.type("?steer")
        await session.shows("Ctrl+S", "at the next tool boundary")
        assert "Shift+Tab" not in "\n".join(session.terminal.rows())
        session.type("\x1b")
        await session.gone("at the next tool boundary")
        assert session.app.editor.text == ""


async def test_an_instruction_file_is_opened_from_its_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDITOR", "/nowhere/editor")
    monkeypatch.delenv("VISUAL", raising=False)
    async with running_app() as session:
        rows = (Choice("/tmp/AGENTS.md", "AGENTS.md"),)
        session.runtime.outcomes = [Choose("Instructions", "memory", rows)]
        session.type("/memory ")
        session.type("\r")
        await session.shows("Instructions", "AGENTS.md")
        session.runtime.outcomes = [EditFile("/tmp/AGENTS.md")]
        session.type("\r")
        await session.shows("/nowhere/editor could not be run")
        assert session.runtime.commands == ["/memory", "/memory /tmp/AGENTS.md"]
