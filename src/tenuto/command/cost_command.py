"""/cost: what the session used so far."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show tokens by kind and the money, as far as prices are known."""
    del argument
    usage = runtime.live.session.state.usage
    money = f"${usage.cost:.4f}" if usage.cost is not None else "no price is known for the models used"
    rows = [
        ("input", f"{usage.input:,}"),
        ("cache read", f"{usage.cache_read:,}"),
        ("cache write", f"{usage.cache_write:,}"),
        ("output", f"{usage.output:,}" + (f" (reasoning {usage.reasoning:,})" if usage.reasoning else "")),
        ("cost", money),
    ]
    return [Say("\n".join(f"{name:<12} {value}" for name, value in rows))]
