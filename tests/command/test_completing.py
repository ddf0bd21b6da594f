"""What may stand behind a command."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.command.registry import COMMANDS
from tenuto.protocol.entry import ApprovalEntry
from tenuto.tui.complete.commands import complete_argument
from tests.core.harness import agent
from tests.server import Reply


async def values(running, name: str, typed: str = "") -> list[str]:
    return [choice.value for choice in await running.runtime.complete_argument(name, typed)]


async def test_fixed_words_lists_of_the_command_and_directories(tmp_path: Path) -> None:
    for name in ("work/out/deep", "work/.hidden", "work/src"):
        (tmp_path / name).mkdir(parents=True)
    async with agent(tmp_path, [Reply("hi")]) as running:
        assert await values(running, "mode") == ["ask", "edits", "auto", "plan"]
        assert "undo" in await values(running, "compact")
        assert await values(running, "model")
        assert {"html", "out/", "src/"} <= set(await values(running, "export"))
        assert "html out/deep/" in await values(running, "export", "html out/d")
        assert ".hidden/" in await values(running, "move", ".h")
        assert await values(running, "move", "nowhere/x") == []
        assert await values(running, "nonsense") == []
        assert await values(running, "unpin") == [], "a list with nothing in it"
        assert await values(running, "approvals") == []
        assert "dark" in await values(running, "theme")
        assert await values(running, "keys") == ["edit"]
        assert await values(running, "mouse") == ["full", "wheel", "off"]
        running.session.append(ApprovalEntry(tool="bash", pattern="ls *"))
        (withdrawal,) = await values(running, "approvals")
        assert withdrawal.startswith("remove ")


@pytest.mark.parametrize("typed", [".", "..", "~", "html ."])
async def test_a_dot_is_a_directory_as_it_stands_and_enter_sends_it(tmp_path: Path, typed: str) -> None:
    """`/export .` became `/export .git/`."""
    (tmp_path / "work" / ".git").mkdir(parents=True)
    async with agent(tmp_path, [Reply("hi")]) as running:
        assert complete_argument(await running.runtime.complete_argument("export", typed), typed) == ()


async def test_completing_changes_and_says_nothing(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("hi")]) as running:
        await running.ask("hello")
        before = list(running.session.entries())
        told = len(running.events)
        for command in COMMANDS:
            await values(running, command.name, "x")
        assert list(running.session.entries()) == before
        assert len(running.events) == told
