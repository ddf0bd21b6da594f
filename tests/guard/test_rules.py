from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenuto.guard.approval import judge
from tenuto.guard.rules import (
    Rule,
    RuleError,
    exact_command,
    exact_path,
    read_rule,
    read_rules,
    rule_of,
    settle,
    standing_rules,
)
from tenuto.guard.subject import Allow, ApprovalSubject, Ask, Refuse, resolve_path
from tenuto.protocol.entry import ApprovalEntry
from tests.guard.subjects import ROOT, run

READ = {
    "bash(pytest *)": "bash(pytest *)",
    "Bash(npm run:*)": "bash(npm run *)",
    "Bash": "bash",
    "bash()": "bash",
    "bash(*)": "bash",
    "edit(src/**)": "edit(src/**)",
    "Edit(src/**)": "edit(src/**)",
    "Write(a b)": "edit(a b)",
    "MultiEdit(x)": "edit(x)",
    "Grep": "read",
    "Read(//etc/hosts)": "read(//etc/hosts)",
    "fetch(example.org)": "fetch(domain:example.org)",
    "WebFetch(domain:Example.org)": "fetch(domain:example.org)",
    "fetch(https://example.org/)": "fetch(https://example.org)",
    "fetch(domain:*)": "fetch",
    "bash(echo (x))": "bash(echo (x))",
    "  bash( make test ) ": "bash(make test)",
}


@pytest.mark.parametrize(("text", "canonical"), READ.items())
def test_reading_a_rule_and_writing_it(text: str, canonical: str) -> None:
    rule = read_rule(text)
    assert rule.text == canonical
    assert read_rule(rule.text) == rule


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("bsh(x)", "did you mean bash"),
        ("bash(x", "tool(pattern)"),
        ("", "tool(pattern)"),
        ("(x)", "tool(pattern)"),
        ("bash('x *)", "not closed"),
        ("fetch(a b)", "fetch(domain:example.org)"),
    ],
)
def test_what_is_no_rule_says_so(text: str, part: str) -> None:
    with pytest.raises(RuleError, match="“") as error:
        read_rule(text)
    assert part in str(error.value).lower()


def test_rules_that_cannot_be_read_are_named_and_the_others_hold() -> None:
    rules, problems = read_rules({"allow": ["bash(a *)", "nothing"], "deny": ["fetch"]}, "settings")
    assert [rule.origin for rule in rules] == ["bash(a *) (your settings)", "fetch (your settings)"]
    assert len(problems) == 1
    assert "nothing" in problems[0]


TEXTS = st.text(
    st.sampled_from("ab *\\():'\"\n/.") | st.characters(codec="utf-8", exclude_characters="\0"), max_size=12
)


@given(TEXTS)
def test_a_command_s_own_pattern_is_written_and_read_and_stands_for_it_alone(text: str) -> None:
    command = f"x{text}"
    rule = Rule(tool="bash", pattern=exact_command(command))
    assert read_rule(rule.text) == rule
    for other in (f"{command} y", f"{command}y", "x", f"{command} *", command.replace("*", "b")):
        verdict = judge("ask", run(other), [rule], [ROOT])
        if other.strip() == command.strip():
            assert isinstance(verdict, Allow)
        elif isinstance(verdict, Allow):
            # What only sets a variable runs unasked, whatever the rules say
            assert (
                other.split() == command.split()
                or "=" in command
                or "'" in command
                or '"' in command
                or "\\" in command
            )


@given(TEXTS)
def test_a_path_s_own_pattern_is_written_and_read_and_stands_for_it_alone(text: str) -> None:
    path = f"/x{text}".rstrip("/")
    rule = Rule(tool="edit", pattern=exact_path(path))
    assert read_rule(rule.text) == rule
    for other in (path, f"{path}/y", f"{path}y", path.replace("*", "b"), path.replace("\\", "")):
        what = ApprovalSubject(kind="edit", tool="edit", summary="", paths=(other,))
        assert isinstance(judge("ask", what, [rule], [ROOT]), Allow) == (other == path)


def edit(path: Path | str) -> ApprovalSubject:
    real = str(resolve_path(str(path), Path("/")))
    return ApprovalSubject(kind="edit", tool="edit", summary="", paths=(real,))


GLOBS = [
    ("edit(src/**)", "src/a/b.py", True),
    ("edit(src/**)", "src", True),
    ("edit(src/)", "src/a", True),
    ("edit(src/**)", "srcs/a", False),
    ("edit(src/*)", "src/a.py", True),
    ("edit(src/*)", "src/a/b.py", False),
    ("edit(src/**/*.py)", "src/a.py", True),
    ("edit(src/**/*.py)", "src/a/b/c.py", True),
    ("edit(src/**/*.py)", "src/a/b/c.txt", False),
    ("edit(**/*.md)", "docs/a.md", True),
    ("edit(*.md)", "a.md", True),
    ("edit(*.md)", "docs/a.md", False),
    ("edit(a?c)", "abc", True),
    ("edit(a?c)", "a/c", False),
    ("edit(./src/../lib/**)", "lib/x", True),
    ("edit([a])", "a", False),
    ("edit", "any/thing", True),
]


@pytest.mark.parametrize(("text", "path", "expected"), GLOBS)
def test_paths_of_rules(tmp_path: Path, text: str, path: str, expected: bool) -> None:
    for effect, kind in (("allow", Allow), ("deny", Refuse)):
        rules = list(settle([read_rule(text, effect)], tmp_path))
        assert isinstance(judge("ask", edit(tmp_path / path), rules, [str(tmp_path)]), kind) == expected


def test_r087_an_allow_rule_of_the_workspace_never_leads_out_of_it_by_a_link(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    for place in (work / "lib", outside):
        place.mkdir(parents=True)
    (work / "src").symlink_to(outside)
    (work / "inner").symlink_to("lib")
    (work / "file").symlink_to(outside / "f")
    (work / "dangling").symlink_to(outside / "none")
    (work / "loop").symlink_to("loop")
    for text in ("edit(src/**)", "edit(src/*)", "edit(file)", "edit(dangling)", "edit(loop)", "edit(loop/**)"):
        rules = list(settle([read_rule(text)], work))
        for path in (outside / "f", outside / "none", outside / "x"):
            assert isinstance(judge("ask", edit(path), rules, [str(work)]), Ask), text
    (inside,) = settle([read_rule("edit(inner/**)")], work)
    assert isinstance(judge("ask", edit(work / "inner" / "x"), [inside], [str(work)]), Allow)
    named = list(settle([read_rule("edit(../outside/**)")], work))
    assert isinstance(judge("ask", edit(work / "src" / "x"), named, [str(work)]), Allow), "the user named it"


def test_r087_a_deny_rule_holds_for_what_is_written_and_for_what_it_leads_to(tmp_path: Path) -> None:
    work, outside = tmp_path / "work", tmp_path / "outside"
    work.mkdir()
    outside.mkdir()
    (work / "src").symlink_to(outside)
    rules = list(settle([read_rule("edit(src/**)", "deny")], work))
    for path in (work / "src" / "x", outside / "x"):
        assert isinstance(judge("auto", edit(path), rules, [str(work)]), Refuse)
    loop = list(settle([read_rule("edit(loop/**)", "deny")], work))
    (work / "loop").symlink_to("loop")
    assert loop


def test_a_deny_rule_does_not_see_upper_and_lower_case() -> None:
    rule = read_rule("edit(/home/me/project/secret/**)", "deny")
    what = ApprovalSubject(kind="edit", tool="edit", summary="", paths=("/home/me/project/SECRET/x",))
    assert isinstance(judge("auto", what, [rule], [ROOT]), Refuse)
    assert isinstance(judge("ask", what, [read_rule("edit(/home/me/project/secret/**)")], [ROOT]), Ask)


DENIED = """
rm x
cd sub && rm -r y
/bin/rm x
sudo rm x
env A=1 rm x
A=1 rm x
timeout 5 rm x
echo $(rm x)
echo "`rm x`"
bash -c 'rm x'
sh -c "cd / && rm x"
find . -exec rm {} +
ls | xargs rm
if true; then rm x; fi
for f in a; do rm $f; done
(rm x)
ls; { rm x; }
cat <(rm x)
ls &
rm x &
ls 'unbalanced; rm x
""".replace("ls &\n", "")


@pytest.mark.parametrize("line", DENIED.strip().splitlines())
@pytest.mark.parametrize("mode", ["ask", "edits", "auto"])
def test_a_deny_rule_that_matches_any_simple_command_denies_the_line(mode: str, line: str) -> None:
    what = run(line)
    assert isinstance(judge(mode, what, [read_rule("bash(rm *)", "deny"), read_rule("bash")], [ROOT]), Refuse)
    assert isinstance(judge(mode, what, [read_rule("bash(rm *)", "ask"), read_rule("bash")], [ROOT]), Ask)


@pytest.mark.parametrize("line", ["git push", "git -C x push -f", "git -c a=b push", "ls && git push origin"])
def test_options_before_a_subcommand_do_not_hide_it(line: str) -> None:
    what = run(line)
    assert isinstance(judge("auto", what, [read_rule("bash(git push *)", "deny")], [ROOT]), Refuse)


@pytest.mark.parametrize("line", ["echo rm", "ls rm", "git rm x", "pytest", "echo 'no more'"])
def test_a_deny_rule_leaves_other_commands_alone(line: str) -> None:
    what = run(line)
    assert isinstance(judge("auto", what, [read_rule("bash(rm *)", "deny")], [ROOT]), Allow)


HOSTS = [
    ("fetch(example.org)", "https://example.org", True),
    ("fetch(example.org)", "http://example.org", True),
    ("fetch(example.org)", "https://example.org:8443", False),
    ("fetch(example.org:8443)", "https://example.org:8443", True),
    ("fetch(example.org)", "https://a.example.org", False),
    ("fetch(*.example.org)", "https://a.example.org", True),
    ("fetch(*.example.org)", "https://example.org", False),
    ("fetch(*.example.org)", "https://evilexample.org", False),
    ("fetch(https://example.org)", "http://example.org", False),
    ("fetch", "https://example.org", True),
]


@pytest.mark.parametrize(("text", "origin", "expected"), HOSTS)
def test_hosts_of_rules(text: str, origin: str, expected: bool) -> None:
    what = ApprovalSubject(kind="network", tool="fetch", summary="", pattern=origin)
    assert isinstance(judge("ask", what, [read_rule(text)], [ROOT]), Allow) == expected


def test_answers_of_earlier_versions_stand_for_exactly_what_they_did(tmp_path: Path) -> None:
    star = ApprovalEntry(tool="bash", pattern="make *")
    folder = ApprovalEntry(tool="write", pattern=f"{tmp_path}/**")
    assert rule_of(star).text == r"bash(make \*)"
    assert rule_of(folder).text == f"edit({tmp_path}/**)"
    rules = standing_rules([], [star, folder], tmp_path)
    for line, expected in (("make *", Allow), ("make all", Ask)):
        what = run(line)
        assert isinstance(judge("ask", what, rules, [str(tmp_path)]), expected)
    assert isinstance(judge("ask", edit(tmp_path / "x"), rules, [str(tmp_path)]), Allow)


def test_an_answer_that_a_later_version_wrote_allows_nothing(tmp_path: Path) -> None:
    assert standing_rules([], [ApprovalEntry(tool="teleport", pattern="x", form="rule")], tmp_path) == []
