"""The one-line editor of pickers and feedback."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.keys.line_editor import _ACTIONS, LineEditor


@pytest.mark.parametrize(
    ("keys", "text", "cursor"),
    [
        ("home delete", "ello wide world", 0),
        ("ctrl+w", "hello wide ", 11),
        ("ctrl+w ctrl+w", "hello ", 6),
        ("alt+b ctrl+k", "hello wide ", 11),
        ("alt+b ctrl+u", "world", 0),
        ("home alt+d", " wide world", 0),
        ("left left backspace", "hello wide wold", 13),
        ("home left backspace", "hello wide world", 0),
        ("left left left left left backspace alt+backspace", "hello world", 6),
    ],
)
def test_editing_keys(keys: str, text: str, cursor: int) -> None:
    editor = LineEditor()
    editor.insert("hello wide world")
    for key in keys.split():
        assert editor.press(key)
    assert (editor.text, editor.cursor) == (text, cursor)


@given(st.lists(st.one_of(st.sampled_from(sorted(_ACTIONS)), st.text(max_size=5)), max_size=30))
def test_the_cursor_stays_in_the_text(steps: list[str]) -> None:
    editor = LineEditor()
    for step in steps:
        if not editor.press(step):
            editor.insert(step)
        assert 0 <= editor.cursor <= len(editor.text)


def test_a_paste_of_lines_becomes_one_line() -> None:
    editor = LineEditor()
    editor.insert("one\ntwo")
    assert editor.text == "one two"
    assert not editor.press("f5")
