"""The person's own editor, on a text."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import tempfile
from collections.abc import Mapping
from pathlib import Path

FALLBACKS = ("nano", "vim", "vi")


def editor_command(environ: Mapping[str, str]) -> list[str]:
    """Return the command of `$VISUAL`, `$EDITOR` or the first usual editor there is; empty when there is none."""
    import shutil

    for variable in ("VISUAL", "EDITOR"):
        if environ.get(variable, "").strip():
            try:
                return shlex.split(environ[variable])
            except ValueError:
                return [environ[variable]]
    return [name for name in FALLBACKS if shutil.which(name)][:1]


async def edit_text(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what the editor made of the text, and what went wrong (then the text is as it was)."""
    command = editor_command(environ)
    if not command:
        return text, "No editor found: set VISUAL or EDITOR"
    try:
        path = _write(text)
        try:
            code = await _run_editor(command, str(path))
            edited = _read(path)
        finally:
            _remove(path)
    except OSError as error:
        return text, f"{command[0]} could not be run: {error}"
    if code:
        return text, f"{Path(command[0]).name} ended with exit code {code}; the draft is unchanged"
    return edited if text.endswith("\n") else edited.removesuffix("\n"), ""


async def edit_file(path: str, environ: Mapping[str, str]) -> str:
    """Open a file in the person's editor; return what went wrong, empty when nothing did."""
    command = editor_command(environ)
    if not command:
        return f"No editor found: set VISUAL or EDITOR, or edit {path} yourself"
    try:
        code = await _run_editor(command, path)
    except OSError as error:
        return f"{command[0]} could not be run: {error}"
    return f"{Path(command[0]).name} ended with exit code {code}" if code else ""


async def _run_editor(command: list[str], path: str) -> int:
    # Standard error of this process is not the terminal while the app runs.
    terminal = os.open(os.ctermid(), os.O_RDWR)
    try:
        process = await asyncio.create_subprocess_exec(*command, path, stderr=terminal)
        return await process.wait()
    finally:
        os.close(terminal)


def _write(text: str) -> Path:
    handle, name = tempfile.mkstemp(prefix="tenuto-", suffix=".md")
    with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
        file.write(text)
    return Path(name)


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
