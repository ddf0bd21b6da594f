"""`# TEXT` and `/remember`: a line for the instructions, where the user says, and the model is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.command.outcome import Choose
from tenuto.config.instructions import add_line
from tenuto.tui.state.effects import RunCommand, SubmitPrompt
from tenuto.tui.state.intents import SendDraft
from tests.core.harness import agent
from tests.server import Reply
from tests.tui.machine.driving import Driver


def test_a_line_is_added_as_a_point_whatever_the_file_ended_with(tmp_path: Path) -> None:
    file = tmp_path / "AGENTS.md"
    add_line(file, "one")
    assert file.read_text() == "- one\n"
    file.write_text("no end")
    add_line(file, "two")
    assert file.read_text() == "no end\n- two\n"


def test_a_link_out_of_the_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "elsewhere").write_text("x")
    (tmp_path / "project" / "AGENTS.md").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(PermissionError):
        add_line(tmp_path / "project" / "AGENTS.md", "one")
    assert (tmp_path / "elsewhere").read_text() == "x"


async def test_the_panel_asks_where_and_the_model_is_told_the_new_text_once(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "CLAUDE.md").write_text("Old rule.\n")
    async with agent(tmp_path, [Reply("a"), Reply("b"), Reply("c")]) as running:
        await running.ask("hi")
        (panel,) = await running.runtime.run_command("/remember names end in _q")
        assert isinstance(panel, Choose)
        project, own = panel.choices
        assert project.preview == "- names end in _q"
        assert str(work / "CLAUDE.md") in project.detail
        assert str(tmp_path / "home" / "AGENTS.md") in own.detail
        await running.runtime.run_command(f"/{panel.command} {project.value}")
        assert (work / "CLAUDE.md").read_text() == "Old rule.\n- names end in _q\n"
        await running.ask("and on")
        second = [item.text for item in running.server.requests[1].items]
        assert sum("- names end in _q" in text for text in second) == 1
        assert second[0] == running.server.requests[0].items[0].text, "what was sent stays as it was"
        await running.ask("and on")
        assert sum("- names end in _q" in item.text for item in running.server.requests[2].items) == 1


async def test_the_users_own_file_is_made_and_a_new_session_has_it_in_its_prompt(tmp_path: Path) -> None:
    async with agent(tmp_path, [Reply("a")]) as running:
        await running.runtime.run_command("/remember --own speak German")
        await running.ask("hi")
        texts = [item.text for item in running.server.requests[0].items]
        assert sum("- speak German" in text for text in texts) == 1
    assert (tmp_path / "home" / "AGENTS.md").read_text() == "- speak German\n"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("# speak German", RunCommand),
        ("# a\n\ntext", SubmitPrompt),
        ("#12 is a bug", SubmitPrompt),
        ("#", SubmitPrompt),
    ],
)
def test_one_line_behind_a_number_sign_is_remembered_and_markdown_is_sent(text: str, kind: type) -> None:
    driver = Driver()
    driver.type(text)
    sent = [effect for effect in driver.feed(SendDraft()) if isinstance(effect, RunCommand | SubmitPrompt)]
    assert [type(effect) for effect in sent] == [kind]
    if kind is RunCommand:
        assert sent == [RunCommand("/remember speak German")]
