"""The state of a session, folded from its entries (DESIGN section 3).

Session state is read over the whole log, newest wins. Path state (todo, pins, loaded skills) is read along the
active path; a branch folds it again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec

from tenuto.protocol.entry import (
    ApprovalEntry,
    BranchSummaryEntry,
    DequeuedEntry,
    DirectoryEntry,
    Entry,
    HeaderEntry,
    LabelEntry,
    Mode,
    ModeEntry,
    ModelEntry,
    MovedEntry,
    PinEntry,
    PlanEntry,
    QueuedEntry,
    QueueEditEntry,
    ShellEntry,
    SkillEntry,
    TitleEntry,
    TodoEntry,
    TodoItem,
    UnpinEntry,
    UsageEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    FileUse,
    HistoryEvent,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import text_of
from tenuto.protocol.usage import Usage
from tenuto.session.view.tree import newest_of_kind, of_kind

_TEXT_LENGTH = 240
_BRANCH = " (git branch "
"""What stands before the branch in the first line that tells the model where it is (`core/state/reminders.py`)."""


class SessionState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """Everything that a session has beside its messages. Changed by `apply_entry` and `apply_path_entry` alone.

    `cwd` is empty until the session moved, `folder` what the file system calls its directory, `branch` the git branch
    that the model was told of last. `model` is empty and `mode` is `None` until an entry sets them. `plan` is the
    approved plan that the work follows, empty when there is none or its todo list is done. `skills` are the loaded
    ones, the newest last. `directories` count as workspace too. `usage` is the sum over all calls, `compactions` counts
    the undone ones too. `first_text` and `last_text` are the beginnings of the first and last user message; without
    one the first is a `!command`. Times are seconds since the epoch.
    """

    cwd: str = ""
    folder: str = ""
    branch: str = ""
    model: str = ""
    effort: str = ""
    own_model: tuple[str, str] | None = None
    """Model and effort that answer again when the turn is over; `None`: the present ones do."""
    mode: Mode | None = None
    title: str = ""
    todo: tuple[TodoItem, ...] = ()
    plan: str = ""
    pins: tuple[PinEntry, ...] = ()
    skills: tuple[SkillEntry, ...] = ()
    unloaded: tuple[SkillEntry, ...] = ()
    """What unloaded skills that are not loaded again, the newest last."""
    queue: tuple[QueuedEntry, ...] = ()
    approvals: tuple[ApprovalEntry, ...] = ()
    directories: tuple[str, ...] = ()
    files: dict[str, FileUse] = {}
    labels: dict[int, str] = {}
    usage: Usage = Usage()
    messages: int = 0
    steps: int = 0
    compactions: int = 0
    first_text: str = ""
    last_text: str = ""
    created: float = 0.0
    updated: float = 0.0


def apply_entry(state: SessionState, entry: HistoryEvent) -> None:
    """Fold one entry, wherever it stands in the tree, into the session state."""
    state.updated = max(state.updated, entry.ts)
    fold = _SESSION_FOLDS.get(type(entry))
    if fold is not None:
        fold(state, entry)


def apply_path_entry(state: SessionState, entry: HistoryEvent) -> None:
    """Fold one entry of the active path into the path state."""
    if isinstance(entry, TodoEntry):
        state.todo = entry.items
        if _is_done(entry):
            state.plan = ""
    elif isinstance(entry, PlanEntry):
        state.plan = entry.text
    elif isinstance(entry, PinEntry):
        state.pins = (*state.pins, entry)
    elif isinstance(entry, UnpinEntry):
        state.pins = tuple(pin for pin in state.pins if pin.seq != entry.target)
    elif isinstance(entry, SkillEntry):
        others = tuple(skill for skill in state.skills if skill.name != entry.name)
        state.skills = others if entry.unloads else (*others, entry)
        without = tuple(skill for skill in state.unloaded if skill.name != entry.name)
        state.unloaded = (*without, entry) if entry.unloads else without


def reset_path_state(state: SessionState, path: Sequence[HistoryEvent]) -> None:
    """Fold the path state again, after the leaf moved."""
    todo = next(newest_of_kind(path, TodoEntry), None)
    state.todo = todo.items if todo is not None else ()
    state.pins, state.skills, state.unloaded = (), (), ()
    state.plan = _approved_plan(path)
    for entry in of_kind(path, PinEntry, UnpinEntry, SkillEntry):
        apply_path_entry(state, entry)


def missing_in_copy(present: SessionState, copy: SessionState) -> Iterator[Entry]:
    """Yield what the copy of a path has to be told, so that there holds what holds in the session.

    Place, model, mode, directories and approvals are the session's and not the path's. What was changed behind the end
    of the path, or on a branch that was left, is in none of the copied lines: a stricter mode, an approval withdrawn.
    """
    if copy.cwd and copy.cwd != present.cwd:  # without one the copy's header says where it works
        yield MovedEntry(cwd=present.cwd, folder=present.folder)
    model, effort = present.own_model or (present.model, present.effort)
    if model and (model, effort) != (copy.own_model or (copy.model, copy.effort)):
        yield ModelEntry(model=model, effort=effort)
    if present.mode is not None and copy.mode != present.mode:
        yield ModeEntry(mode=present.mode)
    for place in copy.directories:
        if place not in present.directories:
            yield DirectoryEntry(path=place, withdrawn=True)
    for place in present.directories:
        if place not in copy.directories:
            yield DirectoryEntry(path=place)
    held, copied = ({_answer(entry) for entry in state.approvals} for state in (present, copy))
    for entry in copy.approvals:
        if _answer(entry) not in held:
            yield msgspec.structs.replace(entry, withdrawn=True)
    for entry in present.approvals:
        if _answer(entry) not in copied:
            yield entry


def _approved_plan(path: Sequence[HistoryEvent]) -> str:
    """Return the newest approved plan, unless a todo list was done after it."""
    for entry in newest_of_kind(path, PlanEntry, TodoEntry):
        if isinstance(entry, PlanEntry):
            return entry.text
        if _is_done(entry):
            return ""
    return ""


def _is_done(todo: TodoEntry) -> bool:
    return bool(todo.items) and all(item.status in {"done", "cancelled"} for item in todo.items)


def _header(state: SessionState, entry: HeaderEntry) -> None:
    state.created = state.created or entry.ts
    state.folder = state.folder or entry.folder


def _moved(state: SessionState, entry: MovedEntry) -> None:
    state.cwd, state.folder = entry.cwd, entry.folder


def _model(state: SessionState, entry: ModelEntry) -> None:
    if not entry.for_turn:
        state.own_model = None
    elif state.own_model is None:
        state.own_model = (state.model, state.effort)
    state.model, state.effort = entry.model, entry.effort


def _mode(state: SessionState, entry: ModeEntry) -> None:
    state.mode = entry.mode


def _title(state: SessionState, entry: TitleEntry) -> None:
    state.title = entry.title


def _approval(state: SessionState, entry: ApprovalEntry) -> None:
    others = tuple(known for known in state.approvals if _answer(known) != _answer(entry))
    state.approvals = others if entry.withdrawn else (*others, entry)


def _answer(entry: ApprovalEntry) -> tuple[str, str, str, str]:
    """Return what makes two approvals the same one."""
    return entry.tool, entry.pattern, entry.form, entry.effect


def _directory(state: SessionState, entry: DirectoryEntry) -> None:
    others = tuple(known for known in state.directories if known != entry.path)
    state.directories = others if entry.withdrawn else (*others, entry.path)


def _label(state: SessionState, entry: LabelEntry) -> None:
    if entry.text:
        state.labels[entry.target] = entry.text
    else:
        state.labels.pop(entry.target, None)


def _queued(state: SessionState, entry: QueuedEntry) -> None:
    state.queue = _placed(state.queue, entry, entry.before)


def _dequeued(state: SessionState, entry: DequeuedEntry) -> None:
    _unqueue(state, entry.target)


def _queue_edited(state: SessionState, entry: QueueEditEntry) -> None:
    present = next((queued for queued in state.queue if queued.seq == entry.target), None)
    if present is None:
        return
    changed = present if entry.steer is None else msgspec.structs.replace(present, steer=entry.steer)
    if entry.before in (None, entry.target):
        state.queue = tuple(changed if queued is present else queued for queued in state.queue)
    else:
        others = tuple(queued for queued in state.queue if queued is not present)
        state.queue = _placed(others, changed, entry.before or 0)


def _placed(queue: tuple[QueuedEntry, ...], entry: QueuedEntry, before: int) -> tuple[QueuedEntry, ...]:
    """Return the queue with an entry in front of the one with the seq `before`, or at the end."""
    place = next((place for place, queued in enumerate(queue) if before and queued.seq == before), len(queue))
    return (*queue[:place], entry, *queue[place:])


def _unqueue(state: SessionState, seq: int) -> None:
    state.queue = tuple(queued for queued in state.queue if queued.seq != seq)


def _user(state: SessionState, entry: UserMessage) -> None:
    is_first = not state.messages
    state.messages += 1
    if entry.from_queued:
        _unqueue(state, entry.from_queued)
    text = text_of(entry.parts)[:_TEXT_LENGTH]
    if is_first or not state.first_text:
        state.first_text = text or state.first_text
    state.last_text = text


def _shell(state: SessionState, entry: ShellEntry) -> None:
    """A session that has nothing but commands of the user's is known by the first of them."""
    sign = "!!" if entry.excluded else "!"
    state.first_text = state.first_text or f"{sign}{entry.command}"[:_TEXT_LENGTH]


def _assistant(state: SessionState, entry: AssistantMessage) -> None:
    state.messages += 1
    state.steps += 1
    _cost(state, entry)


def _cost(state: SessionState, entry: AssistantMessage | UsageEntry | CompactionEntry | BranchSummaryEntry) -> None:
    if entry.usage is not None:
        state.usage += entry.usage


def _compaction(state: SessionState, entry: CompactionEntry) -> None:
    state.compactions += 1
    _cost(state, entry)


def _files(state: SessionState, entry: ToolResultMessage | DeveloperMessage) -> None:
    for use in entry.files:
        state.files[use.path] = use


def _told(state: SessionState, entry: DeveloperMessage) -> None:
    _files(state, entry)
    if entry.kind == "environment":
        branch = entry.text.partition("\n")[0].rpartition(_BRANCH)
        state.branch = branch[2].removesuffix(")") if branch[1] else ""


_SESSION_FOLDS: dict[type[msgspec.Struct], Callable[[SessionState, Any], None]] = {
    HeaderEntry: _header,
    ModelEntry: _model,
    MovedEntry: _moved,
    ModeEntry: _mode,
    TitleEntry: _title,
    ApprovalEntry: _approval,
    DirectoryEntry: _directory,
    LabelEntry: _label,
    QueuedEntry: _queued,
    DequeuedEntry: _dequeued,
    QueueEditEntry: _queue_edited,
    UserMessage: _user,
    ShellEntry: _shell,
    AssistantMessage: _assistant,
    UsageEntry: _cost,
    CompactionEntry: _compaction,
    BranchSummaryEntry: _cost,
    ToolResultMessage: _files,
    DeveloperMessage: _told,
}
