"""Which hooks a call is told to, and how it is told: tools and their arguments by the names that other agents use.

Hooks that people have were written for those: a matcher `Bash|Edit`, a script that reads `tool_input.file_path`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from tenuto.extension.hooks.files import CONDITION, NAMES

THEIR_NAMES: Mapping[str, str] = {
    "agent": "Task",
    "apply_patch": "apply_patch",
    "bash": "Bash",
    "edit": "Edit",
    "fetch": "WebFetch",
    "glob": "Glob",
    "grep": "Grep",
    "read": "Read",
    "todo": "TodoWrite",
    "write": "Write",
}
"""What a tool of ours is called elsewhere; every other one has its own name there too."""
_MORE_NAMES: Mapping[str, tuple[str, ...]] = {
    "agent": ("Agent",),
    "apply_patch": ("Edit", "Write", "MultiEdit"),
    "edit": ("MultiEdit",),
}
_THEIR_KEYS: Mapping[str, tuple[str, str]] = {
    "apply_patch": ("input", "command"),
    "edit": ("path", "file_path"),
    "read": ("path", "file_path"),
    "write": ("path", "file_path"),
}
"""What an argument of ours is called elsewhere, of tools where scripts look for it."""
_SUBJECTS = ("command", "file_path", "path", "url", "pattern")
_PIECES = re.compile(r"&&|\|\||[;|\n]")
"""Between the commands of a line, near enough to find the one that a condition means."""


def their_name(tool: str) -> str:
    """Return what other agents call a tool."""
    return THEIR_NAMES.get(tool, tool)


def names_of(tool: str) -> tuple[str, ...]:
    """Return every name that a matcher may mean a tool by."""
    return (tool, their_name(tool), *_MORE_NAMES.get(tool, ()))


def matches(matcher: str, names: tuple[str, ...]) -> bool:
    """Say whether a matcher means something of these names; an empty one and `*` mean everything.

    A list of names means these and no longer ones; a regular expression is looked for anywhere in a name.
    """
    if matcher in ("", "*") or not names:
        return True
    if NAMES.fullmatch(matcher):
        return bool({word.strip() for word in re.split(r"[|,]", matcher)} & set(names))
    return any(re.search(matcher, name) for name in names)


def holds(condition: str, tool: str, values: Mapping[str, Any]) -> bool:
    """Say whether a call fits an `if`: the tool's name, and a pattern for its command, path or address."""
    found = CONDITION.fullmatch(condition)
    if not condition or found is None:
        return True
    if found["tool"] not in names_of(tool):
        return False
    pattern = found["pattern"]
    if not pattern or pattern == "*":
        return True
    subject = next((value for key in _SUBJECTS if isinstance(value := values.get(key), str)), "")
    pattern = re.sub(r":\*$", "*", pattern)
    texts = [subject, *(_PIECES.split(subject) if tool == "bash" else ())]
    return any(fnmatchcase(text.strip(), pattern) for text in texts)


def their_input(tool: str, values: Mapping[str, Any], cwd: Path) -> dict[str, Any]:
    """Return a call's arguments as a hook is told them: ours, and one by its other name, a path as a whole one."""
    ours, theirs = _THEIR_KEYS.get(tool, ("", ""))
    value = values.get(ours)
    if not isinstance(value, str):
        return dict(values)
    return {**values, theirs: os.path.normpath(cwd / Path(value).expanduser()) if ours == "path" else value}


def our_input(tool: str, told: Mapping[str, Any], changed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that a hook has put in the place of those that it was told."""
    made = dict(changed)
    ours, theirs = _THEIR_KEYS.get(tool, ("", ""))
    value = made.pop(theirs, None)
    if value is not None and (value != told.get(theirs) or ours not in made):
        made[ours] = value
    return made
