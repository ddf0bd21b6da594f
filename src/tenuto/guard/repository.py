"""What a repository would run when someone only looks at it with git (R-086)."""

from __future__ import annotations

import re
from pathlib import Path

_RUNS_SOMETHING = re.compile(
    r"^\s*(?:\[\s*include|[^#;\n]*\b(?:fsmonitor|pager|external|textconv|command|clean|smudge|process|program|hookspath|"
    r"sshcommand|editor|askpass|helper|showsignature|alternaterefscommand)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_HOOK_OF_READERS = "post-index-change"


def configured_programs(git: Path) -> str:
    """Return why reading with git could run a program of the repository's, empty when it could not.

    `git` is the `.git` of a work tree. What cannot be told counts as a reason.
    """
    if (git / "modules").exists() or (git.parent / ".gitmodules").exists():
        return "the repository has submodules, which bring a git configuration of their own"
    if not git.is_dir():
        return "git takes its configuration from elsewhere here"
    for name in ("config", "config.worktree"):
        try:
            text = (git / name).read_text(encoding="utf-8", errors="replace")
        except FileNotFoundError:
            continue
        except OSError:
            return f"{git / name} cannot be read"
        if _RUNS_SOMETHING.search(text):
            return "the repository's git configuration names programs that git would run"
    if (git / "hooks" / _HOOK_OF_READERS).exists():
        return f"the repository has a {_HOOK_OF_READERS} hook"
    return ""
