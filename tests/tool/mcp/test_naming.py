"""Public names: what every provider takes, at most 64 characters, each once, the same in any order."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from tenuto.tool.mcp.naming import MOST_CHARS, server_of, server_word, tool_names

NAMES = st.one_of(st.text(max_size=80), st.sampled_from(["a__b", "x" * 70, "x" * 71, "a.b", "a b", "é", "_", "__", ""]))


@given(st.lists(NAMES, min_size=1, unique=True), NAMES)
def test_public_names_are_unique_bounded_and_found_again(tools, server):
    named = tool_names(server, tools)
    assert sorted(named.values()) == sorted(tools)
    for public in named:
        assert re.fullmatch(r"[A-Za-z0-9_-]+", public) and len(public) <= MOST_CHARS
        assert server_of(public) == server_word(server)
    assert named == tool_names(server, reversed(tools))


@given(NAMES, NAMES)
def test_two_servers_never_share_a_word(one, other):
    assert (server_word(one) == server_word(other)) == (one == other)


def test_plain_names_stay_as_they_are():
    assert tool_names("git", ["git_status"]) == {"mcp__git__git_status": "git_status"}
