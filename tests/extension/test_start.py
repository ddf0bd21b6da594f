"""What extensions cost at the start: nothing, where there are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_imports import PROBE


def modules_after_a_prompt(tmp_path: Path) -> set[str]:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TENUTO_HOME": str(tmp_path / "home")}
    arguments = ["-p", "hello", "--model", "offline/tenuto"]
    done = subprocess.run(
        [sys.executable, "-c", PROBE.format(arguments=arguments)],
        capture_output=True,
        text=True,
        env=environ,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        check=True,
        timeout=60,
    )
    line = next(line for line in done.stderr.splitlines() if line.startswith("MODULES "))
    return set(json.loads(line.removeprefix("MODULES ")))


OURS = {"tenuto.extension.host", "tenuto.extension.api"}


def test_without_extensions_nothing_is_imported_for_them(tmp_path):
    modules = modules_after_a_prompt(tmp_path)
    assert not modules & {*OURS, "importlib.metadata"}


@pytest.mark.parametrize("folder", ["home/extensions", ".tenuto/extensions"])
def test_with_a_folder_of_them_it_is(tmp_path, folder):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "mine.py").write_text("def setup(tenuto): pass\n")
    assert "tenuto.extension.host" in modules_after_a_prompt(tmp_path)
