from __future__ import annotations

from tenuto.command.registry import COMMANDS
from tenuto.tui.complete.commands import complete_command


def test_a_lone_slash_offers_every_command_once():
    assert [item.label for item in complete_command("")] == [f"/{command.name}" for command in COMMANDS]


def test_prefixes_come_first_and_aliases_count():
    assert complete_command("mo")[0].label in {"/model", "/mode"}
    assert complete_command("qui")[0].label == "/quit"
    assert complete_command("cmpct")[0].label == "/compact"
    assert complete_command("xyz") == ()


def test_only_commands_that_need_no_argument_run_at_once():
    by_label = {item.label: item for item in complete_command("")}
    assert by_label["/exit"].runs and by_label["/model"].runs
    assert not by_label["/title"].runs
    assert by_label["/title"].detail == "name this session · TEXT"
    assert all(item.insert == f"{item.label} " for item in by_label.values())
