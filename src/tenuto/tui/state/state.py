"""The whole state of the interactive front-end. Only `step` changes it, in place; everybody else reads.

Times are readings of the caller's clock in seconds. Nothing here knows a framework, a clock or a terminal. Structs,
not dataclasses: their classes are made faster, and that happens at every start.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from tenuto.command.outcome import Choice, RowAct, RowFilter
from tenuto.command.registry import Command
from tenuto.protocol.approval import ApprovalOption, approval_options
from tenuto.protocol.entry import Mode, TodoItem
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.protocol.part import ImagePart
from tenuto.protocol.usage import Usage
from tenuto.tui.complete.history import Extras
from tenuto.tui.complete.paste import Pastes
from tenuto.tui.keys.bindings import Bindings, ContextName
from tenuto.tui.keys.keys import default_bindings
from tenuto.tui.state.intents import CompletionItem
from tenuto.tui.state.item import Gap, Part, ToolItem, Transcript
from tenuto.tui.state.pieces import Cutter
from tenuto.tui.state.search import Search

TaskKind = Literal["agent", "compaction", "shell"]
Detail = Literal["folded", "expanded"]


# --- what lies around the transcript ---


class StatusLine(msgspec.Struct, kw_only=True):
    """The facts of the status line. Tokens; `window` and `trigger` are `None` when unknown; `cost` in US dollars.

    `mode` is `None` as long as it is not known. `dirty` says that tracked files are not as committed; `jobs` is how
    many background jobs run; `began` is how the conversation began. `sandboxed` is false where the user does without.
    `extensions` is what extensions show, by their names.
    """

    model: str = ""
    effort: str = ""
    mode: Mode | None = "ask"
    cwd: str = ""
    branch: str = ""
    dirty: bool = False
    title: str = ""
    began: str = ""
    directory: str = ""
    sees_images: bool = True
    tokens: int = 0
    window: int | None = None
    trigger: int | None = None
    estimated: bool = True
    total: Usage = msgspec.field(default_factory=Usage)
    jobs: int = 0
    sandboxed: bool = True
    extensions: dict[str, str] = msgspec.field(default_factory=dict[str, str])

    @property
    def cost(self) -> float | None:
        """What the session cost so far, `None` when no price is known."""
        return self.total.cost

    @property
    def share(self) -> float | None:
        """How full the window is, 0 to 1 (more when over it), `None` when the window is unknown."""
        return self.tokens / self.window if self.window else None


class SpinnerLayer(msgspec.Struct):
    """One thing that goes on: its label, since when, and a detail (a stage, a count)."""

    kind: TaskKind
    label: str
    since: float
    detail: str = ""


class Spinner(msgspec.Struct):
    """What goes on, in layers: the compaction lies over the shell, the shell over the agent.

    A layer that ends shows what is under it again, with its own label and time (DESIGN section 9).
    """

    layers: dict[TaskKind, SpinnerLayer] = msgspec.field(default_factory=dict[TaskKind, SpinnerLayer])

    @property
    def top(self) -> SpinnerLayer | None:
        """The layer that shows, `None` when nothing goes on."""
        return self.layers.get("compaction") or self.layers.get("shell") or self.layers.get("agent")

    @property
    def label(self) -> str:
        """The label that shows, empty when nothing goes on."""
        return self.top.label if self.top else ""


class Retry(msgspec.Struct, frozen=True):
    """A failed model call is made again at `until`."""

    attempt: int
    attempts: int
    until: float
    reason: str


class Hint(msgspec.Struct, frozen=True):
    """A line near the editor ("Press Ctrl+C again to quit") that goes away at `until`.

    `on_task`: it speaks of what runs, and goes with that. `again`: it waits for the same key, and goes with any other.
    """

    text: str
    until: float
    on_task: bool = False
    again: bool = False


# --- the editor, the queue ---


class Draft(msgspec.Struct):
    """What is in the editor; long pastes stand in it as marks. `changed_at` is the time of the last key.

    `returned` is how the text began after the last prompts were put back, `returned_images` how many images they had.
    """

    text: str = ""
    cursor: int = 0
    images: tuple[ImagePart, ...] = ()
    changed_at: float = float("-inf")
    returned: str = ""
    returned_images: int = 0

    @property
    def empty(self) -> bool:
        """Whether there is nothing to send."""
        return not self.text.strip() and not self.images

    @property
    def begun(self) -> bool:
        """Whether anything stands in the editor, if only a blank: then keys are typed into it."""
        return bool(self.text or self.images)


class QueueRow(msgspec.Struct):
    """A queued prompt as it shows. `seq` is 0 until it is known to be on disk."""

    seq: int
    text: str
    images: tuple[ImagePart, ...] = ()
    steer: bool = False


class Echo(msgspec.Struct):
    """A prompt that shows as an item before the history has it; `seq` is its queued entry's, 0 until known."""

    item_id: int
    text: str
    seq: int = 0


class HistoryCursor(msgspec.Struct):
    """The prompts sent before, oldest first, and which one is shown; `draft` waits behind the newest.

    `own` are those of this project, `extras` what belongs to some beside their text. `prefix` is what was typed
    before the first Up: prompts that begin with it are gone through, all when none does.
    """

    prompts: list[str] = msgspec.field(default_factory=list[str])
    own: set[str] = msgspec.field(default_factory=set[str])
    extras: dict[str, Extras] = msgspec.field(default_factory=dict[str, Extras])
    index: int | None = None
    prefix: str = ""
    draft: str = ""
    images: tuple[ImagePart, ...] = ()


OPEN_STATES = frozenset({"pending", "in_progress"})
"""States of a todo item that somebody still has to do something about."""


class CompletionPopup(msgspec.Struct):
    """The open completion popup; it replaces the characters `start` to `end` of the draft.

    `generation` is the change of the draft that it answers: the draft may be ahead of it.
    """

    start: int
    end: int
    items: tuple[CompletionItem, ...]
    selected: int = 0
    generation: int = 0
    moved: bool = False
    """The user has gone through it: what is selected is what they mean."""


# --- dialogs ---


class RowQuestion(msgspec.Struct):
    """What is asked about the selected row before `act` is done with it; `text` is the new text of a renamed one."""

    act: RowAct
    text: str = ""


DELETING: tuple[RowAct, ...] = ("end", "refuse")
"""What the key that deletes a row does where nothing is deleted."""


class Picker(msgspec.Struct):
    """A list to pick from. Picking runs `/<command> <value>`, or with an empty command puts the value into the draft.

    `shown` are the places of the choices that match the filter, best first, or in their own order where they are
    `in_order`; `selected` is a place in `shown`. `row_filter` is a place in `filters`. `scrolled` is how many lines of
    the selected row's preview are above what shows. `live`: what the selected row would do shows meanwhile. One that
    `gives_way` has no filter: what is typed goes into the prompt, and the list waits again. `acts` is
    what can be done with a row beside taking it, `question` what is asked about the selected one, `busy` the value of
    the one that something is being done with.
    """

    title: str
    command: str
    choices: tuple[Choice, ...]
    filter: str = ""
    shown: list[int] = msgspec.field(default_factory=list[int])
    selected: int = 0
    filters: tuple[RowFilter, ...] = ()
    row_filter: int = 0
    in_order: bool = False
    scrolled: int = 0
    live: bool = False
    gives_way: bool = False
    acts: tuple[RowAct, ...] = ()
    question: RowQuestion | None = None
    busy: str = ""

    @property
    def current(self) -> Choice | None:
        """The selected choice, `None` where nothing matches."""
        return self.choices[self.shown[self.selected]] if self.selected < len(self.shown) else None

    def act_meant(self, act: RowAct) -> RowAct | None:
        """Return what a key of an act means here, `None` for nothing: what deletes a row ends a job, or refuses."""
        meant = next((own for own in DELETING if act == "delete" and own in self.acts), act)
        return meant if meant in self.acts else None


# --- what is asked ---


class Approvals(msgspec.Struct):
    """The approvals that wait, oldest first; the first one shows.

    `opened_at` is `None` while typing holds the panel back ("typing, waiting"). Answers before `accept_after` are
    ignored: they were meant for something else. `selected` is `None` over a draft: then Enter may be meant for that,
    and answers nothing. `feedback` is the text that goes with a denial, `None` when none is being written. `edited` is
    the plan as the user changed it, `unsaid` a feedback that Esc put away. `kind` is which of the request's kinds the
    answers for longer cover.
    """

    requests: list[ApprovalRequestedEvent] = msgspec.field(default_factory=list[ApprovalRequestedEvent])
    opened_at: float | None = None
    accept_after: float = 0.0
    selected: int | None = 0
    feedback: str | None = None
    unsaid: str = ""
    edited: str = ""
    kind: int = 0

    @property
    def options(self) -> tuple[ApprovalOption, ...]:
        """The answers to the request that shows."""
        return approval_options(self.current, self.kind) if self.current is not None else ()

    @property
    def current(self) -> ApprovalRequestedEvent | None:
        """The request that shows, `None` when none is open."""
        return self.requests[0] if self.requests and self.opened_at is not None else None

    @property
    def held_back(self) -> bool:
        """Whether a request waits for a pause in typing."""
        return bool(self.requests) and self.opened_at is None

    @property
    def position(self) -> tuple[int, int]:
        """Which of the questions of one answer shows, and of how many: those that wait, and those to come."""
        first = self.requests[0].asked if self.requests else 0
        known = max((each.asked + 1 + each.behind for each in self.requests), default=0)
        return first + 1, max(known, first + len(self.requests))

    @property
    def plan(self) -> str:
        """The plan that shows, as the user left it; empty when it is no plan that asks."""
        request = self.current
        return (self.edited or request.detail) if request is not None and request.kind == "plan" else ""


# --- keys that are pressed twice ---


class Ladder(msgspec.Struct):
    """When the keys that count twice were pressed last, a command was sent, and the running task was asked to stop."""

    escape_at: float = float("-inf")
    cancel_at: float = float("-inf")
    end_at: float = float("-inf")
    leave_at: float = float("-inf")
    asked_at: float = float("-inf")
    interrupted_at: float | None = None
    child: str = ""
    child_at: float = float("-inf")
    stash: str = ""
    stashed_images: tuple[ImagePart, ...] = ()

    def disarm(self) -> None:
        """Something else was typed: the next press is a first one."""
        self.escape_at = self.cancel_at = self.end_at = self.child_at = float("-inf")


class Reader(msgspec.Struct):
    """The open transcript of a sub-agent: `child` is its session, `name` what the user knows it by.

    `shown` has its items, as a state of its own; `None` until they are there. `older` entries are not shown.
    """

    child: str
    name: str
    working: bool = True
    older: int = 0
    shown: UiState | None = None


class UiState(msgspec.Struct):
    """Everything that a screen shows.

    `todo_over` says that nothing of the todo list was open when the present task began, `todo_away` that the user put
    it away, until it changes. `tasks` are the running
    submissions; `began` is since when there have been any. `streaming` are the ids of the items of the answer that is
    being written, in order; `cutter` parts the last of its texts; `calls` finds the item of a tool call; `timed` are
    the items whose seconds count up.
    `waiting` says that the queue is sent only when the user presses Enter. `queue_selected` is the seq of the queued
    prompt that has the keyboard (0: none), `queue_place` the seqs that stood in front of the one that is in the editor
    now (`None`: a new one). `completion_closed_at` is where the word begins for which the user closed the popup.
    `replaying` is set while a resumed session's entries come in: then no effects come out until one `TranscriptReset`.
    `gaps` are the stretches that are not loaded, by the id of the item that stands for each, `parts` what was loaded
    from them; `undone` is by the seq of what was undone that of its undo. `interrupt_presses` is how often Esc
    interrupts (1 or 2).
    `held_picker` is a question that nobody asked for just now: it waits for an empty prompt and a pause.
    `streamed_length` is how many characters the answer that streams had when the seconds changed last.
    `editing` is the mode of vi's keys, empty without them.
    `block` is the item under the block cursor (0: none). `theme` is the name of the one that was chosen; `second_step`
    is in how many seconds those that are counted change.
    """

    session_id: str = ""
    transcript: Transcript = msgspec.field(default_factory=Transcript)
    status: StatusLine = msgspec.field(default_factory=StatusLine)
    spinner: Spinner = msgspec.field(default_factory=Spinner)
    retry: Retry | None = None
    hooks: tuple[str, ...] = ()
    """The hook commands that the work waits for."""
    hint: Hint | None = None
    stoppable: str = ""
    """The slash command at work that Esc ends."""
    draft: Draft = msgspec.field(default_factory=Draft)
    pastes: Pastes = msgspec.field(default_factory=Pastes)
    history: HistoryCursor = msgspec.field(default_factory=HistoryCursor)
    completion: CompletionPopup | None = None
    own_commands: tuple[Command, ...] = ()
    """What users and projects bring to be typed as `/name`."""
    completion_generation: int = 0
    completion_closed_at: int | None = None
    queue: list[QueueRow] = msgspec.field(default_factory=list[QueueRow])
    waiting: bool = False
    queue_selected: int = 0
    queue_place: frozenset[int] | None = None
    todo: tuple[TodoItem, ...] = ()
    todo_open: bool = False
    todo_over: bool = False
    todo_away: bool = False
    approvals: Approvals = msgspec.field(default_factory=Approvals)
    picker: Picker | None = None
    held_picker: Picker | None = None
    help_open: bool = False
    help_filter: str = ""
    detail: Detail = "folded"
    ladder: Ladder = msgspec.field(default_factory=Ladder)
    interrupt_presses: int = 1
    tells_shift_enter: bool = False
    keys: Bindings = msgspec.field(default_factory=default_bindings)
    tasks: dict[str, TaskKind] = msgspec.field(default_factory=dict[str, TaskKind])
    began: float | None = None
    echoes: list[Echo] = msgspec.field(default_factory=list[Echo])
    streaming: list[int] = msgspec.field(default_factory=list[int])
    cutter: Cutter = msgspec.field(default_factory=Cutter)
    calls: dict[str, int] = msgspec.field(default_factory=dict[str, int])
    timed: set[int] = msgspec.field(default_factory=set[int])
    shell_item: int = 0
    compaction_item: int = 0
    gaps: dict[int, Gap] = msgspec.field(default_factory=dict[int, Gap])
    parts: list[Part] = msgspec.field(default_factory=list[Part])
    undone: dict[int, int] = msgspec.field(default_factory=dict[int, int])
    search: Search | None = None
    block: int = 0
    reader: Reader | None = None
    terminal_title: str = ""
    editing: str = ""
    theme: str = "auto"
    second_step: int = 1
    last_tick: float = 0.0
    streamed_length: int = 0
    replaying: bool = False

    @property
    def shows_todo(self) -> bool:
        """Whether the todo list stands beside the editor: while something of it is open, and until its turn ends."""
        if not self.todo or self.todo_away:
            return False
        finishing = self.running and not self.todo_over  # all of it is done: it goes with the turn
        return self.todo_open or finishing or any(item.status in OPEN_STATES for item in self.todo)

    @property
    def running(self) -> bool:
        """Whether a task runs, so that Esc interrupts and Enter queues."""
        return bool(self.tasks)

    @property
    def animating(self) -> bool:
        """Whether something on the screen moves with time: the front-end sends `Tick` then, else it sleeps."""
        if self.is_asking:
            return self.hint is not None
        held = self.approvals.held_back or (self.held_picker is not None and self.contexts[0] == "empty")
        return bool(self.tasks or self.spinner.layers or self.timed or self.hint or held)

    @property
    def is_asking(self) -> bool:
        """Whether an open question is all that goes on: then nothing moves until the user answers."""
        return self.approvals.current is not None and not self.timed and "compaction" not in self.spinner.layers

    @property
    def newline_key(self) -> str:
        """The key that begins a new line in this terminal, as people read it; empty where none is bound."""
        return self.keys.newline_label(tells_shift_enter=self.tells_shift_enter)

    @property
    def looked_at(self) -> int:
        """The id of the item with the present match of the search, or of the block under the cursor; 0 for neither."""
        return self.search.current.id if self.search is not None and self.search.current else self.block

    @property
    def waits_for_command(self) -> bool:
        """Whether a call of the model waits for a command."""
        items = (self.transcript.items.get(place) for place in self.calls.values())
        return any(isinstance(item, ToolItem) and item.waits_for_command for item in items)

    @property
    def contexts(self) -> tuple[ContextName, ...]:
        """The stack of what keys go to, top first. An open dialog lets only scrolling and global keys through."""
        below: tuple[ContextName, ...] = ("transcript", "global")
        if self.approvals.current is not None:
            return ("feedback" if self.approvals.feedback is not None else "approval", *below)
        if self.picker is not None:
            return ("picker" if self.picker.question is None else "row", *below)
        if self.help_open:
            return ("help", *below)
        if self.reader is not None:
            return ("child", *below)
        if self.search is not None:
            return ("search" if self.search.typing else "found", *below)
        if self.block in self.transcript.items:
            return ("block", *below)
        if self.queue_selected and any(row.seq == self.queue_selected for row in self.queue):
            return ("queue", *below)
        editor: tuple[ContextName, ...] = ("prompt", *below)
        if not self.draft.text:
            editor = ("empty", *(("command",) if self.waits_for_command else ()), *editor)
        elif self.draft.text.startswith("!"):
            editor = ("shell", *editor)
        return ("completion", *editor) if self.completion is not None else editor
