"""A provider's own compaction in a session: taken over when the server made it by itself, given up when it is refused.

Whether the provider reads its items again is up to it: another account, key or gateway may not (R-051). The log has the
history, so the session goes on from that.
"""

from __future__ import annotations

import msgspec

from tenuto.compaction.plan.entries import active_compaction
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.ways.remote import remote_outcome
from tenuto.compaction.ways.validate import evaluate
from tenuto.core.compacting.environment import bind_context
from tenuto.core.errors import TaskFailedError
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import LiveSession
from tenuto.core.transcript import compaction_end
from tenuto.protocol.entry import UndoEntry
from tenuto.protocol.message import AssistantMessage
from tenuto.protocol.model import CompactedItems, ModelError, ModelRequest


def adopt_compaction(
    live: LiveSession, submission_id: str, answer: AssistantMessage, compacted: CompactedItems
) -> None:
    """Write down what the server compacted while it answered: everything before this answer.

    Where that cannot be written the history goes on being sent whole, which the server takes as well.
    """
    context = bind_context(live, CompactionRequest(reason="threshold"))
    plan = context.environment.plan(first_kept=answer.seq)
    if not isinstance(plan, CompactionPlan):
        return
    proposal = evaluate(remote_outcome(context.environment, plan, compacted), context.environment.current)
    sent = round(plan.size.estimate * plan.size.calibration)  # the server may have counted the smaller context already
    proposal = msgspec.structs.replace(proposal, tokens_before=max(sent, proposal.tokens_before))
    stored = live.session.append(proposal.to_entry("threshold"))
    live.compaction.automatic.note_done(proposal.tokens_before, proposal.trigger, manual=False)
    live.bus.publish(compaction_end(live.id, stored, submission_id))
    live.publish_usage()


def refuses_items(live: LiveSession, error: ModelError, request: ModelRequest) -> bool:
    """Say whether a request was refused because of a provider's compaction in it.

    A refusal of encrypted content may mean reasoning as well: that is left out first, and what is refused without it
    is the compaction.
    """
    compaction = active_compaction(live.session.path(), live.facts.id)
    if compaction is None or compaction.provider_items is None:
        return False
    if error.kind == "bad_thinking":
        return not request.thinking
    return error.kind in {"invalid", "not_found"} and "compact" in error.text.lower()


async def give_up_items(live: LiveSession, submission_id: str, error: ModelError) -> None:
    """Go on from the history, compacted here if it is too long for the window. Raises `ModelError`, what was refused.

    The provider is not asked for another compaction in this process, so that it cannot go round in circles.
    """
    live.compaction.items_refused = True
    while True:
        compaction = active_compaction(live.session.path(), live.facts.id)
        if compaction is None or compaction.provider_items is None:
            break
        live.session.append(UndoEntry(target=compaction.seq))
    live.notify(
        f"{live.facts.provider} did not read its own compaction again ({error}). The session goes on from the history.",
        "warning",
        keep=True,
    )
    live.publish_usage()
    if live.measure().tokens <= live.budget().trigger or not live.settings.compaction.enabled:
        return
    from tenuto.core.compacting.compact import run_compaction

    try:
        await run_compaction(live, CompactionRequest(reason="threshold", submission_id=submission_id, will_retry=True))
    except TaskFailedError as failure:
        if live.measure().tokens >= live.budget().window:
            raise error from failure
