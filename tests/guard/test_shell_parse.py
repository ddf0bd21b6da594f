"""Reading lines of shell: the commands and words that are found, and what is refused."""

from __future__ import annotations

import subprocess

import pytest

from tenuto.guard.shell.parse import read_line, simple_commands

READ: list[tuple[str, list[list[str | None]]]] = [
    ("ls; git status && cat f | head -3 2>/dev/null &", [["ls"], ["git", "status"], ["cat", "f"], ["head", "-3"]]),
    ('for f in *.py; do cat "$f"; done', [["cat", None]]),
    ("echo a\\ b c\"d\"'e' $'x\\n' HEAD^{tree} @{u}", [["echo", "a b", "cde", "x\n", "HEAD^{tree}", "@{u}"]]),
    ('echo "a $(date) b" a{1,2} ~/x', [["echo", None, None, None], ["date"]]),
    ("X=1 Y= ls >/dev/null 2>&1 <in", [["ls"]]),
    ("cat <<EOF\n$(date) it's\nEOF", [["cat"], ["date"]]),
    ("cat <<'EOF' | head\n$(date)\nEOF\nls", [["cat"], ["head"], ["ls"]]),
    ("git commit -m \"$(cat <<'EOF'\nFix (don't)\nEOF\n)\" && ls", [["git", "commit", "-m", None], ["cat"], ["ls"]]),
    ("[ -f x ] && test -d y", [["[", "-f", "x", "]"], ["test", "-d", "y"]]),
    (
        'if [ "$(git status)" = "" ]; then ls; else cat x; fi',
        [["[", None, "=", "", "]"], ["git", "status"], ["ls"], ["cat", "x"]],
    ),
    ('while read -r l; do echo "$l"; done < f', [["read", "-r", "l"], ["echo", None]]),
    ("(cd sub; ls) | { wc -l; }", [["cd", "sub"], ["ls"], ["wc", "-l"]]),
    ("diff <(sort a) <(sort b)", [["diff", None, None], ["sort", "a"], ["sort", "b"]]),
    ("ls \\\n  -la # comment; rm x\n! pwd", [["ls", "-la"], ["pwd"]]),
    ("echo a > b c", [["echo", "a", "c"]]),
    ("a=$(ls) b=2", [[], ["ls"]]),
    (
        "[[ -f x && ! $a =~ ^b+$ ]] || [[ $(ls) ]]",
        [["[[", "-f", "x", "&&", "!", None, None, "^b+$", "]]"], ["[[", None, "]]"], ["ls"]],
    ),
    ("case $x in a|'b c') ls;; (*.py) cat f | wc -l ;& *) ;; esac > /dev/null", [["ls"], ["cat", "f"], ["wc", "-l"]]),
    ("case x in\n  x) ls\n  pwd\n  ;;\nesac; id", [["ls"], ["pwd"], ["id"]]),
    ("find . |& xargs ls", [["find", "."], ["xargs", "ls"]]),
]
REFUSED = [
    *(
        "ls 'x",
        'ls "x',
        "ls `x",
        "ls $(x",
        "ls &&",
        "ls |",
        "(ls",
        "{ ls",
        "ls )",
        "if a; then b",
        "for x in a; do",
        "; ls",
        ";;",
    ),
    *("echo ${x@P}", "echo ${!x}", "echo ${x:=y}", "echo ${x:1}", "echo ${x/a/b}", "echo ${a[0]}", "echo ${x:-$(y)}"),
    *("f() { ls; }", "function f { ls; }", "a=(b c)", "coproc ls", "time ls", "case x in $(x)) ls;; esac", "((x=1))"),
    *(
        "echo $((x))",
        "echo $((a[0]))",
        "echo $[1]",
        "for ((;;)); do ls; done",
        "select x in a; do ls; done",
        *("[[ a < b ]]", "[[ (a) ]]", "[[ a\n]]", "[[ -f x ]", "[[ a ]] b", "[[ a == @(x|y) ]]", "[[a ]]"),
        *("case x in x) ls", "case x in x ls;; esac", "case x in x) ls;; esac;;", "ls ;;", "case x in +(x)) ls;; esac"),
    ),
    *(
        'echo $"x"',
        "echo $'\\x41'",
        "!ls",
        "!!",
        "ls\rx",
        "ls\x00",
        "ls\x0bx",
        "ls\u00a0x",
        "ls\u2028x",
        "ls\u0085x",
        "ls\u200bx",
    ),
    *("ls {fd}>x", "cat <<A\nx", "cat <<A\nx \\\nA\nrm x\nA", "echo `echo \\`x\\``", "ls \\", "shopt() (ls)", "@(a|b)"),
    *(
        "]]",
        "ls; ]] x",
        "! ]]",
        "ls | ]]",
        "{ ]]; }",
        "if ]]; then ls; fi",
        "ls\n]]",
        "]\\\n]",
        "ls && ]\\\n]",
        "t\\\nhen",
    ),
    *("$(" * 40, "(" * 40 + "ls" + ")" * 40, "x" * 30_000),
]


@pytest.mark.parametrize(("line", "commands"), READ)
def test_every_simple_command_of_a_line_is_found(line: str, commands: list[list[str | None]]) -> None:
    read = read_line(line)
    assert not read.problem
    assert [[word.value for word in found.words] for found in simple_commands(read.body)] == commands


@pytest.mark.parametrize("line", REFUSED)
def test_what_is_not_understood_is_refused(line: str) -> None:
    assert read_line(line).problem


_WORDS = (
    *("if", "then", "elif", "else", "fi", "for", "while", "until", "do", "done", "case", "esac", "in", "{", "}"),
    *("!", "[[", "]]", "select", "function", "time", "coproc"),
)
_AROUND = ("%s", "%s x", "x; %s", "! %s", "{ %s; }", "(%s)", "x && %s", "x | %s", "x\n%s", "$(%s)", ">f %s", "a=1 %s",
    "if %s; then x; fi", "if x; then %s; fi", "while %s; do x; done", "(x) %s", "%s|x", "%s&", "%s>f", "x %s",
)  # fmt: skip


def test_a_reserved_word_is_understood_only_where_bash_takes_it() -> None:
    """As it is, with a line continued in it, and with one behind it."""
    spelled = [form for word in _WORDS for form in dict.fromkeys((word, f"{word[0]}\\\n{word[1:]}", f"{word}\\\n"))]
    lines = [around.replace("%s", word) for word in spelled for around in _AROUND]
    understood = [line for line in lines if not read_line(line).problem]
    assert understood
    assert not [line for line in understood if not _is_read_by_bash(line)]


def _is_read_by_bash(line: str) -> bool:
    done = subprocess.run(["/bin/bash", "-n", "-c", f"\n{line}"], capture_output=True, check=False)
    return done.returncode == 0
