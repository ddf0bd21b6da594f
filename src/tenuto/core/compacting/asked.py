"""A compaction that the model (with the `compact` tool), a hook or an extension asks for, made at a step's end.

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
from tenuto.core.state.compaction_state import Asked, CompactionRequest
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
    if not is_work_done(live.session.path()):
        raise NotNowError(TOO_SOON, "nothing new")
    if needless := await _why_needless(live, focus):
        raise NotNowError(f"Not compacted: {_reason(needless)}. Go on with the work.", needless.brief)
    live.compaction.asked = Asked(focus)
    return GRANTED


async def _why_needless(live: LiveSession, focus: str) -> NothingToCompact | None:
    """Return why there is nothing to compact, `None` where there is."""
    await live.meter.texts.read(live.session.path())
    if type(await choose_strategy(live)) is not LadderCompaction:
        return None  # what another one would do nobody knows beforehand
    plan = bind_context(live, CompactionRequest(reason="agent", focus=focus)).environment.plan(manual=True)
    return plan if isinstance(plan, NothingToCompact) else None


def _reason(needless: NothingToCompact) -> str:
    return needless.reason.partition("; /compact")[0]


async def grant_wishes(live: LiveSession) -> None:
    """See what hooks and extensions ask for: the first of them is made next, unless there is nothing to compact."""
    wishes, live.compaction.wishes = live.compaction.wishes, []
    if not wishes or live.compaction.asked is not None or not is_work_done(live.session.path()):
        return
    wish = wishes[0]
    if needless := await _why_needless(live, wish.focus):
        live.notify_once(f"wish {wish.by}", f"{_begin(wish.by)} asked for a compaction: {_reason(needless)}.")
        return
    live.notify(f"{_begin(wish.by)} asked for a compaction.", keep=True)
    live.compaction.asked = Asked(wish.focus, wish.by)


def _begin(name: str) -> str:
    return name[:1].upper() + name[1:]


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
    asked, live.compaction.asked = live.compaction.asked or Asked(), None
    try:
        await run_compaction(live, CompactionRequest(reason="agent", submission_id=submission_id, focus=asked.focus))
    except TaskFailedError as error:
        text = f"The compaction that {asked.by or 'you'} asked for came to nothing ({error}). Go on with the work."
        live.session.append(DeveloperMessage(text=text, kind=FAILED_KIND))
