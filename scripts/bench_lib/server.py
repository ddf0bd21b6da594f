"""The scripted model server in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any, Self

from scripts.bench_lib.program import ROOT


class ModelServer:
    """Starts `tests.server`, changes its script, reads its records; a `lenient` one takes what any agent sends."""

    def __init__(self, directory: Path, *, lenient: bool = False) -> None:
        port_file = directory / "port"
        command = [sys.executable, "-m", "tests.server", "--forget", "--port-file", str(port_file)]
        command += ["--lenient"] if lenient else []
        self._process = subprocess.Popen(command, cwd=ROOT)
        deadline = time.monotonic() + 30
        while not port_file.exists():
            if time.monotonic() > deadline or self._process.poll() is not None:
                raise RuntimeError("the model server did not start")
            time.sleep(0.02)
        self.base_url = f"http://127.0.0.1:{int(port_file.read_text())}"
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    @property
    def pids(self) -> tuple[int, ...]:
        """The server's own process."""
        return (self._process.pid,)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def play(self, script: str) -> None:
        """Forget what was recorded and play this script from now on."""
        self._opener.open(f"{self.base_url}/_/reset", data=script.encode(), timeout=10).close()

    def records(self) -> list[dict[str, Any]]:
        """Return the model calls since the last `play`."""
        with self._opener.open(f"{self.base_url}/_/requests", timeout=10) as answer:
            return [row for row in json.load(answer) if row["kind"] == "model"]
