"""The rows of `/tree` and what is shown of the selected one."""

from __future__ import annotations

from tenuto.command.registry import run_command
from tenuto.command.tree_commands import tree_choices
from tests.core.compacting import compact, fill, talk
from tests.core.harness import agent


async def test_what_has_no_text_of_its_own_says_what_it_is(tmp_path):
    async with agent(tmp_path, talk(), options={"window": 64_000}) as running:
        await fill(running)
        await compact(running)
        await run_command(running.runtime, "/compact undo")
        await run_command(running.runtime, "/compact redo")
        rows = [row for row in tree_choices(running.session, 0) if row.label.startswith("Undo of")]
        undo, redo = (row.preview for row in rows)
        assert "Undone: #" in undo
        assert "Compaction: " in undo
        assert "Taken back: the undo #" in redo
        assert all("(no text)" not in row.preview for row in tree_choices(running.session, 0))
