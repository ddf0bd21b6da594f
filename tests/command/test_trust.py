"""`/trust` on a real runtime: one list, item by item, and what is trusted holds at once (R-085)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.command.outcome import Choice, Choose, RowChanged, Say
from tenuto.config.consent import Consent
from tenuto.core.state.trust import look_at_project
from tests.core.harness import agent
from tests.server import Reply


def bring(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "work" / ".tenuto" / "settings.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def rows_of(outcomes: list[object]) -> dict[str, Choice]:
    (dialog,) = outcomes
    assert isinstance(dialog, Choose)
    return {row.label: row for row in dialog.choices}


async def test_r085_each_item_is_shown_with_its_value_and_decided_alone(tmp_path: Path) -> None:
    bring(tmp_path, '[tools]\nbash_timeout = 7.0\nbash_max_timeout = 9.0\n[ui]\nmouse = "off"\n')
    async with agent(tmp_path, lambda _: Reply("Hi.")) as running:
        run = running.runtime.run_command
        rows = rows_of(await run("/trust"))
        assert list(rows)[:3] == ["Not now", "Trust all 3", "Refuse all 3"] and rows["Not now"].present
        row = rows["setting tools.bash_timeout"]
        assert row.detail == "not decided: sets tools.bash_timeout = 7.0" and row.stays
        assert "in .tenuto/settings.toml" in row.preview and "tools.bash_timeout = 7.0" in row.preview
        (changed,) = await run(f"/trust {row.value}")
        assert isinstance(changed, RowChanged) and changed.row is not None
        assert (changed.value, changed.row.mark) == (row.value, "✓")
        live = running.runtime.live
        assert (live.settings.tools.bash_timeout, live.tool_context.settings.bash_timeout) == (7.0, 7.0)
        assert live.settings.tools.bash_max_timeout == 600.0
        (changed,) = await run(f"/trust {row.value}")
        assert isinstance(changed, RowChanged) and changed.row is not None and changed.row.mark == "✗"
        assert live.tool_context.settings.bash_timeout == 120.0
        other = rows["setting tools.bash_max_timeout"].value
        await run(f"/trust {other} refuse")
        (said,) = await run("/trust allow")
        assert isinstance(said, Say) and said.text.startswith("Trusted: ") and said.text.count("setting") == 3
        assert live.settings.tools.bash_max_timeout == 9.0
        assert "Trust all 3" not in rows_of(await run("/trust"))
        await run("/trust forget")
        assert "Trust all 3" in rows_of(await run("/trust"))
        assert live.settings.tools.bash_max_timeout == 600.0


async def test_r085_model_and_mode_change_at_once_but_never_to_auto(tmp_path: Path) -> None:
    bring(tmp_path, 'model = "offline/tenuto"\nmode = "edits"\n')
    async with agent(tmp_path, lambda _: Reply("Hi."), mode=None, model="") as running:
        await running.runtime.run_command("/trust allow all")
        assert running.runtime.live.facts.id == "offline/tenuto"
        assert running.runtime.live.mode == "edits"
        bring(tmp_path, 'mode = "auto"\n')
        assert not look_at_project(tmp_path / "work", running.runtime.home).stands


async def test_r085_only_what_has_changed_is_asked_about_again(tmp_path: Path) -> None:
    file = bring(tmp_path, "[tools]\nbash_timeout = 7.0\nbash_max_timeout = 9.0\n")
    async with agent(tmp_path, lambda _: Reply("Hi.")) as running:
        await running.runtime.run_command("/trust allow")
        file.write_text(file.read_text().replace("9.0", "10.0"))
        rows = rows_of(await running.runtime.run_command("/trust"))
        assert rows["setting tools.bash_timeout"].mark == "✓"
        assert rows["setting tools.bash_max_timeout"].detail.startswith("changed since you decided")
        (asked,) = await running.runtime.run_command("/trust ask")
        assert isinstance(asked, Choose) and asked.held


async def test_a_project_that_brings_nothing_asks_nothing(tmp_path: Path) -> None:
    async with agent(tmp_path, lambda _: Reply("Hi.")) as running:
        assert await running.runtime.run_command("/trust ask") == []
        (said,) = await running.runtime.run_command("/trust")
        assert isinstance(said, Say) and "nothing that needs your trust" in said.text


@pytest.mark.parametrize("words", ["allow zzzz", "zzzz", "allow", "nonsense all"])
async def test_what_cannot_be_decided_is_said(tmp_path: Path, words: str) -> None:
    file = bring(tmp_path, "[tools]\nbash_timeout = 7.0\n")
    async with agent(tmp_path, lambda _: Reply("Hi.")) as running:
        if words == "allow":
            Consent(running.runtime.home).file.write_text("[")
        (said,) = await running.runtime.run_command(f"/trust {words}")
        assert isinstance(said, Say) and said.level != "info"
        assert running.runtime.live.settings.tools.bash_timeout == 120.0
    assert file.exists()
