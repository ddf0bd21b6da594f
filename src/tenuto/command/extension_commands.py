"""`/extensions`: which are loaded, from where, and what each has registered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime

if TYPE_CHECKING:
    from tenuto.extension.registered import Registered

NONE = "No extensions. docs/extensions.md says how to write one; tenuto extensions check tries one."


async def run_extensions(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List them; what could not be loaded was told at the start, and is told here again."""
    del argument
    host = await runtime.live.extensions.host()
    if host is None:
        return [Say(NONE)]
    from tenuto.extension.host import describe_loaded

    rows: list[str] = []
    for one in host.loaded:
        rows.append(f"{one.name}: {describe_loaded(one)}")
        rows += [f"  {line}" for line in (*registered_lines(one.registered), one.place)]
    rows += host.problems
    return [Say("\n".join(rows) or NONE)]


def registered_lines(own: Registered) -> list[str]:
    """Return what an extension has registered, a line for each kind."""
    named = (
        ("tools", list(own.tools)),
        ("commands", [f"/{name}" for name in own.commands]),
        ("providers", list(own.providers)),
        ("strategies", list(own.strategies)),
    )
    return [f"{what}: {', '.join(names)}" for what, names in named if names]
