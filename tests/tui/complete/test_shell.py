"""Tab in a `!command`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tenuto.tui.complete.paths import ShellTarget, complete_shell, find_shell_target


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("!ls sr", ShellTarget("sr", 4, 6)),
        ("!!ls sr", ShellTarget("sr", 5, 7)),
        ("!gi", ShellTarget("gi", 1, 3, is_command=True)),
        ("!make && gi", ShellTarget("gi", 9, 11, is_command=True)),
        ("!./ru", ShellTarget("./ru", 1, 5)),
        ("!cd s", ShellTarget("s", 4, 5, folders_only=True)),
        ("!make; cd s", ShellTarget("s", 10, 11, folders_only=True)),
        ("!cat my\\ do", ShellTarget("my do", 5, 11)),
        ('!cat "my do', ShellTarget("my do", 6, 11, '"')),
        ("!cat 'a b' x", ShellTarget("x", 11, 12)),
        ("!cat 'it\\", ShellTarget("it\\", 6, 9, "'")),
        ("!x >o", ShellTarget("o", 4, 5)),
        ("!ls ", ShellTarget("", 4, 4)),
        ("ls sr", None),
        ("", None),
    ],
)
def test_the_word_is_the_shells(text: str, target: ShellTarget | None) -> None:
    assert find_shell_target(text, len(text)) == target


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("src/app.py", "my docs/a.md", "setup.py", ".hidden", "it's.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "inserts"),
    [
        ("!ls s", ["setup.py ", "src/"]),
        ("!ls src/", ["src/app.py "]),
        ("!cd s", ["src/"]),
        ("!cat my", ["my\\ docs/"]),
        ('!cat "my docs/', ['my docs/a.md" ']),
        ("!cat it", ["it\\'s.txt "]),
        ("!cat .", [".hidden "]),
        ("!cat nothing", []),
        ("!cat no/where", []),
        ("!cat ~nobody/x", []),
    ],
)
def test_paths_are_offered_as_the_shell_writes_them(place: Path, text: str, inserts: list[str]) -> None:
    target = find_shell_target(text, len(text))
    assert target is not None
    assert [item.insert for item in complete_shell(place, target, {})] == inserts


def test_programs_are_offered_where_one_stands(place: Path) -> None:
    for name, mode in (("toolbox", 0o755), ("toolkit", 0o755), ("toolong", 0o644)):
        (place / name).write_text("")
        (place / name).chmod(mode)
    target = find_shell_target("!tool", 5)
    assert target is not None
    found = complete_shell(place / "src", target, {"PATH": f"/nowhere:{place}"})
    assert [item.insert for item in found] == ["toolbox ", "toolkit "]
