"""/memory: the instruction files that hold here, to be changed in the user's editor."""

from __future__ import annotations

from pathlib import Path

from tenuto.command.outcome import Choice, Choose, CommandOutcome, EditFile
from tenuto.config.instructions import NAMES, read_instructions
from tenuto.config.project import project_root
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List them, and those that there could be; open the one that is named. Raises `UsageError` for another file."""
    rows = _rows(runtime)
    if not argument:
        return [Choose("Instructions (Enter: editor; then /reload)", "memory", rows)]
    if argument not in {row.value for row in rows}:
        raise UsageError(f"{argument} is no instruction file that holds here; /memory lists them")
    return [EditFile(argument)]


def _rows(runtime: Runtime) -> tuple[Choice, ...]:
    home, cwd = runtime.home, runtime.live.session.cwd
    present = {file.path: file.text for file in read_instructions(home, cwd).files}
    rows = [
        Choice(path, path, f"{_scope(path, home)} · {len(text):,} characters", preview=text)
        for path, text in present.items()
    ]
    for folder in (project_root(cwd), home):
        if not any(Path(path).parent == folder for path in present):
            path = str(folder / NAMES[0])
            rows.append(Choice(path, path, f"{_scope(path, home)} · not there yet"))
    return tuple(rows)


def _scope(path: str, home: Path) -> str:
    return "every project" if Path(path).parent == home else "this project"
