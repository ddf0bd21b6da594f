"""The request that the present view makes, for a step and for a summary that shares its prefix."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.compaction.meter import ContextSize
from tenuto.core.live import LiveSession
from tenuto.core.server_context import server_context
from tenuto.protocol.message import Message
from tenuto.protocol.model import ModelRequest


def build_request(
    live: LiveSession, view: Sequence[Message] | None = None, size: ContextSize | None = None
) -> ModelRequest:
    """Return the request for the present view, or for another one of that size.

    Its output budget is what the window leaves (R-007).
    """
    size = live.measure() if size is None else size
    return ModelRequest(
        model=live.facts,
        messages=tuple(live.session.get_llm_history() if view is None else view),
        tools=live.tool_schemas(),
        max_output_tokens=live.budget().output_for(size.tokens, size.uncounted),
        effort=live.effort,
        cache_key=live.id,
        server=server_context(live),
    )
