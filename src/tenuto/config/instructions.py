"""Instruction files: `AGENTS.md` and `CLAUDE.md`, global first, then from the project root to the working directory."""

from __future__ import annotations

from pathlib import Path

import msgspec

NAMES = ("AGENTS.md", "CLAUDE.md")
MAX_CHARS = 64_000
"""Characters of one file; the rest is left out with a notice in the text."""


class InstructionFile(msgspec.Struct, frozen=True):
    """One file as it is given to the model."""

    path: str
    text: str
    truncated: bool = False


def project_root(cwd: Path) -> Path:
    """Return the nearest directory upwards that has a `.git`, else `cwd` itself."""
    return next((place for place in (cwd, *cwd.parents) if (place / ".git").exists()), cwd)


def read_instructions(home: Path, cwd: Path) -> list[InstructionFile]:
    """Return the instruction files that hold in `cwd`, the most general first, no text twice.

    A file that cannot be read is left out: instructions never stop the agent from starting.
    """
    root = project_root(cwd)
    places = [home]
    below = [cwd, *cwd.parents]
    places.extend(reversed(below[: below.index(root) + 1]))
    found: list[InstructionFile] = []
    seen: set[str] = set()
    for place in places:
        for name in NAMES:
            file = _read(place / name)
            if file is not None and file.text not in seen:
                seen.add(file.text)
                found.append(file)
    return found


def _read(path: Path) -> InstructionFile | None:
    try:
        text = path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    if not text:
        return None
    if len(text) > MAX_CHARS:
        return InstructionFile(str(path), f"{text[:MAX_CHARS]}\n[... cut: {path} has {len(text)} characters]", True)
    return InstructionFile(str(path), text)
