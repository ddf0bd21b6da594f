"""Names whose files make other programs run code, or change the agent's own rules. One list for approvals and sandbox.

Compared without case: `.GIT/hooks` is `.git/hooks` on many disks.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

INSTRUCTION_NAMES = frozenset({"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md"})
PROTECTED_NAMES = INSTRUCTION_NAMES | frozenset(
    {
        *(".git", ".tenuto", ".claude", ".codex", ".mcp.json", ".envrc", ".vscode", ".idea", ".gitmodules"),
        *(".gitlab-ci.yml", ".pre-commit-config.yaml"),
        *(".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile"),
        *(".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout"),
    }
)
"""Protected wherever they stand, with everything below them."""
PROTECTED_PAIRS = frozenset({(".github", "workflows"), (".github", "actions"), (".config", "fish")})
"""A folder and the name in it that is protected."""
GIT_PROTECTED = ("config", "config.worktree", "hooks", "info/attributes")
"""What of a git directory commands may not write: git itself runs what stands there. All else a commit writes."""


def is_protected_path(parts: Iterable[str]) -> bool:
    """Whether a path with these parts, seen from the workspace, is one of the protected or lies below one."""
    folded = [part.casefold() for part in parts]
    if not PROTECTED_NAMES.isdisjoint(folded):
        return True
    return not PROTECTED_PAIRS.isdisjoint(pairwise(folded))


def protected_entries(folder: str) -> list[str]:
    """Return the paths in a folder that are protected and exist, as the disk spells them; `.git` among them."""
    found: list[str] = []
    for name in _names(folder):
        folded = name.casefold()
        if folded in PROTECTED_NAMES:
            found.append(f"{folder.rstrip('/')}/{name}")
        elif any(folded == first for first, _ in PROTECTED_PAIRS):
            inner = f"{folder.rstrip('/')}/{name}"
            if Path(inner).is_symlink():
                continue  # what it leads to is judged by where it is
            found += [f"{inner}/{one}" for one in _names(inner) if (folded, one.casefold()) in PROTECTED_PAIRS]
    return found


def _names(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
    except OSError:
        return []
