"""Small tasks through Harbor, with a scripted model: reward, tokens, trajectory (`scripts/harbor` installs it)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.frontend.harbor.tasks import TASKS, Task
from tests.server import ServerThread
from tests.session.exporters.atif_rules import check_trajectory

ROOT = Path(__file__).parents[3]
FOLDER = Path(os.environ.get("TENUTO_TEST_HARBOR") or Path.home() / ".cache" / "tenuto-harbor")
PYTHON = FOLDER / "venv" / "bin" / "python"
BY_NAME = {task.name: task for task in TASKS}


@pytest.fixture(scope="module")
def results(tmp_path_factory) -> dict[str, dict]:
    """All trials in one run of Harbor, each with a server of its own."""
    if not (FOLDER / "installed").exists():
        pytest.skip("Harbor is not there: scripts/harbor installs it (Python 3.12)")
    if (
        shutil.which("bwrap") is None
        or subprocess.run(["bwrap", "--ro-bind", "/", "/", "true"], check=False).returncode
    ):
        pytest.skip("bubblewrap cannot be used here")
    folder = tmp_path_factory.mktemp("harbor")
    asked = []
    with ExitStack() as stack:
        for task in TASKS:
            server = stack.enter_context(ServerThread(task.replies, window=task.window))
            asked.append(
                {
                    "task": task.name,
                    "folder": str(task.write(folder / "tasks")),
                    "trials": "trials",  # as it is from the command line
                    "env": server.environ(),
                    "kwargs": task.kwargs,
                }
            )
        (folder / "asked.json").write_text(json.dumps(asked))
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}",
            "TENUTO_TEST_BIN": str(Path(sys.executable).parent),
            "HARBOR_TELEMETRY": "0",
        }
        done = subprocess.run(
            [PYTHON, "-m", "tests.frontend.harbor.trials", folder / "asked.json", folder / "results.json"],
            check=False,
            capture_output=True,
            text=True,
            env=environ,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            timeout=240,
        )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return json.loads((folder / "results.json").read_text())


@pytest.mark.parametrize("name", BY_NAME)
def test_a_task_is_done_in_harbors_own_harness(results, name: str) -> None:
    task, result = BY_NAME[name], results[name]
    error = result["exception_info"] or {}
    assert error.get("exception_type", "") == task.error, error
    assert result["verifier_result"]["rewards"] == {"reward": task.reward}
    assert result["agent_info"]["name"] == "tenuto" and result["agent_info"]["version"][0].isdigit()
    check_trajectory(result["trajectory"])
    check_account(task, result)


def check_account(task: Task, result: dict) -> None:
    """The trajectory has the instruction and every call; what Harbor counts is what it says."""
    made, counted = result["trajectory"], result["agent_result"]
    asked = [step["message"] for step in made["steps"] if step["source"] == "user"]
    assert asked[0] == task.instruction
    totals = made["final_metrics"]
    assert counted["n_input_tokens"] == totals["total_prompt_tokens"] > 0
    assert counted["n_output_tokens"] == totals["total_completion_tokens"] > 0
    assert counted["cost_usd"] == totals.get("total_cost_usd"), "behind another address no price is known"
    for step in made["steps"]:
        calls = [call["tool_call_id"] for call in step.get("tool_calls", [])]
        given = [one["source_call_id"] for one in step.get("observation", {"results": []})["results"]]
        assert calls == given or step["source"] != "agent"


def test_the_trajectory_of_a_sub_agent_is_inside(results) -> None:
    (inside,) = results["sub-agent"]["trajectory"]["subagent_trajectories"]
    assert inside["steps"][-1]["message"] == "It is in deep/down.txt: 4711."


def test_a_compaction_in_mid_work_shows_in_the_trajectory(results) -> None:
    steps = results["long-work"]["trajectory"]["steps"]
    found = [step["extra"]["context_management"] for step in steps if "context_management" in step["extra"]]
    assert found and all(one["tokens_after"] < one["tokens_before"] for one in found)


def test_nothing_was_refused(results) -> None:
    """The container holds the agent: what would ask a user is allowed, outside of the working directory too."""
    for name, result in results.items():
        for step in result["trajectory"]["steps"]:
            for one in step.get("observation", {"results": []})["results"]:
                assert not one.get("extra", {}).get("denied"), (name, one)


SEARCHING = """
import asyncio, sys
from pathlib import Path
from tenuto.frontend.harbor import TenutoAgent

async def main():
    told = {"model_name": "anthropic/claude-opus-5-5", "skip_model_parsing": True}
    for given, restricted in (({}, False), ({"disable_web_search": True}, False), ({}, True)):
        agent = TenutoAgent(logs_dir=Path(sys.argv[1]), **told, **given)
        await agent.set_web_tools_disabled(restricted, None)
        print(agent._environment().get("TENUTO_TOOLS__WEB_SEARCH", "as it is"))

asyncio.run(main())
"""


def test_the_web_search_is_off_where_harbor_or_its_user_wants_that(tmp_path) -> None:
    """It runs at the provider, so a container without a network does not hold it."""
    if not (FOLDER / "installed").exists():
        pytest.skip("Harbor is not there: scripts/harbor installs it (Python 3.12)")
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [PYTHON, "-c", SEARCHING, tmp_path], check=False, capture_output=True, text=True, env=environ, timeout=60
    )
    assert done.stdout.split("\n") == ["as it is", "false", "false", ""], done.stderr
