"""Which models may write a summary, in the order in which they are tried."""

from __future__ import annotations

from tenuto.core.errors import UsageError
from tenuto.core.live import LiveSession
from tenuto.core.models import split_model
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ModelError, ModelFacts


async def find_summarisers(live: LiveSession) -> list[ModelFacts]:
    """Return the models to ask: the one of the settings, the one that made a view too large for the present, this one.

    A configured model that cannot be used is named in a notice, and the next is tried (R-042). After a switch to a
    smaller window the model before it is asked first, because it can read the whole (R-011).
    """
    found: list[ModelFacts] = []
    configured = live.settings.compaction.model
    if configured:
        facts = await _usable(live, configured)
        if facts is None:
            live.notify(f"compaction.model {configured} cannot be used; {live.facts.id} summarises.", "warning")
        else:
            found.append(facts)
    previous = _previous_model(live)
    window = live.facts.context_window
    if previous and window is not None and live.measure().tokens > live.budget().trigger:
        facts = await _usable(live, previous)
        if facts is not None and (facts.context_window or 0) > window:
            found.append(facts)
    found.append(live.facts)
    return [facts for facts in {facts.id: facts for facts in found}.values() if facts.can_summarise]


def _previous_model(live: LiveSession) -> str:
    """Return the model of the last answer if it is not the present one."""
    for entry in reversed(live.session.path()):
        if isinstance(entry, AssistantMessage) and entry.model:
            return entry.model if entry.model != live.facts.id else ""
    return ""


async def _usable(live: LiveSession, text: str) -> ModelFacts | None:
    try:
        model, _ = split_model(text)
        live.models.require(model)
        return await live.models.refresh(model)
    except (UsageError, ModelError):
        return None
