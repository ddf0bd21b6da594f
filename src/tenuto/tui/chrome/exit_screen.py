"""What stays on the normal screen when the full screen goes: the end of the conversation. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tenuto.tui.machine.item import AssistantItem, Item
from tenuto.tui.render.items import gap_before, render_item
from tenuto.tui.render.line import EMPTY, Line
from tenuto.tui.render.options import RenderOptions

Parting = Literal["screen", "answer", "off"]
"""The last screenful, the last answer, or nothing."""
OTHER_ROWS = 4
"""Of the screen: for the hint and the shell's prompt."""


def parting_lines(items: Sequence[Item], what: Parting, columns: int, rows: int, options: RenderOptions) -> list[Line]:
    """Return what is to be printed when the screen goes: the whole last answer, or as much as fits on a screen."""
    if what == "off":
        return []
    if what == "answer":
        answers = (item for item in reversed(items) if isinstance(item, AssistantItem) and item.text.strip())
        return [
            line for item in (next(answers, None),) if item is not None for line in render_item(item, columns, options)
        ]
    room = max(1, rows - OTHER_ROWS)
    lines: list[Line] = []
    for place in range(len(items) - 1, -1, -1):
        shown = render_item(items[place], columns, options)
        gap = gap_before(items[place - 1] if place else None, items[place]) if shown else 0
        lines = [*(EMPTY,) * gap, *shown, *lines]
        if len(lines) >= room:
            break
    lines = lines[-room:]
    while lines and not lines[0].spans:
        del lines[0]
    return lines
