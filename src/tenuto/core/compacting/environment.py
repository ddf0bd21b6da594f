"""What a compaction is given: the session's whole environment at that moment (DESIGN section 6, seed 001)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec

from tenuto.compaction.measure.budget import aim_for
from tenuto.compaction.measure.meter import estimate_tools
from tenuto.compaction.plan.entries import active_compaction
from tenuto.compaction.summary.prompts import prompts_from
from tenuto.compaction.summary.summarise import MAX_PARTS
from tenuto.compaction.summary.view import SessionData, with_skills
from tenuto.compaction.ways.environment import BoundContext, CompactionEnvironment, Progress, Spending, SummaryModel
from tenuto.compaction.ways.validate import CurrentContext
from tenuto.core.errors import UsageError
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.instructions import instructions_of
from tenuto.core.state.live import LiveSession
from tenuto.core.state.pin_notes import fitting_pins
from tenuto.core.state.reminders import describe_job
from tenuto.core.state.request import build_request
from tenuto.core.state.skill_notes import fitting_skills
from tenuto.core.state.windows import learn_from, split_model
from tenuto.protocol.compaction import CacheState, CompactionModel
from tenuto.protocol.entry import KEPT, ExtensionEntry, SkillEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, SystemMessage
from tenuto.protocol.model import (
    Finished,
    ModelClient,
    ModelError,
    ModelFacts,
    ModelRequest,
    RemoteCompactor,
    StreamPart,
)
from tenuto.protocol.part import text_of
from tenuto.session.view.projection import project
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.estimate import estimate_text


class _PassingClient:
    """Passes everything on but `stream`, which is for those that look at it on the way."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client

    async def models(self) -> list[ModelFacts]:
        """Return what the provider says of its models."""
        return await self._client.models()

    async def count(self, request: ModelRequest) -> int | None:
        """Return the provider's own count of the request's tokens, `None` where it has none."""
        return await self._client.count(request)

    async def close(self) -> None:
        """Do nothing: the connection belongs to the session."""


class CountedClient(_PassingClient):
    """Adds up the usage of finished answers."""

    def __init__(self, client: ModelClient, spending: Spending) -> None:
        super().__init__(client)
        self._spending = spending

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the parts of one answer. Raises `ModelError`."""
        async for part in self._client.stream(request):
            if isinstance(part, Finished) and part.message.usage is not None:
                self._spending.add(part.message.usage)
            yield part


class LearningClient(_PassingClient):
    """Notes the window of a refusal as too long (`core/state/windows.py`)."""

    def __init__(self, live: LiveSession, client: ModelClient) -> None:
        super().__init__(client)
        self._live = live

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
        elif configured not in live.notified:  # not at the start already
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
        facts = await find_usable(live, text)
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
        return await find_usable(live, text)
    except (UsageError, ModelError):
        return None


async def find_usable(live: LiveSession, text: str) -> ModelFacts:
    """Return the facts of a model that can be called. Raises `UsageError` or `ModelError`."""
    model, _ = split_model(text)
    live.models.require(model)
    await live.models.require_name(model)
    return await live.models.refresh(model)


CACHE_LIFETIME = 300.0
"""Seconds that providers keep a prefix at least, counted from its last use."""
CHANGES = (CompactionEntry, ViewEditEntry, UndoEntry, SystemMessage)
"""Entries behind which the next request no longer begins with the last one."""
OVERFLOW_DIVISOR = 3
"""Of a refused request at most this part stays word for word, and of its texts of the user this part."""


KEPT_DIVISOR = 20
"""Of the window, at most this part is spent on what extensions want kept."""


def ignore_progress(_stage: str, _tokens: int, _text: str = "", /) -> None:
    """Tell nobody how far a summary is."""


def current_context(live: LiveSession) -> CurrentContext:
    """Return the context as it is now."""
    return CurrentContext(
        path=live.session.path(),
        view=tuple(live.session.get_llm_history()),
        size=live.measure(),
        budget=live.budget(),
        meter=live.meter,
        model_id=live.facts.id,
    )


def context_without(live: LiveSession, target: int) -> CurrentContext:
    """Return the context as it would be if the compaction or view edit `target` were undone."""
    present = current_context(live)
    path = live.session.path().with_entry(UndoEntry(seq=present.path[-1].seq + 1, target=target))
    view = project(path, live.session.state.model)
    size = live.measure_path(view, path)
    return msgspec.structs.replace(present, path=path, view=tuple(view), size=size)


def bind_context(live: LiveSession, request: CompactionRequest, progress: Progress = ignore_progress) -> BoundContext:
    """Return what a strategy works on."""
    undoing, first_kept = request.undoing, request.first_kept
    current = context_without(live, undoing) if undoing else current_context(live)
    if request.successor is not None:
        current = msgspec.structs.replace(current, budget=live.budget(request.successor))
    data = _session_data(live)
    current = _aimed(current, request, data.skills)
    size, budget, path = current.size, current.budget, current.path
    spending = Spending()
    client = live.models.client(live.facts.provider)
    previous = active_compaction(path, live.facts.id)
    return BoundContext(
        history=current.view,
        token_count=size.tokens,
        max_context_size=budget.window,
        reserved_context_size=budget.window - budget.trigger,
        llm=CompactionModel(live.facts, CountedClient(client, spending)),
        reason=request.reason,
        focus=request.focus,
        previous_summary=previous.summary if previous is not None else "",
        cache=CacheState() if undoing else cache_state(live),
        environment=CompactionEnvironment(
            current=current,
            request=build_request(live, current.view, size),
            summarisers=_SummaryModels(live, request.successor),
            progress=progress,
            prompts=prompts_from(live.settings.compaction),
            constraints="\n\n".join(file.text for file in instructions_of(live).files),
            session_data=data,
            tracker=live.session.state.files,
            directory=str(live.session.cwd),
            keep_tokens=budget.window if first_kept else _tail_to_keep(live, request),
            first_kept=first_kept,
            unseen_tokens=_unseen_to_keep(live, request),
            compactor=client if isinstance(client, RemoteCompactor) else None,
            shares_prefix=live.settings.compaction.same_prefix,
            observed=request.observed,
            spending=spending,
            prepared=None if first_kept or undoing else live.compaction.background.ready,
        ),
    )


def _aimed(current: CurrentContext, request: CompactionRequest, skills: Sequence[SkillEntry]) -> CurrentContext:
    """Return the context with the limit that fixed parts, loaded skills and queued texts leave room under.

    The user's words share what was refused, whatever the window is believed to be.
    """
    size, budget = current.size, current.budget
    if request.reason == "overflow" or (request.reason == "threshold" and size.tokens >= budget.window):
        said = max(0, size.tokens - size.fixed) // OVERFLOW_DIVISOR >> request.attempt
        budget = msgspec.structs.replace(budget, user_messages=min(budget.user_messages, said))
    return msgspec.structs.replace(current, budget=aim_for(budget, with_skills(size, skills).fixed + size.queued))


def cache_state(live: LiveSession) -> CacheState:
    """Return whether the provider is likely to have the present prefix in its cache still.

    It has not when the view was changed since the last answer.
    """
    for entry in reversed(live.session.path()):
        if isinstance(entry, CHANGES):
            return CacheState()
        if isinstance(entry, AssistantMessage):
            age = max(0.0, live.clock() - entry.ts)
            return CacheState(entry.model == live.facts.id and age < CACHE_LIFETIME, age)
    return CacheState()


class _SummaryModels:
    """Which models may write the summary, found once a compaction: it can mean a request, and a notice."""

    def __init__(self, live: LiveSession, successor: ModelFacts | None) -> None:
        self._live = live
        self._successor = successor
        self._found: Sequence[SummaryModel] | None = None

    async def __call__(self) -> Sequence[SummaryModel]:
        if self._found is None:
            live = self._live
            self._found = [
                SummaryModel(
                    CompactionModel(facts, LearningClient(live, live.models.client(facts.provider))),
                    live.budget(facts),
                )
                for facts in await find_summarisers(live, self._successor)
            ]
        return self._found


def _session_data(live: LiveSession) -> SessionData:
    state = live.session.state
    skills = fitting_skills(state.skills, live.budget().window)
    return SessionData(
        notes=kept_notes(live),
        skills=skills,
        skills_left=tuple(skill.name for skill in state.skills if skill not in skills),
        pins=tuple(pin.text for pin in fitting_pins(state.pins, live.budget().window)),
        plan=state.plan,
        todo=state.todo,
        jobs=tuple(describe_job(job) for job in live.tool_context.jobs.running()),
        recall=live.tools.get("recall") is not None,
    )


def kept_notes(live: LiveSession) -> tuple[str, ...]:
    """Return what extensions want kept word for word: all of it, or where it is too much the newest."""
    room = live.budget().window // KEPT_DIVISOR
    kept: list[str] = []
    for entry in newest_of_kind(live.session.path(), ExtensionEntry):
        text = text_of(entry.parts)
        if not entry.in_view or bytes(entry.state) != bytes(KEPT) or text in kept:
            continue
        room -= estimate_text(text)
        if room < 0:
            break
        kept.append(text)
    return tuple(reversed(kept))


def _tail_to_keep(live: LiveSession, request: CompactionRequest) -> int | None:
    """Return how much of the end stays, `None` for the usual.

    After an overflow, a silent one too (R-022), the real window or the real size is not what we believe it to be.
    """
    size, budget = live.measure(), live.budget()
    is_silent = request.reason == "threshold" and size.tokens >= budget.window
    if request.reason != "overflow" and not is_silent:
        return None
    return min(budget.keep_recent, min(size.tokens, size.estimate) // OVERFLOW_DIVISOR) >> request.attempt


def _unseen_to_keep(live: LiveSession, request: CompactionRequest) -> int | None:
    """Return how much of results that no accepted request had stays: of a refused one at most half of it."""
    if request.reason != "overflow":
        return None
    size = live.measure()
    return min(size.tokens, size.estimate) >> (request.attempt + 1)
