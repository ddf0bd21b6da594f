"""Which models may write a summary, in the order in which they are tried."""

from __future__ import annotations

from tenuto.compaction.summarise import MAX_PARTS
from tenuto.core.errors import UsageError
from tenuto.core.live import LiveSession
from tenuto.core.models import split_model
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import ModelError, ModelFacts

READ_SHARE = 0.75
"""Of its window that a summariser reads at once; the rest is for what it writes."""


async def find_summarisers(live: LiveSession, successor: ModelFacts | None = None) -> list[ModelFacts]:
    """Return the models to ask: the one of the settings, the one that made a view too large for the present, this one.

    A configured model that cannot be used is named in a notice, and the next is tried (R-042). After a switch to a
    smaller window the model before it is asked first, because it can read the whole (R-011); before one it is the
    present model, and its `successor` if that fails.
    """
    found: list[ModelFacts] = []
    configured = live.settings.compaction.model
    if configured:
        facts, fault = await _configured(live, configured)
        if facts is not None:
            found.append(facts)
        elif configured not in live.told_once:  # not at the start already
            live.notify(
                f"compaction.model {configured} cannot be used ({fault}); {live.facts.id} summarises.", "warning"
            )
    previous = _previous_model(live)
    window = live.facts.context_window
    if previous and window is not None and live.measure().tokens > live.budget().trigger:
        facts = await _previous(live, previous)
        if facts is not None and (facts.context_window or 0) > window:
            found.append(facts)
    found += [live.facts] if successor is None else [live.facts, successor]
    return [facts for facts in {facts.id: facts for facts in found}.values() if facts.can_summarise]


def _previous_model(live: LiveSession) -> str:
    """Return the model of the last answer if it is not the present one."""
    for entry in reversed(live.session.path()):
        if isinstance(entry, AssistantMessage) and entry.model:
            return entry.model if entry.model != live.facts.id else ""
    return ""


async def _configured(live: LiveSession, text: str) -> tuple[ModelFacts | None, str]:
    """Return the model that the settings name, or `None` and why it cannot write summaries of this session."""
    try:
        facts = await _usable(live, text)
    except (UsageError, ModelError) as error:
        return None, str(error)
    if not facts.can_summarise:
        return None, "it cannot write summaries"
    window, tokens = live.budget(facts).window, live.measure().tokens
    if facts.id != live.facts.id and tokens > MAX_PARTS * READ_SHARE * window:
        return None, f"its window of {window:,} tokens is too small for the {tokens:,} of this session"
    return facts, ""


async def _previous(live: LiveSession, text: str) -> ModelFacts | None:
    try:
        return await _usable(live, text)
    except (UsageError, ModelError):
        return None


async def _usable(live: LiveSession, text: str) -> ModelFacts:
    """Return the facts of a model that can be called. Raises `UsageError` or `ModelError`."""
    model, _ = split_model(text)
    live.models.require(model)
    return await live.models.refresh(model)
