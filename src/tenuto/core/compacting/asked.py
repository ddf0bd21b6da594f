"""A compaction that the model asks for with the `compact` tool: whether there is one, and the making at the step's end.

That nothing was done since the last one follows from the path alone, so it holds in a resumed session too.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.compaction.plan.plan import NothingToCompact
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.core.compacting.compact import run_compaction
from tenuto.core.compacting.environment import bind_context
from tenuto.core.compacting.strategies import choose_strategy
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import COMPACT_TOOL, LiveSession
from tenuto.protocol.message import (
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    ToolResultMessage,
    UserMessage,
)
from tenuto.session.view.tree import newest_of_kind
from tenuto.tool.run.context import NotNowError, ToolError

FAILED_KIND = "no compaction"
"""The kind of the note that tells the model that the compaction it asked for came to nothing."""
GRANTED = "The conversation will be compacted at the end of this step; then go on with the work."
NOT_OFFERED = (
    "compact is not among the tools of this session. It is compacted by itself when the context is nearly full; go on."
)
NOT_AGAIN = "A compaction is due at the end of this step already; once is enough."
TOO_SOON = "Nothing was done since the last compaction; go on with the work first."


async def ask_compaction(live: LiveSession, focus: str) -> str:
    """Note that the model wants a compaction and return what it is told.

    Raises `NotNowError` with why there is none, and `ToolError` where there never is one.
    """
    if not live.can_ask_compaction:
        raise ToolError(NOT_OFFERED)
    if live.compaction.asked is not None:
        raise NotNowError(NOT_AGAIN, "one is due already")
    path = live.session.path()
    if not is_work_done(path):
        raise NotNowError(TOO_SOON, "nothing new")
    await live.meter.texts.read(path)
    if type(await choose_strategy(live)) is LadderCompaction:  # what another one would do nobody knows beforehand
        plan = bind_context(live, CompactionRequest(reason="agent", focus=focus)).environment.plan(manual=True)
        if isinstance(plan, NothingToCompact):
            reason = plan.reason.partition("; /compact")[0]
            raise NotNowError(f"Not compacted: {reason}. Go on with the work.", plan.brief)
    live.compaction.asked = focus
    return GRANTED


def is_work_done(path: Sequence[HistoryEvent]) -> bool:
    """Say whether anything was done or said since the last compaction, or since one that came to nothing."""
    kinds = (CompactionEntry, DeveloperMessage, ToolResultMessage, UserMessage)
    for entry in newest_of_kind(path, *kinds):
        match entry:
            case CompactionEntry():
                return False
            case DeveloperMessage() if entry.kind == FAILED_KIND:
                return False
            case UserMessage():
                return True
            case ToolResultMessage() if entry.name != COMPACT_TOOL:
                return True
            case _:
                pass
    return False


async def compact_as_asked(live: LiveSession, submission_id: str) -> None:
    """Make the compaction that was asked for. One that comes to nothing has told the user; the model is told too."""
    focus, live.compaction.asked = live.compaction.asked or "", None
    try:
        await run_compaction(live, CompactionRequest(reason="agent", submission_id=submission_id, focus=focus))
    except TaskFailedError as error:
        text = f"The compaction that you asked for came to nothing ({error}). Go on with the work."
        live.session.append(DeveloperMessage(text=text, kind=FAILED_KIND))
