"""Which strategy compacts this session: the one of the Python API, of the settings, or the ladder (seed 004)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path

from tenuto.compaction.errors import StrategyError
from tenuto.compaction.injection import load_strategy
from tenuto.compaction.ladder import LadderCompaction
from tenuto.compaction.meter import Meter
from tenuto.config.settings import Settings
from tenuto.core.live import LiveSession
from tenuto.protocol.compaction import CompactionStrategy, SessionView
from tenuto.protocol.message import HistoryEvent, Message
from tenuto.protocol.model import ModelClient, ModelFacts, ModelRequest, StreamPart

STRATEGIES_FOLDER = "strategies"
"""Under Tenuto's home: where a strategy may lie as a single file."""


def choose_strategy(live: LiveSession) -> CompactionStrategy:
    """Return the session's strategy, loaded once. One that cannot be used is named, and the ladder used meanwhile."""
    if live.strategy is None:
        live.strategy = _load(live)
    return live.strategy


def _load(live: LiveSession) -> CompactionStrategy:
    name = live.settings.compaction.strategy
    if not name:
        return LadderCompaction()
    dependencies: dict[type, object] = {
        Settings: live.settings,
        ModelClient: PresentClient(live),
        Meter: live.meter,
        SessionView: ReadOnlySession(live),
    }
    try:
        return load_strategy(name, dependencies, live.home / STRATEGIES_FOLDER)
    except StrategyError as error:
        live.notify(f"{error}. The built-in strategy is used meanwhile.", "error")
        return LadderCompaction()


class ReadOnlySession:
    """The session as a strategy may see it."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live

    @property
    def id(self) -> str:
        """The session's id."""
        return self._live.id

    @property
    def cwd(self) -> Path:
        """The working directory."""
        return self._live.session.cwd

    def path(self) -> Sequence[HistoryEvent]:
        """Return the entries from the root to the leaf."""
        return self._live.session.path()

    def entries(self) -> Iterator[HistoryEvent]:
        """Yield the whole history in file order."""
        return iter(self._live.session.entries())

    def get_llm_history(self) -> list[Message]:
        """Return what the model is sent now, system prompt first."""
        return list(self._live.session.get_llm_history())


class PresentClient:
    """The client of whatever model the session has at the moment of the call."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live

    def _client(self) -> ModelClient:
        return self._live.models.client(self._live.facts.provider)

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer. Raises `ModelError`."""
        return self._client().stream(request)

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models."""
        return await self._client().models()

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        return await self._client().count(request)

    async def close(self) -> None:
        """Do nothing: the connection belongs to the session."""
