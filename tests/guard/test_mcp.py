"""Calls of MCP servers: the table of modes, and what a lasting answer covers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.approval import judge, refusal_text
from tenuto.guard.kinds import kinds_of
from tenuto.guard.rules import RuleError, read_rule, rule_of
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse
from tenuto.protocol.entry import ApprovalEntry

HERE = "/w"
WORDS = st.text("ab_", min_size=1, max_size=3)


def call(name: str) -> ApprovalSubject:
    return ApprovalSubject(kind="mcp", tool=name, summary=name)


@pytest.mark.parametrize(("mode", "verdict"), [("ask", Ask), ("edits", Ask), ("auto", Allow), ("plan", Refuse)])
def test_the_table_of_modes(mode, verdict):
    assert isinstance(judge(mode, call("mcp__git__add"), [], [HERE]), verdict)
    assert isinstance(judge(mode, call("mcp__git__add"), [read_rule("mcp__git")], [HERE]), Allow)


@pytest.mark.parametrize("mode", ["ask", "edits", "auto", "plan"])
@pytest.mark.parametrize("wide", ["mcp__git", "mcp__git__add"])
def test_deny_goes_before_ask_and_ask_before_allow_in_every_mode(mode, wide):
    allows, asks, denies = read_rule("mcp__git"), read_rule(wide, "ask"), read_rule(wide, "deny")
    assert isinstance(judge(mode, call("mcp__git__add"), [allows, asks], [HERE]), Ask)
    assert isinstance(judge(mode, call("mcp__git__add"), [allows, asks, denies], [HERE]), Refuse)


def test_a_question_names_the_mode_and_the_rule_that_would_not_ask_and_offers_the_tool_and_its_server():
    subject = call("mcp__git__add")
    asked = judge("ask", subject, [], [HERE])
    assert isinstance(asked, Ask) and asked.allowed_by == "auto"
    assert [kind.rules for kind in asked.kinds] == [("mcp__git__add",), ("mcp__git",)]
    told = refusal_text(asked, subject, HERE)
    assert "--mode auto" in told and "--allow mcp__git__add" in told


@pytest.mark.parametrize("rule", ["mcp__git", "mcp__git__*", "mcp__git__add", "mcp__git__add(*)"])
def test_rules_are_read(rule):
    assert isinstance(judge("ask", call("mcp__git__add"), [read_rule(rule)], [HERE]), Allow)
    assert isinstance(judge("ask", call("mcp__hub__add"), [read_rule(rule)], [HERE]), Ask)
    assert read_rule(read_rule(rule).text) == read_rule(rule)


@pytest.mark.parametrize("rule", ["mcp__", "mcp__*", "mcp__my server", "mcp__a.b", "mcp__git__add(x)", "mcp__git__"])
def test_what_would_cover_nothing_is_no_rule(rule):
    with pytest.raises(RuleError, match="mcp__server__tool"):
        read_rule(rule)


@given(WORDS, WORDS, WORDS, WORDS)
def test_an_answer_never_reaches_another_server_or_tool(server, tool, other_server, other_tool):
    """A server's part has no joint in it: what stands before the second one is the whole of it."""
    server, other_server = (word.replace("__", "_").strip("_") or "s" for word in (server, other_server))
    subject = call(f"mcp__{other_server}__{other_tool}")
    of_server = rule_of(ApprovalEntry(tool=f"mcp__{server}", pattern="", form="rule"))
    assert isinstance(judge("ask", subject, [of_server], [HERE]), Allow) == (server == other_server)
    of_tool = rule_of(ApprovalEntry(tool=f"mcp__{server}__{tool}", pattern="", form="rule"))
    assert isinstance(judge("ask", subject, [of_tool], [HERE]), Allow) == (of_tool.tool == subject.tool)
    for text in ("bash", "fetch"):
        assert isinstance(judge("ask", subject, [read_rule(text)], [HERE]), Ask)


@given(WORDS, WORDS)
def test_each_kind_covers_the_call_that_it_was_made_of(server, tool):
    subject = call(f"mcp__{server.replace('__', '_').strip('_') or 's'}__{tool}")
    for kind in kinds_of(subject, [HERE]):
        rules = [read_rule(text) for text in kind.rules]
        assert isinstance(judge("plan", subject, rules, [HERE]), Allow)
