"""Values behind a command."""

from __future__ import annotations

import pytest

from tenuto.command.outcome import Choice
from tenuto.tui.complete.commands import Target, complete_argument, find_target, ghost_hint

CHOICES = tuple(Choice(value, label) for value, label in (
    ("anthropic/opus", "Opus"), ("openai/mini", "Mini"), ("undo", "undo"), ("sub/dir/", "sub/dir/")
))  # fmt: skip


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("a", ["anthropic/opus"]),
        ("O", ["openai/mini"]),
        ("do", []),
        ("min", ["openai/mini"]),
        ("opus", ["anthropic/opus"]),
        ("undo", []),
        ("s", ["sub/dir/"]),
        ("understand the parser", []),
    ],
)
def test_values_begin_as_typed_others_need_three_letters(query: str, found: list[str]) -> None:
    assert [item.insert for item in complete_argument(CHOICES, query)] == found


def test_a_directory_stays_open() -> None:
    assert [item.runs for item in complete_argument(CHOICES, "s")] == [False]
    assert [item.runs for item in complete_argument(CHOICES, "und")] == [True]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/mode p", Target("argument", "p", 6, 7, "mode")),
        ("/export html out/", Target("argument", "html out/", 8, 17, "export")),
        ("/rename x", None),
        ("/title some words", None),
        ("/model ", None),
        ("see /mode p", None),
        ("/unknown x", None),
    ],
)
def test_only_commands_that_know_their_values_ask(text: str, target: Target | None) -> None:
    assert find_target(text, len(text)) == target


def test_the_hint_shows_right_behind_a_command_alone() -> None:
    assert ghost_hint("/mode ", 6) == "[ask|edits|auto|plan]"
    assert ghost_hint("/rename ", 8) == "TEXT"
    for text, cursor in (("/mode", 5), ("/mode ", 3), ("/mode p", 7), ("/nothing ", 9), ("mode ", 5), ("", 0)):
        assert ghost_hint(text, cursor) == ""
