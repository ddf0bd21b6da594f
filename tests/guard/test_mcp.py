"""Calls of MCP servers: the table of modes, and what a lasting answer covers."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.approval import judge, read_rule, refusal_text
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse
from tenuto.protocol.entry import ApprovalEntry

HERE = Path("/w")
WORDS = st.text("ab_", min_size=1, max_size=3)


def call(name: str) -> ApprovalSubject:
    return ApprovalSubject(kind="mcp", tool=name, summary=name, pattern=name)


@pytest.mark.parametrize(("mode", "verdict"), [("ask", Ask), ("edits", Ask), ("auto", Allow), ("plan", Refuse)])
def test_the_table_of_modes(mode, verdict):
    assert isinstance(judge(mode, call("mcp__git__add"), [], HERE), verdict)
    assert judge(mode, call("mcp__git__add"), [read_rule("mcp__git", HERE)], HERE) == Allow()


def test_a_question_names_the_tool_and_the_mode_that_would_not_ask():
    asked = judge("ask", call("mcp__git__add"), [], HERE)
    assert isinstance(asked, Ask) and (asked.session_pattern, asked.allowed_by) == ("mcp__git__add", "auto")
    assert "--mode auto" in refusal_text(asked, call("mcp__git__add"))


@pytest.mark.parametrize("rule", ["mcp__git", "mcp__git__*", "mcp__git__add"])
def test_rules_are_read(rule):
    assert isinstance(judge("ask", call("mcp__git__add"), [read_rule(rule, HERE)], HERE), Allow)
    assert isinstance(judge("ask", call("mcp__hub__add"), [read_rule(rule, HERE)], HERE), Ask)


@given(WORDS, WORDS, WORDS, WORDS)
def test_an_answer_never_reaches_another_server_or_tool(server, tool, other_server, other_tool):
    """A server's part has no joint in it: what stands before the second one is the whole of it."""
    server, other_server = (word.replace("__", "_").strip("_") or "s" for word in (server, other_server))
    subject = call(f"mcp__{other_server}__{other_tool}")
    of_server = [ApprovalEntry(tool=f"mcp__{server}", pattern="*")]
    of_tool = [ApprovalEntry(tool=f"mcp__{server}__{tool}", pattern=f"mcp__{server}__{tool}")]
    assert isinstance(judge("ask", subject, of_server, HERE), Allow) == (server == other_server)
    assert isinstance(judge("ask", subject, of_tool, HERE), Allow) == (f"mcp__{server}__{tool}" == subject.tool)
    for entry in ([ApprovalEntry(tool="bash", pattern="*")], [ApprovalEntry(tool="mcp", pattern="*")]):
        assert isinstance(judge("ask", subject, entry, HERE), Ask)
