"""What the sandbox shows of where programs lie."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tenuto.guard.sandbox.machine import find_machine
from tenuto.guard.sandbox.policy import Places
from tenuto.guard.sandbox.sandbox import Sandbox
from tenuto.tool.process.process import Collector, start_command


@pytest.mark.skipif(find_machine("bubblewrap").kind != "bubblewrap", reason="no bubblewrap here")
async def test_an_environment_of_python_that_lies_in_a_temporary_folder_runs_with_its_packages(tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (package,) = environment.glob("lib/python*/site-packages")
    (package / "only_here.py").write_text("print('imported')\n")
    with tempfile.TemporaryDirectory() as private:
        places = Places(workspace=str(tmp_path / "work"), private=private, own_home=str(tmp_path / "own"))
        (tmp_path / "work").mkdir()
        environ = {"PATH": f"{environment}/bin:/usr/bin:/bin", "HOME": str(tmp_path / "work")}
        sandbox = Sandbox(lambda _private: places, wish="bubblewrap")
        confined = sandbox.confine(tmp_path / "work", environ, strict=False)
        line = "python -c 'import only_here'"
        command = start_command(
            line, tmp_path / "work", environ, Collector(None), tmp_path / "running", confined=confined
        )
        await command.exited
        await command.settle()
        command.close()
        sandbox.close()
    assert command.collector.kept == b"imported\n"
