"""The program's own git calls run nothing of a repository: security.md S2, and the repositories of S4."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tenuto.command.file_commands import collect_changes
from tenuto.core.errors import UsageError
from tenuto.core.state.place import place_text
from tenuto.core.state.trust import look_at_project
from tenuto.guard.git import (
    TRUSTED,
    GitFailedError,
    GitRefusedError,
    is_harmless,
    open_git,
    risky_settings,
    setting_digest,
)
from tenuto.tui.complete.paths import list_paths
from tenuto.tui.editor_services import is_dirty
from tests.guard.repositories import IDENTITY, TRAPS, Trap, git, make_repository

EACH_TRAP = pytest.mark.parametrize("trap", TRAPS, ids=lambda trap: trap.name)


@pytest.fixture
def canary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return tmp_path / "CANARY"


def build(trap: Trap, tmp_path: Path, canary: Path) -> Path:
    """The directory to be in."""
    place = tmp_path / "work"
    make_repository(place)
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\ntouch {canary}\ncat 2>/dev/null\n")
    program.chmod(0o700)
    place = trap.build(place, str(program)) or place
    canary.unlink(missing_ok=True)
    return place


def changes(cwd: Path) -> str:
    try:
        return collect_changes(cwd, ())
    except UsageError as error:
        return str(error)


def dirty(cwd: Path) -> bool:
    try:
        return is_dirty(cwd)
    except GitRefusedError:
        return False


@EACH_TRAP
def test_s2_no_git_call_of_ours_runs_anything_of_the_repository(trap: Trap, tmp_path: Path, canary: Path) -> None:
    place = build(trap, tmp_path, canary)
    for cwd in (place, tmp_path / "work" / "sub"):
        dirty(cwd)
        assert not canary.exists(), "the sign of changes"
        list_paths(cwd)
        assert not canary.exists(), "completion of @"
        assert "PRIVATE KEY" not in changes(cwd)
        assert not canary.exists(), "/diff"
        place_text(cwd, os.environ)
        assert not canary.exists(), "the note on the place"


@pytest.mark.parametrize("trap", [trap for trap in TRAPS if trap.alive], ids=lambda trap: trap.name)
def test_the_traps_are_alive(trap: Trap, tmp_path: Path, canary: Path) -> None:
    place = build(trap, tmp_path, canary)
    command = ["git", *IDENTITY, *trap.alive]
    quiet = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=place, start_new_session=True, **quiet) as running:
        end = time.monotonic() + 5  # some wait for their program for ever
        while running.poll() is None and not canary.exists() and time.monotonic() < end:
            time.sleep(0.01)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
    if not canary.exists():
        pytest.skip("this git does not run it")


def test_in_an_ordinary_repository_git_is_asked(tmp_path: Path, canary: Path) -> None:
    place = tmp_path / "work"
    make_repository(place)
    git(place, "remote", "add", "origin", "https://host/x.git")
    git(place, "config", "branch.main.remote", "origin")
    git(place, "config", "branch.main.merge", "refs/heads/main")
    git(place, "config", "user.email", "me@host")
    git(place, "config", "color.ui", "always")
    git(place, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    (tmp_path / "tree" / "a").write_text("three\n")
    for root in (place, tmp_path / "tree"):
        for cwd in (root, root / "sub"):
            assert is_dirty(cwd)
            assert "-one" in changes(cwd)
    assert "new" in list_paths(place).paths and list_paths(place / "sub").paths == ("b",)
    assert "b/new" in changes(place)
    git(place, "checkout", "-q", "a")
    assert not is_dirty(place)


def test_a_filter_of_the_users_own_does_not_run_either(tmp_path: Path, canary: Path) -> None:
    (trap,) = (trap for trap in TRAPS if trap.name == "users_own_filter")
    place = build(trap, tmp_path, canary)
    assert is_dirty(place) and "-one" in changes(place)
    assert not canary.exists()


def test_variables_of_git_around_us_do_not_count(tmp_path: Path, canary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a hook, where `GIT_DIR` names another repository."""
    for name in ("work", "other"):
        make_repository(tmp_path / name)
    git(tmp_path / "work", "checkout", "-q", "a")
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other" / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_EXTERNAL_DIFF", f"touch {canary}")
    assert not is_dirty(tmp_path / "work")
    assert is_dirty(tmp_path / "other") and "-one" in changes(tmp_path / "other")
    assert not canary.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")
def test_a_repository_of_another_user_is_asked_only_where_the_user_says_so(tmp_path: Path, canary: Path) -> None:
    place = tmp_path / "work"
    make_repository(place)
    os.chown(place, 12_345, 12_345)
    with pytest.raises(GitRefusedError, match="another user"):
        is_dirty(place)
    own = tmp_path / "global.cfg"
    os.environ["GIT_CONFIG_GLOBAL"] = str(own)
    for value, safe in ((str(place), True), ("*", True), (f"{tmp_path}/*", True), (f"{tmp_path}/wor", False)):
        own.write_text(f"[safe]\n\tdirectory = {value}\n")
        assert dirty(place) is safe, value
    own.write_text("[safe]\n\tdirectory = *\n\tdirectory =\n")
    assert not dirty(place)


@pytest.mark.parametrize("name", [".git", ".git/config", ".git/HEAD", ".git/index", ".git/commondir"])
def test_a_pipe_in_the_repository_is_not_waited_for(name: str, tmp_path: Path, canary: Path) -> None:
    place = tmp_path / "work"
    make_repository(place)
    if name == ".git":
        (place / name).rename(tmp_path / "away")
    else:
        (place / name).unlink(missing_ok=True)
    os.mkfifo(place / name)
    with pytest.raises((GitRefusedError, GitFailedError)):
        open_git(place)
    assert "a" in list_paths(place).paths


@pytest.mark.parametrize(
    "key",
    [
        *("core.fsmonitor", "core.sshcommand", "core.gitproxy", "core.excludesfile", "core.attributesfile"),
        *("filter.lfs.clean", "filter.a.b.process", "diff.x.textconv", "diff.x.command", "diff.external"),
        *("diff.orderfile", "diff.x.algorithm", "remote.x.uploadpack", "remote.x.vcs", "remote.x.promisor"),
        *("extensions.partialclone", "include.path", "includeif.gitdir:x.path", "alias.status", "pager.status"),
        *("submodule.x.update", "status.submodulesummary", "merge.x.driver", "safe.directory", "trace2.eventtarget"),
        *("core", "", "coreX.bare", "unknown.key", "http.proxy", "credential.helper", "protocol.ext.allow"),
    ],
)
def test_a_key_that_is_not_known_to_be_harmless_is_not(key: str) -> None:
    assert not is_harmless(key)


@pytest.fixture
def trusts(tmp_path: Path) -> Iterator[Callable[..., None]]:
    """Trust settings of the work tree, and nothing any more behind the test."""
    yield lambda *pairs: TRUSTED.learn(tmp_path / "work", [setting_digest(*pair) for pair in pairs])
    TRUSTED.learn(tmp_path / "work", ())


def test_r086_what_the_user_trusts_runs_and_nothing_beside_it(
    tmp_path: Path, canary: Path, trusts: Callable[..., None]
) -> None:
    place = build(next(trap for trap in TRAPS if trap.name == "filter"), tmp_path, canary)
    program = str(tmp_path / "program")
    found = risky_settings(place, os.environ)
    assert found == (place, [("filter.x.clean", program)])
    with pytest.raises(GitRefusedError):
        open_git(place)
    trusts(("filter.x.clean", "something else"))
    with pytest.raises(GitRefusedError):
        open_git(place)
    assert not canary.exists()
    trusts(("filter.x.clean", program))
    assert is_dirty(place) and canary.exists()
    canary.unlink()
    git(place, "config", "core.fsmonitor", program)
    with pytest.raises(GitRefusedError):
        open_git(place)
    assert not canary.exists()


@pytest.mark.parametrize("name", ["fsmonitor", "partial_clone", "partial_clone_by_ext", "hooks_elsewhere", "pager"])
def test_r086_trusted_settings_reach_no_network_and_run_no_hook(
    tmp_path: Path, canary: Path, trusts: Callable[..., None], name: str
) -> None:
    place = build(next(trap for trap in TRAPS if trap.name == name), tmp_path, canary)
    found = risky_settings(place, os.environ)
    assert found is not None and found[1]
    trusts(*found[1])
    is_dirty(place)
    changes(place)
    assert canary.exists() == (name == "fsmonitor")


def test_r086_what_is_shown_of_a_repository_runs_nothing(tmp_path: Path, canary: Path) -> None:
    for trap in TRAPS:
        place = build(trap, tmp_path / trap.name, canary)
        look = look_at_project(place, tmp_path / "home")
        assert all(item.kind == "git" for item in look.open_items)
        assert not canary.exists(), trap.name
