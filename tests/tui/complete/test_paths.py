from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from tenuto.tui.complete import paths as paths_module
from tenuto.tui.complete.paths import PathIndex, completions, list_paths, make_path_list


def git(cwd: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", *arguments], cwd=cwd, check=True, capture_output=True
    )


@pytest.fixture
def project(tmp_path):
    for name in ("src/app.py", "src/deep/er/x.py", "my docs/read me.md", "build.log", "new.txt", "node_modules/a/b.js"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("*.log\nnode_modules\n")
    return tmp_path


def test_git_says_what_belongs_to_the_project(project):
    git(project, "init", "-q")
    git(project, "add", "src")
    paths = list_paths(project).paths
    assert {"src/", "src/app.py", "src/deep/er/", "my docs/read me.md", "new.txt", ".gitignore"} <= set(paths)
    assert "build.log" not in paths and "node_modules/" not in paths


def test_without_git_the_disk_is_read_and_rubbish_left_out(project):
    paths = list_paths(project).paths
    assert {"src/", "src/deep/er/x.py", "build.log"} <= set(paths)
    assert not [path for path in paths if path.startswith("node_modules")]


def test_listing_runs_nothing_that_the_project_brings(project):
    git(project, "init", "-q")
    canary = project / "canary"
    script = project / "monitor.sh"
    script.write_text(f"#!/bin/sh\ntouch '{canary}'\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    git(project, "config", "core.fsmonitor", str(script))
    git(project, "config", "core.hooksPath", str(project))
    assert "src/app.py" in list_paths(project).paths
    assert not canary.exists()


def test_names_that_could_not_stand_in_a_draft_are_left_out(project):
    try:
        (project / "evil\x1b[31m\n.py").write_text("x")
    except OSError:
        pytest.skip("the file system has no such names")
    assert all(path.isprintable() for path in list_paths(project).paths)


def test_a_link_to_a_parent_does_not_go_round_for_ever(project):
    (project / "src" / "loop").symlink_to(project, target_is_directory=True)
    assert "src/loop" in list_paths(project).paths


def test_searching():
    paths = make_path_list(["src/app.py", "src/deep/er/x.py", "my docs/read me.md", "app/main.py"])
    assert paths.search("") == ["app/", "my docs/", "src/"]
    assert paths.search("app")[0] == "app/"
    assert paths.search("APP.PY")[0] == "src/app.py"
    assert paths.search("readme") == ["my docs/read me.md"]
    assert paths.search("./src/app") == ["src/app.py"]
    assert paths.search("src/")[:3] == ["src/deep/", "src/app.py", "src/"], "what is in it, and it is there already"
    assert paths.search("my docs/r")[0] == "my docs/read me.md"


def test_completions_quote_spaces_and_leave_directories_open():
    paths = make_path_list(["my docs/read me.md", "src/app.py"])
    inserts = {item.label: item.insert for item in completions(paths.search(""))}
    assert inserts == {"my docs/": '@"my docs/', "src/": "@src/"}
    assert completions(paths.search("read"))[0].insert == '@"my docs/read me.md" '
    assert completions(paths.search("app"))[0].insert == "@src/app.py "


def labels(index: PathIndex, query: str) -> list[str]:
    return [item.label for item in index.complete(query)]


def test_an_old_listing_answers_until_there_is_a_new_one(project):
    now = [0.0]
    index = PathIndex(project, lambda: now[0])
    index.refresh()
    assert labels(index, "later") == []
    assert not index.is_stale
    (project / "later.txt").write_text("x")
    now[0] = 60.0
    assert index.is_stale
    assert labels(index, "later") == [], "nobody waits for a new listing"
    assert index.refresh()
    assert labels(index, "later") == ["later.txt"]
    assert not index.refresh(), "nothing came or went"


def test_other_directories_are_looked_up_where_they_lie(project, monkeypatch):
    monkeypatch.setenv("HOME", str(project))
    inner = project / "src"
    index = PathIndex(inner, lambda: 0.0)
    assert "../my docs/" in labels(index, "../")
    assert labels(index, "../new") == ["../new.txt"]
    assert labels(index, "~/new") == ["~/new.txt"]
    assert labels(index, f"{project}/my d") == [f"{project}/my docs/"]
    assert labels(index, "..")[0].startswith("../")
    assert index.complete("../my docs/read")[0].insert == '@"../my docs/read me.md" '
    assert labels(index, "../nowhere/") == labels(index, "~nobody/x") == []


def test_hidden_files_show_for_a_dot_ignored_or_not(project):
    git(project, "init", "-q")
    (project / ".env").write_text("x")
    (project / ".gitignore").write_text(".env\nbuild.log\n")
    index = PathIndex(project, lambda: 0.0)
    assert not [label for label in labels(index, "") if label.startswith(".")]
    assert {".env", ".gitignore", ".git/"} <= set(labels(index, "."))
    assert labels(index, ".en")[0] == ".env"


def test_what_git_ignores_is_found_by_its_directory(project):
    git(project, "init", "-q")
    index = PathIndex(project, lambda: 0.0)
    assert "node_modules/a/" not in labels(index, "node")
    assert labels(index, "node_modules/") == ["node_modules/a/"]


def test_a_directory_that_is_gone_lists_nothing(tmp_path):
    assert list_paths(tmp_path / "gone").paths == ()


def test_r069_the_first_rows_come_before_the_tree_is_listed(tmp_path, monkeypatch):
    for folder in range(60):
        (tmp_path / f"part{folder:02}" / "deep").mkdir(parents=True)
        for number in range(60):
            (tmp_path / f"part{folder:02}" / "deep" / f"file{number}.py").touch()
    (tmp_path / "noise.log").touch()
    (tmp_path / ".gitignore").write_text("*.log\n")
    git(tmp_path, "init", "-q")
    read: list[str] = []

    def count(folder):
        entries = list(real(folder))
        read.extend(entry.name for entry in entries)
        return ExitStackOf(entries)

    real = os.scandir
    monkeypatch.setattr(paths_module.os, "scandir", count)
    index = PathIndex(tmp_path, lambda: 0.0)
    first = labels(index, "")
    assert len(read) < 3 * paths_module.FIRST_ENTRIES // 2, "of 3 700 entries"
    assert index.is_stale, "the whole listing is still due"
    monkeypatch.undo()
    assert index.refresh()
    assert labels(index, "") == first, "and what it shows of the top is the same"
    assert "noise.log" not in first
    assert labels(index, "part59file59") == ["part59/deep/file59.py"]


class ExitStackOf(list):
    """A list of entries that can be closed, as `os.scandir` returns one."""

    def __enter__(self):
        return iter(self)

    def __exit__(self, *_):
        return None


def test_a_small_tree_is_whole_at_the_first_look(tmp_path):
    index = PathIndex(tmp_path, lambda: 0.0)
    (tmp_path / "a.txt").touch()
    assert labels(index, "a") == ["a.txt"]
    assert not index.refresh(), "a small tree is whole at the first look: nothing is offered twice"
