"""Fetching a repository that somebody named: nothing of it runs, and it comes to an end."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest

from tenuto.guard.git import GitFailedError, GitRefusedError
from tenuto.guard.git_fetching import check_address, fetch_repository
from tests.guard.repositories import IDENTITY

BYTES = 50_000_000


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *IDENTITY, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(folder: Path, **files: str) -> Path:
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name, text in files.items():
        (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "x")
    return folder


def fetch(source: Path | str, target: Path, ref: str = "", seconds: float = 30, limit: int = BYTES) -> str:
    address = source if isinstance(source, str) else f"file://{source}"
    return fetch_repository(address, ref, target, os.environ, seconds=seconds, limit=limit)


def test_one_commit_comes_by_branch_tag_and_name(tmp_path):
    source = repository(tmp_path / "source", a="1")
    first = git(source, "rev-parse", "HEAD")
    git(source, "tag", "v1")
    (source / "a").write_text("2")
    git(source, "commit", "-q", "-am", "y")
    second = git(source, "rev-parse", "HEAD")
    for number, (ref, commit, text) in enumerate(
        [("", second, "2"), ("main", second, "2"), ("v1", first, "1"), (first, first, "1")]
    ):
        assert fetch(source, tmp_path / str(number), ref) == commit
        assert (tmp_path / str(number) / "a").read_text() == text
    with pytest.raises(GitFailedError, match="nowhere"):
        fetch(source, tmp_path / "none", "nowhere")


def test_no_filter_hook_template_or_submodule_of_anybody_runs(tmp_path, monkeypatch):
    canary = tmp_path / "CANARY"
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    for name in ("post-checkout", "reference-transaction", "post-index-change"):
        (hooks / name).write_text(f"#!/bin/sh\ntouch {canary}\n")
        (hooks / name).chmod(0o755)
    inner = repository(tmp_path / "inner", b="inner")
    source = repository(tmp_path / "source", a="plain")
    (source / ".gitattributes").write_text("a filter=evil\n")
    git(source, "-c", "protocol.file.allow=always", "submodule", "add", "-q", f"file://{inner}", "inner")
    git(source, "add", "-A")
    git(source, "commit", "-q", "-m", "y")
    config = tmp_path / "global.cfg"
    config.write_text(
        f"[core]\nhooksPath = {hooks}\nfsmonitor = touch {canary}\n[init]\ntemplateDir = {tmp_path}/template\n"
        f'[filter "evil"]\nsmudge = touch {canary}; cat\nrequired = true\n[submodule]\nrecurse = true\n'
    )
    (tmp_path / "template/hooks").mkdir(parents=True)
    (hooks / "post-checkout").rename(tmp_path / "template/hooks/post-checkout")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(config))
    fetch(source, tmp_path / "target")
    assert (tmp_path / "target/a").read_text() == "plain"
    assert list((tmp_path / "target/inner").iterdir()) == []
    assert not canary.exists()


def test_a_server_that_says_nothing_is_left_after_the_time(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as server:
        kept: list[socket.socket] = []
        threading.Thread(target=lambda: kept.append(server.accept()[0]), daemon=True).start()
        with pytest.raises(GitFailedError, match=r"git took more than 0\.5 s"):
            fetch(f"https://127.0.0.1:{server.getsockname()[1]}/x.git", tmp_path / "target", seconds=0.5)
        for one in kept:
            one.close()


def test_a_repository_that_is_too_large_is_left(tmp_path):
    source = repository(tmp_path / "source", a=os.urandom(300_000).hex())
    with pytest.raises(GitFailedError, match="more than 200,000 bytes"):
        fetch(source, tmp_path / "target", limit=200_000)


@pytest.mark.parametrize(
    ("address", "ref"),
    [
        ("ext::sh -c 'touch x'", ""),
        ("/etc", ""),
        ("-u", ""),
        ("ssh://-oProxyCommand=x/y", ""),
        ("https://-x/y", ""),
        ("fd::1", ""),
        ("http://host/x", ""),
        ("git://host/x", ""),
        ("file://host/x", ""),
        ("https://a:b@host/x", ""),
        ("https://host/x y", ""),
        ("https://host/x\n", ""),
        ("https://host/x", "--upload-pack=x"),
        ("https://host/x", "a:b"),
        ("https://host/x", "a..b"),
        ("https://host/x", "+a\n"),
    ],
)
def test_what_could_be_an_option_or_run_something_is_refused_before_git_starts(tmp_path, address, ref):
    assert check_address(address, ref)
    with pytest.raises(GitRefusedError):
        fetch(address, tmp_path / "target", ref)
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("address", "ref"),
    [
        ("https://github.com/a/b", ""),
        ("https://github.com/a/b.git", "feature/x-1"),
        ("ssh://git@host:22/a/b", "v1.0"),
        ("file:///a b/c", "0" * 40),
    ],
)
def test_usual_addresses_are_not_refused(address, ref):
    assert check_address(address, ref) == ""
