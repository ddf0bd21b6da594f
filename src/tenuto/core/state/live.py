"""An open session with everything that serves it: its log, its model, its tools, its open approvals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeVar

from msgspec import Struct, field

from tenuto.compaction.measure.budget import Budget, aim_for, assumed_window, budget_for
from tenuto.compaction.measure.meter import ContextSize, Meter, should_compact_threshold
from tenuto.compaction.measure.weight import estimate_tools
from tenuto.config.agents import AgentKind
from tenuto.config.places import Where
from tenuto.config.saved_approvals import SavedApprovals
from tenuto.config.settings import Settings
from tenuto.config.skills import Skills, find_skills
from tenuto.core.bus import EventBus
from tenuto.core.errors import describe_failure
from tenuto.core.start import Limits
from tenuto.core.state.approvals import OpenApprovals
from tenuto.core.state.children import Children
from tenuto.core.state.compaction_state import CompactionState
from tenuto.core.state.extensions import Extensions
from tenuto.core.state.mcp import SessionServers
from tenuto.core.state.pin_notes import PinNotes
from tenuto.core.state.reminders import MODE_TEXTS, ChangedFiles, alone_text, child_text
from tenuto.core.state.seen import SeenView
from tenuto.core.state.skill_notes import SkillNotes, readable_skills
from tenuto.core.state.task import TaskState
from tenuto.guard.rules import Rule, standing_rules
from tenuto.guard.subject import ApprovalSubject, Verdict
from tenuto.model.registry import ModelRegistry
from tenuto.protocol.entry import Level, Mode
from tenuto.protocol.event import (
    ContextUsageEvent,
    NoticeEvent,
    QueueChangedEvent,
    QueueItem,
    TaskSettledEvent,
)
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, Message, NoticeEntry
from tenuto.protocol.model import ModelFacts, ToolSchema, family_of
from tenuto.session.session import Session
from tenuto.session.view.tree import newest_of_kind
from tenuto.tool.run.context import ToolContext
from tenuto.tool.run.registry import ToolRegistry

if TYPE_CHECKING:
    from tenuto.extension.hooks.commands import HookCommands
    from tenuto.protocol.operation import OpeningOperation
    from tenuto.tool.process.job_table import Job


T = TypeVar("T")
LOOKED_AT = 200
"""Answers of a resumed session that are looked at for the largest request that was served."""
READ_ONLY = "Open elsewhere: nothing is written here, so nothing can be sent. /fork goes on in a copy."
"""What is said of a session that is only read, when it is opened and whenever something is to be sent (R-066)."""

FIRST_RUN = (
    "No key and no local model server was found, so the built-in offline model answers: fixed rules that drive the "
    "real tools. To connect a model set ANTHROPIC_API_KEY or OPENAI_API_KEY, or start Ollama, LM Studio or llama.cpp; "
    "then /model. Try: list, read README.md, run git status."
)
"""What a first run without any model says (DESIGN section 7)."""
UNSAVED = "unsaved"
NO_SANDBOX = "There is no sandbox here, so mode auto asks as edits does (--no-sandbox does without one)"
COMPACT_TOOL, SKILL_TOOL, AGENT_TOOL = "compact", "skill", "agent"
"""The tools with which the agent asks for a compaction, loads a skill of a list, and has sub-agents; each is left out
where a setting, or what is there, says so."""
PREPARE_SHARE = 0.8
"""Of the trigger: from here on the next compaction's summary is written beside a running task."""


class SettingsInUse(Struct, eq=False):
    """The settings that hold: others once the user trusts what a project sets, or trusts it no longer."""

    settings: Settings


class SessionServices(Struct, frozen=True, eq=False, kw_only=True):
    """What serves an open session and does not change while it is open. It says nothing of the state of its work."""

    session: Session
    in_use: SettingsInUse
    models: ModelRegistry
    tools: ToolRegistry
    bus: EventBus
    approvals: OpenApprovals
    saved_approvals: SavedApprovals
    """What the user has allowed permanently, by directory."""
    tool_context: ToolContext
    extensions: Extensions
    """Whose hooks are called."""
    mcp: SessionServers
    """The MCP servers of the session."""
    hooks: HookCommands | None = None
    """The commands that are asked at events; `None`: there is no file of any."""
    home: Path
    user: Path | None = None
    """The user's own home, where peers keep what they bring; `None` where the environment names none."""
    clock: Callable[[], float]
    interactive: bool
    """Whether a user looks on, on a screen."""
    can_ask: bool = False
    """Whether questions are answered: by that user, or by a program."""
    ends_by_itself: bool = False
    """Whether the run ends when nothing is left to do; then it waits for background jobs first."""
    extra_prompt: str = ""
    limits: Limits = Limits()
    given: list[Rule] = field(default_factory=list[Rule])
    """The rules of the user's settings and of the command line; `/approvals` changes those of the settings."""
    lent: list[Rule] = field(default_factory=list[Rule])
    looking: list[str] = field(default_factory=list[str])
    """Who has asked that the present turn changes nothing."""
    """Rules that a command file or a skill brought, for the present turn alone."""
    answer_note: str = ""
    """What the model is told of the form of its last answer."""
    parent: LiveSession | None = None
    """The session that a sub-agent works for."""
    kind: AgentKind | None = None
    """What kind of a sub-agent works here; `None`: none does."""
    meter: Meter = field(default_factory=Meter)
    notified: set[str] = field(default_factory=set[str])
    """Kinds of notices that this session has had and that are not given a second time."""
    on_leave: list[Callable[[], None]] = field(default_factory=list[Callable[[], None]])
    """What has to be let go of when the session is left."""

    @property
    def id(self) -> str:
        """The session's id."""
        return self.session.id

    @property
    def settings(self) -> Settings:
        """The settings that hold now."""
        return self.in_use.settings

    @property
    def mode(self) -> Mode:
        """The session's approval mode; a sub-agent has that of the session that it works for, whatever it becomes."""
        if self.parent is not None:
            return self.parent.mode
        return self.session.state.mode or self.settings.mode

    @property
    def plans(self) -> bool:
        """Whether a plan is worked out here that the user approves."""
        return self.mode == "plan" and self.kind is None

    @property
    def owner(self) -> SessionServices:
        """The session whose rules hold here and which keeps the user's answers: the one that no other has begun."""
        return self if self.parent is None else self.parent.owner

    @property
    def depth(self) -> int:
        """How many sessions stand above this one."""
        return 0 if self.parent is None else self.parent.depth + 1

    @property
    def mode_text(self) -> str:
        """What the model is told of the mode."""
        if self.kind is not None:
            return child_text(self.mode, self.owner.given, self.kind.reads_only, self.can_ask)
        if self.can_ask:
            return MODE_TEXTS[self.mode]
        return alone_text(self.mode, self.given, self.answer_note)

    def rules(self, lent: Sequence[Rule] = ()) -> list[Rule]:
        """Return every rule that holds: of the settings, the command line, the owner's session, and this directory.

        `lent` are those that hold for one call only, beside what the turn has.
        """
        owner, workspace = self.owner, self.tool_context.workspace
        saved = owner.saved_approvals.of(workspace)
        if owner.saved_approvals.problem:
            owner.notify_once("saved approvals", owner.saved_approvals.problem, "warning")
        lends = () if self.mode == "plan" else (*owner.lent, *lent)
        answers = (*readable_skills(self.session.state.skills), *owner.session.state.approvals, *saved)
        return standing_rules((*owner.given, *lends), answers, workspace)

    def judge(self, subject: ApprovalSubject, lent: Sequence[Rule] = ()) -> Verdict:
        """Judge what a call would do, by mode and rules; without a sandbox `auto` judges as `edits`, and says so.

        A sub-agent's calls are judged by those of the session that it works for; one that only looks changes nothing.
        """
        from tenuto.guard.approval import judge, judge_unheld, refuse_change  # 2 ms that only a call needs

        looks = bool(self.owner.looking) or (self.kind is not None and self.kind.reads_only)
        if looks and (refused := refuse_change(subject)):
            return refused
        sandbox, places = self.tool_context.sandbox, self.tool_context.places
        if self.mode != "auto" or sandbox is None or sandbox.replaces_asking:
            return judge(self.mode, subject, self.rules(lent), places)
        self.owner.notify_once("no sandbox", f"{NO_SANDBOX}: {sandbox.machine}", "warning")
        return judge_unheld(subject, self.rules(lent), places)

    @property
    def where(self) -> Where:
        """Where users and projects put what they bring, as it looks from this session."""
        touched = frozenset(self.session.state.files)
        return Where(self.home, self.session.cwd, self.user, touched)

    def skills(self) -> Skills:
        """Return the skills that are there now."""
        return find_skills(self.where)

    def attempt(self, step: Callable[[], T]) -> T | None:
        """Do one step of an end that has to come: a failure becomes a notice, and the end goes on."""
        try:
            return step()
        except Exception as error:  # noqa: BLE001 - whatever it is, what comes behind it must not be lost
            text = describe_failure(error)
            try:
                self.session.append(NoticeEntry(text=text, level="error"))
            except Exception as another:  # noqa: BLE001 - the same
                text = f"{text}; {describe_failure(another)}"
            self.bus.publish(NoticeEvent(session_id=self.id, text=text, level="error"))
            return None

    def warn(self, text: str) -> None:
        """Tell a fault; where something was said in the session it is kept, so that a resumed one shows it."""
        self.notify(text, "warning", keep=self.session.reading.system is not None)

    def notify(self, text: str, level: Level = "info", kind: str = "", *, keep: bool = False) -> None:
        """Tell the user something; with `keep` it also goes into the log, so that a resumed transcript shows it."""
        if keep:
            self.session.append(NoticeEntry(text=text, level=level, kind=kind))
        self.bus.publish(NoticeEvent(session_id=self.id, text=text, level=level, kind=kind))

    def notify_once(self, topic: str, text: str, level: Level = "info") -> None:
        """Tell the user something, unless something on that topic was told since the session was opened."""
        if topic not in self.notified:
            self.notified.add(topic)
            self.notify(text, level)


class ModelState(Struct, eq=False):
    """The present model, and what is known of windows in this session."""

    facts: ModelFacts
    own: ModelFacts | None = None
    """The session's own model while another one answers for a turn."""
    cut_at: int = 0
    """Tokens at which a server cut off an answer by a limit of its own, because nobody knew the model's."""
    served: dict[str, int] = field(default_factory=dict[str, int])
    """The largest request that a model has served, in tokens by its own count; by model."""
    budgets: dict[tuple[ModelFacts, int], Budget] = field(default_factory=dict[tuple[ModelFacts, int], Budget])
    """By facts and assumed window: dividing a window is asked for at every turn."""


class ReminderState(Struct, eq=False):
    """What the model has been reminded of in developer messages."""

    changed_files: ChangedFiles = field(default_factory=ChangedFiles)
    ended_jobs: list[Job] = field(default_factory=list["Job"])
    changed_instructions: list[str] = field(default_factory=list[str])
    """Real paths of instruction files that the user has added to, and that the model is to be told."""
    """The background jobs whose end was told since the user's last message."""
    compaction: CompactionEntry | None = None
    """The compaction behind which everything has been told again."""
    seen: SeenView = field(default_factory=SeenView)
    pins: PinNotes = field(default_factory=PinNotes)
    skills: SkillNotes = field(default_factory=SkillNotes)
    place: str = ""
    """What was found out of the working directory when it was last needed."""
    agents: str | None = None
    """What the model is told of the agents of the user and the project; `None`: it has no tool for them."""


class LiveSession(SessionServices, frozen=True, eq=False, kw_only=True):
    """One open session: what serves it, and the state of its model, task, compactions and reminders.

    Only tasks of the task manager and the executor's own handlers change the state.
    """

    model: ModelState
    task: TaskState = field(default_factory=TaskState)
    compaction: CompactionState = field(default_factory=CompactionState)
    reminders: ReminderState = field(default_factory=ReminderState)
    children: Children

    @property
    def root(self) -> LiveSession:
        """The session that no other has begun: its run's limits count what all below it do."""
        return self if self.parent is None else self.parent.root

    @property
    def is_asking(self) -> bool:
        """Whether something waits for the user's word: a call here, or one of a sub-agent."""
        return self.approvals.is_open or self.children.is_asking

    def move_to_background(self) -> None:
        """Let the commands that calls wait for, those of sub-agents too, run on as background jobs."""
        self.tool_context.move_to_background()
        self.children.move_to_background()

    def load_blob(self, sha256: str) -> bytes:
        """Return an image of the session or of a sub-agent that runs. Raises `FileNotFoundError`."""
        try:
            return self.session.store.load_bytes(sha256)
        except FileNotFoundError:
            return self.children.load_blob(sha256)

    @property
    def facts(self) -> ModelFacts:
        """What is known of the present model."""
        return self.model.facts

    @property
    def effort(self) -> str:
        """How hard the model is to think: the session's choice, else the model's setting; empty: its own default.

        A level that the model does not have was told to the user, and its default holds.
        """
        own = self.settings.models.get(self.facts.id)
        effort = self.session.state.effort or (own.effort if own is not None else "")
        return effort if self.models.takes(self.facts, effort) else ""

    def budget(self, facts: ModelFacts | None = None) -> Budget:
        """Return how a model's window is divided, the present one's unless named; its own settings win."""
        facts = facts or self.facts
        assumed = 0 if facts.context_window else assumed_window(self.served_tokens(facts.id))
        known = self.model.budgets.get((facts, assumed))
        if known is None:
            compaction = self.settings.compaction_for(facts.id)
            known = budget_for(facts, compaction, self.settings.max_output_tokens, assumed=assumed)
            self.model.budgets[facts, assumed] = known
        return known

    def tool_schemas(self) -> tuple[ToolSchema, ...]:
        """Return the schemas of the tools that the present model is given, in the order of the log's `system` entry.

        What the settings leave out goes by that entry too, so that a changed setting does not break the prefix.
        """
        stored = self.session.reading.system
        if stored is None or not stored.tools:
            return self.offered_schemas()
        without = frozenset(name for name in (COMPACT_TOOL, SKILL_TOOL, AGENT_TOOL) if name not in stored.tools)
        return self.tools.schemas(family_of(self.facts), without, stored.registered)

    def offered_schemas(self) -> tuple[ToolSchema, ...]:
        """Return the schemas of the tools that a new `system` entry would name."""
        offered = {
            COMPACT_TOOL: self.settings.compaction.tool,
            SKILL_TOOL: bool(self.skills().listed),
            AGENT_TOOL: self.settings.agents.enabled,
        }
        without = frozenset(name for name, is_offered in offered.items() if not is_offered)
        return self.tools.schemas(family_of(self.facts), without)

    @property
    def can_ask_compaction(self) -> bool:
        """Whether the model has the tool that asks for a compaction."""
        return any(schema.name == COMPACT_TOOL for schema in self.tool_schemas())

    def window_size(self) -> int:
        """Return the tokens of the present model's window, assumed where nobody says how large it is."""
        return self.budget().window

    def served_tokens(self, model: str = "") -> int:
        """Return the largest request that a model, the present one unless named, has served here, by its own count."""
        model = model or self.facts.id
        if model not in self.model.served:
            answers = islice(newest_of_kind(self.session.path(), AssistantMessage), LOOKED_AT)
            sizes = (entry.usage.sent for entry in answers if entry.model == model and entry.usage is not None)
            self.model.served[model] = max(sizes, default=0)
        return self.model.served[model]

    def measure(self) -> ContextSize:
        """Return how full the window is: the one number for footer, trigger and ladder (R-024)."""
        return self.meter.measure(self.session, self.facts.id, self.tool_schemas())

    def measure_path(self, view: Sequence[Message], path: Sequence[HistoryEvent]) -> ContextSize:
        """Return how full the window would be with another path and its view: the same measure (R-024)."""
        return self.meter.for_other_path().measure_view(
            view,
            path,
            model_id=self.facts.id,
            tools_tokens=estimate_tools(self.tool_schemas()),
            queue=self.session.state.queue,
        )

    def is_compaction_due(self) -> bool:
        """Say whether an automatic compaction is due now: the same number that the footer shows (R-024).

        Where no compaction comes under the trigger, it waits for the limit that one can come under. What leaves no
        room for an answer would be refused: then it is tried although earlier ones failed or were of little use.
        """
        size, budget = self.measure(), self.budget()
        limited = aim_for(budget, size.fixed + size.queued)
        if not should_compact_threshold(size, limited, self.settings.compaction):
            return False
        automatic = self.compaction.automatic
        return automatic.may_run(size.tokens) or (budget.has_no_room(size.tokens) and automatic.may_save)

    def is_preparation_due(self) -> bool:
        """Say whether the next compaction is so near that its summary is to be written beside the task."""
        settings = self.settings.compaction
        if not (settings.enabled and settings.background):
            return False
        tokens, trigger = self.measure().tokens, self.budget().trigger
        return PREPARE_SHARE * trigger <= tokens <= trigger

    def publish_usage(self) -> None:
        """Tell the front-ends how full the window is, what the session has used, and how many jobs run."""
        size, budget = self.measure(), self.budget()
        self.bus.publish(
            ContextUsageEvent(
                session_id=self.id,
                tokens=size.tokens,
                window=budget.window if budget.known else None,
                trigger=budget.trigger,
                estimated=size.estimated,
                total=self.session.state.usage,
                jobs=len(self.tool_context.jobs.running()),
            )
        )

    def publish_queue(self) -> None:
        """Tell the front-ends what is queued."""
        queue = self.session.state.queue
        items = tuple(QueueItem(seq=entry.seq, parts=entry.parts, steer=entry.steer) for entry in queue)
        waiting = self.task.queue_waiting and bool(items)
        self.bus.publish(QueueChangedEvent(session_id=self.id, items=items, waiting=waiting))

    def watch_saving(self) -> None:
        """Tell the user when entries do not reach the disk, and when they do again (R-067)."""
        unsaved = self.session.unsaved
        if unsaved is not None:
            text = (
                f"This session is not being saved ({unsaved.reason}); it goes on in memory and saving is tried again."
            )
            self.notify_once(UNSAVED, text, "error")
        elif UNSAVED in self.notified:
            self.notified.remove(UNSAVED)
            self.notify("The session is saved again.")

    def store_side_commands(self) -> None:
        """Put what came of the user's commands beside the task, and of extensions, into the history, at a boundary."""
        entries, self.task.entries = self.task.entries, []
        for entry in entries:
            self.session.append(entry)
        if self.task.side_command.store(self.session) or entries:
            self.publish_usage()

    def settled_event(self) -> TaskSettledEvent:
        """Return what is told when the session is idle."""
        task = self.task
        return TaskSettledEvent(
            session_id=self.id, outcome=task.last_outcome, error=task.last_error, refused=task.refused
        )


class SessionHolder(Protocol):
    """Who holds the session that an executor works in: the program's `Opener`, or a sub-agent's own."""

    @property
    def open_one(self) -> LiveSession | None:
        """The open session, if there is one."""
        ...

    def live(self, session_id: str) -> LiveSession:
        """Return the open session if it is the one asked for. Raises `UsageError`."""
        ...

    def show_again(self, session_id: str) -> None:
        """Tell the whole of the session again, because its leaf has moved."""
        ...

    async def change(self, operation: OpeningOperation) -> None:
        """Make another session the open one. Raises `UsageError`."""
        ...
