"""The one way in for prompts (DESIGN section 2): on disk first, then a compaction where it is due, then the agent."""

from __future__ import annotations

from tenuto.core.agent.attachments import adopt_images
from tenuto.core.agent.overflow import run_preflight
from tenuto.core.executor import Executor
from tenuto.core.state.live import READ_ONLY, LiveSession
from tenuto.core.state.prompt import ensure_system_entry
from tenuto.core.state.windows import describe_sizes, forget_learned_window, where_learned
from tenuto.protocol.entry import DequeuedEntry, Origin, QueuedEntry, Terms
from tenuto.protocol.event import PromptReturnedEvent
from tenuto.protocol.operation import CompactSessionOperation, RunAgentOperation
from tenuto.protocol.part import ContentPart


async def submit_prompt(
    executor: Executor,
    live: LiveSession,
    parts: tuple[ContentPart, ...],
    *,
    origin: Origin = "typed",
    steer: bool = False,
    before: int = 0,
    terms: Terms | None = None,
) -> str:
    """Queue a prompt and see that it is worked on; return the submission that will serve it.

    While something runs the prompt only joins the queue: it is on disk, shown, and sent in order. Empty `parts`
    continue with what is queued (the user pressed Enter at a waiting queue). `before` is the seq of the queued prompt
    that it stands in front of (0: at the end), `terms` what is asked for its turn.
    """
    queued = None
    if live.session.is_read_only:
        _refuse(live, parts)
        return ""
    if parts:
        parts = adopt_images(live, parts)
        queued = live.session.append(QueuedEntry(parts=parts, origin=origin, steer=steer, before=before, terms=terms))
        live.publish_queue()
    running = executor.tasks.running(live.id)
    if running is not None:
        return running.submission_id
    with executor.holding(live):
        try:
            is_ready = await _is_ready(executor, live, queued)
        except BaseException:
            live.task.queue_waiting = bool(live.session.state.queue)  # the caller gets the reason, and has the text
            raise
        if is_ready and executor.tasks.running(live.id) is None and live.session.state.queue:
            return await executor.submit(RunAgentOperation(session_id=live.id))
    return ""


def _refuse(live: LiveSession, parts: tuple[ContentPart, ...]) -> None:
    """Hand a prompt back that nothing may be written for (R-066)."""
    live.task.last_outcome, live.task.last_error = "failed", READ_ONLY
    if parts:
        live.bus.publish(PromptReturnedEvent(session_id=live.id, parts=parts, reason=READ_ONLY))
    else:
        live.notify(READ_ONLY, "warning")


async def _is_ready(executor: Executor, live: LiveSession, queued: QueuedEntry | None) -> bool:
    """Compact if that is due, and say whether the prompt can be sent now; if not, it goes back into the editor."""
    await live.extensions.wait()
    if live.session.reading.system is None:
        await live.mcp.wait()
    ensure_system_entry(live)  # what is measured is the whole request, the first one too
    run_preflight(live)
    if live.is_compaction_due():
        operation = CompactSessionOperation(session_id=live.id, reason="threshold")
        finished = await executor.wait_for(await executor.submit(operation))
        if finished is not None and finished.outcome == "interrupted":
            _give_back(live, queued, "the compaction was cancelled; nothing was sent")
            return False
    if _is_over_window(live) and not (forget_learned_window(live) and not _is_over_window(live)):
        _give_back(
            live,
            queued,
            f"the prompt does not fit the window ({describe_sizes(live)}); shorten it or attach it as a file"
            f"{_room_to_make(live)}, or change to a model with a larger window with /model{where_learned(live)}",
        )
        return False
    return True


def _room_to_make(live: LiveSession) -> str:
    """Return what else helps where the prompt would fit an empty conversation."""
    size = live.measure()
    return ", or make room with /compact" if size.fixed + size.queued < live.budget().window else ""


def _is_over_window(live: LiveSession) -> bool:
    budget = live.budget()
    return budget.known and live.measure().tokens >= budget.window


def _give_back(live: LiveSession, queued: QueuedEntry | None, reason: str) -> None:
    """Take the prompt out of the queue and hand it to the editor."""
    live.task.last_outcome, live.task.last_error = "failed", reason
    if queued is not None and any(waiting.seq == queued.seq for waiting in live.session.state.queue):
        live.session.append(DequeuedEntry(target=queued.seq, reason="edited"))
        live.bus.publish(PromptReturnedEvent(session_id=live.id, parts=queued.parts, reason=reason))
    else:
        live.notify(reason, "warning")
    live.task.queue_waiting = bool(live.session.state.queue)
    live.publish_queue()
