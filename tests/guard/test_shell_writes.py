"""What mode `auto` sees of writes outside the workspace (S8)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tenuto.guard.shell.writes import outside_writes

SEEN = [
    ("rm -rf /etc/x", ["/etc/x"]),
    ("sudo rm -rf /usr", ["/usr"]),
    ("sudo -u root rm /usr/x", ["/usr/x"]),
    ("env -i rm /usr/x", ["/usr/x"]),
    ("timeout 5 rm /usr/x", ["/usr/x"]),
    ("nohup nice -n 5 rm /usr/x", ["/usr/x"]),
    ("ls | xargs rm /usr/x", ["/usr/x"]),
    ("echo x > /etc/hosts", ["/etc/hosts"]),
    ("echo x >> ~/.bashrc", ["~/.bashrc"]),
    ("cd sub && rm ../../x", ["../../x"]),
    ("cd / && rm -rf home", ["home"]),
    ("cd && rm x", ["x"]),
    ('cd "$(git rev-parse --show-toplevel)" && rm x', ["x"]),
    ("cp a /opt/b", ["/opt/b"]),
    ("cp -t /etc f", ["/etc"]),
    ("cp --target-directory=/etc f", ["--target-directory=/etc"]),
    ("mv /opt/b a", ["/opt/b"]),
    ("dd if=/dev/zero of=/dev/sda", ["of=/dev/sda"]),
    ("dd if=/dev/zero of=/opt/x", ["of=/opt/x"]),
    ("echo x > /dev/sda", ["/dev/sda"]),
    ("mkfs.ext4 /dev/sda", ["/dev/sda"]),
    ("bash -c 'rm -rf ~'", ["~"]),
    ("bash -c 'cd /; rm x'", ["x"]),
    ("eval 'rm /etc/x'", ["/etc/x"]),
    ("find / -delete", ["/"]),
    ("find / -exec rm {} +", ["/"]),
    ("sed -i s/a/b/ ~/.bashrc", ["~/.bashrc"]),
    ("curl -o ~/.bashrc http://x", ["~/.bashrc"]),
    ("curl -o/etc/x http://x", ["-o/etc/x"]),
    ("wget -O /etc/x http://x", ["/etc/x"]),
    ("tar xf x -C /", ["/"]),
    ("X=/etc/x; rm $X", ["$X"]),
    ("for f in /etc/a b; do rm $f; done", ["$f"]),
    ("rm $(cat f)", ["$(cat f)"]),
    ("rm $UNKNOWN/x", ["$UNKNOWN/x"]),
    ("rm -rf {/home,/root}", ["{/home,/root}"]),
    ("rm -rf `pwd`/..", ["`pwd`/.."]),
    ("rm $HOME/x", ["$HOME/x"]),
    ("echo x > link/y", ["link/y"]),
    ("rm -rf link/.ssh", ["link/.ssh"]),
    ("echo x > .git/hooks/pre-commit", [".git/hooks/pre-commit"]),
    ("echo x > .tenuto/settings.toml", [".tenuto/settings.toml"]),
    ("{ ls; } > /etc/x", ["/etc/x"]),
    ("A=1 touch /opt/x", ["/opt/x"]),
    ("if ls; then rm /etc/x; fi", ["/etc/x"]),
    ("echo $(rm /etc/x)", ["/etc/x"]),
    ("ls | tee /etc/x", ["/etc/x"]),
]
INSIDE = [
    "cp /opt/b a",
    "make 2>&1 | tee build.log",
    "ls /etc > out.txt 2>/dev/null",
    "rm -rf build && mkdir -p build/x",
    "touch /tmp/x",
    "echo x > /dev/null",
    "echo x > /dev/stderr",
    "cd sub && rm x ../y",
    "for f in *.pyc; do rm $f; done",
    "X=build; rm -rf $X",
    "sed -i s/a/b/ f",
    "curl -o out http://x",
    "tar xf x -C sub",
    "timeout 5 pytest",
    "bash -c 'rm x'",
    "find . -name '*.pyc' -delete",
    "echo 'rm /etc/x'",
    "cat <<'EOF' > script\nrm /etc/x\nEOF",
]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Not below the place for scratch files, which is open."""
    place = Path(os.path.realpath(tmp_path_factory.mktemp("writes")))
    (place / "sub").mkdir()
    (place / "link").symlink_to("/usr")
    return str(place)


def places(line: str, root: str) -> list[str]:
    return list(outside_writes(line, [root], root, {"HOME": "/home/me", "PATH": "/usr/bin"}))


@pytest.mark.parametrize(("line", "expected"), SEEN)
def test_s8_auto_mode_sees_plain_writes_outside(
    line: str, expected: list[str], root: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.guard.shell.writes._SCRATCH", ("/nowhere",))
    assert places(line, root) == expected


@pytest.mark.parametrize("line", INSIDE)
def test_auto_mode_lets_work_inside_go_on(line: str, root: str) -> None:
    assert places(line, root) == []
