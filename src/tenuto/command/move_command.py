"""/move: the project lies elsewhere now."""

from __future__ import annotations

from pathlib import Path

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import MoveSessionOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Go on with this session in the directory that is named; without one, offer what is likely."""
    cwd = runtime.live.session.cwd
    if argument:
        await runtime.submit(MoveSessionOperation(session_id=runtime.session_id, cwd=argument))
        moved = runtime.live.session.cwd
        return [Say(f"This session works in {moved} from now on.")] if moved != cwd else []
    if cwd.is_dir():
        return [Say(f"This session works in {cwd}. /move DIR goes on with it elsewhere.")]
    rows = tuple(Choice(str(place), str(place), detail) for place, detail in _likely(runtime.start.cwd, cwd))
    return [Choose(f"{cwd} is gone. Where does this session go on? (/move DIR for another place)", "move", rows)]


def _likely(here: Path, gone: Path) -> list[tuple[Path, str]]:
    """Return the directory that Tenuto was started in, and the nearest one above the old place that is still there."""
    above = next((place for place in gone.parents if place.is_dir()), None)
    found = [(here, "where you are")]
    if above is not None and above not in (here, Path(above.anchor)):
        found.append((above, "above the old place"))
    return found
