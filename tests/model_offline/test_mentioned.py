"""A file that went along with the prompt is not read, and so not shown, a second time."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.terminal.screen import source_path


def run(folder: Path, prompt: str) -> tuple[str, list[dict[str, object]]]:
    """Return the answer of a headless run, and its entries."""
    command = (sys.executable, "-m", "tenuto", "--model", "offline/tenuto", "-p", prompt)
    environ = {"TENUTO_HOME": str(folder / "home"), "HOME": str(folder), "PATH": "/usr/bin:/bin", **source_path()}
    answer = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=True, timeout=60)
    (log,) = folder.glob("home/sessions/*/*/events.jsonl")
    return answer.stdout, [msgspec.json.decode(line) for line in log.read_bytes().splitlines()]


@pytest.mark.parametrize(("word", "results"), [("@a.py", 0), ("@a.py:2-3", 0), ("a.py", 1)])
def test_a_mentioned_file_is_reported_from_what_went_along(tmp_path: Path, word: str, results: int) -> None:
    (tmp_path / "a.py").write_text("def first(): ...\ndef second(): ...\ndef third(): ...\n")
    said, entries = run(tmp_path, f"read {word}")
    assert "`a.py`" in said
    assert "second" in said
    assert ("first" in said) == (":" not in word)
    assert sum(entry.get("type") == "tool_result" for entry in entries) == results
