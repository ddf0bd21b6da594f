"""Calls for tests of the guard, as the tools describe them."""

from __future__ import annotations

from pathlib import Path

from tenuto.guard.subject import ApprovalSubject
from tenuto.tool.bash import command_subject

ROOT = "/home/me/project"
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/home/me"}


def run(command: str, root: str = ROOT) -> ApprovalSubject:
    """Return a command in a workspace, which need not be there."""
    return command_subject(command, Path(root), [root], ENVIRON)
