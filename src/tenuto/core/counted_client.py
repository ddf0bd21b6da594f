"""A model client that counts what its calls cost, for strategies that talk to the model themselves."""

from __future__ import annotations

from collections.abc import AsyncIterator

from tenuto.compaction.environment import Spending
from tenuto.protocol.model import Finished, ModelClient, ModelFacts, ModelRequest, StreamPart


class CountedClient:
    """Passes everything on, and adds up the usage of finished answers."""

    def __init__(self, client: ModelClient, spending: Spending) -> None:
        self._client = client
        self._spending = spending

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer. Raises `ModelError`."""
        async for part in self._client.stream(request):
            if isinstance(part, Finished) and part.message.usage is not None:
                self._spending.add(part.message.usage)
            yield part

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models."""
        return await self._client.models()

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        return await self._client.count(request)

    async def close(self) -> None:
        """Do nothing: the connection belongs to the session."""
