"""`tenuto sandbox`: what this machine has, and a command as the agent would run it."""

from __future__ import annotations

import json

import pytest

from tenuto.guard.sandbox.machine import find_machine

needs_one = pytest.mark.skipif(not find_machine().kind, reason=f"this machine has no sandbox: {find_machine()}")


@needs_one
def test_the_status_names_what_holds_commands(run):
    done = run("sandbox")
    assert done.returncode == 0
    assert find_machine().kind in done.stdout
    told = json.loads(run("sandbox", "--json").stdout)
    assert told["kind"] == find_machine().kind
    assert told["enabled"] is True


def test_without_one_the_status_says_why_and_what_follows(run):
    done = run("sandbox", "--status", environ={"TENUTO_SANDBOX__KIND": "seatbelt"})
    assert done.returncode == 1
    assert "seatbelt: only on macOS" in done.stdout
    assert "mode auto asks as edits does" in done.stdout
    done = run("sandbox", "--", "true", environ={"TENUTO_SANDBOX__KIND": "seatbelt"})
    assert done.returncode == 1
    assert "no sandbox on this machine" in done.stderr


@needs_one
def test_a_command_runs_in_it_and_its_exit_code_is_passed_on(run):
    done = run("sandbox", "--", "echo in; touch here; touch /usr/tenuto-test; exit 7")
    assert done.returncode == 7
    assert done.stdout.startswith("in\n")
    assert (run.work / "here").exists()
    assert "/usr/tenuto-test" in done.stdout
    assert run("sandbox", "--", "sh", "-c", "exit 3").returncode == 3


@needs_one
def test_read_only_writes_nothing(run):
    assert run("sandbox", "--read-only", "--", "touch", "here").returncode != 0
    assert not (run.work / "here").exists()


@pytest.mark.parametrize("words", [("--wrong",), ("--",)])
def test_bad_usage_is_said_in_one_line(run, words):
    done = run("sandbox", *words)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
