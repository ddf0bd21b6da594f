"""`tenuto approvals`: the rules of settings and directories, and what they say to a line."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tenuto.cli.approvals import run_approvals
from tenuto.guard.sandbox.machine import find_machine


@pytest.fixture
def tenuto(tmp_path: Path, capsys):
    work, home = tmp_path / "work", tmp_path / "home"
    work.mkdir()

    def run(*words: str, cwd: Path = work) -> tuple[int, str]:
        before = Path.cwd()
        os.chdir(cwd)
        try:
            code = run_approvals(words, home, {"PATH": os.environ["PATH"], **run.environ})
        finally:
            os.chdir(before)
        said = capsys.readouterr()
        return code, said.out + said.err

    run.work, run.home, run.environ = work, home, {}
    return run


def test_rules_are_added_listed_and_removed_and_comments_stay(tenuto):
    tenuto.home.mkdir()
    settings = tenuto.home / "settings.toml"
    settings.write_text('# mine\nmode = "edits"  # by day\n')
    assert tenuto("add", "Bash(pytest:*)") == (0, "Added: allow bash(pytest *) (your settings)\n")
    assert tenuto("add", "--deny", "--project", "bash(rm *)")[0] == 0
    assert tenuto("add", "--ask", "fetch(example.org)")[0] == 0
    code, out = tenuto("list", "--json")
    assert code == 0
    assert [(row["effect"], row["rule"], row["source"], row["holds"]) for row in json.loads(out)] == [
        ("allow", "bash(pytest *)", "settings", True),
        ("ask", "fetch(domain:example.org)", "settings", True),
        ("deny", "bash(rm *)", "project", True),
    ]
    assert "# mine" in settings.read_text() and "# by day" in settings.read_text()
    assert tenuto("remove", "bash(pytest *)")[0] == 0
    assert tenuto("remove", "--ask", "fetch(example.org)")[0] == 0
    assert tenuto("remove", "--project", "bash(rm *)")[0] == 1, "that one denies"
    assert tenuto("remove", "--deny", "--project", "bash(rm *)")[0] == 0
    assert tenuto("list")[1].startswith("No rules")
    assert "# mine" in settings.read_text() and "# by day" in settings.read_text()
    assert tenuto("add", "--project", "bash(x)")[0] == 0, "the file can be added to again"
    assert tenuto("add", "nonsense(x)")[0] == 2


@pytest.mark.parametrize("rule", ["python -c *", "python *", "xargs *", "sudo *", "outside: ssh *", "git -c *"])
def test_who_adds_a_rule_that_covers_nothing_is_told(tenuto, rule):
    code, said = tenuto("add", f"bash({rule})")
    assert code == 0 and "this rule covers no command: " in said and " runs " in said
    assert "covers no command" not in tenuto("add", "--deny", f"bash({rule})")[1], "a rule that denies looks inside"


@pytest.mark.parametrize("rule", ["*", "pytest *", "python -m pytest *", "git commit *", "python -c 'print(1)'"])
def test_a_rule_that_covers_something_is_added_without_a_word(tenuto, rule):
    assert tenuto("add", f"bash({rule})")[1].count("\n") == 1


def test_s14_what_is_saved_for_a_directory_is_not_inherited_by_another_one_at_its_place(tenuto):
    assert tenuto("add", "--project", "bash(make *)")[0] == 0
    assert tenuto("check", "--", "make all")[0] == 0
    tenuto.work.rename(tenuto.work.with_name("moved"))
    tenuto.work.mkdir()
    assert tenuto("check", "--", "make all")[0] == 3
    assert "another one now" in tenuto("list")[1]


CHECKS = [
    ("ls", (), 0, "run", None),
    ("pytest -q | tail -3", (), 0, "run", "bash(pytest *)"),
    ("pytest -q > out", (), 3, "ask", None),
    ("make", (), 3, "ask", None),
    ("make", ("--mode", "auto"), 0, "run", None),
    ("ls && rm x", ("--mode", "auto"), 4, "deny", "bash(rm *)"),
    ("git push", ("--mode", "auto"), 3, "ask", "bash(git push *)"),
    ("touch x", ("--mode", "plan"), 4, "deny", None),
]
WITHOUT_SANDBOX = [
    ("cp a .git/hooks/pre-commit", ("--mode", "auto"), 3, "ask", None),
    ("ls 'x", ("--mode", "auto"), 3, "ask", None),
]


@pytest.mark.parametrize(("line", "options", "code", "verdict", "rule"), [*CHECKS, *WITHOUT_SANDBOX])
def test_check_says_what_would_happen_and_why(tenuto, line, options, code, verdict, rule):
    tenuto.environ["TENUTO_SANDBOX__ENABLED"] = "false"
    for words in (("pytest *",), ("--deny", "rm *"), ("--ask", "git push *")):
        assert tenuto("add", *words[:-1], f"bash({words[-1]})")[0] == 0
    got, out = tenuto("check", "--json", *options, "--", line)
    found = json.loads(out)
    assert (got, found["verdict"], found["rule"]) == (code, verdict, rule)
    assert found["reason"]
    assert tenuto("check", *options, "--", line) == (code, f"{verdict}: {found['reason']}\n")
    assert not (tenuto.home / "sessions").exists(), "no session is opened"


def test_check_goes_by_the_sandbox_that_the_machine_has(tenuto):
    line = ("check", "--mode", "auto", "--", "cp a .git/hooks/pre-commit")
    tenuto.environ |= {"TENUTO_SANDBOX__ENABLED": "true", "TENUTO_SANDBOX__KIND": "seatbelt"}  # no Linux has that
    code, said = tenuto(*line)
    assert code == 3
    assert "--no-sandbox" in said
    if find_machine().kind:
        tenuto.environ["TENUTO_SANDBOX__KIND"] = "auto"
        assert tenuto(*line) == (0, "run: mode: auto, in the sandbox\n")
        assert tenuto("check", "--mode", "ask", "--", "make")[0] == 3
