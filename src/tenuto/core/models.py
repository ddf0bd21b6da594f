"""Changing a session's model."""

from __future__ import annotations

from msgspec import Struct

from tenuto.core.errors import UsageError
from tenuto.core.live import LiveSession
from tenuto.protocol.entry import ModelEntry
from tenuto.protocol.event import ModelChangedEvent
from tenuto.protocol.model import ModelFacts

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


class ModelChange(Struct, frozen=True):
    """A model that can be used, and the effort that was asked for with it (empty: none)."""

    facts: ModelFacts
    effort: str = ""


async def find_model(live: LiveSession, text: str) -> ModelChange:
    """Return the model that `provider/name[:effort]` means. Raises `UsageError` or `ModelError`: it cannot be used."""
    model, effort = split_model(text)
    live.models.require(model)
    return ModelChange(await live.models.refresh(model), effort)


def is_too_small(live: LiveSession, facts: ModelFacts) -> bool:
    """Say whether what the present model still takes has to be compacted for another one (R-011)."""
    trigger = live.budget(facts).trigger
    return (
        live.settings.compaction.enabled
        and facts.id != live.facts.id
        and trigger < live.budget().trigger
        and live.measure().tokens > trigger
    )


def change_model(live: LiveSession, change: ModelChange) -> None:
    """Use another model from the next request on."""
    model, effort = change.facts.id, change.effort
    live.facts = change.facts
    live.automatic.reset()
    live.items_refused = False
    state = live.session.state
    if (state.model, state.effort) != (model, effort):
        live.session.append(ModelEntry(model=model, effort=effort))
    live.bus.publish(ModelChangedEvent(session_id=live.id, model=model, effort=effort, sees_images=live.facts.images))
    live.publish_usage()
