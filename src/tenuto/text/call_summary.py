"""One line for a tool call, from its name and arguments alone, so that it is the same live and after a resume. Pure."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from tenuto.text.patch import patched_files
from tenuto.text.writable import to_json

Arguments = dict[str, Any]
_JOINED = {"grep": " in ", "glob": " in ", "jobs": " "}
MAX_CHARACTERS = 400
SUBJECTS: dict[str, tuple[str, ...]] = {
    "read": ("path",),
    "write": ("path",),
    "edit": ("path",),
    "bash": ("command",),
    "grep": ("pattern", "path"),
    "glob": ("pattern", "path"),
    "fetch": ("url",),
    "jobs": ("action", "job"),
    "recall": ("query",),
    "compact": ("focus",),
    "skill": ("name", "skill"),
    "agent": ("description", "prompt"),
}
"""The arguments that say what a built-in call is about, most telling first."""


def read_arguments(arguments: str) -> Arguments | None:
    """Return what a call's JSON says, `None` while it is incomplete or when it is no object."""
    try:
        return msgspec.json.decode(arguments, type=dict[str, Any])
    except (ValueError, RecursionError):  # no JSON, no Unicode, or too deep
        return None


def argument(arguments: Arguments, *names: str) -> str:
    """Return the first of the named arguments that is there, as text."""
    for name in names:
        value = arguments.get(name)
        if value is not None and value != "":
            return value if isinstance(value, str) else to_json(value).decode()
    return ""


def summarise_call(name: str, arguments: str, path: str = "") -> str:
    """Return the path, command or pattern of a call; for other tools its short arguments. One line, bounded.

    `path` is the one of its file as users read it, where that is known: models often write it from the root.
    """
    values = read_arguments(arguments)
    if values is None:
        return ""
    if path and values.get("path"):
        values["path"] = path
    if name == "todo":
        items: Any = values.get("items")
        return f"{len(cast('list[Any]', items))} items" if isinstance(items, list) else ""
    if name == "plan":
        return first_heading(str(values.get("plan", "")))
    if name == "apply_patch":
        return describe_patch(values)
    known = [str(values[key]) for key in SUBJECTS.get(name, ()) if values.get(key)]
    if known and name == "edit":
        return f"{_one_line(known[0])}{count_edits(values)}"
    if known:
        return _one_line(_JOINED[name].join(known) if name in _JOINED else known[0])
    shown = [f"{key}={value}" for key, value in values.items() if isinstance(value, str | int | float | bool)]
    return _one_line(", ".join(shown))


def describe_patch(arguments: Arguments) -> str:
    """Return the files that a patch is about."""
    names: list[str] = []
    for verb, path in patched_files(argument(arguments, "input", "patch")):
        if verb == "Move" and names:
            names[-1] += f" -> {path}"
        else:
            names.append(path)
    names = list(dict.fromkeys(names))
    return _one_line(f"{len(names)} files: {', '.join(names)}" if len(names) > 1 else "".join(names))


def several(edits: int) -> str:
    """Return what stands behind the path of a call that makes several edits; nothing for one."""
    return f" ({edits} edits)" if edits > 1 else ""


def count_edits(arguments: Arguments) -> str:
    """Return the same as `several`, from the arguments of a call."""
    edits: Any = arguments.get("edits")
    return several(len(cast("list[Any]", edits))) if isinstance(edits, list) else ""


def listed_objects(value: object) -> list[Arguments]:
    """Return an argument that is a list of objects, like the edits of a call; empty for everything else."""
    items = cast("list[Any]", value) if isinstance(value, list) else []
    return items if all(isinstance(item, dict) for item in items) else []


def first_heading(text: str) -> str:
    """Return the first line of a plan without its mark; nothing where that is "Plan", as the call is called already."""
    lines = (line.strip().lstrip("#").strip() for line in text.splitlines())
    heading = _one_line(next((line for line in lines if line), ""))
    return "" if heading.strip("*: ").lower() == "plan" else heading


def _one_line(text: str) -> str:
    line = " ".join(text[: MAX_CHARACTERS * 2].split())
    return line if len(line) <= MAX_CHARACTERS else line[: MAX_CHARACTERS - 1] + "…"
