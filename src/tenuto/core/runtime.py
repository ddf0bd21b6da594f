"""What a front-end holds: the open session, the executor, and the one way in for prompts (DESIGN section 2).

A prompt is on disk first; then comes a compaction where it is due, then the agent. Building a runtime reads settings
and opens a log; it makes no network request and imports no HTTP library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tenuto.config.settings import load_settings
from tenuto.core.agent.attachments import adopt_images
from tenuto.core.agent.overflow import run_preflight
from tenuto.core.bus import EventBus, Listener
from tenuto.core.errors import describe_failure
from tenuto.core.executor import Executor
from tenuto.core.opening import Opener
from tenuto.core.start import Start
from tenuto.core.state.live import READ_ONLY, LiveSession
from tenuto.core.state.prompt import ensure_system_entry
from tenuto.core.state.windows import describe_sizes, forget_learned_window, where_learned
from tenuto.guard.secrets import KNOWN
from tenuto.private_files import doubt_home
from tenuto.protocol.entry import DequeuedEntry, Origin, QueuedEntry
from tenuto.protocol.event import AnyEvent, PromptReturnedEvent, TaskFinishedEvent, TaskSettledEvent
from tenuto.protocol.operation import (
    AnyOperation,
    ChangeModelOperation,
    ChangeModeOperation,
    CompactSessionOperation,
    RunAgentOperation,
)
from tenuto.protocol.part import ContentPart

if TYPE_CHECKING:
    from tenuto.core.compacting.preparation import AheadOfTime


async def submit_prompt(
    executor: Executor,
    live: LiveSession,
    parts: tuple[ContentPart, ...],
    *,
    origin: Origin = "typed",
    steer: bool = False,
    before: int = 0,
) -> str:
    """Queue a prompt and see that it is worked on; return the submission that will serve it.

    While something runs the prompt only joins the queue: it is on disk, shown, and sent in order. Empty `parts`
    continue with what is queued (the user pressed Enter at a waiting queue). `before` is the seq of the queued prompt
    that it stands in front of (0: at the end).
    """
    queued = None
    if live.session.is_read_only:
        _refuse(live, parts)
        return ""
    if parts:
        parts = adopt_images(live, parts)
        queued = live.session.append(QueuedEntry(parts=parts, origin=origin, steer=steer, before=before))
        live.publish_queue()
    running = executor.tasks.running(live.id)
    if running is not None:
        return running.submission_id
    with executor.holding(live):
        try:
            is_ready = await _is_ready(executor, live, queued)
        except BaseException:
            live.task.queue_waiting = bool(live.session.state.queue)  # the caller gets the reason, and has the text
            raise
        if is_ready and executor.tasks.running(live.id) is None and live.session.state.queue:
            return await executor.submit(RunAgentOperation(session_id=live.id))
    return ""


def _refuse(live: LiveSession, parts: tuple[ContentPart, ...]) -> None:
    """Hand a prompt back that nothing may be written for (R-066)."""
    live.task.last_outcome, live.task.last_error = "failed", READ_ONLY
    if parts:
        live.bus.publish(PromptReturnedEvent(session_id=live.id, parts=parts, reason=READ_ONLY))
    else:
        live.notify(READ_ONLY, "warning")


async def _is_ready(executor: Executor, live: LiveSession, queued: QueuedEntry | None) -> bool:
    """Compact if that is due, and say whether the prompt can be sent now; if not, it goes back into the editor."""
    if live.session.reading.system is None:
        await live.mcp.wait()
    ensure_system_entry(live)  # what is measured is the whole request, the first one too
    run_preflight(live)
    if live.is_compaction_due():
        operation = CompactSessionOperation(session_id=live.id, reason="threshold")
        finished = await executor.wait_for(await executor.submit(operation))
        if finished is not None and finished.outcome == "interrupted":
            _give_back(live, queued, "the compaction was cancelled; nothing was sent")
            return False
    if _is_over_window(live) and not (forget_learned_window(live) and not _is_over_window(live)):
        _give_back(
            live,
            queued,
            f"the prompt does not fit the window ({describe_sizes(live)}); shorten it or attach it as a file"
            f"{_room_to_make(live)}, or change to a model with a larger window with /model{where_learned(live)}",
        )
        return False
    return True


def _room_to_make(live: LiveSession) -> str:
    """Return what else helps where the prompt would fit an empty conversation."""
    size = live.measure()
    return ", or make room with /compact" if size.fixed + size.queued < live.budget().window else ""


def _is_over_window(live: LiveSession) -> bool:
    budget = live.budget()
    return budget.known and live.measure().tokens >= budget.window


def _give_back(live: LiveSession, queued: QueuedEntry | None, reason: str) -> None:
    """Take the prompt out of the queue and hand it to the editor."""
    live.task.last_outcome, live.task.last_error = "failed", reason
    if queued is not None and any(waiting.seq == queued.seq for waiting in live.session.state.queue):
        live.session.append(DequeuedEntry(target=queued.seq, reason="edited"))
        live.bus.publish(PromptReturnedEvent(session_id=live.id, parts=queued.parts, reason=reason))
    else:
        live.notify(reason, "warning")
    live.task.queue_waiting = bool(live.session.state.queue)
    live.publish_queue()


CATALOGUE_DELAY = 3.0
"""Seconds after the start until a newer catalogue is asked for."""


class Runtime:
    """One running Tenuto: at most one open session at a time, everything else behind it."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.home = start.home
        self.temporary = start.temporary
        KNOWN.learn_environment(start.environ)
        self.settings, self.problems = load_settings(start.home, start.cwd, start.environ)
        self.bus = EventBus(self._note_failure)
        self.opener = Opener(start, self.settings, self.bus)
        self.executor = Executor(self.bus, self.opener)
        self.opener.stop_tasks = self.executor.stop
        self.opener.note_jobs = self.executor.note_jobs
        self._settled: asyncio.Future[TaskSettledEvent] | None = None
        self.bus.subscribe(self._note)
        self._ahead: AheadOfTime | None = None
        self._refreshing: asyncio.Task[None] | None = None
        if self.settings.compaction.ahead or self.settings.compaction.idle:
            from tenuto.core.compacting.preparation import AheadOfTime  # it brings the whole of compaction along

            self._ahead = AheadOfTime(lambda: self.live, self.executor.submit)
            self.bus.subscribe(self._ahead.note)

    @property
    def live(self) -> LiveSession:
        """The open session with everything that serves it."""
        return self.opener.current

    @property
    def session_id(self) -> str:
        """The open session's id."""
        return self.opener.current.id

    async def open(self) -> None:
        """Open the session that the start asks for and tell the listeners. Raises `UsageError`."""
        await self.opener.open_first()
        for problem in self.problems:
            self.live.notify(problem, "warning")
        if doubt := doubt_home(self.home):
            self.live.notify(doubt, "warning")
        self.opener.check_settings()
        if self.start.interactive and self.settings.catalogue.refresh:
            self._refreshing = asyncio.create_task(self._refresh_catalogue(), name="catalogue")

    async def _refresh_catalogue(self) -> None:
        """Fetch a newer catalogue of models where it is time for it, when the first frames are drawn."""
        await asyncio.sleep(CATALOGUE_DELAY)
        live = self.opener.open_one
        if live is not None:
            await self.opener.models.refresh_catalogue(live.facts.id)

    async def follow_trust(self) -> None:
        """Let everything have what the user trusts now: git, settings, extensions; model and mode where they changed.

        What the command line named stays, and the screen's own settings hold from the next start on.
        """
        start, live, before = self.start, self.live, self.settings
        self.opener.trusting.use(live)
        now, _ = await asyncio.to_thread(load_settings, start.home, start.cwd, start.environ)
        if now != before:
            self.settings = now
            self.opener.use_settings(now)
            if now.model != before.model and now.model and not start.model:
                await self.submit(ChangeModelOperation(session_id=live.id, model=now.model))
            if now.mode != before.mode and start.mode is None:
                await self.submit(ChangeModeOperation(session_id=live.id, mode=now.mode))
            live.publish_usage()
        await live.mcp.follow_trust()
        names = await live.extensions.follow_trust()
        if names is not None:
            live.notify(f"Extensions: {', '.join(names) or 'none'}")

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; it is called on the event loop, in order. Returns what takes it away."""
        return self.bus.subscribe(listener)

    async def submit(self, operation: AnyOperation) -> str:
        """Hand an operation to the executor; returns its submission id at once."""
        return await self.executor.submit(operation)

    async def submit_prompt(
        self, parts: tuple[ContentPart, ...], *, steer: bool = False, before: int = 0, origin: Origin = "typed"
    ) -> str:
        """Send a prompt: the one way in (`core/runtime.py`)."""
        return await submit_prompt(self.executor, self.live, parts, steer=steer, before=before, origin=origin)

    async def wait_for(self, submission_id: str) -> TaskFinishedEvent | None:
        """Wait for exactly that submission's task."""
        return await self.executor.wait_for(submission_id)

    async def wait_settled(self) -> TaskSettledEvent:
        """Wait until the session is really idle; at once when it is."""
        live = self.live
        if live.task.settled:
            return live.settled_event()
        if self._settled is None:
            self._settled = asyncio.get_running_loop().create_future()
        return await asyncio.shield(self._settled)

    async def close(self) -> None:
        """Stop what runs, end background jobs, close the log and the connections."""
        ahead = self._ahead
        if ahead is not None:
            ahead.stop()
        if self._refreshing is not None:
            self._refreshing.cancel()
        await self.opener.close()
        if ahead is not None:
            ahead.stop()  # what settled meanwhile has begun them again

    def _note_failure(self, failure: Exception) -> None:
        """A front-end failed at an event: everybody else goes on, and the log keeps what happened."""
        live, text = self.opener.open_one, f"A front-end failed: {describe_failure(failure)}"
        if live is not None:
            live.attempt(lambda: live.notify(text, "error", keep=True))

    def _note(self, event: AnyEvent) -> None:
        if isinstance(event, TaskSettledEvent) and self._settled is not None:
            settled, self._settled = self._settled, None
            if not settled.done():
                settled.set_result(event)
