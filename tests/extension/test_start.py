"""What extensions cost at the start: nothing, where there are none."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tenuto.core.state.extensions import has_entry_points
from tests.core.harness import agent
from tests.server import Reply
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


@pytest.mark.parametrize(("folder", "is_imported"), [("home/extensions", True), (".tenuto/extensions", False)])
def test_with_a_folder_of_ones_own_it_is(tmp_path, folder, is_imported):
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "mine.py").write_text("def setup(tenuto): pass\n")
    assert ("tenuto.extension.host" in modules_after_a_prompt(tmp_path)) is is_imported


PACKAGED = """
def setup(tenuto):
    @tenuto.tool
    def packaged(): "From a package."
"""


@pytest.mark.parametrize(("disabled", "is_offered"), [("[]", True), ('["made-up"]', False)])
async def test_an_installed_extension_is_there_at_the_first_prompt_unless_it_is_disabled(
    tmp_path, monkeypatch, disabled, is_offered
):
    info = tmp_path / "site" / "made_up-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: made-up\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[tenuto.extensions]\nmade-up = brought_along\n")
    (tmp_path / "site" / "brought_along.py").write_text(PACKAGED)
    monkeypatch.syspath_prepend(tmp_path / "site")
    async with agent(tmp_path, [Reply("done")], environ={"TENUTO_EXTENSIONS__DISABLED": disabled}) as running:
        await running.ask("go")
        assert ("packaged" in running.server.requests[0].tool_names) is is_offered


def test_a_package_without_the_group_has_nobody_look_further(tmp_path):
    info = tmp_path / "other-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("[console_scripts]\nx = y:z\n")
    assert not has_entry_points((str(tmp_path), str(tmp_path / "missing")))
    (info / "entry_points.txt").write_text("[console_scripts]\nx = y:z\n\n[tenuto.extensions]\nx = y\n")
    assert has_entry_points((str(tmp_path),))
