"""Notes on a part of the conversation that is left: by the first model that can write them, else from data."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.compaction.branch import LeftBranch, branch_entry, digest_branch, leave_branch, length_for, room_for
from tenuto.compaction.environment import CompactionEnvironment, Progress
from tenuto.compaction.errors import RungError
from tenuto.compaction.summarise import Summariser, SummaryContext
from tenuto.core.environment import bind_context
from tenuto.core.live import LiveSession
from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.message import HistoryEvent


async def write_notes(
    live: LiveSession, kept: Sequence[HistoryEvent], focus: str, progress: Progress
) -> BranchSummaryEntry:
    """Return notes on what the present path has and the path `kept` has not. Nothing is appended.

    What the calls cost is in the entry, or held where there is none in the end.
    """
    environment = bind_context(live, "branch", progress, focus=focus).environment
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
    calibration, reserve = environment.standing.size.calibration, live.settings.branch_summary.reserve_tokens
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
    return branch, digest_branch(branch, environment.surroundings, length)
