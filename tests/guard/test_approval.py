from __future__ import annotations

import re
from itertools import permutations
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tenuto.guard.approval import judge, refusal_text
from tenuto.guard.rules import Rule, read_rule
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse
from tenuto.protocol.entry import Mode
from tests.guard.subjects import ROOT, run

README = Path(__file__).parents[2] / "README.md"
PLACES = (ROOT,)
MODES: list[Mode] = ["ask", "edits", "auto", "plan"]
LETTERS = {Allow: "a", Ask: "?", Refuse: "x"}


def subject(
    kind: Any, tool: str, *paths: str, pattern: str = "", detail: str = "", concerns: Any = (), **more: Any
) -> ApprovalSubject:
    return ApprovalSubject(
        kind=kind, tool=tool, summary="s", paths=paths, pattern=pattern, detail=detail, concerns=concerns, **more
    )


READ_IN = subject("read", "read", f"{ROOT}/a")
READ_OUT = subject("read", "read", "/etc/passwd", folder="/etc")
READ_KEY = subject("read", "read", f"{ROOT}/id_rsa", concerns=("id_rsa holds keys",))
EDIT_IN = subject("edit", "edit", f"{ROOT}/a")
EDIT_OUT = subject("edit", "write", "/home/me/other")
EDIT_SIBLING = subject("edit", "edit", f"{ROOT}-two/a")
EDIT_LINKED = subject("edit", "edit", f"{ROOT}/a", concerns=("a is a hard link",), hard_linked=True)
EDIT_HOOK = subject("edit", "edit", f"{ROOT}/.git/hooks/x", concerns=(".git/hooks/x can make other programs run code",))
RUN = run("make test")
LOOK = run("cat a")
LOOK_OUT = run("cat /etc/passwd")
RUN_OUT = run("rm -rf /etc/x")
RUN_HOOK = run("cp x .git/hooks/y")
WEB = subject("network", "fetch", pattern="https://x.org")
WEB_LOCAL = subject("network", "fetch", pattern="http://localhost", concerns=("localhost is private",))
TODO = subject("none", "todo")
TABLE: list[tuple[ApprovalSubject, str]] = [
    # ask, edits, auto, plan: a allow, ? ask, x refuse
    (READ_IN, "aaaa"),
    (READ_OUT, "??a?"),
    (READ_KEY, "????"),
    (EDIT_IN, "?aax"),
    (EDIT_OUT, "???x"),
    (EDIT_SIBLING, "???x"),
    (EDIT_LINKED, "???x"),
    (EDIT_HOOK, "???x"),
    (RUN, "??ax"),
    (LOOK, "aaaa"),
    (LOOK_OUT, "??ax"),
    (RUN_OUT, "???x"),
    (RUN_HOOK, "???x"),
    (WEB, "??a?"),
    (WEB_LOCAL, "????"),
    (TODO, "aaaa"),
]


def verdicts(what: ApprovalSubject, *rules: Rule) -> str:
    return "".join(LETTERS[type(judge(mode, what, rules, PLACES))] for mode in MODES)


@pytest.mark.parametrize(("what", "expected"), TABLE)
def test_modes(what: ApprovalSubject, expected: str) -> None:
    assert verdicts(what) == expected


def test_more_places_count_as_workspace() -> None:
    assert isinstance(judge("edits", EDIT_SIBLING, [], (ROOT, f"{ROOT}-two")), Allow)
    assert isinstance(judge("edits", EDIT_OUT, [], (ROOT, f"{ROOT}-two")), Ask)


def test_plan_mode_says_what_it_is_and_what_to_do() -> None:
    verdict = judge("plan", RUN, [], PLACES)
    assert isinstance(verdict, Refuse)
    assert "Plan mode" in verdict.reason
    assert "/mode" in verdict.reason
    assert "Shift+Tab" not in verdict.reason, "keys are the user's own"


CALLS: dict[str, ApprovalSubject] = {
    "bash(make test)": RUN,
    "bash(make *)": RUN,
    "bash": RUN,
    f"edit({ROOT}/a)": EDIT_IN,
    f"edit({ROOT}/**)": EDIT_IN,
    "edit": EDIT_IN,
    "read(/etc/passwd)": READ_OUT,
    "read(/etc/**)": READ_OUT,
    "fetch(domain:x.org)": WEB,
    "fetch(https://x.org)": WEB,
    "fetch": WEB,
}


@pytest.mark.parametrize("text", CALLS)
def test_deny_wins_over_ask_and_ask_over_allow_from_every_source_in_every_order(text: str) -> None:
    what = CALLS[text]
    for sources in permutations(("settings", "option", "session", "project"), 3):
        allow, ask, deny = (
            read_rule(text, effect, source) for effect, source in zip(("allow", "ask", "deny"), sources, strict=True)
        )
        assert isinstance(judge("ask", what, [allow], PLACES), Allow)
        for mode in MODES:
            for rules in permutations((allow, ask)):
                assert isinstance(judge(mode, what, rules, PLACES), Ask | Refuse)
            if mode != "plan":
                verdict = judge(mode, what, (allow, ask), PLACES)
                assert isinstance(verdict, Ask)
                assert verdict.rule == text and not verdict.kinds, "no answer changes what the rule says"
            for rules in permutations((allow, ask, deny)):
                verdict = judge(mode, what, rules, PLACES)
                assert isinstance(verdict, Refuse)
                assert verdict.rule == text
                assert text in verdict.reason and text in verdict.why


def test_a_rule_never_opens_plan_mode() -> None:
    assert isinstance(judge("plan", RUN, [read_rule("bash(make test)")], PLACES), Refuse)
    assert isinstance(judge("plan", EDIT_IN, [read_rule("edit")], PLACES), Refuse)


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
@pytest.mark.parametrize("text", ["edit", f"edit({ROOT}/**)", f"edit({ROOT}/**/*)", "edit(/home/**)", "edit(/**)"])
def test_s9_no_answer_for_the_workspace_covers_protected_names_or_hard_links(mode: Mode, text: str) -> None:
    rule = read_rule(text)
    assert isinstance(judge(mode, EDIT_IN, [rule], PLACES), Allow)
    for what in (EDIT_HOOK, EDIT_LINKED):
        assert isinstance(judge(mode, what, [rule], PLACES), Ask)


@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_s9_a_rule_that_names_it_covers_a_protected_name(mode: Mode) -> None:
    for text in (f"edit({ROOT}/.git/hooks/x)", f"edit({ROOT}/.git/hooks/**)", f"edit({ROOT}/.git/**)"):
        assert isinstance(judge(mode, EDIT_HOOK, [read_rule(text)], PLACES), Allow)
    assert isinstance(judge(mode, EDIT_LINKED, [read_rule(f"edit({ROOT}/a)")], PLACES), Allow)
    for text in ("bash(cp *)", f"edit({ROOT}/.git/**)"):
        assert isinstance(judge(mode, RUN_HOOK, [read_rule(text)], PLACES), Ask)
    assert isinstance(judge(mode, RUN_HOOK, [read_rule("bash(cp x .git/hooks/y)")], PLACES), Allow)


def test_one_answer_covers_edit_and_write_alike_and_nothing_else() -> None:
    for rule in (read_rule(f"{tool}({ROOT}/**)") for tool in ("edit", "write", "apply_patch")):
        for tool in ("edit", "write", "apply_patch"):
            assert isinstance(judge("ask", subject("edit", tool, f"{ROOT}/b"), [rule], PLACES), Allow)
        for what in (EDIT_OUT, EDIT_SIBLING, RUN, WEB):
            assert isinstance(judge("ask", what, [rule], PLACES), Ask)
    both = subject("edit", "apply_patch", f"{ROOT}/src/a", f"{ROOT}/b")
    assert isinstance(judge("ask", both, [read_rule(f"edit({ROOT}/src/**)")], PLACES), Ask)


def test_what_denies_a_path_denies_the_command_that_names_it() -> None:
    looking = msgspec.structs.replace(LOOK, paths=(f"{ROOT}/a",))
    rules = [read_rule(f"read({ROOT}/a)", "deny")]
    assert isinstance(judge("auto", looking, rules, PLACES), Refuse)
    assert isinstance(judge("auto", looking, [read_rule(f"edit({ROOT}/a)", "deny")], PLACES), Allow)
    changing = msgspec.structs.replace(run("sed -i s/a/b/ a"), paths=(f"{ROOT}/a",))
    assert isinstance(judge("auto", changing, [read_rule(f"edit({ROOT}/**)", "deny")], PLACES), Refuse)


def test_headless_refusal_names_the_mode_and_the_rule_that_would_allow_it() -> None:
    for mode, what, parts in (
        ("ask", EDIT_IN, ("--mode edits", "--allow 'edit(**)'")),
        ("ask", RUN, ("--mode auto", "--allow 'bash(make *)'")),
        ("auto", EDIT_OUT, ("No mode", "--allow 'edit(/home/me/other)'")),
        ("ask", WEB, ("--mode auto", "--allow 'fetch(domain:x.org)'")),
    ):
        verdict = judge(mode, what, [], PLACES)
        assert isinstance(verdict, Ask)
        text = refusal_text(verdict, what, ROOT)
        assert all(part in text for part in parts), text
    verdict = judge("auto", RUN, [read_rule("bash(make *)", "ask")], PLACES)
    assert isinstance(verdict, Ask)
    assert "your rule asks: bash(make *) (your settings)" in refusal_text(verdict, RUN, ROOT)


def test_the_table_of_the_readme_is_true() -> None:
    """Line by line; what its words mean stands here."""
    leaves = msgspec.structs.replace(RUN, leaves_sandbox="why")
    words = {"ask": "?", "run": "a", "refused": "x"}
    lines = re.findall(r"^\| `(\w+)` \| (.*) \| (.*) \| (.*) \|$", README.read_text("utf-8"), re.MULTILINE)
    table = {mode: cells for mode, *cells in lines if mode in MODES}
    assert set(table) == set(MODES)
    for place, mode in enumerate(MODES):
        edits, commands, outside = table[mode]
        assert verdicts(EDIT_IN)[place] == words[edits]
        run = verdicts(RUN)[place]
        said = re.fullmatch(r"run in the sandbox; outside of it (\w+)", commands)
        assert (run, verdicts(leaves)[place]) == (("a", words[said[1]]) if said else (words[commands],) * 2)
        each = re.fullmatch(r"reads (\w+), writes (\w+)", outside)
        expected = (words[each[1]], words[each[2]]) if each else (words[outside],) * 2
        assert (verdicts(READ_OUT)[place], verdicts(EDIT_OUT)[place]) == expected
