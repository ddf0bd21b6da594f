from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.tui.complete.commands import Target, find_target


@pytest.mark.parametrize(
    ("draft", "target"),
    [
        ("/|", Target("command", "", 0, 1)),
        ("/mo|", Target("command", "mo", 0, 3)),
        ("/m|odel x", Target("command", "m", 0, 6)),
        ("/model |", None),
        ("/usr/b|", None),
        ("do /mo|", None),
        ("@|", Target("path", "", 0, 1)),
        ("see @src/a|", Target("path", "src/a", 4, 10)),
        ("see @sr|c/a.py now", Target("path", "sr", 4, 13)),
        ("(@a|", Target("path", "a", 1, 3)),
        ("me@example|", None),
        ("@src and|", None),
        ('@"my do|', Target("path", "my do", 0, 7)),
        ('@"my do|"', Target("path", "my do", 0, 8)),
        ('@"my dir/a b" |', None),
        ("line\n@a|", Target("path", "a", 5, 7)),
        ("plain|", None),
        ("|", None),
    ],
)
def test_what_the_word_at_the_cursor_asks_for(draft, target):
    assert find_target(draft.replace("|", ""), draft.index("|")) == target


@given(st.text(alphabet='/@" a\n', max_size=12), st.integers(0, 12))
def test_a_target_lies_around_the_cursor(text, cursor):
    cursor = min(cursor, len(text))
    target = find_target(text, cursor)
    if target is not None:
        assert 0 <= target.start < cursor <= target.end <= len(text)
