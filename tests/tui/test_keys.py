from __future__ import annotations

from typing import get_args

import pytest

from tenuto.tui.keys.bindings import ContextName, key_label
from tenuto.tui.keys.keys import CONTEXT_TITLES, KEYS, default_bindings, help_rows, help_text
from tenuto.tui.state.state import UiState
from tests.tui.machine.driving import Driver, approval


def test_ids_are_unique_and_no_key_means_two_things_in_one_context():
    assert len({row.id for row in KEYS}) == len(KEYS)
    pairs = [(row.context, key) for row in KEYS for key in row.keys]
    assert len(set(pairs)) == len(pairs)


def test_every_context_with_keys_has_a_title():
    assert {row.context for row in KEYS} == set(CONTEXT_TITLES)
    assert set(CONTEXT_TITLES) <= set(get_args(ContextName))


@pytest.mark.parametrize(
    ("contexts", "key", "found"),
    [
        (("empty", "prompt", "transcript", "global"), "enter", "send"),
        (("empty", "prompt", "transcript", "global"), "question_mark", "help.question"),
        (("prompt", "transcript", "global"), "question_mark", None),
        (("prompt", "transcript", "global"), "ctrl+d", None),
        (("completion", "prompt", "transcript", "global"), "up", "completion.up"),
        (("completion", "prompt", "transcript", "global"), "shift+tab", "mode.cycle"),
        (("approval", "transcript", "global"), "1", "approval.1"),
        (("approval", "transcript", "global"), "pageup", "scroll.page_up"),
        (("approval", "transcript", "global"), "ctrl+s", None),
        (("feedback", "transcript", "global"), "y", None),
        (("picker", "transcript", "global"), "pageup", "picker.page_up"),
        (("picker", "transcript", "global"), "escape", "escape"),
    ],
)
def test_the_topmost_context_that_has_the_key_gets_it(contexts, key, found):
    row = default_bindings().find(contexts, key)
    assert (row.id if row else None) == found


def test_the_states_own_stack_reaches_the_table():
    driver = Driver()
    driver.feed(approval())
    row = default_bindings().find(driver.state.contexts, "y")
    assert row is not None and row.intent is not None
    driver.after(1).feed(row.intent)
    assert driver.state.approvals.requests == []
    assert default_bindings().find(UiState().contexts, "y") is None


def test_help_names_every_key_that_has_a_meaning():
    text = help_text(default_bindings())
    for row in KEYS:
        if row.help:
            assert row.help in text
            assert key_label(row.keys[0]) in text
    assert next(title for title, _ in help_rows(default_bindings())) == "At the start of a prompt"
    assert (key_label("ctrl+o"), key_label("pageup"), key_label("y")) == ("Ctrl+O", "PageUp", "y")
