"""Leaving a part of the conversation: the leaf moves, with or without notes on what is left (seed 003; DESIGN 3, 6).

The one way for `/tree`, `/rewind` and `/compact from`. Nothing is removed: what is left stays in the log as a branch,
`/tree` goes back to it and recall finds it. Nothing is appended before everything is there, so a cancel, or a process
that is killed meanwhile, leaves the session as it was.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec
from msgspec import UNSET

from tenuto.compaction.plan.entries import visible_entry
from tenuto.compaction.summary.branch import (
    LeftBranch,
    branch_entry,
    common_ancestor,
    digest_branch,
    leave_branch,
    length_for,
    room_for,
)
from tenuto.compaction.summary.summarise import Summariser, SummaryContext
from tenuto.compaction.summary.view import clip_to_tokens
from tenuto.compaction.ways.environment import CompactionEnvironment, Progress
from tenuto.core.compacting.compact import drop_pending
from tenuto.core.compacting.environment import bind_context
from tenuto.core.compacting.hooks import ask_before_move, notify_moved
from tenuto.core.compacting.undo import size_of
from tenuto.core.errors import MoveRefusedError, TaskFailedError, describe_failure
from tenuto.core.files_back import restore_files
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import LiveSession
from tenuto.core.state.reminders import changed_files_message
from tenuto.core.transcript import compaction_end, compaction_of_branch
from tenuto.protocol.compaction import RungError
from tenuto.protocol.entry import (
    MOVED_KIND,
    USER_ORIGINS,
    BranchEntry,
    BranchSummaryEntry,
    HeaderEntry,
    PinEntry,
    PlanEntry,
    SkillEntry,
    TodoEntry,
    UndoEntry,
    UnpinEntry,
    ViewEditEntry,
)
from tenuto.protocol.event import CompactionEndEvent, CompactionProgressEvent, CompactionStartEvent
from tenuto.protocol.hooks import SuppliedBranchSummary
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.operation import CompactFromOperation, MoveLeafOperation, Operation
from tenuto.protocol.part import ContentPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.session import Session
from tenuto.session.view.tree import newest_of_kind
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_change

_PATH_STATE = (CompactionEntry, ViewEditEntry, UndoEntry, PinEntry, UnpinEntry, SkillEntry, TodoEntry, PlanEntry)


class Destination(msgspec.Struct, frozen=True, kw_only=True):
    """`leaf` is the seq after which the conversation goes on (0: the root), `parts` what goes into the prompt."""

    leaf: int
    parts: tuple[ContentPart, ...] = ()


def find_destination(session: Session, seq: int) -> Destination:
    """Return where choosing the entry `seq` leads. Raises `TaskFailedError` when there is no such entry.

    A message of the user leads to what came before it, with its text to be sent again; everything else to itself, or
    to the end of its step.
    """
    entry = session.find(seq)
    if entry is None or isinstance(entry, HeaderEntry | BranchEntry):
        raise TaskFailedError(f"there is no entry {seq} to go to; /tree lists them")
    prompt = prompt_of(entry)
    if prompt is None:
        return Destination(leaf=session.end_of_step(seq))
    path = session.path_to(seq)
    before = path[-2].seq if len(path) > 1 else 0
    return Destination(leaf=session.end_of_step(before) if before else 0, parts=prompt.parts)


def prompt_of(entry: HistoryEvent) -> UserMessage | None:
    """Return `entry` if it is something that the user said: whoever goes back to that wants to change it."""
    return entry if isinstance(entry, UserMessage) and entry.origin in USER_ORIGINS else None


def is_present(session: Session, leaf: int) -> bool:
    """Say whether the conversation stands at `leaf` already: nothing that counts has come after it."""
    path, target = session.path(), session.path_to(leaf)
    ancestor = common_ancestor(path, target)
    return ancestor == (target[-1].seq if target else 0) and not any(
        _is_said(entry) or isinstance(entry, _PATH_STATE) for entry in path.since(ancestor + 1)
    )


def is_anything_left(session: Session, leaf: int) -> bool:
    """Say whether going to `leaf` leaves anything of the conversation behind."""
    path = session.path()
    ancestor = common_ancestor(path, session.path_to(leaf))
    return any(_is_said(entry) for entry in path.since(ancestor + 1))


def _is_said(entry: HistoryEvent) -> bool:
    """Say whether an entry is part of the conversation; what the harness tells the model beside it is not."""
    return visible_entry(entry) is not None and not isinstance(entry, DeveloperMessage)


async def write_notes(
    live: LiveSession, kept: Sequence[HistoryEvent], focus: str, progress: Progress
) -> BranchSummaryEntry:
    """Return notes on what the present path has and the path `kept` has not. Nothing is appended.

    What the calls cost is in the entry, or held where there is none in the end.
    """
    environment = bind_context(live, CompactionRequest(reason="branch", focus=focus), progress).environment
    try:
        branch, notes = await _summarise(live, kept, environment, focus)
    except BaseException:
        live.session.hold_usage(environment.spending.usage)
        raise
    return branch_entry(branch, notes, environment.spending.usage)


async def _summarise(
    live: LiveSession, kept: Sequence[HistoryEvent], environment: CompactionEnvironment, focus: str
) -> tuple[LeftBranch, str]:
    path, length = live.session.path(), length_for(live.budget().window)
    calibration, reserve = environment.current.size.calibration, live.settings.branch_summary.reserve_tokens
    failure = ""
    for model in await environment.summarisers():
        branch = leave_branch(path, kept, room_for(model.budget.window, calibration, reserve), environment.directory)
        context = SummaryContext(
            facts=model.model.facts,
            budget=model.budget,
            prompts=environment.prompts,
            focus=focus,
            constraints=environment.constraints,
            calibration=calibration,
        )
        summariser = Summariser(model.model.client, context, environment.progress)
        try:
            # Whether they are worth their length is for whoever asked for them: a short branch may have long notes.
            replaced = max(branch.tokens, 2 * length)
            notes = await summariser.summarise_entries(branch.read, environment.prompts.branch, length, replaced)
        except RungError as error:
            failure = str(error)
        else:
            return branch, notes
        finally:
            environment.spending.add(summariser.usage)
    if failure:
        live.notify(f"No model could write the notes ({failure}); they were made without one.", "warning")
    branch = leave_branch(path, kept, room_for(live.budget().window, calibration, reserve))
    return branch, digest_branch(branch, environment.session_data, length)


def tell_files_of_other_ways(live: LiveSession, since: int) -> None:
    """Tell the model which files are not what it saw on this path, because something was done to them elsewhere.

    `since` is the seq of the last entry that this path has in common with the one that was left.
    """
    seen = dict.fromkeys(_used(live.session.entries_after(since)), "")
    missing = set(seen)
    for entry in newest_of_kind(live.session.path(), ToolResultMessage, DeveloperMessage) if missing else ():
        for use in entry.files:
            if use.path in missing and use.sha256:
                seen[use.path] = use.sha256
                missing.discard(use.path)
        if not missing:
            break
    changed = live.reminders.changed_files.settle(seen)
    if changed:
        live.session.append(changed_files_message(changed))


def _used(entries: Iterable[HistoryEvent]) -> Iterable[str]:
    for entry in entries:
        if isinstance(entry, ToolResultMessage | DeveloperMessage):
            yield from (use.path for use in entry.files)


QUOTED = 60
"""Characters of a message by which the user knows it again."""


@dataclass(frozen=True, slots=True)
class PlannedMove:
    """A move that is ready to be written: where the leaf goes (0: the root), and the notes if there are any.

    With `files` the agent's edits since that entry are taken back as well (0: they are not).
    """

    leaf: int
    notes: BranchSummaryEntry | None = None
    files: int = 0


class LeafMove:
    """What all moves of the leaf share. `show` tells the front-ends the session again."""

    def __init__(self, live: LiveSession, operation: Operation, focus: str, show: Callable[[], None]) -> None:
        self._live = live
        self._submission_id = operation.submission_id
        self._focus = focus
        self._show = show

    async def prepare(self, leaf: int) -> PlannedMove:
        """Ask the extensions about a move without notes. Raises `MoveRefusedError`."""
        await self._ask(leaf, notes=False)
        return PlannedMove(leaf)

    async def prepare_with_notes(self, leaf: int) -> PlannedMove:
        """Ask the extensions, and write notes on what is left where none of them has. Raises `MoveRefusedError`."""
        live = self._live
        supplied = await self._ask(leaf, notes=True)
        kept = live.session.path_to(leaf)
        if supplied is not None:
            return PlannedMove(leaf, _take_supplied(live, kept, *supplied))
        return PlannedMove(leaf, await write_notes(live, kept, self._focus, self._progress))

    async def show_preparing(self, preparing: Awaitable[PlannedMove]) -> PlannedMove:
        """Let the user see it going on: a start, progress, and an end whatever goes wrong (R-016)."""
        live = self._live
        live.bus.publish(CompactionStartEvent(session_id=live.id, submission_id=self._submission_id, reason="branch"))
        try:
            return await preparing
        except asyncio.CancelledError:
            self._publish_failure("", aborted=True)
            raise
        except Exception as error:  # the task manager takes it
            self._publish_failure(describe_failure(error), aborted=isinstance(error, MoveRefusedError))
            raise

    def write(self, departure: PlannedMove, describe: Callable[[str], str]) -> None:
        """Move the leaf, put the notes there, and show the session as it is now.

        `describe` returns what the user is told, from the sizes of the next request before and after.
        """
        live, session = self._live, self._live.session
        before, old_leaf, notes = live.measure(), session.path()[-1].seq, departure.notes
        ancestor = common_ancestor(session.path(), session.path_to(departure.leaf))
        session.append(BranchEntry(parent=departure.leaf))
        session.close_open_calls()
        if notes is not None:
            notes = session.append(msgspec.structs.replace(notes, from_seq=old_leaf))
            live.bus.publish(compaction_end(live.id, compaction_of_branch(notes), self._submission_id))
        live.compaction.automatic.reset()
        live.compaction.checked_window = 0  # results on another branch may have been held against another window
        sizes = format_change(before.tokens, live.measure().tokens, rough=before.is_rough, short=False)
        live.notify(describe(f"{sizes} tokens"), kind=MOVED_KIND, keep=True)
        if departure.files:
            restore_files(live, departure.files)
        tell_files_of_other_ways(live, ancestor)
        self._show()
        notify_moved(live, old_leaf, departure.leaf if notes is None else notes.seq, notes)

    async def _ask(self, leaf: int, *, notes: bool) -> tuple[str, SuppliedBranchSummary] | None:
        live = self._live
        drop_pending(live)

        def asking(extension: str) -> None:
            if notes:
                self._progress(f"asking the extension {extension}", 0)

        return await ask_before_move(live, live.session.path(), live.session.path_to(leaf), notes=notes, asking=asking)

    def _progress(self, stage: str, tokens: int, text: str = "", /) -> None:
        self._live.bus.publish(
            CompactionProgressEvent(
                session_id=self._live.id,
                submission_id=self._submission_id,
                stage=stage,
                summary_tokens=tokens,
                text=text or UNSET,
            )
        )

    def _publish_failure(self, error: str, *, aborted: bool) -> None:
        live = self._live
        live.bus.publish(
            CompactionEndEvent(
                session_id=live.id,
                submission_id=self._submission_id,
                reason="branch",
                aborted=aborted,
                error=error or None,
                tokens_before=live.measure().tokens,
            )
        )


class MoveTask:
    """Serves one `MoveLeafOperation`: `/tree` and `/rewind`."""

    def __init__(self, live: LiveSession, operation: MoveLeafOperation, show: Callable[[], None]) -> None:
        self._live = live
        self._operation = operation
        self._leaving = LeafMove(live, operation, operation.focus or "", show)

    async def run(self) -> None:
        """Go there. Raises `TaskFailedError`, told, with nothing appended."""
        live, operation = self._live, self._operation
        try:
            destination = find_destination(live.session, operation.target)
        except TaskFailedError as error:
            live.notify(str(error), "error")
            raise
        if is_present(live.session, destination.leaf):
            if operation.files:
                restore_files(live, operation.target)
            return
        departure = await self._prepare(destination.leaf)
        if operation.files:
            departure = dataclasses.replace(departure, files=operation.target)
        live.task.queue_waiting = bool(live.session.state.queue)  # it was meant for another place
        self._leaving.write(departure, lambda sizes: self._describe(destination, departure, sizes))

    async def _prepare(self, leaf: int) -> PlannedMove:
        if self._operation.notes and is_anything_left(self._live.session, leaf):
            return await self._leaving.show_preparing(self._leaving.prepare_with_notes(leaf))
        try:
            return await self._leaving.prepare(leaf)
        except MoveRefusedError as error:
            self._live.notify(f"Not moved: {error}.", "warning")
            raise

    def _describe(self, destination: Destination, departure: PlannedMove, sizes: str) -> str:
        where = f"entry {destination.leaf}" if destination.leaf else "the beginning"
        if destination.parts:
            where = f"before “{shorten(text_of(destination.parts), QUOTED) or 'an image'}”"
        left = "Notes sum up the old branch, which is kept" if departure.notes is not None else "The old branch is kept"
        return f"Continuing from {where} ({sizes}). {left}; see /tree."


class CompactFromTask:
    """Serves one `CompactFromOperation`: notes in the place of a message and everything after it."""

    def __init__(self, live: LiveSession, operation: CompactFromOperation, show: Callable[[], None]) -> None:
        self._live = live
        self._target = operation.target
        self._leaving = LeafMove(live, operation, operation.focus or "", show)

    async def run(self) -> None:
        """Write notes on what is left and move the leaf. Raises `TaskFailedError` with nothing appended."""
        departure = await self._leaving.show_preparing(self._prepare())
        self._leaving.write(
            departure,
            lambda sizes: f"Replaced the later part by notes ({sizes}). /compact undo reverts this.",
        )

    async def _prepare(self) -> PlannedMove:
        """Return the move; the notes have to make the request smaller."""
        live = self._live
        departure = await self._leaving.prepare_with_notes(leaf_before(live.session, self._target))
        notes, path = departure.notes, live.session.path()
        assert notes is not None
        kept = live.session.path_to(departure.leaf).with_entry(msgspec.structs.replace(notes, seq=path[-1].seq + 2))
        before, after = live.measure().tokens, size_of(live, kept)
        if after >= before or after >= live.budget().window:
            live.session.hold_usage(notes.usage or Usage())
            raise TaskFailedError(
                f"the request would have ~{after:,} tokens instead of {before:,}: nothing was changed. /compact makes "
                "the older part smaller instead"
            )
        return departure


def leaf_before(session: Session, target: int) -> int:
    """Return the leaf before a message of the present path. Raises `TaskFailedError` for one that is not on it."""
    path = session.path()
    entry = path.find(target)
    if entry is None or isinstance(entry, ToolResultMessage) or visible_entry(entry) is None:
        raise TaskFailedError(f"entry {target} is no message of this conversation; /compact from lists them")
    before = path.up_to(target - 1)
    return before[-1].seq if before else 0


def _take_supplied(
    live: LiveSession, kept: Sequence[HistoryEvent], extension: str, supplied: SuppliedBranchSummary
) -> BranchSummaryEntry:
    """Return the notes of an extension as an entry; the lists of files are ours."""
    length = length_for(live.budget().window)
    branch = leave_branch(live.session.path(), kept, 0, str(live.session.cwd))
    entry = branch_entry(branch, clip_to_tokens(supplied.summary.strip(), length))
    return msgspec.structs.replace(entry, extension=supplied.details, from_extension=extension)
