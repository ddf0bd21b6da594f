"""What fills the model's window now, or would fill it with the first request (`/context`, R-024)."""

from __future__ import annotations

from tenuto.compaction.measure.budget import MANUAL_KEEP_DIVISOR, Budget
from tenuto.compaction.measure.meter import divide, sizes_over_time
from tenuto.compaction.measure.weight import estimate_tools
from tenuto.core.state.live import LiveSession
from tenuto.core.state.prompt import build_system_entry, instructions_in
from tenuto.core.state.reminders import due_messages
from tenuto.protocol.context import ContextReport
from tenuto.protocol.message import Message, SystemMessage
from tenuto.text.estimate import estimate_text


def report_context(live: LiveSession) -> ContextReport:
    """Return the window by part, with the meter's own number.

    Before the first request it is what that would begin with, because nothing is in the log yet.
    """
    view: list[Message] = list(live.session.get_llm_history())
    budget = live.budget()
    is_first = not view or not isinstance(view[0], SystemMessage)
    if is_first:
        due = due_messages({}, live.mode, live.session.cwd, live.clock())
        view = [build_system_entry(live), *view, *due]
        size = live.measure_path(view, live.session.path())
    else:
        size = live.measure()
    system = view[0]
    instructions = estimate_text(instructions_in(system.text)) if isinstance(system, SystemMessage) else 0
    return ContextReport(
        parts=divide(view, size, tools=estimate_tools(live.tool_schemas()), instructions=instructions),
        tokens=size.tokens,
        estimated=size.estimated,
        window=budget.window,
        known=budget.known,
        trigger=budget.trigger,
        free=max(0, budget.trigger - size.tokens),
        reserve=max(0, budget.window - max(size.tokens, budget.trigger)),
        next_request=is_first,
        history=sizes_over_time(live.session.path()),
        facts=_facts(live, budget),
    )


def _reserved(budget: Budget) -> str:
    """Say which other number decides what of the window is reserved for output, if any does (DESIGN section 4)."""
    held = budget.window - budget.trigger
    if held == budget.reserve:
        return ""
    if held == budget.output_budget:
        return "; the output budget is larger and is reserved"
    return "; at most half of the window is reserved"


def _facts(live: LiveSession, budget: Budget) -> tuple[tuple[str, str], ...]:
    window = f"{budget.window:,}"
    if not budget.known:
        served = live.served_tokens()
        proof = f"; it has served {served:,}" if served else ""
        window += f", assumed: the model's window is not known{proof}"
    raised = budget.reserve_raised_from
    reserve = f"{budget.reserve:,}"
    if raised is not None:
        reserve += f" (the configured {raised:,} is too small for this model)"
    reserve += _reserved(budget)
    return (
        ("window", f"{window} ({live.facts.source})"),
        ("output budget", f"{budget.output_budget:,}"),
        ("reserve_tokens", reserve),
        ("kept word for word", _kept(budget)),
        ("summary at most", f"{budget.max_summary:,}"),
        ("automatic", _automatic(live, budget)),
    )


def _kept(budget: Budget) -> str:
    """Say what the next compaction aims at keeping: whole steps, so that it is no exact number."""
    manual = budget.keep_recent // MANUAL_KEEP_DIVISOR
    return f"about {budget.keep_recent:,} at the end, {manual:,} with /compact; and the last step, whatever its size"


def _automatic(live: LiveSession, budget: Budget) -> str:
    """Say whether and when the next automatic compaction comes."""
    if not live.settings.compaction.enabled:
        return "off (compaction.enabled = false)"
    if live.compaction.automatic.is_stopped:
        return "stopped, because two in a row were of no use, until you compact or change the model"
    if live.measure().fixed >= budget.trigger:
        return f"on, over {budget.window:,}: system prompt and tools alone are over {budget.trigger:,}"
    waits = live.compaction.automatic.waits_for
    return f"on, over {waits:,} after the last one that failed or was undone" if waits > budget.trigger else "on"
