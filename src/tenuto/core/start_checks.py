"""What the settings name for compaction, looked at when the program starts and not at the first compaction."""

from __future__ import annotations

from tenuto.core.errors import UsageError
from tenuto.core.live import LiveSession
from tenuto.core.models import split_model
from tenuto.protocol.model import ModelError


async def check_settings(live: LiveSession) -> None:
    """Warn of a strategy that cannot be loaded and of a summariser that no provider has; nothing fails for it."""
    compaction = live.settings.compaction
    if compaction.model:
        fault = await _find_fault(live, compaction.model)
        if fault:
            live.notify(
                f"compaction.model {compaction.model} cannot be used ({fault}); {live.facts.id} summarises.", "warning"
            )
            live.told_once.add(compaction.model)
    if compaction.strategy:
        from tenuto.core.strategies import choose_strategy

        await choose_strategy(live)


async def _find_fault(live: LiveSession, text: str) -> str:
    """Return why a model cannot be asked for anything, empty if it can or nobody knows."""
    try:
        model, _ = split_model(text)
        live.models.require(model)
        await live.models.refresh(model)
    except (UsageError, ModelError) as error:
        return str(error)
    return "it is not in its provider's list; /model shows what is" if live.models.listed_instead(model) else ""
