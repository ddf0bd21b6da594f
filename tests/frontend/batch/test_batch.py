"""`tenuto batch` over a real repository, with a scripted model: worktrees, patches, outcomes, limits."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import pytest

from tests.cli.test_models import MODELS
from tests.cli.test_models import environ as gateway
from tests.engine.cluster import NOT_INSTALLED, is_ray_installed
from tests.frontend.batch.conftest import Bench, words_of, writes
from tests.server import HttpError, Reply, ServerThread
from tests.server.reply import Tokens


def test_l5_each_task_works_in_a_worktree_outside_and_its_patch_is_kept(bench: Bench):
    bench.write(
        {"id": "one", "prompt": "write", "mode": "edits"},
        {"id": "two", "prompt": "write", "mode": "edits", "repo": "inner"},
    )
    with ServerThread(writes) as server:
        done = bench.run("--jobs", "2", server=server)
    assert done.returncode == 0, done.stderr
    assert {name: result["outcome"] for name, result in bench.results.items()} == {"one": "done", "two": "done"}
    assert bench.results["one"]["changed_files"] == ["new.txt"]
    assert bench.results["two"]["changed_files"] == ["inner/new.txt"]
    assert (bench.git("status", "--short"), bench.worktrees) == ("", [])
    assert list(bench.folder.rglob("new.txt")) == []
    bench.git("apply", str(bench.kept / "two.patch"))
    assert (bench.repo / "inner" / "new.txt").read_text() == "made\n"


def test_l5_what_was_changed_is_all_in_the_patch(bench: Bench):
    change = "git rm -q a.txt && printf 'a\\0b' > image && git commit -qam x && mv inner/b.txt c && touch ignored"
    command = f"{change}"
    environ = "GIT_AUTHOR_NAME=n GIT_AUTHOR_EMAIL=e GIT_COMMITTER_NAME=n GIT_COMMITTER_EMAIL=e"
    bench.write({"id": "one", "prompt": "look", "setup": f"export {environ}; {command}"})
    with ServerThread(lambda _request: Reply("Done.")) as server:
        done = bench.run(server=server)
    assert done.returncode == 0, done.stderr
    result = bench.results["one"]
    assert result["changed_files"] == ["a.txt", "c", "image", "inner/b.txt"]
    assert bench.git("cat-file", "-t", result["commit"]) == "commit\n"
    bench.git("apply", str(bench.kept / "one.patch"))
    assert (bench.repo / "image").read_bytes() == b"a\0b"
    assert not (bench.repo / "a.txt").exists()


def test_l5_a_ref_is_what_the_worktree_begins_with(bench: Bench):
    first = bench.git("rev-parse", "HEAD").strip()
    (bench.repo / "a.txt").write_text("later\n")
    bench.git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qam", "second")
    bench.write(
        {"id": "old", "prompt": "look", "ref": first, "setup": "grep -q one a.txt"},
        {"id": "new", "prompt": "look", "setup": "grep -q later a.txt"},
        {"id": "none", "prompt": "look", "ref": "no-such-branch"},
    )
    with ServerThread(lambda _request: Reply("Done.")) as server:
        done = bench.run(server=server)
    assert done.returncode == 1
    outcomes = {name: result["outcome"] for name, result in bench.results.items()}
    assert outcomes == {"old": "done", "new": "done", "none": "setup_failed"}
    assert bench.results["none"]["error"] == f"{bench.repo} has no commit or branch “no-such-branch”"


def test_l5_a_repository_without_a_commit_is_told_that_it_needs_one(bench: Bench):
    bench.git("checkout", "-q", "--orphan", "new")
    bench.write({"id": "one", "prompt": "look"})
    assert bench.run().returncode == 1
    assert "has no commit yet; make one" in bench.results["one"]["error"]


def test_l5_worktrees_are_kept_where_something_was_changed(bench: Bench):
    bench.write({"id": "one", "prompt": "write", "mode": "edits"}, {"id": "two", "prompt": "write"})
    with ServerThread(writes) as server:
        bench.run("--keep-worktrees", server=server)
        tree = bench.results["one"]["worktree"]
        assert (len(bench.worktrees), bench.results["two"]["worktree"]) == (1, "")
        with open(os.path.join(tree, "new.txt")) as file:
            assert file.read() == "made\n"
        bench.run("--again", "DONE", server=server)
    assert (bench.worktrees, os.path.exists(tree)) == ([], False)


def test_l5_nothing_of_the_repository_runs_by_git(bench: Bench):
    mark = bench.folder / "ran"
    hook = bench.repo / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    bench.write({"id": "one", "prompt": "look"})
    with ServerThread(lambda _request: Reply("Done.")) as server:
        assert bench.run(server=server).returncode == 0
        bench.git("config", "core.sshCommand", f"touch {mark}")
        bench.git("config", "core.fsmonitor", f"touch {mark}")
        bench.run("--again", "done", server=server)
    assert (mark.exists(), bench.results["one"]["outcome"]) == (False, "setup_failed")


def test_l5_a_directory_is_worked_in_as_it_is_by_one_agent_at_a_time(bench: Bench):
    place = bench.folder / "plain"
    place.mkdir()
    starts = 'test ! -e lock && touch lock && sleep 0.3 && rm lock && echo "$$" >> seen'
    bench.write(*({"id": f"t{n}", "prompt": "look", "cwd": str(place), "setup": starts} for n in range(3)))
    with ServerThread(lambda _request: Reply("Done.")) as server:
        done = bench.run("--jobs", "2", server=server)
    assert done.returncode == 0, done.stdout
    assert (len((place / "seen").read_text().split()), bench.worktrees) == (3, [])


def test_l5_a_check_says_what_success_is(bench: Bench):
    bench.write(
        {"id": "good", "prompt": "write", "mode": "edits", "check": "grep made new.txt"},
        {"id": "bad", "prompt": "write", "mode": "edits", "check": "echo not so; exit 3"},
        {"id": "still", "prompt": "write", "check": "true"},
    )
    with ServerThread(writes) as server:
        done = bench.run(server=server)
    found = bench.results
    assert done.returncode == 1
    assert {name: one["outcome"] for name, one in found.items()} == {
        "good": "done",
        "bad": "check_failed",
        "still": "done",
    }
    assert (found["good"]["check_output"], found["bad"]["error"]) == ("made\n", "the check ended with 3: not so")
    assert len(found["still"]["permission_denials"]) == 1


def test_l5_a_check_is_held_by_the_sandbox(bench: Bench):
    from tenuto.guard.sandbox.machine import find_machine

    if not find_machine().kind:
        pytest.skip("this machine has no sandbox")
    outside = bench.folder / "outside"
    bench.write({"id": "one", "prompt": "look", "check": f"touch {outside}"})
    with ServerThread(lambda _request: Reply("Done.")) as server:
        bench.run(server=server)
        held = outside.exists(), bench.results["one"]["outcome"]
        bench.run("--again", "check_failed", "--no-sandbox", server=server)
    assert held == (False, "check_failed")
    assert (outside.exists(), bench.results["one"]["outcome"]) == (True, "done")


def test_l5_an_answer_fits_the_schema_of_its_task(bench: Bench):
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    bench.write({"id": "one", "prompt": "six times seven", "schema": schema})
    with ServerThread(lambda _request: Reply('{"sum": 42}')) as server:
        done = bench.run("--json", server=server)
    assert json.loads(done.stdout)["structured_output"] == {"sum": 42}
    assert json.loads(done.stdout) == bench.results["one"]


def test_l5_what_failed_is_tried_again_and_what_was_refused_is_not(bench: Bench):
    asked: list[str] = []

    def answer(request):
        said = words_of(request)
        asked.append("flaky" if "flaky" in said else "broken" if "broken" in said else "other")
        if "broken" in said or ("flaky" in said and asked.count("flaky") == 1):
            return HttpError(400, "no")
        return writes(request)

    bench.write(
        {"id": "flaky", "prompt": "flaky", "mode": "edits"},
        {"id": "broken", "prompt": "broken"},
        {"id": "refused", "prompt": "other"},
    )
    with ServerThread(answer) as server:
        done = bench.run("--retries", "2", server=server)
    assert done.returncode == 1
    assert {name: (one["outcome"], one["attempts"]) for name, one in bench.results.items()} == {
        "flaky": ("done", 2),
        "broken": ("failed", 3),
        "refused": ("refused", 1),
    }
    report = (bench.kept / "report.md").read_text()
    assert bench.results["refused"]["session_id"] in report
    assert "| refused | 1 |" in report
    assert "write new.txt" in report


def test_l5_bad_lines_are_named_by_number_before_anything_starts(bench: Bench):
    bench.write(
        {"id": "one", "prompt": "look"},
        "",
        "{",
        {"id": "one", "prompt": "look"},
        {"id": "two", "promt": "look"},
        {"id": "../three", "prompt": "look"},
        {"id": "four", "prompt": "look", "allow": ["bsh(ls)"]},
        {"id": "five", "prompt": "look", "mode": "autoo"},
        {"id": "six", "prompt": "look", "repo": "nowhere"},
        {"id": "seven", "prompt": "look", "schema": {"type": "no type"}},
        {"id": "eight", "prompt": " "},
        {"id": "nine", "prompt": "look", "cwd": ".", "ref": "HEAD"},
        "[1]",
    )
    with ServerThread(lambda _request: Reply("Done.")) as server:
        done = bench.run(server=server)
    assert (done.returncode, done.stdout, server.requests) == (2, "", [])
    said = done.stderr.splitlines()
    assert [line.split(":")[1].strip() for line in said] == [f"line {number}" for number in range(3, 14)]
    assert "did you mean prompt?" in said[2]
    assert "line 1 too" in said[1]
    assert not bench.results_file.exists()


def test_l5_a_place_that_cannot_be_written_is_found_before_an_agent_costs_anything(bench: Bench):
    bench.write({"id": "one", "prompt": "write", "mode": "edits"})
    with ServerThread(writes) as server:
        bench.kept.write_text("in the way")
        kept = bench.run(server=server)
        bench.kept.unlink()
        bench.results_file.unlink()
        bench.results_file.mkdir()
        results = bench.run(server=server)
    assert (kept.returncode, results.returncode, server.requests) == (2, 2, [])
    assert kept.stderr == f"tenuto: {bench.kept}: Not a directory\n"
    assert results.stderr == f"tenuto: {bench.results_file}: Is a directory\n"


WITHOUT_RAY = """
import sys
sys.modules["ray"] = None
from tenuto.cli.main import main
sys.exit(main())
"""


def test_l5_ray_that_is_not_installed_is_named_with_what_installs_it(bench: Bench):
    bench.write({"id": "one", "prompt": "look"})
    command = [sys.executable, "-c", WITHOUT_RAY, "batch", str(bench.file), "--engine", "ray"]
    done = subprocess.run(command, cwd=bench.repo, env=bench.environ, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, bench.results) == (2, "", {})
    assert "pip install 'tenuto[batch]'" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not is_ray_installed(), reason=NOT_INSTALLED)
@pytest.mark.timeout(900)
def test_l5_an_address_without_a_cluster_is_named_at_once(bench: Bench):
    bench.write({"id": "one", "prompt": "look"})
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        bench.environ["RAY_ADDRESS"] = address
        done = bench.run("--engine", "ray")
    assert (done.returncode, done.stdout, bench.results) == (2, "", {})
    assert done.stderr == f"tenuto: there is no Ray cluster at {address} (RAY_ADDRESS): Connection refused\n"


def test_l5_the_money_for_all_tasks_is_never_spent_twice(bench: Bench):
    model = "anthropic/claude-opus-5-5"
    bench.write(*({"id": f"t{n}", "prompt": "look", "model": model} for n in range(6)))
    script = lambda _request: Reply("Done.", usage=Tokens(input=100_000, output=10))  # noqa: E731
    with ServerThread(script, listed_window=0, models=MODELS) as server:
        bench.environ |= gateway(bench.folder, server)
        done = bench.run("--total-cost", "1", "--max-cost", "0.5", "--jobs", "2")
        first = dict(bench.results)
        more = bench.run("--total-cost", "100")
    spent = [one["total_cost_usd"] for one in first.values()]
    assert done.returncode == 4, done.stdout + done.stderr
    assert (min(spent) > 0, len(first) < 6) == (True, True)
    assert sum(spent[:-2]) < 1.0
    assert "left" in done.stdout
    assert (more.returncode, len(bench.results)) == (0, 6)


def test_l5_limits_hold_for_each_task(bench: Bench):
    bench.write({"id": "one", "prompt": "look"}, {"id": "two", "prompt": "write", "mode": "edits"})
    with ServerThread(writes) as server:
        done = bench.run("--max-turns", "1", server=server)
    assert done.returncode == 1
    assert {one["outcome"] for one in bench.results.values()} == {"limit_reached"}


def test_l5_a_task_that_has_changed_runs_again(bench: Bench):
    with ServerThread(lambda _request: Reply("Done.")) as server:
        bench.write({"id": "one", "prompt": "look"}, {"id": "two", "prompt": "look"})
        bench.run(server=server)
        bench.write({"id": "one", "prompt": "look"}, {"id": "two", "prompt": "look closer"})
        done = bench.run("--json", server=server)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == ["two"]
    assert len(server.requests) == 3


def test_l5_jobs_are_bounded_by_the_cores(bench: Bench):
    bench.write({"id": "one", "prompt": "look"})
    with ServerThread(lambda _request: Reply("Done.")) as server:
        done = bench.run("--jobs", "9999", server=server)
    cores = len(os.sched_getaffinity(0))
    assert f"--jobs 9999: {cores} at the same time" in done.stderr


def test_l5_code_of_the_repository_is_not_imported(bench: Bench):
    mark = bench.folder / "imported"
    for name in ("tenuto", "json", "msgspec"):
        (bench.repo / f"{name}.py").write_text(f"open({str(mark)!r}, 'w')\n")
    bench.git("add", ".")
    bench.git("-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qam", "second")
    bench.write({"id": "one", "prompt": "look"})
    with ServerThread(lambda _request: Reply("Done.")) as server:
        command = [sys.executable, "-P", "-m", "tenuto", "batch", str(bench.file)]
        subprocess.run(command, cwd=bench.repo, env=bench.environ | server.environ(), check=True, capture_output=True)
    assert (mark.exists(), bench.results["one"]["outcome"]) == (False, "done")
