"""What a front-end holds: the open session, the executor, and the one way in for prompts (`core/submit.py`).

Building a runtime reads settings and opens a log; it makes no network request and imports no HTTP library.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from tenuto.config.sources import load_settings
from tenuto.core.bus import EventBus, Listener
from tenuto.core.errors import UsageError, describe_failure
from tenuto.core.executor import Executor
from tenuto.core.indexing import Indexing
from tenuto.core.opening import Opener
from tenuto.core.start import Start
from tenuto.core.state.live import LiveSession
from tenuto.core.submit import submit_prompt
from tenuto.guard.secrets import KNOWN
from tenuto.guard.terminal import write_text
from tenuto.private_files import doubt_home
from tenuto.protocol.entry import Origin, Terms
from tenuto.protocol.event import AnyEvent, TaskFinishedEvent, TaskSettledEvent
from tenuto.protocol.operation import AnyOperation, ChangeModelOperation, ChangeModeOperation
from tenuto.protocol.part import ContentPart

if TYPE_CHECKING:
    from tenuto.core.compacting.preparation import AheadOfTime
    from tenuto.core.telemetry import Telemetry
    from tenuto.core.titles import Titles
    from tenuto.tool.output import ToolOutput
    from tenuto.tool.run.context import AgentTask, ToolContext


async def _run_agent(live: LiveSession, task: AgentTask, context: ToolContext) -> ToolOutput:
    from tenuto.core.children import run_agent  # needed by few sessions

    return await run_agent(live, task, context)


UPDATE_DELAY = 5.0
"""Seconds after the start until a newer version is looked for."""
CATALOGUE_DELAY = 3.0
"""Seconds after the start until a newer catalogue is asked for."""


class Runtime:
    """One running Tenuto: at most one open session at a time, everything else behind it."""

    def __init__(self, start: Start) -> None:
        self.start = start
        self.home = start.home
        self.temporary = start.temporary
        KNOWN.learn_environment(start.environ)
        self.settings, self.problems = load_settings(start.home, start.cwd, start.environ, start.settings)
        self.bus = EventBus(self._note_failure)
        self.opener = Opener(start, self.settings, self.bus)
        self.executor = Executor(self.bus, self.opener)
        self.opener.stop_tasks = self.executor.stop
        self.opener.note_jobs = self.executor.note_jobs
        self.opener.run_agent = _run_agent
        self._settled: asyncio.Future[TaskSettledEvent] | None = None
        self.bus.subscribe(self._note)
        self.bus.subscribe(self.opener.extensions.hear)
        self._ahead: AheadOfTime | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._telemetry: Telemetry | None = None
        self._untold = ""
        self._updating: asyncio.Task[None] | None = None
        self._indexing = Indexing(lambda: self.live)
        self.bus.subscribe(self._indexing.note)
        if self.settings.compaction.ahead or self.settings.compaction.idle:
            from tenuto.core.compacting.preparation import AheadOfTime  # it brings the whole of compaction along

            self._ahead = AheadOfTime(lambda: self.live, self.executor.submit)
            self.bus.subscribe(self._ahead.note)
        self._titles: Titles | None = None
        if self._names_sessions():
            from tenuto.core.titles import Titles  # needed by few sessions

            self._titles = Titles(lambda: self.live)
            self.bus.subscribe(self._titles.note)

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
        self._export_telemetry()
        await self.opener.open_first()
        for problem in self.problems:
            self.live.notify(problem, "warning")
        if doubt := doubt_home(self.home):
            self.live.notify(doubt, "warning")
        self.opener.check_settings()
        if self.settings.telemetry.otel and self._untold:
            self.live.notify(self._untold, "warning")
        if self.start.interactive and self.settings.catalogue.refresh:
            self._refreshing = asyncio.create_task(self._refresh_catalogue(), name="catalogue")
        if self.start.interactive and self.settings.update.check:
            self._updating = asyncio.create_task(self._look_for_update(), name="update")

    def _names_sessions(self) -> bool:
        """Say whether a small model is there to name sessions for their user."""
        own = self.settings.session
        return self.start.interactive and own.titles and bool(own.title_model or self.settings.compaction.model)

    async def _refresh_catalogue(self) -> None:
        """Fetch a newer catalogue of models where it is time for it, when the first frames are drawn."""
        await asyncio.sleep(CATALOGUE_DELAY)
        live = self.opener.open_one
        if live is not None:
            await self.opener.models.refresh_catalogue(live.facts.id)

    def _export_telemetry(self) -> None:
        """Begin to send spans, where the user has said where to."""
        if not self.settings.telemetry.otel:
            return
        from tenuto.core.telemetry import ENDPOINT, MISSING, Telemetry, endpoint_of  # needed by few

        endpoint = endpoint_of(self.settings.telemetry, self.start.environ)
        if not endpoint:
            self._untold = f"telemetry.otel is on, but {ENDPOINT} is not set: nothing is exported"
            return
        try:
            content = self.settings.telemetry.content
            self._telemetry = Telemetry(endpoint, content=content, tell=self._tell_of_spans)
        except ImportError:
            self._untold = MISSING
            return
        self.bus.subscribe(self._telemetry.note)

    def _tell_of_spans(self, text: str) -> None:
        """Say what became of spans: the last ones are sent when the session is closed."""
        live = self.opener.open_one
        if live is not None:
            live.notify(text, "warning")
        else:
            write_text(f"tenuto: {text}", to_errors=True)

    async def _look_for_update(self) -> None:
        """Say once a day which newer version is there, when the first frames are drawn."""
        await asyncio.sleep(UPDATE_DELAY)
        from tenuto.core.updates import find_notice, is_due

        now = self.start.clock()
        if await asyncio.to_thread(is_due, self.home, self.start.environ, now):
            notice = await find_notice(self.home, self.settings.update.url, now)
            live = self.opener.open_one
            if notice and live is not None:
                live.notify(notice, kind="update")

    async def follow_trust(self) -> None:
        """Let everything have what the user trusts now: git, settings, extensions; model and mode where they changed.

        What the command line named stays, and the screen's own settings hold from the next start on.
        """
        start, live, before = self.start, self.live, self.settings
        self.opener.trusting.use(live)
        now, _ = await asyncio.to_thread(load_settings, start.home, start.cwd, start.environ, start.settings)
        if now != before:
            self.settings = now
            self.opener.use_settings(now)
            if now.model != before.model and now.model and not start.model:
                await self.submit(ChangeModelOperation(session_id=live.id, model=now.model))
            if now.mode != before.mode and start.mode is None:
                await self.submit(ChangeModeOperation(session_id=live.id, mode=now.mode))
            live.publish_usage()
        await live.mcp.follow_trust()
        if live.hooks is not None:
            from tenuto.core.hooks.life import follow_trust

            await follow_trust(live)
        names = await live.extensions.follow_trust()
        if names is not None:
            live.notify(f"Extensions: {', '.join(names) or 'none'}")

    def note_user(self) -> None:
        """The user does something: what can wait is not done beside it."""
        self._indexing.note_user()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Add a listener; it is called on the event loop, in order. Returns what takes it away."""
        return self.bus.subscribe(listener)

    async def submit(self, operation: AnyOperation) -> str:
        """Hand an operation to the executor; returns its submission id at once."""
        return await self.executor.submit(operation)

    async def submit_prompt(
        self,
        parts: tuple[ContentPart, ...],
        *,
        steer: bool = False,
        before: int = 0,
        origin: Origin = "typed",
        terms: Terms | None = None,
    ) -> str:
        """Send a prompt: the one way in (`core/submit.py`)."""
        return await submit_prompt(
            self.executor, self.live, parts, steer=steer, before=before, origin=origin, terms=terms
        )

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

    async def require_price(self) -> None:
        """Refuse a limit of cost that cannot be held. Raises `UsageError`."""
        live = self.live
        if live.limits.cost is None:
            return
        await self.opener.wait_for_facts()
        if live.facts.input_price is None or live.facts.output_price is None:
            raise UsageError(
                f"the limit of cost cannot be held: the price of {live.facts.id} is not known; "
                "limit turns or time instead"
            )

    async def close(self) -> None:
        """Stop what runs, end background jobs, close the log and the connections."""
        ahead = self._ahead
        if ahead is not None:
            ahead.stop()
        for task in (self._refreshing, self._updating):
            if task is not None:
                task.cancel()
        if self._titles is not None:
            self._titles.stop()
        await self.opener.close()
        if self._telemetry is not None:
            await self._telemetry.close()
        self._indexing.stop()
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
