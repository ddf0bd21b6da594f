"""/mouse: who has the mouse, this screen or the terminal."""

from __future__ import annotations

from tenuto.command.outcome import Choice, Choose, CommandOutcome, MouseMode, SetMouse
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.text.nearest import did_you_mean

MODES: dict[MouseMode, str] = {
    "full": "the wheel scrolls, dragging selects, a click collapses; with Shift the terminal selects",
    "wheel": "the wheel scrolls; with Shift the terminal selects",
    "off": "the terminal keeps the mouse, and selects by itself",
}


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Offer the ways, or take the one that is named, until the program ends; the setting is permanent."""
    del runtime
    word = argument.strip().lower()
    if not word:
        rows = tuple(Choice(mode, mode, description) for mode, description in MODES.items())
        return [Choose("Mouse mode (this session; set ui.mouse to keep it)", "mouse", rows)]
    if word not in MODES:
        raise UsageError(f"There is no /mouse “{word}”: there are {', '.join(MODES)}{did_you_mean(word, MODES)}")
    return [SetMouse(word)]
