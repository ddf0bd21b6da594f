"""Names that are protected wherever they stand and however they are spelled: one list for approvals and sandbox.

What is written there makes other programs run code, or changes what the agent is told and allowed; what is read there
is a key. Approvals ask about both in every mode, and a rule covers such a path only when the rule itself names it. The
sandbox keeps what of it stands in a writable folder from commands. Compared without case: `.GIT/hooks` is `.git/hooks`
on many disks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import Literal

import msgspec

from tenuto.text.late import late

Danger = Literal["code", "instructions", "rules", "secret"]

REASONS: dict[Danger, str] = {
    "code": "can make other programs run code",
    "instructions": "is what agents are told in every session",
    "rules": "holds the agent's own settings and rules",
    "secret": "holds keys",
}

SECRET_FOLDERS = (
    *(".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"),
    *(".config/gcloud", ".config/gh"),
)
"""Folders of keys; commands in the sandbox do not see those of the home."""
_PLACES: dict[Danger, tuple[str, ...]] = {
    "code": (
        ".git",
        ".hg",
        ".svn",
        ".jj",
        ".husky",
        ".githooks",
        ".lefthook",
        ".vscode",
        ".idea",
        ".zed",
        ".fleet",
        ".devcontainer",
        ".circleci",
        ".buildkite",
        ".woodpecker",
        ".github/workflows",
        ".github/actions",
        ".gitea/workflows",
        ".forgejo/workflows",
        ".config/git",
        ".config/fish",
        ".config/autostart",
        ".config/systemd",
        ".config/environment.d",
        ".config/mise",
        ".local/bin",
        "library/launchagents",
    ),
    "rules": (".tenuto", ".claude", ".codex", ".gemini", ".cursor", ".agents", ".windsurf"),
    "secret": SECRET_FOLDERS,
    "instructions": (),
}
"""Directories, one name or several that follow each other: they and all below them."""
_FILES: dict[Danger, str] = {
    "code": r"""
        \.(ba|z|k|c|tc|mk)?shrc | \.bash_(profile|login|logout|aliases) | \.z(shenv|profile|login|logout) | \.profile |
        \.(login|logout|xinitrc|xprofile|xsession|inputrc|vimrc|nvimrc|exrc|tmux\.conf|screenrc|gdbinit|lldbinit) |
        \.envrc | \.(gitconfig|gitmodules|gitattributes) | \.(pre-commit-(config|hooks)|lefthook|gitlab-ci)\.ya?ml |
        lefthook\.ya?ml | ((azure|bitbucket)-pipelines|\.?appveyor|\.travis|\.drone|\.woodpecker)\.ya?ml |
        jenkinsfile | \.?mise(\.local)?\.toml | \.tool-versions | sitecustomize\.py | usercustomize\.py
        """,
    "rules": r"\.?mcp\.json | \.cursorrules | \.windsurfrules | \.clinerules",
    "instructions": r"(agents|claude|gemini|copilot-instructions)(\.(local|override))?\.md | skill\.md",
    "secret": r"""
        id_(rsa|dsa|ecdsa|ed25519)(_sk)? | \.?netrc | _netrc | \.pgpass | \.my\.cnf | \.npmrc | \.yarnrc | \.pypirc |
        \.git-credentials | \.dockercfg | \.vault-token | credentials(\.(json|toml|db))? | auth\.json |
        \.env(\.(?!example$|sample$|template$|dist$)[^/]*)? | .*\.(pem|key|p12|pfx|jks|keystore|kdbx|ppk)
        """,
}
"""Names of files, as patterns for the whole name; spaces and lines mean nothing."""
_FIRST_NAMES = frozenset(place.partition("/")[0] for places in _PLACES.values() for place in places if "/" in place)
"""Folders that are not protected themselves, but something in them is."""
_SPELLED: list[tuple[Danger, list[str]]] = [
    (danger, place.split("/")) for danger, places in _PLACES.items() for place in places
]
_BEGINNINGS = frozenset(wanted[0] for _, wanted in _SPELLED)
GIT_PROTECTED = ("config", "config.worktree", "hooks", "info/attributes")
"""What of a git directory commands may not write: git itself runs what stands there. All else a commit writes."""
_OF_OTHERS: dict[str, tuple[str, ...]] = {".hg": ("hgrc",), ".jj": ("repo/config.toml",), ".svn": ()}
"""The same of other version control."""
_FILE_PATTERNS = {danger: late(text, re.VERBOSE | re.DOTALL) for danger, text in _FILES.items()}
_NOT_SECRET_TO_READ = late(r".*\.(pem|key)|\.npmrc|\.yarnrc|auth\.json|credentials(\.json)?", re.DOTALL)
"""Names that harmless files have as well, certificates and settings: changing them asks, reading does not."""


class Protected(msgspec.Struct, frozen=True):
    """A protected name in a path: `name` is as much of the path as decides, as it is spelled there."""

    name: str
    danger: Danger

    @property
    def reason(self) -> str:
        """Why changing it asks, to go behind the path."""
        return REASONS[self.danger]


def protected_names(path: str, also: Iterable[str] = ()) -> tuple[Protected, ...]:
    """Return the protected names in a path, relative or not; `also` are more names of instruction files.

    Upper and lower case are the same: on some disks they are.
    """
    parts = [part for part in path.split("/") if part and part != "."]
    folded = [part.casefold() for part in parts]
    found: list[Protected] = []
    if not _BEGINNINGS.isdisjoint(folded):  # asked for very many files
        found = [
            Protected("/".join(parts[begin : begin + len(wanted)]), danger)
            for danger, wanted in _SPELLED
            for begin in range(len(parts) - len(wanted) + 1)
            if folded[begin : begin + len(wanted)] == wanted
        ]
    if parts:
        found += [Protected(parts[-1], danger) for danger in _FILES if _FILE_PATTERNS[danger].fullmatch(folded[-1])]
        if folded[-1] in {name.casefold() for name in also}:
            found.append(Protected(parts[-1], "instructions"))
    return tuple(found)


def secret_names(path: str) -> tuple[Protected, ...]:
    """Return the names in a path of which reading asks too: keys, and files of which most hold some."""
    return tuple(
        each
        for each in protected_names(path)
        if each.danger == "secret" and not _NOT_SECRET_TO_READ.fullmatch(each.name.casefold())
    )


def below(path: str, root: str) -> str:
    """Return the part of a real path behind `root`; a path outside it as it is."""
    return path[len(root.rstrip("/")) + 1 :] if path.startswith(root.rstrip("/") + "/") else path


def protected_entries(folder: str) -> list[str]:
    """Return the paths in a folder that are protected and exist, as the disk spells them; `.git` among them.

    Of a folder of other version control it is what that runs: a commit writes the rest.
    """
    found: list[str] = []
    for name in _names_in(folder):
        path = f"{folder.rstrip('/')}/{name}"
        folded = name.casefold()
        if folded in _OF_OTHERS and not Path(path).is_symlink():
            found += [f"{path}/{one}" for one in _OF_OTHERS[folded] if os.path.lexists(f"{path}/{one}")]
        elif _is_protected_name(name):
            found.append(path)
        elif folded in _FIRST_NAMES and not Path(path).is_symlink():  # what a link leads to is judged by where it is
            found += [f"{path}/{one}" for one in _names_in(path) if protected_names(f"{name}/{one}")]
    return found


@lru_cache(maxsize=20_000)
def _is_protected_name(name: str) -> bool:
    """Remembered: the names in a folder are looked at before and after every command."""
    return bool(protected_names(name))


def _names_in(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - names are all that is needed
    except OSError:
        return []
