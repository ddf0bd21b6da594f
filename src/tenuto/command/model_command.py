"""/model: show or change the model, or forget what its refusals taught."""

from __future__ import annotations

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.live import LiveSession
from tenuto.core.runtime import Runtime
from tenuto.core.windows import forget_window
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import ChangeModelOperation


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Change to the model that is named; without a name, offer what can be used."""
    if argument.strip() == "forget":
        return [Say(_forget(runtime.live))]
    if argument:
        before = (runtime.live.facts.id, runtime.live.effort)
        await runtime.submit(ChangeModelOperation(session_id=runtime.session_id, model=argument))
        after = (runtime.live.facts.id, runtime.live.effort)
        return [Say(f"Model set to {after[0]}.")] if after != before else []
    present = runtime.live.facts.id
    models = await runtime.live.models.available()
    if all(facts.id != present for facts in models):
        models = [runtime.live.facts, *models]
    rows = tuple(
        Choice(facts.id, facts.id, describe(facts, present=facts.id == present), facts.id == present)
        for facts in models
    )
    return [Choose(f"Model (now {present})", "model", rows)]


def _forget(live: LiveSession) -> str:
    """Drop the window that the present model's refusals taught, and say what holds now."""
    forgotten = forget_window(live)
    if forgotten is None:
        return f"No refusal has taught anything about the window of {live.facts.id}."
    window, budget = live.facts.context_window, live.budget()
    now = f"{window:,} tokens" if window else f"{budget.window:,} tokens, assumed"
    return f"Forgotten: {live.facts.id} took {forgotten:,} tokens. The window is {now} again."


def describe(facts: ModelFacts, *, present: bool) -> str:
    """Return window and price in one short line."""
    parts = ["now"] if present else []
    if facts.context_window:
        parts.append(f"{facts.context_window // 1000}k window")
    if facts.input_price and facts.output_price:
        parts.append(f"${facts.input_price:g} / ${facts.output_price:g} per million tokens")
    return ", ".join(parts)
