"""The user's own editor, on a text."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from pathlib import Path

from tenuto.tui.own_program import could_not_run, find_program, run_program, write_passing

VARIABLES = ("VISUAL", "EDITOR")
USUAL = ("nano", "vim", "vi")


async def edit_text(text: str, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return what the editor made of the text, and what went wrong (then the text is as it was)."""
    command = find_program(environ, VARIABLES, USUAL)
    if not command:
        return text, "No editor found: set VISUAL or EDITOR"
    try:
        path = write_passing(text, ".md")
        try:
            code = await run_program([*command, str(path)])
            edited = _read(path)
        finally:
            _remove(path)
    except OSError as error:
        return text, could_not_run(command, error)
    if code:
        return text, f"{Path(command[0]).name} ended with exit code {code}; the draft is unchanged"
    return edited if text.endswith("\n") else edited.removesuffix("\n"), ""


async def edit_file(path: str, environ: Mapping[str, str]) -> str:
    """Open a file in the user's editor; return what went wrong, empty when nothing did."""
    command = find_program(environ, VARIABLES, USUAL)
    if not command:
        return f"No editor found: set VISUAL or EDITOR, or edit {path} yourself"
    try:
        code = await run_program([*command, path])
    except OSError as error:
        return could_not_run(command, error)
    return f"{Path(command[0]).name} ended with exit code {code}" if code else ""


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace")


def _remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()
