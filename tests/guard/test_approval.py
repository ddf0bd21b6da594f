from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tenuto.guard.approval import judge, refusal_text
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse
from tenuto.protocol.entry import ApprovalEntry, Mode

ROOT = Path("/home/me/project")


def subject(
    kind: Any, tool: str, *paths: str, pattern: str = "", detail: str = "", concerns: Any = ()
) -> ApprovalSubject:
    return ApprovalSubject(
        kind=kind, tool=tool, summary="s", paths=paths, pattern=pattern or detail, detail=detail, concerns=concerns
    )


READ_IN = subject("read", "read", f"{ROOT}/a")
READ_OUT = subject("read", "read", "/etc/passwd", pattern="/etc/passwd")
EDIT_IN = subject("edit", "edit", f"{ROOT}/a", pattern=f"{ROOT}/**")
EDIT_OUT = subject("edit", "write", "/home/me/other", pattern="/home/me/other")
EDIT_SIBLING = subject("edit", "edit", f"{ROOT}-two/a", pattern=f"{ROOT}-two/a")
EDIT_LINKED = subject("edit", "edit", f"{ROOT}/a", pattern=f"{ROOT}/a", concerns=("a is a hard link",))
RUN = subject("execute", "bash", detail="make test")
LOOK = ApprovalSubject(kind="execute", tool="bash", summary="s", detail="cat a", pattern="cat a", reads=True)
LOOK_OUT = ApprovalSubject(kind="execute", tool="bash", summary="s", detail="cat k", reason="reads outside: /etc/k")
RUN_OUT = ApprovalSubject(kind="execute", tool="bash", summary="s", detail="rm -rf /etc/x", writes=("/etc/x",))
RIDDLE = ApprovalSubject(kind="execute", tool="bash", summary="s", detail="f() { x; }", problem="it defines a function")
WEB = subject("network", "fetch", pattern="https://x.org")
WEB_LOCAL = subject("network", "fetch", pattern="http://localhost", concerns=("localhost is private",))
TODO = subject("none", "todo")
TABLE: list[tuple[ApprovalSubject, str]] = [
    # ask, edits, auto, plan: a allow, ? ask, x refuse
    (READ_IN, "aaaa"),
    (READ_OUT, "??a?"),
    (EDIT_IN, "?aax"),
    (EDIT_OUT, "???x"),
    (EDIT_SIBLING, "???x"),
    (EDIT_LINKED, "???x"),
    (RUN, "??ax"),
    (LOOK, "aaaa"),
    (LOOK_OUT, "??ax"),
    (RUN_OUT, "???x"),
    (RIDDLE, "???x"),
    (WEB, "??a?"),
    (WEB_LOCAL, "????"),
    (TODO, "aaaa"),
]


@pytest.mark.parametrize(("what", "expected"), TABLE)
def test_modes(what: ApprovalSubject, expected: str) -> None:
    modes: list[Mode] = ["ask", "edits", "auto", "plan"]
    letters = {Allow: "a", Ask: "?", Refuse: "x"}
    assert "".join(letters[type(judge(mode, what, [], ROOT))] for mode in modes) == expected


def test_plan_mode_says_what_it_is_and_what_to_do() -> None:
    verdict = judge("plan", RUN, [], ROOT)
    assert isinstance(verdict, Refuse)
    assert "Plan mode" in verdict.reason
    assert "/mode" in verdict.reason
    assert "Shift+Tab" not in verdict.reason, "keys are the user's own"


def test_a_standing_answer_allows_exactly_that_command() -> None:
    standing = [ApprovalEntry(tool="bash", pattern="make test")]
    assert isinstance(judge("ask", RUN, standing, ROOT), Allow)
    for other in ("make test; rm x", "make test x", "make  test", "make"):
        assert isinstance(judge("ask", subject("execute", "bash", detail=other), standing, ROOT), Ask)


def test_what_always_would_allow_is_what_then_is_allowed() -> None:
    for what in (READ_OUT, EDIT_IN, EDIT_OUT, RUN, WEB, EDIT_LINKED):
        verdict = judge("ask", what, [], ROOT)
        assert isinstance(verdict, Ask)
        standing = [ApprovalEntry(tool=what.tool, pattern=verdict.session_pattern)]
        assert isinstance(judge("ask", what, standing, ROOT), Allow)


def test_a_standing_answer_for_edits_covers_write_but_no_concern_and_nothing_outside() -> None:
    standing = [ApprovalEntry(tool="edit", pattern=f"{ROOT}/**")]
    assert isinstance(judge("ask", subject("edit", "write", f"{ROOT}/b"), standing, ROOT), Allow)
    patch = subject("edit", "apply_patch", f"{ROOT}/b", f"{ROOT}/c")
    assert isinstance(judge("ask", patch, standing, ROOT), Allow)
    other = [ApprovalEntry(tool="apply_patch", pattern=f"{ROOT}/**")]
    assert isinstance(judge("ask", subject("edit", "edit", f"{ROOT}/b"), other, ROOT), Allow)
    partly = subject("edit", "apply_patch", f"{ROOT}/b", "/elsewhere/c")
    for mode in ("ask", "edits", "auto"):
        assert isinstance(judge(mode, partly, standing, ROOT), Ask)
    assert isinstance(judge("ask", EDIT_LINKED, standing, ROOT), Ask)
    assert isinstance(judge("ask", EDIT_OUT, standing, ROOT), Ask)
    assert isinstance(judge("ask", EDIT_SIBLING, standing, ROOT), Ask)
    assert isinstance(judge("ask", RUN, standing, ROOT), Ask)


def test_a_standing_answer_never_opens_plan_mode() -> None:
    assert isinstance(judge("plan", RUN, [ApprovalEntry(tool="bash", pattern="make test")], ROOT), Refuse)


def test_headless_refusal_names_the_mode_that_would_allow_it() -> None:
    verdict = judge("ask", EDIT_IN, [], ROOT)
    assert isinstance(verdict, Ask)
    assert "--mode edits" in refusal_text(verdict, EDIT_IN)
    verdict = judge("ask", RUN, [], ROOT)
    assert isinstance(verdict, Ask)
    assert "--mode auto" in refusal_text(verdict, RUN)
    verdict = judge("auto", EDIT_OUT, [], ROOT)
    assert isinstance(verdict, Ask)
    text = refusal_text(verdict, EDIT_OUT)
    assert "No mode" in text
    assert "/home/me/other" in text
