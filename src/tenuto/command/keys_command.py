"""/keys: which key does what, and the file in which the user changes that."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, EditKeys, Say, ShowKeys
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the keys, or open the file of the user's own ones."""
    del runtime
    match argument.strip():
        case "":
            return [ShowKeys()]
        case "edit":
            return [EditKeys()]
        case _:
            return [Say("/keys lists the keys, /keys edit opens the file in which you change them", "warning")]
