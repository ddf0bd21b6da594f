"""Which strategy compacts this session: the one of the Python API, of the settings, or the ladder (seed 004).

One of somebody else runs on a thread of its own, from its import on, with a time limit: it can block, hang or never
end, and neither the keys nor the end of the program wait for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import cast

import msgspec

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.summary.serialize import SEPARATOR, serialize_blocks
from tenuto.compaction.ways.environment import BoundContext
from tenuto.compaction.ways.ladder import LadderCompaction, OwnerLoop, OwnerLoopClient, for_thread
from tenuto.compaction.ways.strategies import check_strategy, convert_output, load_strategy
from tenuto.compaction.ways.validate import CurrentContext, is_valid_cut
from tenuto.config.settings import Settings
from tenuto.core.errors import UsageError
from tenuto.core.state.live import LiveSession
from tenuto.core.state.windows import split_model
from tenuto.extension.lane import Lane, LaneError, describe_fault
from tenuto.protocol.compaction import (
    CompactionContext,
    CompactionOutcome,
    CompactionOutput,
    CompactionStrategy,
    RungError,
    SessionView,
    StrategyError,
)
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import Finished, ModelClient, ModelError, ModelFacts, ModelRequest, StreamPart

STRATEGIES_FOLDER = "strategies"
"""Under Tenuto's home: where a strategy may lie as a single file."""
OWN_PACKAGE = "tenuto.compaction."
FROM_PYTHON = "The `compaction` argument"
_SLICE = 256
"""Entries that a strategy is handed at once while it goes through the history."""


async def choose_strategy(live: LiveSession) -> CompactionStrategy:
    """Return the session's strategy, loaded once. One that cannot be used is named, and the ladder used meanwhile."""
    async with live.compaction.strategy_lock:  # it is chosen at the start and wanted by a compaction
        if not live.compaction.is_strategy_chosen:
            live.compaction.strategy = await _choose(live)
            live.compaction.is_strategy_chosen = True
    assert live.compaction.strategy is not None
    return live.compaction.strategy


def name_of(strategy: CompactionStrategy) -> str:
    """Return the name of a strategy's class."""
    return strategy.name if isinstance(strategy, StrategyOnThread) else type(strategy).__name__


async def _choose(live: LiveSession) -> CompactionStrategy:
    name, given = live.settings.compaction.strategy, live.compaction.strategy
    if given is not None and _is_built_in(given):
        return given
    if given is None and not name:
        return LadderCompaction()
    own = await _of_extension(live, name) if given is None else None
    lane = Lane(f"strategy {name}".strip(), lambda error: None)
    owner = OwnerLoop()

    def load() -> CompactionStrategy:
        if given is not None:
            return check_strategy(given, FROM_PYTHON)
        if own is not None:
            return check_strategy(own(), f"compaction.strategy {name}")
        return load_strategy(name, _dependencies(live, owner), live.home / STRATEGIES_FOLDER)

    limit = live.settings.extensions.hook_timeout
    try:
        found = cast("CompactionStrategy", await lane.call(load, timeout=limit, is_excused=owner.take_activity))
    except (StrategyError, LaneError) as error:
        lane.close()
        text = f"compaction.strategy {name} cannot be loaded: {error}" if isinstance(error, LaneError) else f"{error}"
        live.notify(f"{text}. The built-in strategy is used meanwhile.", "error")
        return LadderCompaction()
    except BaseException:
        lane.close()
        raise
    if _is_built_in(found):
        lane.close()
        return found
    live.on_leave.append(lane.close)
    return StrategyOnThread(found, lane, owner, limit)


async def _of_extension(live: LiveSession, name: str) -> Callable[..., object] | None:
    """Return what makes the strategy of a name without a module, if an extension has registered one."""
    if ":" in name:
        return None
    host = await live.extensions.host()
    return host.find_strategy(name) if host is not None else None


def _is_built_in(strategy: object) -> bool:
    return type(strategy).__module__.startswith(OWN_PACKAGE)


def _dependencies(live: LiveSession, owner: OwnerLoop) -> dict[type, object]:
    """Return what a constructor may ask for; everything of the session is only touched at home."""
    return {
        Settings: live.settings,
        ModelClient: OwnerLoopClient(PresentClient(live), owner),
        Meter: Meter(),
        SessionView: ReadOnlySession(live, owner),
    }


RUNG = "strategy"


def outcome_of(messages: Sequence[Message], current: CurrentContext, rung: str = RUNG) -> CompactionOutcome | None:
    """Return the outcome that leads to these messages, `None` when they are the view as it is.

    Raises `StrategyError` when they stand in another order than in the history.
    """
    proposed = list(messages)
    view = list(current.view)
    if view and isinstance(view[0], SystemMessage):
        # The system prompt always stays; a strategy may return it or leave it out.
        proposed = proposed[1:] if proposed and proposed[0] == view[0] else proposed
        view = view[1:]
    _check_order(proposed)
    if proposed == view:
        return None
    start = _kept_from(proposed, view, current)
    kept = next((message.seq for message in proposed[start:] if message.seq), current.path[-1].seq + 1)
    return CompactionOutcome(
        replacement=tuple(msgspec.structs.replace(message, seq=0, ts=0.0) for message in proposed[:start]),
        first_kept_index=kept,
        summary=_readable(proposed[:start]),
        rung=rung,
    )


def _check_order(messages: Sequence[Message]) -> None:
    newest = 0
    for message in messages:
        if message.seq and message.seq <= newest:
            raise StrategyError(f"entry {message.seq} stands behind entry {newest}: the order of events has to stay")
        newest = max(newest, message.seq)


def _kept_from(proposed: Sequence[Message], view: Sequence[Message], current: CurrentContext) -> int:
    """Return the index in `proposed` of the longest common tail that begins where the conversation can be cut."""
    common = 0
    most = min(len(proposed), len(view))
    while common < most and proposed[-1 - common] == view[-1 - common]:
        common += 1
    for index in range(len(proposed) - common, len(proposed)):
        if proposed[index].seq and is_valid_cut(proposed[index].seq, current):
            return index
    return len(proposed)


def _readable(messages: Sequence[Message]) -> str:
    """Return the replaced part as text: for the user, for search, and for the next summary."""
    texts = [message.text for message in messages if isinstance(message, SystemMessage)]
    shown = [
        message
        for message in messages
        if isinstance(message, UserMessage | AssistantMessage | ToolResultMessage | DeveloperMessage)
    ]
    return "\n\n".join([*texts, SEPARATOR.join(serialize_blocks(shown))]).strip()


class StrategyOnThread:
    """A strategy of somebody else. What it returns is plain data when it leaves its thread."""

    def __init__(self, strategy: CompactionStrategy, lane: Lane, owner: OwnerLoop, limit: float) -> None:
        self.name = type(strategy).__name__
        self._strategy = strategy
        self._lane = lane
        self._home = owner
        self._limit = max(0.1, limit)

    async def compact(self, ctx: CompactionContext) -> CompactionOutput:
        """Return what the strategy proposes. Raises `RungError`, or `StrategyError` with what is wrong with it.

        Time runs out only while nothing is asked of the program: a model may take as long as it needs.
        """
        if self._lane.is_stuck:
            raise StrategyError("it has not come back from the time before")
        assert isinstance(ctx, BoundContext)
        lent = for_thread(ctx, self._home)

        async def work() -> CompactionOutput:
            return convert_output(await self._strategy.compact(lent), lent.history)

        try:
            return cast(
                "CompactionOutput",
                await self._lane.call(
                    work, timeout=self._limit, is_excused=self._home.take_activity, on_leave=lent.cancel.set
                ),
            )
        except RungError:
            raise
        except Exception as error:  # anything can happen in somebody else's code
            raise StrategyError(describe_fault(error)) from error


class ReadOnlySession:
    """The session as a strategy may see it, from its own thread as well."""

    def __init__(self, live: LiveSession, owner: OwnerLoop) -> None:
        self._live = live
        self._home = owner

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
        entries = self._home.ask(self._live.session.entries)
        while some := self._home.ask(lambda: list(islice(entries, _SLICE))):
            yield from some

    def get_llm_history(self) -> list[Message]:
        """Return what the model is sent now, system prompt first."""
        return self._home.ask(lambda: list(self._live.session.get_llm_history()))


class PresentClient:
    """The client of whatever model the session has at the moment of the call."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live

    def _client(self) -> ModelClient:
        return self._live.models.client(self._live.facts.provider)

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer; what it costs is counted. Raises `ModelError`."""
        async for part in self._client().stream(request):
            if isinstance(part, Finished) and part.message.usage is not None:
                self._live.session.hold_usage(part.message.usage)
            yield part

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models."""
        return await self._client().models()

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        return await self._client().count(request)

    async def close(self) -> None:
        """Do nothing: the connection belongs to the session."""


async def check_settings(live: LiveSession) -> None:
    """Warn of a strategy that cannot be loaded and of a summariser that no provider has; nothing fails for it."""
    compaction = live.settings.compaction
    if compaction.model:
        fault = await _find_fault(live, compaction.model)
        if fault:
            text = f"compaction.model {compaction.model} cannot be used ({fault}); {live.facts.id} summarises."
            live.notify_once(compaction.model, text, "warning")
    if compaction.strategy:
        await choose_strategy(live)


async def _find_fault(live: LiveSession, text: str) -> str:
    """Return why a model cannot be asked for anything, empty if it can or nobody knows."""
    try:
        model, _ = split_model(text)
        live.models.require(model)
        await live.models.require_name(model)
        await live.models.refresh(model)
    except (UsageError, ModelError) as error:
        return str(error)
    return "it is not in its provider's list; /model shows what is" if live.models.listed_instead(model) else ""
