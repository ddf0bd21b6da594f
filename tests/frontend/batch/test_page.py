"""The examples of docs/batch.md run as they stand there; its tables name what there is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.cli.batch import build_parser
from tenuto.frontend.batch.results import OUTCOMES, Result
from tenuto.frontend.batch.tasks import Task
from tests.frontend.batch.conftest import Bench

PAGE = (Path(__file__).parents[3] / "docs" / "batch.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```sh\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split("\n")[-2][:60])
def test_l5_an_example_runs(bench: Bench, example: str):
    if " jq " in example and shutil.which("jq") is None:
        pytest.skip("jq is not installed")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environ = bench.environ | {"PATH": programs}
    command = ["/bin/sh", "-e", "-c", f"set -u\n{example}"]
    done = subprocess.run(command, cwd=bench.repo, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(
    "names",
    [
        list(Task.__struct_fields__),
        OUTCOMES,
        [name for name in Result.__struct_fields__ if name not in ("task", "error", "exit_code")],
    ],
    ids=("keys of a task", "outcomes", "keys of a result"),
)
def test_l5_the_page_names(names: list[str]):
    of_headless_runs = {"duration_ms", "structured_output", "num_turns", "total_cost_usd"}
    assert [name for name in names if name not in of_headless_runs and f"`{name}`" not in PAGE] == []


def test_l5_the_page_names_every_option():
    options = [word for action in build_parser()._actions for word in action.option_strings if word.startswith("--")]
    known = [word for word in options if word not in ("--help", "--cwd")]
    assert [word for word in known if f"`{word}" not in PAGE and f"{word}`" not in PAGE] == []
