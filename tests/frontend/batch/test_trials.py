"""Folders of Harbor tasks as a batch, as far as that goes without Harbor (`tests/frontend/harbor` has the rest)."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tenuto.cli.batch import run_batch
from tenuto.engine.child import Ended
from tenuto.frontend.batch.tasks import TasksError
from tenuto.frontend.batch.trial import TrialJob, read_trial, read_trials


def make_task(folder: Path, name: str) -> Path:
    place = folder / name
    (place / "tests").mkdir(parents=True)
    (place / "task.toml").write_text('version = "1.0"\n')
    (place / "instruction.md").write_text("\n# Do it\nwell\n")
    return place


def test_l5_a_folder_of_tasks_is_read_by_name_and_a_changed_file_makes_another_task(tmp_path: Path):
    for name in ("b", "a"):
        make_task(tmp_path, name)
    (tmp_path / "notes").mkdir()
    first = read_trials(tmp_path, "m/n", None)
    assert [(trial.id, trial.prompt, trial.model) for trial in first] == [
        ("a", "# Do it", "m/n"),
        ("b", "# Do it", "m/n"),
    ]
    assert read_trials(tmp_path / "a", "m/n", None) == first[:1]
    (tmp_path / "b" / "tests" / "test.sh").write_text("true")
    config = tmp_path / "trial.json"
    config.write_text("{}")
    again = read_trials(tmp_path, "m/n", None)
    assert [one.digest == other.digest for one, other in zip(first, again, strict=True)] == [True, False]
    assert read_trials(tmp_path, "m/n", config)[0].digest != first[0].digest
    for text in ('{"agent": ', "- a\n- b\n", ""):
        config.write_text(text)
        with pytest.raises(TasksError, match=re.escape(str(config))):
            read_trials(tmp_path, "m/n", config)


@pytest.mark.parametrize(
    ("rewards", "error", "outcome", "reward"),
    [
        ({"reward": 1.0}, None, "done", 1.0),
        ({"reward": 0.5}, None, "check_failed", 0.5),
        ({"a": 1.0, "b": 0.0}, None, "check_failed", 0.5),
        (None, None, "failed", None),
        ({"reward": 1.0}, "AgentTimeoutError", "limit_reached", 1.0),
        (None, "ApiUsageLimitError", "limit_reached", None),
        (None, "OutputTokenExceededError", "cut_off", None),
        (None, "AgentSafetyRefusalError", "declined", None),
        (None, "EnvironmentStartTimeoutError", "failed", None),
    ],
)
def test_l5_what_harbor_says_of_a_trial_is_an_outcome(tmp_path: Path, rewards, error, outcome, reward):
    result = {
        "agent_result": {"n_input_tokens": 10, "n_cache_tokens": 4, "n_output_tokens": 2, "cost_usd": 0.5},
        "verifier_result": {"rewards": rewards} if rewards else None,
        "exception_info": {"exception_type": error, "exception_message": "x\nwhy"} if error else None,
    }
    (tmp_path / "result.json").write_text(json.dumps(result))
    found = read_trial(tmp_path, Ended(0, b""))
    assert (found.outcome, found.reward, found.cost) == (outcome, reward, 0.5)
    assert found.answer["usage"] == {"input_tokens": 6, "cache_read_input_tokens": 4, "output_tokens": 2}
    assert not error or found.error == f"{error}: why"


def test_l5_a_trial_without_a_result_has_crashed(tmp_path: Path):
    found = read_trial(tmp_path, Ended(1, b"Error: no Docker\n"))
    assert (found.outcome, found.error, found.cost) == ("crashed", "harbor ended with 1: Error: no Docker", 0.0)


async def test_l5_harbor_is_told_limits_model_and_place_behind_the_users_own_file(tmp_path: Path):
    """A program by its name that keeps what it was given: what Harbor does with that, its own tests say."""
    make_task(tmp_path / "data", "a")
    config = tmp_path / "trial.yaml"
    config.write_text("{}")
    program = tmp_path / "bin" / "harbor"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$PWD" "$@" > "$SEEN"; cp "$6" "$SEEN.json"\n')
    program.chmod(0o755)
    seen = tmp_path / "seen"
    (trial,) = read_trials(tmp_path / "data", "m/n:high", config)
    job = TrialJob(trial, str(tmp_path / "trials"), "0123abcd", 7, 1.5, 60.0)
    environ = {"PATH": f"{program.parent}:{os.environ['PATH']}", "SEEN": str(seen)}
    assert (await job.run(environ)).outcome == "crashed"
    assert seen.read_text().split()[:-1] == [str(tmp_path), "trial", "start", "-c", str(config), "-c"]
    told = json.loads(seen.with_name("seen.json").read_text())
    assert told["task"] == {"path": str(tmp_path / "data" / "a")}
    assert (told["trial_name"], told["trials_dir"]) == ("a__0123abcd", str(tmp_path / "trials"))
    assert told["agent"]["model_name"] == "m/n:high"
    assert told["agent"]["kwargs"] == {"max_turns": 7, "max_cost": 1.5}
    assert told["agent"]["override_timeout_sec"] == 60.0
    assert list((tmp_path / "trials").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "path", "said"),
    [
        ((), "", "harbor is not installed"),
        (("--mode", "edits"), "", "--mode goes with a file of tasks"),
        (("--keep-worktrees",), "", "--keep-worktrees goes with a file"),
    ],
)
def test_l5_what_does_not_go_with_a_folder_of_tasks_is_named(tmp_path: Path, capsys, words, path, said):
    make_task(tmp_path / "data", "a")
    assert run_batch((str(tmp_path / "data"), *words), tmp_path, {"PATH": path}) == 2
    assert said in capsys.readouterr().err


def test_l5_a_folder_without_tasks_and_a_setting_without_a_folder_are_named(tmp_path: Path, capsys):
    program = tmp_path / "harbor"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "data").mkdir()
    assert run_batch((str(tmp_path / "data"),), tmp_path, {"PATH": str(tmp_path)}) == 2
    assert "has no tasks of Harbor's" in capsys.readouterr().err
    file = tmp_path / "tasks.jsonl"
    file.write_text('{"id": "a", "prompt": "look"}\n')
    assert run_batch((str(file), "--harbor-config", "x.json"), tmp_path, {}) == 2
    assert "--harbor-config goes with a folder" in capsys.readouterr().err
