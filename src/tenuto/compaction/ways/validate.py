"""The gate that every proposal passes before it is written (DESIGN sections 5 and 6). Pure."""

from __future__ import annotations

import sys
from collections.abc import Sequence

import msgspec

from tenuto.compaction.measure.budget import Budget
from tenuto.compaction.measure.counted import SentThinking
from tenuto.compaction.measure.meter import ContextSize, Meter
from tenuto.compaction.plan.entries import active_compaction, is_complete, position_of, valid_cuts, visible_items
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    SystemMessage,
    ToolResultMessage,
)
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import OpaquePart, TextPart, text_of
from tenuto.session.view.projection import edit_message, project


class CurrentContext(msgspec.Struct, frozen=True, kw_only=True):
    """The context as it is now. `path` is the entries from root to leaf, `view` the live view, `size` its measure."""

    path: Sequence[HistoryEvent]
    view: Sequence[Message]
    size: ContextSize
    budget: Budget
    meter: Meter
    model_id: str


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """An outcome with what it comes to, in tokens. `trigger` is what the context should come under.

    `gain` is by how much it makes the context smaller: estimate against estimate. `rough` says that `tokens_before` is
    an estimate; `tokens_after` always is one.
    """

    outcome: CompactionOutcome
    tokens_before: int
    tokens_after: int
    gain: int
    trigger: int
    rough: bool = False

    def to_entry(
        self, reason: CompactionReason, *, focus: str = "", duration: float = 0.0, system_seq: int = 0
    ) -> CompactionEntry:
        """Return the entry to append; `duration` is seconds, `system_seq` the `system` entry that came with it."""
        outcome = self.outcome
        return CompactionEntry(
            summary=outcome.summary,
            first_kept_index=outcome.first_kept_index,
            replacement=outcome.replacement,
            edits=outcome.edits,
            system_seq=system_seq,
            tokens_before=self.tokens_before,
            rough=self.rough,
            tokens_after=self.tokens_after,
            trigger=self.trigger,
            reason=reason,
            rung=outcome.rung,
            focus=focus,
            details=outcome.details,
            provider_items=outcome.provider_items,
            from_extension=outcome.from_extension,
            usage=outcome.usage,
            duration=duration,
        )


def evaluate(outcome: CompactionOutcome, current: CurrentContext) -> Proposal:
    """Return what the next request would come to.

    What it has now may have been counted, what it will have can only be estimated: so the gain is the difference of
    two estimates, and the number that is told is never more than what there is now.
    """
    outcome = _keep_items(outcome, current)
    size = current.size
    before = _estimate(current.view, current, size.thinking)
    thinking = size.thinking.before(_first_change(outcome))
    after = _estimate(view_after(outcome, current), current, thinking)
    told = after if after < size.tokens or not before else size.tokens * after // before
    return Proposal(
        outcome=outcome,
        tokens_before=size.tokens,
        tokens_after=told,
        gain=before - after,
        trigger=current.budget.trigger,
        rough=size.is_rough,
    )


def _estimate(view: Sequence[Message], current: CurrentContext, thinking: SentThinking) -> int:
    """Return the size of the request that sends a view, and what is queued."""
    size = current.size
    messages = _without_system(view)
    return size.fixed + size.queued + current.meter.tokens_of(messages, current.model_id, thinking)


def _first_change(outcome: CompactionOutcome) -> int:
    """Return the seq from which on the view is another one: thinking from there on is not sent back."""
    if outcome.first_kept_index:
        return 0
    return min((edit.target for edit in outcome.edits), default=sys.maxsize)


def _keep_items(outcome: CompactionOutcome, current: CurrentContext) -> CompactionOutcome:
    """Return the outcome; one that keeps a provider's items of the present view says whose they are.

    So they are sent to nobody else, whatever strategy kept them.
    """
    previous = active_compaction(current.path, current.model_id)
    if outcome.provider_items is not None or previous is None or previous.provider_items is None:
        return outcome
    kept = any(
        isinstance(part, OpaquePart)
        for message in outcome.replacement
        if isinstance(message, AssistantMessage)
        for part in message.parts
    )
    return msgspec.structs.replace(outcome, provider_items=previous.provider_items) if kept else outcome


def view_after(outcome: CompactionOutcome, current: CurrentContext) -> list[Message]:
    """Return the view that the outcome leads to, system prompt first."""
    first = outcome.first_kept_index
    previous = active_compaction(current.path, current.model_id)
    if first and previous is not None and first < previous.first_kept_index:
        return project(_with_entry(outcome, current.path), current.model_id)
    system = list(current.view[:1]) if current.view and isinstance(current.view[0], SystemMessage) else []
    messages = current.view[len(system) :]
    if first:
        start = next((index for index, message in enumerate(messages) if message.seq >= first), len(messages))
        messages = [*outcome.replacement, *messages[start:]]
    edits = {edit.target: edit for edit in outcome.edits}
    whole = _originals(current.path, set(edits))
    shown = (
        edit_message(whole.get(message.seq, message), edits[message.seq]) if message.seq in edits else message
        for message in messages
    )
    return [*system, *(message for message in shown if message is not None)]


def find_flaw(proposal: Proposal, current: CurrentContext) -> str:
    """Return why a proposal must not be written, as one line for a user; empty when it may.

    It has to be smaller than what there is, to begin its tail where a cut may fall, and to leave every call with its
    result (R-004, R-048).
    """
    flaw = _find_misfit(proposal.outcome, current)
    if flaw or proposal.gain > 0:
        return flaw
    return (
        f"it would not make the context smaller (~{proposal.tokens_before:,} tokens now, "
        f"~{proposal.tokens_before - proposal.gain:,} afterwards)"
    )


def _find_misfit(outcome: CompactionOutcome, current: CurrentContext) -> str:
    """Return why the outcome does not fit this history, whatever its size."""
    if any(edit.target < 1 for edit in outcome.edits):
        return "an edit names no entry"
    silenced = _silenced_by(outcome, current)
    if silenced:
        return f"an edit would take the words of entry {silenced} away; only results can be hidden or shortened"
    if not outcome.first_kept_index:
        return "" if outcome.edits else "it changes nothing"
    if not any(map(_says_something, outcome.replacement)):
        return "nothing would stand for the summarised part"
    if has_open_calls(outcome.replacement):
        return "the messages that replace the history contain a call without its result, or a result without its call"
    if not is_valid_cut(outcome.first_kept_index, current):
        return f"entry {outcome.first_kept_index} is not a place where the conversation can be cut"
    return ""


def _silenced_by(outcome: CompactionOutcome, current: CurrentContext) -> int:
    """Return the seq of a message, other than a result, that an edit shows with other words; 0 when there is none."""
    edits = {edit.target: edit for edit in outcome.edits}
    for message in current.view if edits else ():
        edit = edits.get(message.seq)
        if edit is None or isinstance(message, ToolResultMessage):
            continue
        shown = edit_message(message, edit)
        if shown is None or _words(shown) != _words(message):
            return message.seq
    return 0


def _words(message: Message) -> str:
    return message.text if isinstance(message, SystemMessage | DeveloperMessage) else text_of(message.parts)


def _says_something(message: Message) -> bool:
    """Say whether there is anything in a message: text, or a part that is not text."""
    if isinstance(message, SystemMessage | DeveloperMessage):
        return bool(message.text.strip())
    return any(not isinstance(part, TextPart) or part.text.strip() for part in message.parts)


def has_open_calls(messages: Sequence[Message]) -> bool:
    """Say whether a call lacks its result, or a result its call."""
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting.update(call.id for call in message.tool_calls)
        elif isinstance(message, ToolResultMessage):
            if message.call_id not in waiting:
                return True
            waiting.discard(message.call_id)
    return bool(waiting)


def is_valid_cut(seq: int, current: CurrentContext) -> bool:
    """Say whether a kept tail may begin with entry `seq`, or behind everything.

    A larger one than that would keep what is said later out of the view as well.
    """
    path = current.path
    if not path or seq > path[-1].seq + 1:
        return False
    previous = active_compaction(path, current.model_id)
    start = previous.first_kept_index if previous is not None else 0
    if seq < start:
        view = {message.seq: message for message in project(path[: position_of(path, start)]) if message.seq}
        start = 0
    else:
        view = {message.seq: message for message in current.view if message.seq}
    entries = [item.entry for item in visible_items(path[position_of(path, start) :], view, current.meter)]
    if not entries:
        return False
    if seq > entries[-1].seq:
        return is_complete(entries)
    return any(entries[index].seq == seq for index in valid_cuts(entries))


def _without_system(view: Sequence[Message]) -> Sequence[Message]:
    return view[1:] if view and isinstance(view[0], SystemMessage) else view


def _originals(path: Sequence[HistoryEvent], seqs: set[int]) -> dict[int, Message]:
    """Return the results that are to be edited as they are in the log, found from the end of the path."""
    found: dict[int, Message] = {}
    for entry in reversed(path) if seqs else ():
        if entry.seq in seqs and isinstance(entry, ToolResultMessage):
            found[entry.seq] = entry
            if len(found) == len(seqs):
                break
    return found


def _with_entry(outcome: CompactionOutcome, path: Sequence[HistoryEvent]) -> list[HistoryEvent]:
    entry = CompactionEntry(
        seq=path[-1].seq + 1,
        first_kept_index=outcome.first_kept_index,
        replacement=outcome.replacement,
        summary=outcome.summary,
        edits=outcome.edits,
    )
    return [*path, entry]
