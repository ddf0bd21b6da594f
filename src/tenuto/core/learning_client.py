"""A model client that learns from refusals: what one request was told of a window holds for the next of any kind."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tenuto.compaction.meter import estimate_tools
from tenuto.core.live import LiveSession
from tenuto.core.windows import learn_from
from tenuto.protocol.model import ModelClient, ModelError, ModelFacts, ModelRequest, StreamPart


class LearningClient:
    """Passes everything on, and notes the window of a refusal as too long (`core/windows.py`)."""

    def __init__(self, live: LiveSession, client: ModelClient) -> None:
        self._live = live
        self._client = client

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer. Raises `ModelError`."""
        try:
            async for part in self._client.stream(request):
                yield part
        except ModelError as error:
            learn_from(self._live, request.model, error, self._size(request))
            raise

    def _size(self, request: ModelRequest) -> int:
        """Return the estimated tokens of a request, as the present model counts them."""
        estimate = self._live.meter.estimate_all(request.messages) + estimate_tools(request.tools)
        return round(estimate * self._live.measure().calibration)

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models."""
        return await self._client.models()

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        return await self._client.count(request)

    async def close(self) -> None:
        """Do nothing: the connection belongs to the session."""
