"""A change to a model with a smaller window: the present one summarises first (DESIGN section 6, R-011)."""

from __future__ import annotations

import asyncio

from tenuto.core.compact import run_compaction
from tenuto.core.errors import TaskFailedError
from tenuto.core.live import LiveSession
from tenuto.core.models import ModelChange, change_model


class ModelSwitchTask:
    """Compacts for a smaller window with the model that still reads the whole, then changes the model."""

    def __init__(self, live: LiveSession, change: ModelChange, submission_id: str) -> None:
        self._live = live
        self._change = change
        self._submission_id = submission_id

    async def run(self) -> None:
        """Compact, then change. Cancelled, the session keeps its model.

        A compaction that comes to nothing has said why, and the change is made: the user asked for it, and before
        the next request the new model gets to make room.
        """
        live, change = self._live, self._change
        try:
            await run_compaction(live, "model_switch", submission_id=self._submission_id, successor=change.facts)
        except asyncio.CancelledError:
            live.notify(f"The model stays {live.facts.id}: the compaction for {change.facts.id} was cancelled.")
            raise
        except TaskFailedError:
            live.notify(
                f"The conversation was not compacted for {change.facts.id}; it may not fit its window.", "warning"
            )
        change_model(live, change)
