"""Changing a session's model."""

from __future__ import annotations

from tenuto.core.errors import UsageError
from tenuto.core.live import LiveSession
from tenuto.protocol.entry import ModelEntry
from tenuto.protocol.event import ModelChangedEvent

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def split_model(text: str) -> tuple[str, str]:
    """Split `provider/name[:effort]` into the model and the effort (empty when none is named).

    Names may have colons of their own (`llama3:8b`), so only a known effort counts as one. Raises `UsageError`.
    """
    model, colon, effort = text.strip().rpartition(":")
    if not colon or effort not in EFFORTS:
        model, effort = text.strip(), ""
    provider, slash, name = model.partition("/")
    if not (provider and slash and name):
        raise UsageError(f"“{text}” is not a model; write it as provider/name, for example anthropic/claude-sonnet-5-5")
    return model, effort


async def change_model(live: LiveSession, text: str) -> None:
    """Use another model from the next request on. Raises `UsageError` for one that cannot be used."""
    model, effort = split_model(text)
    live.models.require(model)
    live.facts = await live.models.refresh(model)
    live.automatic.reset()
    live.items_refused = False
    state = live.session.state
    if (state.model, state.effort) != (model, effort):
        live.session.append(ModelEntry(model=model, effort=effort))
    live.bus.publish(ModelChangedEvent(session_id=live.id, model=model, effort=effort))
    live.publish_usage()
