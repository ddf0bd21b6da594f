"""`tenuto trust` and what a run without a screen says of what it leaves out (R-085)."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.program import TENUTO

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    place = tmp_path / "work"
    (place / ".tenuto").mkdir(parents=True)
    (place / ".tenuto" / "settings.toml").write_text("[tools]\nbash_timeout = 7.0\n[request]\nretries = 2\n")
    return place


@pytest.fixture
def run(tmp_path: Path, work: Path) -> Run:
    def start(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
        values = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
        command = [*TENUTO, *arguments]
        return subprocess.run(
            command,
            cwd=cwd or work,
            env=values,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return start


def items(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return {one["name"]: one["verdict"] for one in json.loads(done.stdout)["items"]}


def test_r085_items_are_listed_shown_allowed_denied_and_forgotten(run: Run, work: Path) -> None:
    assert items(run("trust", "--json")) == {"tools.bash_timeout": "waiting", "request.retries": "waiting"}
    shown = run("trust", "show").stdout.splitlines()
    assert any(line.strip() == "request.retries = 2" for line in shown)
    (first,) = (one["id"] for one in json.loads(run("trust", "--json").stdout)["items"] if one["name"][0] == "t")
    assert items(run("trust", "allow", "--item", first, "--json")) == {"tools.bash_timeout": "trusted"}
    assert items(run("trust", "list", str(work), "--json", cwd=work.parent))["request.retries"] == "waiting"
    assert items(run("trust", "deny", "--json")) == {"tools.bash_timeout": "refused", "request.retries": "refused"}
    every = run("trust", "--all").stdout
    assert every.count("refused") == 2 and str(work) in every
    assert set(items(run("trust", "forget", "--json")).values()) == {"waiting"}
    assert run("trust", "--all").stdout == "Nothing is decided about any project.\n"


@pytest.mark.parametrize("words", [("allow", "/nowhere"), ("allow", "--item", "zzzz"), ("--nonsense",)])
def test_what_is_wrong_is_said_in_one_line(run: Run, words: tuple[str, ...]) -> None:
    done = run("trust", *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)


def test_r085_a_run_without_a_screen_names_what_it_leaves_out_until_it_is_decided(run: Run) -> None:
    left = run("-p", "hi", "--model", "offline/tenuto").stderr
    assert "not trusted, so not used: setting tools.bash_timeout (.tenuto/settings.toml)" in left
    assert "tenuto trust allow trusts it" in left
    run("trust", "allow")
    assert run("-p", "hi", "--model", "offline/tenuto").stderr == ""
    run("trust", "deny")
    assert run("-p", "hi", "--model", "offline/tenuto").stderr == ""


def test_r085_what_is_left_out_is_said_in_a_bounded_number_of_lines(run: Run, work: Path) -> None:
    models = "\n".join(f'[models."a/{number}"]\ncontext_window = 5000' for number in range(300))
    (work / ".tenuto" / "settings.toml").write_text(models)
    lines = run("-p", "hi", "--model", "offline/tenuto").stderr.splitlines()
    assert len(lines) == 10 and "192 other things" in lines[-2]


def test_s23_a_home_that_others_can_write_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "home").chmod(0o777)
    assert f"chmod 700 {tmp_path / 'home'} keeps it yours" in run("-p", "hi", "--model", "offline/tenuto").stderr


@pytest.mark.parametrize("name", ["msgspec", "asyncio", "tomlkit", "argparse"])
def test_s23_run_as_a_module_nothing_of_the_working_directory_is_imported(run: Run, work: Path, name: str) -> None:
    canary = work.parent / "CANARY"
    (work / f"{name}.py").write_text(f"open({str(canary)!r}, 'w')\nraise SystemExit(9)\n")
    assert run("-p", "hi", "--model", "offline/tenuto").returncode == 0
    run("trust", "allow")
    assert not canary.exists()
