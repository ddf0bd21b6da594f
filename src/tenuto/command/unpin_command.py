"""/unpin: remove a pin."""

from __future__ import annotations

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.errors import UsageError
from tenuto.core.pins import unpin
from tenuto.core.runtime import Runtime
from tenuto.text.bounding import shorten


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Remove the pin with that number; without a number, offer all."""
    pins = runtime.live.session.state.pins
    if not pins:
        return [Say("No pins.")]
    if not argument:
        rows = enumerate(pins, 1)
        choices = tuple(Choice(str(number), f"{number}. {shorten(entry.text, 100)}") for number, entry in rows)
        return [Choose("Remove pin", "unpin", choices)]
    number = argument.removeprefix("#").removesuffix(".")
    if not number.isdecimal():
        raise UsageError(f"“{argument}” is not the number of a pin; /pins shows them")
    entry = unpin(runtime.live, int(number))
    return [Say(f"Unpinned: {shorten(entry.text, 100)}")]
