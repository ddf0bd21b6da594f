"""Sub-agents: a task is worked on in a session of its own, and its last answer comes back (DESIGN section 8).

A sub-agent is a session like the one that it works for, with the same executor and task. It has its own window, log and
compactions; its questions, its costs and its changes to files are the parent's.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec

from tenuto.config.agents import ALIASES, AgentKind
from tenuto.core.agent.kinds import agents_of
from tenuto.core.bus import EventBus
from tenuto.core.closing import close_session
from tenuto.core.errors import EXPECTED_FAILURES, UsageError, describe_failure
from tenuto.core.executor import Executor
from tenuto.core.hooks.asking import HOOK_KIND
from tenuto.core.session_tools import connect_tools
from tenuto.core.start import Limits
from tenuto.core.state.approvals import OpenApprovals
from tenuto.core.state.children import Children
from tenuto.core.state.compaction_state import CompactionState
from tenuto.core.state.live import AGENT_TOOL, LiveSession, ModelState
from tenuto.core.state.mcp import SessionServers
from tenuto.core.state.skills import load_skill
from tenuto.core.state.windows import ModelChange, find_model
from tenuto.core.submit import submit_prompt
from tenuto.protocol.entry import ModelEntry, TitleEntry, UsageEntry
from tenuto.protocol.event import (
    AnyEvent,
    ApprovalRequestedEvent,
    ApprovalResolvedEvent,
    CallRefusedEvent,
    ChildEndedEvent,
    ChildProgressEvent,
    CompactionEndEvent,
    ContextUsageEvent,
    NoticeEvent,
    Outcome,
    RetryEvent,
    StepStartedEvent,
    TaskSettledEvent,
    ToolResultEvent,
    ToolStartedEvent,
)
from tenuto.protocol.message import AgentView, FileUse, ToolResultMessage
from tenuto.protocol.operation import AnyOperation, OpeningOperation
from tenuto.protocol.part import TextPart
from tenuto.protocol.usage import Usage
from tenuto.session.agents import agent_purpose, bound_said, last_words, reference
from tenuto.session.paths import new_session_id
from tenuto.session.session import Session
from tenuto.session.store import AGENTS, RunningCommand, Store
from tenuto.session.view.tree import of_kind
from tenuto.text.bounding import shorten
from tenuto.text.call_summary import summarise_call
from tenuto.text.figures import format_spending, plural
from tenuto.text.matching import did_you_mean
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import AgentTask, ToolContext, ToolError

_LABEL_CHARS = 60
_SHOWN_FILES = 20
NO_ANSWER = "(The sub-agent ended without an answer.)"


async def run_agent(live: LiveSession, task: AgentTask, context: ToolContext) -> ToolOutput:
    """Have a sub-agent do a task for the call of `context`; return what came of it, however it ended.

    Waits while as many as may run do. Raises `ToolError` when there is no such agent.
    """
    kind = await find_kind(live, task.agent)
    if live.children.turn.locked():
        context.emit("waiting until another sub-agent has ended\n")
    async with live.children.turn:
        change = await _choose_model(live, kind)
        child = Child(live, kind, task, context, change)
        live.children.running[child.id] = child
        try:
            return await child.work(task.prompt)
        finally:
            live.children.running.pop(child.id, None)


async def find_kind(live: LiveSession, name: str) -> AgentKind:
    """Return the agent of a name. Raises `ToolError`."""
    agents = await asyncio.to_thread(agents_of, live)
    kind = agents.find(name)
    if kind is None:
        names = ", ".join(agents.kinds)
        raise ToolError(f"There is no agent {shorten(name, 80)}{did_you_mean(name, agents.kinds)}. There are: {names}.")
    return kind


async def _choose_model(live: LiveSession, kind: AgentKind) -> ModelChange:
    """Return the model of an agent: the settings', its file's, else, and where that is unknown, its parent's.

    A name without a provider is one of the parent's provider, where its models are known; a word like `sonnet` is no
    fault where it has none.
    """
    own = live.settings.agents.models
    wanted = own.get(kind.name, kind.model)
    is_ours = kind.name in own or wanted in own
    wanted = own.get(wanted, wanted)
    effort = kind.effort or live.effort
    same = ModelChange(live.facts, effort if live.models.takes(live.facts, effort) else "")
    provider = live.facts.id.partition("/")[0]
    if wanted.lower() in ALIASES:
        wanted = live.models.newest_of(provider, wanted.lower())
    if wanted in {"", "inherit"}:
        return same
    try:
        if "/" not in wanted:
            if not live.models.is_catalogued(provider):
                raise UsageError(f"“{shorten(wanted, 80)}” names no provider")
            wanted = f"{provider}/{wanted}"
        if kind.of_project and not is_ours and wanted.partition("/")[0] != provider:
            raise UsageError(f"a project's file does not choose the provider ({wanted})")
        found = await find_model(live, wanted)
    except EXPECTED_FAILURES as error:
        text = (
            f"Agent {kind.name} works with {live.facts.id}: {error}. [agents.models] in settings.toml says which model "
            f"it gets ({kind.name} = “provider/name”)."
        )
        live.notify_once(f"model of {kind.name}", text, "warning")
        return same
    if not found.effort and live.models.takes(found.facts, kind.effort):
        return ModelChange(found.facts, kind.effort)
    return found


class _Holder:
    """Holds a sub-agent's session for its executor; no other can be opened there."""

    def __init__(self, live: LiveSession) -> None:
        self._live = live

    @property
    def open_one(self) -> LiveSession | None:
        """The session."""
        return self._live

    def live(self, session_id: str) -> LiveSession:
        """Return the session. Raises `UsageError` for another id."""
        if session_id != self._live.id:
            raise UsageError(f"session {session_id} is not open")
        return self._live

    def show_again(self, session_id: str) -> None:
        """Nobody has its transcript on the screen."""

    async def change(self, operation: OpeningOperation) -> None:
        """Raises `UsageError`."""
        del operation
        raise UsageError("a sub-agent's session opens no other one")


class Child:
    """One sub-agent, from its session's first entry to the result of the call that runs it."""

    def __init__(
        self, parent: LiveSession, kind: AgentKind, task: AgentTask, context: ToolContext, change: ModelChange
    ) -> None:
        self.kind = kind
        self.call_id = context.call_id
        self.label = f"{kind.name}: {shorten(' '.join((task.description or task.prompt).split()), _LABEL_CHARS)}"
        self.steps = 0
        self._parent = parent
        self._context = context
        self._outcome: Outcome = "completed"
        self._is_left = False
        self._settled: asyncio.Future[TaskSettledEvent] | None = None
        self.live = open_child(parent, kind, change)
        if task.description:
            self.live.session.append(TitleEntry(title=task.description))
        self.live.bus.subscribe(self._note)
        self._executor = Executor(self.live.bus, _Holder(self.live))
        self.live.tool_context.jobs.changed = partial(self._executor.note_jobs, self.live)
        self._noted = f"agent-{self.id}"
        self._commands: set[str] = set()
        self._end_watching: Callable[[], None] | None = None

    # --- what others ask of it while it runs ---

    @property
    def id(self) -> str:
        """The id of its session."""
        return self.live.id

    @property
    def children(self) -> Children:
        """Its own sub-agents."""
        return self.live.children

    @property
    def spent(self) -> float:
        """What it and those below it have cost by now, in US dollars; nothing once its parent's log counts it."""
        if self._is_left:
            return 0.0
        return (self.live.session.usage.cost or 0.0) + self.live.children.spent

    @property
    def is_asking(self) -> bool:
        """Whether it, or one below it, waits for the user."""
        return self.live.is_asking

    @property
    def facts(self) -> str:
        """How far it is, in words."""
        usage = self.live.session.usage
        return f"{plural(self.steps, 'step')}, {format_spending(usage.total, usage.cost)}"

    @property
    def session(self) -> Session:
        """Its session."""
        return self.live.session

    def watch(self, listener: Callable[[AnyEvent], None] | None) -> None:
        """Have its events told to one listener, in the place of the one before; `None`: to nobody."""
        if self._end_watching is not None:
            self._end_watching()
        self._end_watching = self.live.bus.subscribe(listener) if listener is not None else None

    def move_to_background(self) -> None:
        """Let the commands that it and those below it wait for run on as background jobs."""
        self.live.move_to_background()

    async def submit(self, operation: AnyOperation) -> str:
        """Hand it an operation."""
        return await self._executor.submit(operation)

    def load_blob(self, sha256: str) -> bytes:
        """Return an image of its session. Raises `FileNotFoundError`."""
        return self.live.load_blob(sha256)

    # --- its work ---

    async def work(self, prompt: str) -> ToolOutput:
        """Do the task and return the result of the call. A cancellation ends it with what there is of it."""
        self._write_down()
        self._tell_progress()
        try:
            settled = await self._run(prompt)
            outcome, error = settled.outcome, settled.error
        except asyncio.CancelledError:
            outcome, error = "interrupted", ""
        except EXPECTED_FAILURES as failure:
            outcome, error = "failed", describe_failure(failure)
        await self._end()
        return self._result(outcome, error)

    async def _run(self, prompt: str) -> TaskSettledEvent:
        """Send the task and wait until nothing is left to do."""
        self._settled = asyncio.get_running_loop().create_future()
        self._load_skills()
        await submit_prompt(self._executor, self.live, (TextPart(text=prompt),), origin="command")
        if self.live.task.settled:
            return self.live.settled_event()
        return await self._settled

    def _load_skills(self) -> None:
        """Load the skills that its file names; of one that cannot be loaded the user is told, once."""
        skills = self.live.skills() if self.kind.skills else None
        for name in self.kind.skills:
            skill = skills.find(name) if skills is not None else None
            try:
                if skill is None:
                    raise UsageError(f"there is no skill {shorten(name, 80)}")
                load_skill(self.live, skill)
            except UsageError as error:
                text = f"Agent {self.kind.name} works without a skill that its file names: {error}."
                self._parent.notify_once(f"skill {name} of {self.kind.name}", text, "warning")

    async def _end(self) -> None:
        """Stop what runs, whoever cancels meanwhile: the log is closed in order, and the processes are gone."""
        ending = asyncio.ensure_future(self._leave())
        while not ending.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([ending])
        ending.result()

    async def _leave(self) -> None:
        live = self.live
        await self._executor.stop(live)
        await live.tool_context.jobs.close()  # the sandbox is its parent's
        for let_go in live.on_leave:
            let_go()

    def _write_down(self, counted: int = 0) -> None:
        """Note beside the parent's log what the call runs, so that a kill loses nothing (R-068)."""
        note = RunningCommand(call_id=self.call_id, command=self.kind.name, session=self.id, since=counted)
        self._parent.session.store.running.note(self._noted, note)

    def _result(self, outcome: Outcome, error: str) -> ToolOutput:
        """Count what it used, close its session, and return what the call's result has of it."""
        session, parent = self.live.session, self._parent
        text, usage = last_words(session.path()), session.usage
        files = collect_files(session, parent.session.store)
        self._is_left = True
        self._context.emit("answered\n" if outcome == "completed" else f"{outcome.replace('_', ' ')}\n")
        counted = 0
        if usage != Usage():
            entry = UsageEntry(usage=usage, purpose=agent_purpose(self.kind.name), model=self.live.facts.id)
            counted = parent.session.append(entry).seq
        self._write_down(counted)
        self._context.when_stored[self.call_id] = partial(parent.session.store.running.forget, self._noted)
        farewell = close_session(session)
        if farewell.text:
            parent.notify(farewell.text, "error")
        parent.publish_usage()
        parent.bus.publish(
            ChildEndedEvent(
                session_id=parent.id,
                call_id=self.call_id,
                child=self.id,
                agent=self.kind.name,
                outcome=outcome,
                error=error,
                answer=text,
                transcript=str(session.directory),
                usage=usage,
            )
        )
        view = AgentView(
            session=self.id,
            agent=self.kind.name,
            outcome=outcome,
            steps=self.steps,
            tokens=usage.total,
            cost=usage.cost,
        )
        said = describe_end(outcome, error, text, self.steps)
        notes = [*_name_files(files), *self._name_refused(), reference(self.id)]
        return ToolOutput(
            parts=(TextPart(text="\n\n".join((said, "\n".join(notes)))),),
            ui=(view,),
            files=files,
            is_error=outcome != "completed",
            interrupted=outcome == "interrupted",
        )

    def _name_refused(self) -> list[str]:
        refused = self.live.task.refused
        return [f"[{plural(refused, 'call')} of it needed an approval that nobody could give.]"] if refused else []

    # --- what its parent and the user are told of it ---

    def _note(self, event: AnyEvent) -> None:
        """Tell the parent's front-ends what of an event of the sub-agent is theirs."""
        parent = self._parent
        match event:
            case TaskSettledEvent():
                if self._settled is not None and not self._settled.done():
                    self._settled.set_result(event)
            case StepStartedEvent():
                self.steps += 1
                self._tell_progress()
            case ContextUsageEvent():
                self._tell_progress()
            case ToolStartedEvent() | ToolResultEvent():
                self._note_call(event)
            case ApprovalRequestedEvent():
                agent = f"{self.label} › {event.agent}" if event.agent else self.label
                parent.bus.publish(msgspec.structs.replace(event, call_id=self.call_id, agent=agent))
            case ApprovalResolvedEvent():
                parent.bus.publish(event)
            case CallRefusedEvent():
                parent.task.refused += 1
                parent.bus.publish(msgspec.structs.replace(event, session_id=parent.id))
            case RetryEvent() | CompactionEndEvent():
                self._note_delay(event)
            case NoticeEvent():
                self._pass_on(event)
            case _:
                pass

    def _note_call(self, event: ToolStartedEvent | ToolResultEvent) -> None:
        """Say in the block of the call what it does, and whether it waits for a command."""
        if isinstance(event, ToolStartedEvent):
            summary = summarise_call(event.name, event.arguments) or event.summary
            self._context.emit(f"{event.name} {summary}".rstrip() + "\n")
        before = bool(self._commands)
        if isinstance(event, ToolResultEvent):
            self._commands.discard(event.message.call_id)
        elif event.name == "bash":
            self._commands.add(event.call_id)
        if bool(self._commands) != before:
            self._tell_progress()

    def _note_delay(self, event: RetryEvent | CompactionEndEvent) -> None:
        """Say in the block of the call what it waits for, or has waited for."""
        if isinstance(event, RetryEvent):
            self._context.emit(f"trying again in {event.wait:.0f} s: {event.reason}\n")
        elif event.entry is not None:
            self._context.emit("compacted its context\n")

    def _pass_on(self, notice: NoticeEvent) -> None:
        """Tell the user of a fault, and in the block of the call what a hook did."""
        if notice.level == "error":
            self._parent.notify(f"Sub-agent {self.label}: {notice.text}", "error")
        elif notice.kind == HOOK_KIND:
            self._context.emit(f"{notice.text}\n")

    def _tell_progress(self) -> None:
        usage = self.live.session.usage
        self._parent.bus.publish(
            ChildProgressEvent(
                session_id=self._parent.id,
                call_id=self.call_id,
                child=self.id,
                agent=self.kind.name,
                steps=self.steps,
                tokens=usage.total,
                cost=usage.cost,
                in_command=bool(self._commands),
            )
        )


def open_child(parent: LiveSession, kind: AgentKind, change: ModelChange) -> LiveSession:
    """Begin the session of a sub-agent, with everything that serves it."""
    settings = parent.settings
    session = Session.create(
        parent.home,
        parent.session.cwd,
        clock=parent.clock,
        durability=settings.session.durability,
        directory=parent.session.directory / AGENTS / new_session_id(parent.clock()),
        parent_session=parent.id,
    )
    session.append(ModelEntry(model=change.facts.id, effort=change.effort))
    may_have_some = parent.depth + 1 < settings.agents.depth
    names = kind.tools_of(parent.tools.names())
    bus = EventBus(lambda error: parent.notify(f"A sub-agent's listener failed: {describe_failure(error)}", "error"))
    tools = parent.tools.only(names if may_have_some else names - {AGENT_TOOL})
    live = LiveSession(
        session=session,
        in_use=parent.in_use,
        models=parent.models,
        tools=tools,
        bus=bus,
        approvals=OpenApprovals(session.id, bus),
        saved_approvals=parent.saved_approvals,
        tool_context=ToolContext(session, parent.tool_context.settings, parent.tool_context.sandbox),
        home=parent.home,
        user=parent.user,
        mcp=SessionServers(tools),
        clock=parent.clock,
        interactive=parent.interactive,
        ends_by_itself=True,
        extra_prompt=parent.extra_prompt,
        limits=Limits(turns=min(kind.max_turns or settings.agents.max_steps, settings.agents.max_steps)),
        parent=parent,
        kind=kind,
        extensions=parent.extensions,
        hooks=parent.hooks.for_sub_agent() if parent.hooks is not None else None,
        model=ModelState(change.facts),
        compaction=CompactionState(strategy=parent.compaction.strategy),
        children=Children(settings.agents.side_by_side),
    )
    connect_tools(live)
    live.tool_context.environ = parent.tool_context.environ
    live.tool_context.added = parent.tool_context.added
    if may_have_some:
        live.tool_context.run_agent = partial(run_agent, live)
    return live


def collect_files(session: Session, store: Store) -> tuple[FileUse, ...]:
    """Return what became of each file that a session changed, and keep in `store` what is needed to take it back."""
    first: dict[str, FileUse] = {}
    last: dict[str, FileUse] = {}
    for result in of_kind(session.everything(), ToolResultMessage):
        for use in result.files:
            if use.op != "read":
                first.setdefault(use.path, use)
                last[use.path] = use
    changed: list[FileUse] = []
    for path, use in first.items():
        before = use.before
        try:
            before = store.save_bytes(session.store.load_bytes(before)) if before else ""
        except OSError:
            before = ""  # a full disk, or it was not kept: the change stands without a way back
        changed.append(msgspec.structs.replace(last[path], before=before, created=use.created))
    return tuple(changed)


def _name_files(files: Sequence[FileUse]) -> list[str]:
    if not files:
        return []
    names = ", ".join(str(Path(use.path)) for use in files[:_SHOWN_FILES])
    more = f" and {len(files) - _SHOWN_FILES} more" if len(files) > _SHOWN_FILES else ""
    return [f"[Files that it changed: {names}{more}]"]


def describe_end(outcome: Outcome, error: str, text: str, steps: int) -> str:
    """Return what the parent's model is told: the answer, or how it ended before there was one."""
    said = f" What it had said:\n{bound_said(text)}" if text else ""
    match outcome:
        case "completed":
            return text or NO_ANSWER
        case "interrupted":
            return f"interrupted after {plural(steps, 'step')}; may have taken effect; check.{said}"
        case "limit_reached":
            return f"The sub-agent is not done: {error}.{said}"
        case "cut_off" | "declined" | "failed":
            return f"The sub-agent failed: {error}{'' if error.endswith('.') else '.'}{said}"
