"""A workspace, a decoy home and a folder outside, and a bench whose commands the sandbox of one kind holds."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenuto.config.settings import SandboxSettings
from tenuto.guard.sandbox.machine import find_machine
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.session.session import Session
from tenuto.tool.run.confining import make_sandbox
from tenuto.tool.run.context import ToolContext
from tests.tool.support import Bench

KINDS = ("bubblewrap", "landlock")
SECRET = "canary-7f3a"
SECRET_FILES = (
    *(".ssh/id_rsa", ".aws/credentials", ".gnupg/secring.gpg", ".netrc", ".config/gcloud/token.json"),
    *(".config/gh/hosts.yml", ".kube/config", ".docker/config.json", ".npmrc", ".pypirc", ".git-credentials"),
    *(".config/git/credentials", ".vault-token", ".password-store/x.gpg", ".local/share/keyrings/login.keyring"),
)


@dataclass
class Places:
    root: Path
    work: Path
    home: Path
    outside: Path
    own_home: Path
    bench: Bench

    async def run(self, line: str) -> tuple[ToolResultMessage, str]:
        result = await self.bench.call("bash", command=line)
        return result, text_of(result.parts)

    def outer(self) -> dict[str, str]:
        """Return what is there outside of the workspace, with its content."""
        found = describe(self.home) | describe(self.outside)
        own = {path: what for path, what in found.items() if not path.startswith(str(self.own_home))}
        return own | {str(path): "" for path in self.root.iterdir()}

    def inner(self) -> dict[str, str]:
        """Return what is protected in the workspace: what is put back has other times."""
        names = (".git/config", ".git/hooks", ".tenuto", "AGENTS.md", ".envrc", ".vscode", ".github/workflows")
        names += (".mcp.json", ".pre-commit-config.yaml")
        return {key: value for name in names for key, value in describe(self.work / name, _content).items()}


def describe(top: Path, look: Callable[[Path], str] | None = None) -> dict[str, str]:
    """Return what is below a place, each path with all that can be said of it, or with what `look` says."""
    paths = [top, *sorted(top.rglob("*"))] if top.is_dir() and not top.is_symlink() else [top]
    return {str(path): (look or _fingerprint)(path) for path in paths if os.path.lexists(path)}


def _fingerprint(path: Path) -> str:
    """Return all that a command could change of it; reading changes only when it was last read."""
    facts = path.lstat()
    common = f"{facts.st_mode:o} {facts.st_uid}:{facts.st_gid} {facts.st_mtime_ns} {facts.st_ctime_ns}"
    if path.is_symlink():
        return f"{common} link {os.readlink(path)}"
    attributes = {name: os.getxattr(path, name) for name in os.listxattr(path)}
    return f"{common} {attributes} {_content(path)}"


def _content(path: Path) -> str:
    facts = path.lstat()
    if path.is_symlink():
        return f"link {os.readlink(path)}"
    data = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
    return f"{facts.st_mode:o} {facts.st_nlink if path.is_file() else ''} {data}"


def need(kind: str) -> None:
    """Skip with the reason where this machine does not have a kind."""
    machine = find_machine(kind)
    if not machine.kind:
        pytest.skip(f"this machine has no {kind}: {machine}")


@contextmanager
def places(kind: str, **wishes) -> Iterator[Places]:
    """Make them below the home of whoever runs this: `/tmp` is another one in the sandbox."""
    need(kind)
    root = Path(tempfile.mkdtemp(prefix=".tenuto-test-", dir=Path.home()))
    try:
        work, home, outside = root / "work", root / "home", root / "outside"
        for folder in (work, home / ".config", outside / "folder"):
            folder.mkdir(parents=True)
        _fill(work, home, outside)
        own_home = home / ".tenuto"
        session = Session.create(own_home, work)
        sandbox = make_sandbox(
            SandboxSettings(kind=kind, **wishes),
            work,
            own_home,
            session.store.outputs,
            wanted=True,  # type: ignore[arg-type]
        )
        context = ToolContext(session, sandbox=sandbox)
        context.environ = {**os.environ, "HOME": str(home), "OUT": str(outside), "LC_ALL": "C"}
        yield Places(root, work, home, outside, own_home, Bench(work, session, context))
        sandbox.close()
        session.close()
    finally:
        shutil.rmtree(root, ignore_errors=True)


def _fill(work: Path, home: Path, outside: Path) -> None:
    for folder in (work, home, outside, outside / "folder"):
        (folder / "keep").write_text("a\n")
    for name in SECRET_FILES:
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SECRET)
    (home / ".bashrc").write_text("a\n")
    os.setxattr(outside / "keep", "user.there", b"1")
    (work / "link").symlink_to(outside)
    (work / "up").symlink_to("../outside")
    subprocess.run(["git", "init", "-q", str(work)], check=True, env={**os.environ, "HOME": str(home)})
    subprocess.run(["tar", "-cf", "t.tar", "keep"], cwd=work, check=True)
    (work / "p.diff").write_text("--- a\n+++ b\n@@ -1 +1 @@\n-a\n+b\n")
    for name in ("AGENTS.md", ".envrc", ".mcp.json", ".pre-commit-config.yaml", ".tenuto/settings.toml"):
        path = work / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("a\n")
    for name in (".vscode/tasks.json", ".github/workflows/ci.yml"):
        path = work / name
        path.parent.mkdir(parents=True)
        path.write_text("a\n")
