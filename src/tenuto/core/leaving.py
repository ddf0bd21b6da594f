"""`/compact from`: the leaf moves to what came before a message, and notes stand for what is left (DESIGN section 6).

Nothing is removed: what is left stays in the log as a branch, recall finds it, and undo goes back to it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import msgspec

from tenuto.compaction.branch import (
    LeftBranch,
    branch_entry,
    digest_branch,
    leave_branch,
    length_for,
    room_for,
)
from tenuto.compaction.entries import visible_entry
from tenuto.compaction.environment import CompactionEnvironment
from tenuto.compaction.errors import RungError
from tenuto.compaction.summarise import Summariser, SummaryContext
from tenuto.core.compact import publish_failure
from tenuto.core.environment import bind_context
from tenuto.core.errors import TaskFailedError, describe_failure
from tenuto.core.live import LiveSession
from tenuto.core.replay import compaction_end, compaction_of_branch
from tenuto.core.undo import NOTICE_KIND, size_of
from tenuto.protocol.entry import BranchEntry, BranchSummaryEntry
from tenuto.protocol.event import CompactionProgressEvent, CompactionStartEvent
from tenuto.protocol.message import ToolResultMessage
from tenuto.protocol.operation import CompactFromOperation, CompactSessionOperation
from tenuto.session.path import EntryPath


class LeavingTask:
    """Serves one `CompactFromOperation`. `show` tells the front-ends the session anew."""

    def __init__(self, live: LiveSession, operation: CompactFromOperation, show: Callable[[], None]) -> None:
        self._live = live
        self._operation = operation
        self._show = show
        self._as_compaction = CompactSessionOperation(
            session_id=live.id, submission_id=operation.submission_id, focus=operation.focus
        )

    async def run(self) -> None:
        """Write notes on what is left and move the leaf. Raises `TaskFailedError` with nothing appended."""
        live, operation = self._live, self._as_compaction
        if live.pending is not None:
            live.pending.drop()
        live.bus.publish(
            CompactionStartEvent(session_id=live.id, submission_id=operation.submission_id, reason=operation.reason)
        )
        try:
            parent, entry = await self._propose()
        except asyncio.CancelledError:
            publish_failure(live, operation, "", aborted=True)
            raise
        except Exception as error:  # a start has its end whatever went wrong; the task manager takes the error
            publish_failure(live, operation, describe_failure(error), aborted=False)
            raise
        self._write(parent, entry)

    async def _propose(self) -> tuple[int, BranchSummaryEntry]:
        """Return the entry to go back to and the notes; they have to make the request smaller."""
        live = self._live
        path = live.session.path()
        kept = path_before(live, self._operation.target)
        environment = bind_context(live, "manual", self._progress, focus=self._operation.focus or "").environment
        length = length_for(live.budget().window)
        try:
            branch, notes = await self._summarise(kept, environment, length)
        except BaseException:
            live.session.hold_usage(environment.spending.usage)
            raise
        entry = branch_entry(branch, notes, environment.spending.usage)
        before = live.measure().tokens
        after = size_of(live, kept.with_entry(msgspec.structs.replace(entry, seq=path[-1].seq + 2)))
        if after >= before or after >= live.budget().window:
            live.session.hold_usage(environment.spending.usage)
            raise TaskFailedError(
                f"the request would have ~{after:,} tokens instead of {before:,}: nothing was changed. /compact makes "
                "the older part smaller instead"
            )
        return branch.ancestor, entry

    async def _summarise(
        self, kept: EntryPath, environment: CompactionEnvironment, length: int
    ) -> tuple[LeftBranch, str]:
        """Return notes by the first model that can write them, else from the session's data."""
        live, path = self._live, self._live.session.path()
        calibration = environment.standing.size.calibration
        failure = ""
        for model in await environment.summarisers():
            branch = leave_branch(path, kept, room_for(model.budget.window, calibration))
            context = SummaryContext(
                facts=model.model.facts,
                budget=model.budget,
                prompts=environment.prompts,
                focus=self._operation.focus or "",
                constraints=environment.constraints,
                calibration=calibration,
            )
            summariser = Summariser(model.model.client, context, environment.progress)
            try:
                notes = await summariser.summarise_entries(
                    branch.read, environment.prompts.branch, length, branch.tokens
                )
            except RungError as error:
                failure = str(error)
            else:
                return branch, notes
            finally:
                environment.spending.add(summariser.usage)
        if failure:
            live.notify(f"No model could write the notes ({failure}); they were made without one.", "warning")
        branch = leave_branch(path, kept, room_for(live.budget().window, calibration))
        return branch, digest_branch(branch, environment.surroundings, length)

    def _write(self, parent: int, entry: BranchSummaryEntry) -> None:
        """Move the leaf, put the notes there, and show the session as it is now."""
        live = self._live
        before = live.measure().tokens
        live.session.append(BranchEntry(parent=parent))
        stored = live.session.append(entry)
        live.automatic.reset()
        after = live.measure().tokens
        text = (
            f"Notes stand for the later part: {before:,} → ~{after:,} tokens in the next request. /compact undo goes "
            "back to it."
        )
        live.bus.publish(compaction_end(live.id, compaction_of_branch(stored), self._operation.submission_id))
        live.notify(text, kind=NOTICE_KIND, keep=True)
        self._show()

    def _progress(self, stage: str, tokens: int) -> None:
        self._live.bus.publish(
            CompactionProgressEvent(
                session_id=self._live.id,
                submission_id=self._operation.submission_id,
                stage=stage,
                summary_tokens=tokens,
            )
        )


def path_before(live: LiveSession, target: int) -> EntryPath:
    """Return the path up to the entry before `target`. Raises `TaskFailedError` for one that is not on it."""
    path = live.session.path()
    entry = path.find(target)
    if entry is None or isinstance(entry, ToolResultMessage) or visible_entry(entry) is None:
        raise TaskFailedError(f"entry {target} is no message of this conversation; /compact from lists them")
    return path.up_to(target - 1)
