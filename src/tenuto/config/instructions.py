"""Instruction files: `AGENTS.md` and `CLAUDE.md`, global first, then from the project root to the working directory."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from tenuto.config.project import RefusedFileError, project_root, read_text

NAMES = ("AGENTS.md", "CLAUDE.md")
MAX_CHARS = 64_000
"""Characters of one file; the rest is left out with a notice in the text."""


class InstructionFile(msgspec.Struct, frozen=True):
    """One file as it is given to the model."""

    path: str
    text: str
    truncated: bool = False


class Instructions(msgspec.Struct, frozen=True):
    """The files that hold, the most general first, and a line for each that is there and is not read."""

    files: tuple[InstructionFile, ...] = ()
    problems: tuple[str, ...] = ()


def read_instructions(home: Path, cwd: Path) -> Instructions:
    """Return the instruction files that hold in `cwd`, no text twice.

    A file that cannot be read is left out and named: instructions never stop the agent from starting. What a project
    brings has to lie in the project: a link to a key would send that key to the provider.
    """
    root = project_root(cwd)
    below = [cwd, *cwd.parents]
    own = (home, Path(os.path.expanduser("~")))  # noqa: PTH111 - pathlib raises where there is no home
    project, apart = (root,), (root / ".git", home)
    found: dict[str, InstructionFile] = {}
    problems: list[str] = []
    for place in (home, *reversed(below[: below.index(root) + 1])):
        for name in NAMES:
            path = place / name
            try:
                text = (read_text(path, own) if place == home else read_text(path, project, apart)).strip()
            except FileNotFoundError:
                continue
            except RefusedFileError as refused:
                problems.append(f"{path} is not read as instructions: {refused}")
                continue
            if text:
                found.setdefault(text, _bounded(path, text))
    return Instructions(tuple(found.values()), tuple(problems))


def _bounded(path: Path, text: str) -> InstructionFile:
    if len(text) > MAX_CHARS:
        return InstructionFile(str(path), f"{text[:MAX_CHARS]}\n[... cut: {path} has {len(text)} characters]", True)
    return InstructionFile(str(path), text)
