"""The examples of docs/headless.md run as they stand there."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.server import Reply, Request, ServerThread

PAGE = Path(__file__).parents[2] / "docs" / "headless.md"
EXAMPLES = re.findall(r"^```sh\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
HAS_JQ = shutil.which("jq") is not None


def answer(request: Request) -> Reply:
    fits = "fits this schema" in "\n".join(item.text for item in request.items)
    return Reply('{"sum": 42}' if fits else "Forty-two.")


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.split("\n")[0][:60])
def test_an_example_runs(run, tmp_path, example):
    if " jq " in example and not HAS_JQ:
        pytest.skip("jq is not installed")
    programs = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    with ServerThread(answer) as server:
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "settings.toml").write_text('model = "openai-chat/test"\n')
        done = run("-e", "-c", f"set -u\n{example}", server=server, program=["/bin/sh"], environ={"PATH": programs})
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()
    assert server.requests


def test_the_page_names_every_key_of_the_result(run):
    with ServerThread(answer) as server:
        done = run("-p", "go", "--model", "openai-chat/test", "--output-format", "json", server=server)
    page = PAGE.read_text(encoding="utf-8")
    assert [key for key in json.loads(done.stdout) if f"`{key}`" not in page and key != "type"] == []
