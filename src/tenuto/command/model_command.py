"""/model: show or change the model."""

from __future__ import annotations

from tenuto.command.outcome import Choice, Choose, CommandOutcome
from tenuto.core.runtime import Runtime
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import ChangeModelOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the model that is named; without a name, offer what can be used."""
    if argument:
        await runtime.submit(ChangeModelOperation(session_id=runtime.session_id, model=argument))
        return []
    present = runtime.live.facts.id
    models = await runtime.live.models.available()
    rows = tuple(
        Choice(facts.id, facts.id, describe(facts, present=facts.id == present), facts.id == present)
        for facts in models
    )
    return [Choose(f"Model (now {present})", "model", rows)]


def describe(facts: ModelFacts, *, present: bool) -> str:
    """Return window and price in one short line."""
    parts = ["present"] if present else []
    if facts.context_window:
        parts.append(f"{facts.context_window // 1000}k window")
    if facts.input_price is not None and facts.output_price is not None:
        parts.append(f"${facts.input_price:g} / ${facts.output_price:g} per million tokens")
    return ", ".join(parts)
