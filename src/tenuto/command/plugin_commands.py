"""Commands on plugins: which were added, what each brings here, what is left out."""

from __future__ import annotations

import asyncio

from tenuto.command.found_rows import around, say_row, say_used
from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.core.state.found import Found, find_everything, in_plugin
from tenuto.guard.terminal import sanitize_line
from tenuto.text.bounding import shorten

_LINE, _PARTS = 200, 40
NONE = "No plugins. tenuto plugins add PATH or URL adds one."


async def run_plugins(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the plugins with what each brings, and those of the project that could be added."""
    del argument
    found = await asyncio.to_thread(find_everything, around(runtime))
    lines: list[str] = []
    for row in (row for row in found if row.kind == "plugins"):
        if not row.is_used:
            lines.append(f"  {say_row(row)}" if row.in_part else say_row(row))
            continue
        lines.append(shorten(sanitize_line(f"plugin {row.name}, {row.does}"), _LINE))
        parts = in_plugin(found, row.name)
        lines += [f"  {line}" for line in (*say_used(parts, _PARTS), *map(say_row, _left_out(parts)))]
    return [Say("\n".join(lines) or NONE)]


def _left_out(parts: list[Found]) -> list[Found]:
    return [part for part in parts if not part.is_used]
