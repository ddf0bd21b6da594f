"""An environment of Harbor without Docker: plain folders, put at their places of a container by bubblewrap.

Runs in the Python that has Harbor, which is not that of the tests.
"""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from harbor.environments.base import BaseEnvironment, ExecResult

PLACES = ("app", "logs", "tests", "solution", "installed-agent", "agent-home")
"""What a container has of its own; all else is this machine's, and cannot be written."""


class Folders(BaseEnvironment):
    @staticmethod
    def type() -> str:
        return "folders"

    def _validate_definition(self) -> None:
        """Nothing is built."""

    @property
    def _root(self) -> Path:
        return self.trial_paths.trial_dir / "container"

    def _at(self, path: str) -> Path:
        return self._root / str(path).lstrip("/")

    async def start(self, force_build: bool) -> None:
        for place in (*PLACES, "logs/agent", "logs/verifier", "logs/artifacts"):
            self._at(place).mkdir(parents=True, exist_ok=True)
        shutil.copytree(self.environment_dir / "app", self._at("app"), dirs_exist_ok=True)

    async def stop(self, delete: bool) -> None:
        if delete:
            shutil.rmtree(self._root, ignore_errors=True)

    async def upload_file(self, source_path, target_path: str) -> None:
        self._at(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source_path, self._at(target_path))

    async def upload_dir(self, source_dir, target_dir: str) -> None:
        shutil.copytree(source_dir, self._at(target_dir), dirs_exist_ok=True)

    async def download_file(self, source_path: str, target_path) -> None:
        Path(target_path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(self._at(source_path), target_path)

    async def download_dir(self, source_dir: str, target_dir) -> None:
        shutil.copytree(self._at(source_dir), target_dir, dirs_exist_ok=True, symlinks=True)

    async def exec(self, command, cwd=None, env=None, timeout_sec=None, user=None) -> ExecResult:
        environ = {
            "PATH": f"{os.environ['TENUTO_TEST_BIN']}:/usr/local/bin:/usr/bin:/bin",
            "HOME": "/agent-home",
            "LANG": "C.UTF-8",
            **(self._merge_env(env) or {}),
        }
        process = await asyncio.create_subprocess_exec(
            *self._confined(cwd or "/app"),
            *("bash", "-c", command),
            env=environ,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, said = await asyncio.wait_for(process.communicate(), timeout_sec)
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        return ExecResult(stdout=out.decode(), stderr=said.decode(), return_code=process.returncode or 0)

    def _confined(self, cwd: str) -> list[str]:
        words = ["bwrap", "--die-with-parent", "--dev", "/dev", "--proc", "/proc", "--unshare-pid"]
        for entry in sorted(Path("/").iterdir()):
            if entry.is_symlink():
                words += ["--symlink", os.readlink(entry), str(entry)]
            elif entry.name not in (*PLACES, "dev", "proc"):
                words += ["--bind" if entry.name == "tmp" else "--ro-bind", str(entry), str(entry)]
        for place in PLACES:
            words += ["--bind", str(self._root / place), f"/{place}"]
        return [*words, "--chdir", cwd]
