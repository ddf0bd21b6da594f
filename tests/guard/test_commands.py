from __future__ import annotations

import pytest

from tenuto.guard.commands import is_read_only, outside_writes

READ_ONLY = [
    "git status",
    "git log --oneline -5",
    "git diff HEAD",
    "git branch --show-current",
    "ls -la src",
    "cat README.md",
    "grep -rn needle src",
    "find . -name setup.py -type f",
    "wc -l a.py",
    "rg -n 'two words' src",
    "pwd",
]
ASKED = [
    "git status; x",
    "git status && x",
    "git status || x",
    "git status | x",
    "git status & x",
    "git status $(touch x)",
    "git status `touch x`",
    "git status <(x)",
    "git status > file",
    "git status >> file",
    "git status < file",
    "git status\nx",
    "git status\rx",
    "git -c core.pager=x log",
    "git -c core.fsmonitor=x status",
    "GIT_PAGER=x git log",
    "PAGER=x git log",
    "env x=y git status",
    "git --exec-path=/tmp/x status",
    "git log --output=x",
    "git log --outp=x",
    "git diff --ext-diff",
    "git diff --no-index /etc/passwd x",
    "git show --textconv x",
    "git grep -O x",
    "git commit -m x",
    "git branch new",
    "git branch -D x",
    "git stash",
    "git stash drop",
    "git tag v1",
    "git remote add x y",
    "git checkout .",
    "find . -exec rm x",
    "find . -execdir rm x",
    "find . -ok rm x",
    "find . -delete",
    "find . -fprint x",
    "find . -fprintf x y",
    "find . -fls x",
    "find . -name x -exec echo {} +",
    "rg --pre=x y",
    "rg --pre x y",
    "rg --hostname-bin x y",
    "tail -f log",
    "find -L .",
    "find . -follow",
    "grep -R x .",
    "grep -nR x .",
    "grep --deref x .",
    "rg -L x",
    "rg --follow x",
    "diff -r a b",
    "git cat-file --filters x",
    "tail -nf log",
    "python -c x",
    "python3 x.py",
    "bash x",
    "sh -c x",
    "node x",
    "perl -e x",
    "awk x",
    "sed -n p x",
    "xargs rm",
    "sort -o x y",
    "./ls",
    "/bin/ls",
    "cat ~/.ssh/id_rsa",
    "cat $HOME/x",
    "cat *",
    "cat {a,b}",
    "grep -f/etc/passwd x",
    "grep --file=../x y",
    "ls #x",
    "ls \\; x",
    "cat 'unbalanced",
    "",
    "   ",
    "ls\x00x",
    "ls\x0bx",
]


@pytest.mark.parametrize("command", READ_ONLY)
def test_simple_reading_commands_need_nobody(command: str) -> None:
    assert is_read_only(command)


@pytest.mark.parametrize("command", ASKED)
def test_r083_r084_everything_else_is_asked(command: str) -> None:
    assert not is_read_only(command)


@pytest.mark.parametrize(
    ("command", "places"),
    [
        ("rm -rf /etc/x", ["/etc/x"]),
        ("sudo rm -rf /usr", ["/usr"]),
        ("echo x > /etc/hosts", ["/etc/hosts"]),
        ("echo x >> ~/.bashrc", ["~/.bashrc"]),
        ("cd sub && rm ../../x", ["../../x"]),
        ("cp a /opt/b", ["/opt/b"]),
        ("cp /opt/b a", []),
        ("mv /opt/b a", ["/opt/b"]),
        ("dd if=/dev/zero of=/dev/null; dd of=/opt/x", ["/opt/x"]),
        ("make 2>&1 | tee build.log", []),
        ("ls /etc > out.txt 2>/dev/null", []),
        ("rm -rf build && mkdir -p build/x", []),
        ("touch /tmp/x", []),
        ("A=1 touch /opt/x", ["/opt/x"]),
        ("rm $HOME/x", ["$HOME/x"]),
        ("echo 'unbalanced > /opt/x", ["/opt/x"]),
    ],
)
def test_auto_mode_sees_plain_writes_outside(command: str, places: list[str]) -> None:
    assert outside_writes(command, "/home/me/project") == places
