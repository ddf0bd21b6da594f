"""Opening, leaving, starting and forking sessions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, assert_never

from tenuto.config.places import user_home
from tenuto.config.plugins.installed import all_hook_files
from tenuto.config.saved_approvals import FILE as SAVED_APPROVALS
from tenuto.config.saved_approvals import SavedApprovals
from tenuto.config.settings import Settings
from tenuto.core.bus import EventBus
from tenuto.core.closing import close_session
from tenuto.core.errors import UsageError
from tenuto.core.extension_acts import acts_in
from tenuto.core.models import open_models
from tenuto.core.session_tools import begin_servers, connect_tools
from tenuto.core.state.approvals import OpenApprovals
from tenuto.core.state.children import Children
from tenuto.core.state.compaction_state import CompactionState
from tenuto.core.state.extensions import Extensions
from tenuto.core.state.live import FIRST_RUN, READ_ONLY, LiveSession, ModelState, SettingsInUse
from tenuto.core.state.mcp import SessionServers
from tenuto.core.state.task import TaskState
from tenuto.core.state.windows import ModelChange, change_model, split_model
from tenuto.core.transcript import recent_events
from tenuto.core.trusting import Trusting
from tenuto.guard.rules import read_rules
from tenuto.model.registry import OFFLINE_MODEL
from tenuto.protocol.entry import DirectoryEntry, Mode, ModeEntry, ModelEntry
from tenuto.protocol.event import ReplayFinishedEvent, SessionOpenedEvent, TodoChangedEvent
from tenuto.protocol.message import DeveloperMessage
from tenuto.protocol.model import ModelError
from tenuto.protocol.operation import (
    ForkSessionOperation,
    MoveSessionOperation,
    NewSessionOperation,
    OpeningOperation,
    OpenSessionOperation,
    SessionAccess,
)
from tenuto.session.errors import SessionError, SessionLocked, SessionNewer
from tenuto.session.log.log import sum_up
from tenuto.session.session import Session
from tenuto.session.store import Store, agent_directories
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.confining import make_sandbox
from tenuto.tool.run.context import AgentTask, ToolContext
from tenuto.tool.run.registry import ToolRegistry

if TYPE_CHECKING:
    from tenuto.core.finding import SessionFinder
    from tenuto.core.hooks.life import EndReason
    from tenuto.core.start import Start
    from tenuto.extension.hooks.commands import HookCommands
    from tenuto.guard.sandbox.sandbox import Sandbox


CHECK_SECONDS = 10.0
"""How long a run that is over waits for what it may have to say of its settings."""
DEFAULT_EFFORT = "Its own default holds until you choose another with /effort."


class Opener:
    """Holds the one open session and changes it."""

    def __init__(self, start: Start, settings: Settings, bus: EventBus) -> None:
        self._start = start
        self._in_use = SettingsInUse(settings)
        self._bus = bus
        self._tools = ToolRegistry()
        self.models = open_models(settings, start.home, start.environ)
        self.extensions = Extensions(start.home, settings.extensions, self._tools, self.models, start.extensions)
        self.trusting = Trusting(start.home)
        self._current: LiveSession | None = None
        self._refreshing: asyncio.Task[None] | None = None
        self._checking: asyncio.Task[None] | None = None
        own = settings.approvals
        rules, self._remarks = read_rules({"allow": own.allow, "ask": own.ask, "deny": own.deny}, "settings")
        """The second is what the user has to know of how the session was found and opened."""
        self._given = [*rules, *start.rules]
        self._assumed = ""
        """The model of a first run, while neither user nor settings nor session have named one."""
        self.parting = ""
        """What is to be said of the session that was closed last: where it is if it could not be saved (R-067)."""
        self.lost = False
        """Whether entries of a session that was closed could be saved nowhere."""
        self.stop_tasks: Callable[[LiveSession], Awaitable[None]] | None = None
        self.note_jobs: Callable[[LiveSession], None] | None = None
        self.run_agent: Callable[[LiveSession, AgentTask, ToolContext], Awaitable[ToolOutput]] | None = None

    @cached_property
    def _finder(self) -> SessionFinder:
        from tenuto.core.finding import SessionFinder  # a new session needs none: 2 ms with the list of sessions

        return SessionFinder(self._start, self._remarks)

    @property
    def open_one(self) -> LiveSession | None:
        """The open session, `None` before the first one is open and behind the last."""
        return self._current

    @property
    def current(self) -> LiveSession:
        """The open session. Raises `UsageError` before the first one is open."""
        if self._current is None:
            raise UsageError("no session is open")
        return self._current

    def live(self, session_id: str) -> LiveSession:
        """Return the open session if it is the one asked for. Raises `UsageError`."""
        if self._current is None or self._current.id != session_id:
            raise UsageError(f"session {session_id} is not open")
        return self._current

    async def open_first(self) -> None:
        """Open the session that the start asks for: a named one, the latest, or a new one. Raises `UsageError`."""
        start = self._start
        if not start.resume and not start.resume_latest:
            await self._enter(self._create(start.cwd), resumed=False)
            return
        directory = self._finder.find(start.resume) if start.resume else self._finder.latest()
        try:
            session = self._open(directory, "copy" if start.fork else "write")
        except UsageError as error:
            cause = error.__cause__
            if not start.interactive or start.fork or not isinstance(cause, SessionLocked | SessionNewer):
                raise
            if isinstance(cause, SessionNewer):
                self._remarks.append(f"{str(cause)[:1].upper()}{str(cause)[1:]}.")
            await self._enter(self._open(directory, "read"), resumed=True, locked=isinstance(cause, SessionLocked))
        else:
            await self._enter(session, resumed=True)

    async def change(self, operation: OpeningOperation) -> None:
        """Make another session the open one, or this one elsewhere. Raises `UsageError`."""
        match operation:
            case OpenSessionOperation():
                await self.open_session(operation.target, operation.access)
            case MoveSessionOperation():
                await self.move_session(operation.cwd)
            case NewSessionOperation():
                await self.new_session(operation.cwd)
            case ForkSessionOperation():
                await self.fork_session(operation.session_id, operation.seq)
            case _:
                assert_never(operation)

    async def open_session(self, target: str, access: SessionAccess = "write") -> None:
        """Leave the open session and open `target` (an id or the beginning of one). Raises `UsageError`."""
        directory, present = self._finder.find(target), self.current.session
        if directory.name == present.directory.name and not (present.is_read_only and access != "read"):
            raise UsageError("that session is open already")
        await self._enter(self._open(directory, access), resumed=True)

    async def new_session(self, cwd: str) -> None:
        """Leave the open session and start a new one, in the same directory or in `cwd`. Raises `UsageError`."""
        place = self.current.session.cwd
        if cwd:
            from tenuto.core.finding import resolve_directory

            place = resolve_directory(cwd, place)
        await self._enter(self._create(place), resumed=False)

    async def fork_session(self, session_id: str, seq: int) -> None:
        """Copy the path of the open session up to `seq` (0: all of it) and go on in the copy."""
        await self._enter(self.live(session_id).session.fork(self._start.home, seq), resumed=True)

    async def move_session(self, cwd: str) -> None:
        """Go on with the open session in another directory. Raises `UsageError`."""
        from tenuto.core.finding import resolve_directory

        session = self.current.session
        place = resolve_directory(cwd, self._start.cwd)
        if place == session.cwd:
            raise UsageError(f"the session works in {place} already")
        if self._start.temporary:
            raise UsageError("a temporary session stays where it began; /new DIR starts one elsewhere")
        await self._leave("other")
        await self._enter(self._open(self._finder.relocate(session.directory, place)), resumed=True)

    def show_again(self, session_id: str) -> None:
        """Tell the front-ends the whole of the session again, because its leaf has moved."""
        self._announce(self.live(session_id), resumed=True)

    async def close(self) -> None:
        """Close the open session and the connections."""
        if self._current is not None:
            await self._leave("other")
        await self.extensions.close()
        await self.models.close()

    def _create(self, cwd: Path) -> Session:
        if self._start.temporary:
            return Session.create_temporary(cwd, clock=self._start.clock)
        durability = self._in_use.settings.session.durability
        return Session.create(self._start.home, cwd, clock=self._start.clock, durability=durability)

    def _open(self, directory: Path, access: SessionAccess = "write") -> Session:
        reads = access in ("read", "copy")
        if not reads:
            directory = self._finder.place(directory)
        try:
            session = Session.open(
                directory,
                clock=self._start.clock,
                durability=self._in_use.settings.session.durability,
                read_only=reads,
                take_over=access == "take_over",
            )
            if session.left_by is not None:
                owner = session.left_by
                self._remarks.append(
                    f"The session was left open in {owner}; the machine has another name now, and nobody has it open."
                )
            return session.fork(self._start.home) if access == "copy" else session
        except SessionLocked as error:
            name = directory.name[:8]
            gone = f"; if that is gone: tenuto sessions repair {name} --take-over" if error.can_take_over else ""
            raise UsageError(
                f"session {name} is open in {error.owner}: close it there, or go on in a copy with "
                f"tenuto --resume {name} --fork{gone}"
            ) from error
        except OSError as error:
            raise UsageError(f"session {directory.name[:8]} cannot be copied: {error.strerror or error}") from error
        except SessionError as error:
            raise UsageError(str(error)) from error

    async def _leave(self, reason: EndReason) -> None:
        live = self.current
        for task in filter(None, (self._refreshing, self._checking)):
            task.cancel()
            await asyncio.wait([task])
        await self.trusting.stop()
        if self.stop_tasks is not None:
            await self.stop_tasks(live)
        if live.hooks is not None:
            from tenuto.core.hooks.life import end_session

            await end_session(live, reason)
        await live.tool_context.close()
        await live.mcp.close(keep_logs=live.session.has_content)
        for let_go in live.on_leave:
            let_go()
        farewell = close_session(live.session)
        self.parting, self.lost = farewell.text, self.lost or farewell.lost
        self._current = None

    async def _enter(self, session: Session, *, resumed: bool, locked: bool = False) -> None:
        """Make `session` the open one: settle its model and mode, leave the present one, tell the front-ends.

        `locked` has the front-end ask what is to be done about its other owner.

        When its model cannot be used, the present session stays open.
        """
        start, state = self._start, session.state
        try:
            model, effort, problem = await self._settle_model(session)
        except BaseException:
            if start.fork and self._current is None:
                session.discard()  # a copy that nobody has seen
            else:
                close_session(session)
            raise
        mode = self._choose_mode(session)
        is_first = self._current is None
        if self._current is not None:
            await self._leave("resume" if resumed else "clear")
        await self._end_left(session)
        if not session.is_read_only:
            self._note_start(session, model, effort, mode, start.directories if is_first else ())
        live = self._current = LiveSession(
            session=session,
            in_use=self._in_use,
            models=self.models,
            tools=self._tools,
            bus=self._bus,
            approvals=OpenApprovals(session.id, self._bus),
            saved_approvals=SavedApprovals(start.home / SAVED_APPROVALS),
            tool_context=ToolContext(session, self._in_use.settings.tools, self._make_sandbox(session)),
            home=start.home,
            user=user_home(start.environ),
            clock=start.clock,
            interactive=start.interactive,
            can_ask=start.interactive or start.answered,
            ends_by_itself=start.ends_by_itself,
            extra_prompt=start.extra_prompt,
            limits=start.limits,
            given=self._given,
            answer_note=start.answer_note,
            extensions=self.extensions,
            hooks=self._find_hooks(session),
            mcp=SessionServers(self._tools),
            model=ModelState(self.models.facts(model)),
            task=TaskState(queue_waiting=resumed and bool(state.queue)),
            compaction=CompactionState(strategy=start.compaction),
            children=Children(self._in_use.settings.agents.side_by_side),
        )
        self.models.load_blob = live.load_blob
        begin_servers(live, self._in_use.settings, start.environ, start.servers)
        live.tool_context.jobs.changed = partial(self._note_jobs, live)
        connect_tools(live)
        if self.run_agent is not None and not session.is_read_only:
            live.tool_context.run_agent = partial(self.run_agent, live)
        self._announce(live, resumed=resumed, locked=locked)
        self._say_remarks(live)
        if problem:
            live.notify(problem, "warning")
        elif model == OFFLINE_MODEL and not (resumed or start.model or self._in_use.settings.model):
            live.notify(FIRST_RUN)
        self.extensions.begin(live.session.cwd, acts_in(live))
        self.trusting.begin(live)
        if live.hooks is not None:
            from tenuto.core.hooks.life import begin_session

            begin_session(live, "resume" if resumed else "startup" if is_first else "clear")
        self._refresh(live)

    def _note_start(self, session: Session, model: str, effort: str, mode: Mode, directories: Sequence[str]) -> None:
        """Write down what the session begins with, as far as that is new."""
        state = session.state
        if (state.model, state.effort) != (model, effort):
            session.append(ModelEntry(model=model, effort=effort))
        if state.mode != mode:
            session.append(ModeEntry(mode=mode))
        for place in directories:
            if place not in state.directories:
                session.append(DirectoryEntry(path=place))

    def _make_sandbox(self, session: Session) -> Sandbox:
        wishes = self._in_use.settings.sandbox
        return make_sandbox(
            *(wishes, session.cwd, self._start.home, session.store.outputs),
            wanted=wishes.enabled and self._start.sandboxed,
            added=lambda: session.state.directories,
        )

    def _find_hooks(self, session: Session) -> HookCommands | None:
        """Return the hooks of a session; where no place has a file of them nothing is imported."""
        settings = self._in_use.settings.hooks
        if not settings.enabled or session.is_read_only:
            return None
        files = all_hook_files(self._start.home, session.cwd, self._start.environ, shared=settings.shared)
        if not files:
            return None
        from tenuto.core.hooks.life import make_hooks

        return make_hooks(files, session, self._start)

    def _note_jobs(self, live: LiveSession) -> None:
        """A background job began or ended."""
        live.publish_usage()
        if self.note_jobs is not None:
            self.note_jobs(live)

    def _say_remarks(self, live: LiveSession) -> None:
        """Say what the user has to know of how the session was found and opened, and how the last one was left."""
        if live.session.is_read_only:
            live.notify(READ_ONLY, "warning")
        if damage := live.session.damage:
            found = sum_up(len(damage), str(damage[0]))
            live.notify(f"The log is damaged: {found}; everything else is loaded.", "warning")
        while self._remarks:
            live.notify(self._remarks.pop(0), "warning")
        if self.parting:
            live.notify(self.parting, "error")
            self.parting = ""

    async def _end_left(self, session: Session) -> None:
        """End what a killed program left running, and say so to the user and to the model (R-078)."""
        folders = [session.store, *(Store(folder) for folder in agent_directories(session.directory))]
        places = [store.processes for store in folders if store.processes.is_dir()]
        if session.is_read_only or not places:
            return
        from tenuto.tool.process.left_running import describe_left, end_left_commands, note_for_model

        left = [one for place in places for one in await asyncio.to_thread(end_left_commands, place)]
        if left:
            session.append(DeveloperMessage(text=note_for_model(left)))
            self._remarks += describe_left(left)

    def _refresh(self, live: LiveSession) -> None:
        """Ask the provider for the model's window beside everything else; nothing waits for the answer."""

        async def ask() -> None:
            facts = await self.models.refresh(live.facts.id)
            if facts.id == live.facts.id and facts != live.facts:
                wanted = live.effort
                live.model.facts = facts
                live.publish_usage()
                self._check_effort(live, wanted)
            self._use_what_is_listed(live)

        self._refreshing = asyncio.create_task(ask(), name="model list")

    def _check_effort(self, live: LiveSession, wanted: str) -> None:
        """Go without an effort that the model does not have by its provider's list; the user is told."""
        try:
            self.models.require_effort(live.facts, wanted)
        except ModelError as error:
            live.notify(f"{error}. {DEFAULT_EFFORT}", "warning", keep=not live.session.is_read_only)
            if not live.session.is_read_only:
                change_model(live, ModelChange(live.facts))

    def _use_what_is_listed(self, live: LiveSession) -> None:
        """Change a model that nobody chose for one that its provider has, unless a request is on its way."""
        model = live.facts.id
        other = self.models.listed_instead(model) if model == self._assumed and live.task.settled else ""
        if not other:
            return
        change_model(live, ModelChange(self.models.facts(other)))
        live.notify(f"{model} is not in the provider's list; {other} answers, the first that is. /model shows all.")

    def use_settings(self, settings: Settings) -> None:
        """Go by other settings from now on, in the open session as well."""
        self._in_use.settings = settings
        self.models.use_settings(settings)
        if self._current is not None:
            self._current.tool_context.settings = settings.tools
            self._current.model.facts = self.models.facts(self._current.facts.id)
            self._current.model.budgets.clear()

    def check_settings(self) -> None:
        """Look beside everything else whether what the settings name for compaction can be used."""
        compaction = self._in_use.settings.compaction
        if compaction.model or compaction.strategy:
            self._checking = asyncio.create_task(self._check(self.current), name="settings check")

    async def _check(self, live: LiveSession) -> None:
        from tenuto.core.compacting.strategies import check_settings

        await self.wait_for_facts()  # the list of models is asked for once
        await check_settings(live)

    async def wait_for_checks(self) -> None:
        """Return when everything is said of the settings and of the project, or that takes too long."""
        if self._checking is not None:
            await asyncio.wait([self._checking], timeout=CHECK_SECONDS)
        await self.trusting.wait()

    async def wait_for_facts(self) -> None:
        """Return when the provider has been asked for the model's window (at most a few seconds)."""
        if self._refreshing is not None:
            await asyncio.wait([self._refreshing])

    async def _settle_model(self, session: Session) -> tuple[str, str, str]:
        """Return a model that can be used, its effort, and what the user has to know about the choice.

        One that a session or the settings name and that cannot be used (its key is gone) keeps nobody out who can
        choose another; what the command line names, and a run without a user, fail instead. So does an effort that
        the model does not have.
        """
        may_choose = self._start.interactive and not (self._current is None and self._start.model)
        try:
            model, effort = await self._choose_model(session)
            await self.extensions.provide(model, session.cwd)
            self.models.require(model)
            await self.models.require_name(model)
        except (ModelError, UsageError) as error:
            if not may_choose:
                raise
            return OFFLINE_MODEL, "", f"{error}. Until you choose a model with /model the offline one answers."
        own = self._in_use.settings.models.get(model)
        try:
            self.models.require_effort(self.models.facts(model), effort or (own.effort if own else ""))
        except ModelError as error:
            if not may_choose:
                raise
            return model, "", f"{error}. {DEFAULT_EFFORT}"
        return model, effort, ""

    async def _choose_model(self, session: Session) -> tuple[str, str]:
        """The session's own model, else the one in use, else the settings', else what the machine has.

        The command line's goes before all, for the session that the program starts with and for no later one.
        """
        if self._current is None and self._start.model:
            return split_model(self._start.model)
        for state in [session.state, *([self._current.session.state] if self._current else [])]:
            if state.model:
                return state.own_model or (state.model, state.effort)
        if self._in_use.settings.model:
            return split_model(self._in_use.settings.model)
        self._assumed = await self.models.find_default_model()
        address = self.models.found_at(self._assumed)
        if not address:
            return self._assumed, ""
        from tenuto.session.library.catalog import has_used_server

        if not has_used_server(self._start.home, session.cwd, self._assumed):
            self._remarks.append(
                f"No model is set and there is no key: {self._assumed} answers, from the server that listens at "
                f"{address}. It reads all of this session. Set `model` to keep one; /model chooses another."
            )
        return self._assumed, ""

    def _choose_mode(self, session: Session) -> Mode:
        """In the same order as the model."""
        if self._current is not None:
            return session.state.mode or self._current.mode
        return self._start.mode or session.state.mode or self._in_use.settings.mode

    def _announce(self, live: LiveSession, *, resumed: bool, locked: bool = False) -> None:
        session, state = live.session, live.session.state
        self._bus.publish(
            SessionOpenedEvent(
                session_id=live.id,
                cwd=str(session.cwd),
                model=state.model,
                effort=live.effort,
                sees_images=live.facts.images,
                mode=live.mode,
                title=state.title,
                began=state.first_text,
                resumed=resumed,
                missing=not session.cwd.is_dir() and not session.is_read_only,
                read_only=session.is_read_only,
                locked=locked,
                directory=str(session.directory),
                sandboxed=live.tool_context.sandbox is None or live.tool_context.sandbox.wanted,
            )
        )
        for event in recent_events(live):
            self._bus.publish(event)
        if state.todo:
            self._bus.publish(TodoChangedEvent(session_id=live.id, items=state.todo))
        self._bus.publish(ReplayFinishedEvent(session_id=live.id))
        live.publish_queue()
        live.publish_usage()
