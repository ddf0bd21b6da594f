"""Kinds of calls: what is offered together with a call, that it covers that call, and what it never covers."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tenuto.guard.approval import judge
from tenuto.guard.kinds import CHANGES, kinds_of
from tenuto.guard.rules import Rule, read_rule, settle
from tenuto.guard.subject import Allow, ApprovalSubject, Ask
from tests.guard.subjects import ROOT, run


def covered(command: str, *rules: str) -> bool:
    read = [read_rule(rule) for rule in rules]
    return isinstance(judge("ask", run(command), read, [ROOT]), Allow)


KINDS = {
    "pytest -q tests": ["pytest *"],
    "pytest": ["pytest *"],
    "git commit -m 'a b'": ["git commit *"],
    "npm run build": ["npm run *"],
    "npm test": ["npm test *"],
    "cargo test --lib": ["cargo test *"],
    "go test ./...": ["go test *"],
    "uv run pytest -x": ["uv run pytest *"],
    "uv run python -m pytest": ["uv run python -m pytest *"],
    "python -m pytest tests": ["python -m pytest *"],
    "python3 manage.py migrate": ["python3 manage.py *"],
    "docker compose up -d": ["docker compose up *"],
    "gh pr view 3": ["gh pr view *"],
    "npx eslint src": ["npx eslint *"],
    "./x.sh a": ["./x.sh *"],
    "scripts/test -q": ["scripts/test *"],
    "make": ["make *"],
    "sh x.sh a": ["sh x.sh *"],
    "ruff check . && pytest -q": ["ruff check *", "pytest *"],
    "pytest -q 2>&1 | tail -20": ["pytest *"],
    "git add -A && git commit -m x": ["git add *", "git commit *"],
    "pytest a; pytest b": ["pytest *"],
}
KINDS |= {"pytest $X": ["pytest *"], "pytest `x`": ["pytest *", "x *"], "(make)": ["make *"]}
KINDS["ruff check . && pytest -q"] = ["ruff *", "pytest *"]


@pytest.mark.parametrize("command", KINDS)
def test_the_kind_of_a_command_and_that_it_covers_it(command: str) -> None:
    kinds = kinds_of(run(command), [ROOT])
    assert list(kinds[0].rules) == [f"bash({pattern})" for pattern in KINDS[command]]
    assert kinds[-1].covers == "this exact command"
    for kind in kinds:
        assert covered(command, *kind.rules)
    assert not covered(command, *kinds[0].rules[1:]), "all that it needs together"


EXACT_ONLY = """
python -c 'import os'
python3
bash -c ls
sudo make install
env A=1 make
xargs rm
timeout 5 pytest
rm -rf build
rm -rf /
chmod -R 777 .
find . -delete
cat /etc/passwd
ssh host ls
node -e 1
perl -pi -e s/a/b/ f
A=1 pytest
pytest > out
$X pytest
p* x
git config --global x y
docker run x
uv run
uv run python -c 1
npm
pytest && rm -rf build
pytest; sudo x
"""


@pytest.mark.parametrize("command", [line for line in EXACT_ONLY.splitlines() if line])
def test_only_the_exact_command_is_offered_where_a_kind_would_say_too_little(command: str) -> None:
    (kind,) = kinds_of(run(command), [ROOT])
    assert kind.covers == "this exact command"
    assert covered(command, *kind.rules)
    for other in (f"{command} x", f"{command}; x", "x", f"x && {command}"):
        assert not covered(other, *kind.rules)


def test_s14_a_program_of_the_project_may_change_and_it_is_said() -> None:
    for command in ("./x.sh", "make all", "npm run x", "scripts/a/b x", "sh x.sh", "python3 manage.py x"):
        assert kinds_of(run(command), [ROOT])[0].note == CHANGES
    assert not kinds_of(run("pytest"), [ROOT])[0].note


R083 = """
git status; x
git status && x
git status || x
git status | x
git status $(x)
git status `x`
git status <(x)
git status > file
git status >> file
git -c core.pager=x status
A=1 git status
LD_PRELOAD=x git status
env git status
sudo git status
(git status; x)
if git status; then x; fi
git status --ext-diff
gitk status
'git status'
"""


@pytest.mark.parametrize("line", [*R083.strip().splitlines(), "git status\nx", "git status ${x@P}"])
def test_r083_a_prefix_rule_covers_no_line_with_another_command(line: str) -> None:
    assert covered("git push -f", "bash(git push *)")
    assert not covered(line.replace("git status", "git push"), "bash(git push *)")
    assert not covered(line.replace("git status", "git push"), "bash(git push)")


@pytest.mark.parametrize("option", ["-exec x ;", "-execdir x ;", "-ok x ;", "-okdir x ;", "-delete", "-fprint f"])
def test_r084_an_allowed_find_does_not_run_delete_or_write(option: str) -> None:
    assert covered("find / -name x", "bash(find *)")
    assert not covered(f"find / {shlex.join(option.split())}", "bash(find *)")


@pytest.mark.parametrize("program", "python python3.12 bash sh node perl ruby sudo env xargs ssh eval".split())  # noqa: SIM905
def test_r084_interpreters_are_never_allowed_by_prefix(program: str) -> None:
    assert not covered(f"{program} -c x", f"bash({program} *)")
    assert not covered(f"{program} x", f"bash({program} *)")


WORDS = st.sampled_from(
    ["pytest", "git", "commit", "npm", "run", "-m", "x y", "a;b", "*", "$X", "-q", "src/a.py", "make"]
)
LINES = st.lists(WORDS, min_size=1, max_size=5).map(shlex.join)
RAW = st.text(st.sampled_from("ab -;&|$`<>(){}*?'\"\\\n=/.#!~"), min_size=1, max_size=12)
OTHERS = st.sampled_from(["curl x", "rm -rf a", "tee f", "sh", "./evil"])
JOINTS = st.sampled_from(["; ", " && ", " || ", " | ", "\n", " & "])


@given(LINES | st.builds("{} && {}".format, LINES, LINES), OTHERS, JOINTS)
def test_a_kind_covers_its_call_and_no_line_with_another_command(line: str, other: str, joint: str) -> None:
    for kind in kinds_of(run(line), [ROOT]):
        assert covered(line, *kind.rules), kind
        for longer in (f"{line}{joint}{other}", f"{other}{joint}{line}", f"{line} $({other})", f"{line} > {other}"):
            assert not covered(longer, *kind.rules), (kind, longer)


@given(RAW)
def test_whatever_a_line_is_its_kinds_cover_it(line: str) -> None:
    assume(line.strip())
    for kind in kinds_of(run(line), [ROOT]):
        assert covered(line, *kind.rules)


PARTS = st.text(st.sampled_from("abAB.*?[]()\\ -é"), min_size=1, max_size=6).filter(
    lambda part: part not in {".", ".."}
)
PATHS = st.lists(PARTS, min_size=1, max_size=4).map(lambda parts: f"{ROOT}/{'/'.join(parts)}")


@given(PATHS, PATHS)
def test_the_kinds_of_an_edit_cover_it_and_nothing_beside(path: str, other: str) -> None:
    edit = ApprovalSubject(kind="edit", tool="edit", summary="s", paths=(path,))
    kinds = kinds_of(edit, [ROOT])
    assert kinds[-1].covers == "edits of s"
    for kind in kinds:
        rules = list(settle([read_rule(rule) for rule in kind.rules], Path(ROOT)))
        assert isinstance(judge("ask", edit, rules, [ROOT]), Allow), kind
        beside = ApprovalSubject(kind="edit", tool="write", summary="s", paths=(other,))
        folder = path.rpartition("/")[0]
        inside = "below" in kind.covers and (f"{other}/".startswith(f"{folder}/") or "working directory" in kind.covers)
        if other != path and not inside:
            assert isinstance(judge("ask", beside, rules, [ROOT]), Ask), (kind, other)
        for outside in (f"{ROOT}-two/x", "/etc/passwd", f"{ROOT}x"):
            beyond = ApprovalSubject(kind="edit", tool="edit", summary="s", paths=(outside,))
            assert isinstance(judge("ask", beyond, rules, [ROOT]), Ask)


def test_the_kinds_of_an_edit() -> None:
    edit = ApprovalSubject(kind="edit", tool="write", summary="src/a/b.py", paths=(f"{ROOT}/src/a/b.py",))
    assert [kind.covers for kind in kinds_of(edit, [ROOT])] == [
        "edits below src/a/", "edits below the working directory", "edits of src/a/b.py",
    ]  # fmt: skip
    top = ApprovalSubject(kind="edit", tool="write", summary="b.py", paths=(f"{ROOT}/b.py",))
    assert [kind.covers for kind in kinds_of(top, [ROOT])] == ["edits below the working directory", "edits of b.py"]
    outside = ApprovalSubject(kind="edit", tool="write", summary="/x/b", paths=("/x/b",))
    assert [kind.rules for kind in kinds_of(outside, [ROOT])] == [("edit(/x/b)",)]
    hook = ApprovalSubject(kind="edit", tool="write", summary="h", paths=(f"{ROOT}/.git/h",), concerns=("hook",))
    assert [kind.rules for kind in kinds_of(hook, [ROOT])] == [(f"edit({ROOT}/.git/h)",)]


def test_the_kinds_of_reading_and_fetching() -> None:
    wide = ApprovalSubject(kind="read", tool="grep", summary="s", paths=("/etc/x",), folder="/etc")
    assert [kind.rules for kind in kinds_of(wide, [ROOT])] == [("read(/etc/x)",)], "never all of /etc"
    deep = ApprovalSubject(kind="read", tool="read", summary="s", paths=("/usr/lib/x/y",), folder="/usr/lib/x")
    assert [kind.rules for kind in kinds_of(deep, [ROOT])] == [("read(/usr/lib/x/**)",), ("read(/usr/lib/x/y)",)]
    page = ApprovalSubject(kind="network", tool="fetch", summary="s", pattern="https://Example.org")
    assert [kind.rules for kind in kinds_of(page, [ROOT])] == [("fetch(domain:example.org)",)]
    local = ApprovalSubject(kind="network", tool="fetch", summary="s", pattern="http://localhost:8", concerns=("own",))
    (kind,) = kinds_of(local, [ROOT])
    assert kind.rules == ("fetch(http://localhost:8)",)
    assert isinstance(judge("ask", local, [read_rule(kind.rules[0])], [ROOT]), Allow)
    assert isinstance(judge("ask", local, [Rule(tool="fetch")], [ROOT]), Ask)
