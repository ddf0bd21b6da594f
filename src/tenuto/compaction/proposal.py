"""What a compaction proposes, and the gate that every proposal passes before it is written (DESIGN sections 5, 6)."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from tenuto.compaction.digest import digest, list_room
from tenuto.compaction.entries import calls_of, is_complete, valid_cuts
from tenuto.compaction.files import with_file_lists
from tenuto.compaction.meter import estimate_message
from tenuto.compaction.plan import CompactionPlan
from tenuto.compaction.prompts import Prompts
from tenuto.compaction.serialize import SEPARATOR, serialize_blocks
from tenuto.compaction.summary import IDENTIFIER_REACH, add_identifiers, missing_identifiers, shorten
from tenuto.compaction.view import Surroundings, build_replacement
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionDetails,
    CompactionEntry,
    CompactionReasonName,
    Message,
    ToolResultMessage,
)
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import estimate_text

_LATEST_ENTRIES = 12
"""Entries at the end of the summarised part whose exact names are looked for in the summary."""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A compaction that is ready to be written. `rung` names how the summary was made; sizes are tokens.

    `trigger` is what the context should come under.
    """

    summary: str
    replacement: tuple[Message, ...]
    first_kept_index: int
    edits: tuple[ViewEdit, ...]
    details: CompactionDetails
    usage: Usage | None
    rung: str
    tokens_before: int
    tokens_after: int
    trigger: int

    def to_entry(
        self, reason: CompactionReasonName, *, focus: str = "", duration: float = 0.0, system_seq: int = 0
    ) -> CompactionEntry:
        """Return the entry to append; `duration` is seconds, `system_seq` the `system` entry that came with it."""
        return CompactionEntry(
            summary=self.summary,
            first_kept_index=self.first_kept_index,
            replacement=self.replacement,
            edits=self.edits,
            system_seq=system_seq,
            tokens_before=self.tokens_before,
            tokens_after=self.tokens_after,
            trigger=self.trigger,
            reason=reason,
            rung=self.rung,
            focus=focus,
            details=self.details,
            usage=self.usage,
            duration=duration,
        )


def propose_summary(
    plan: CompactionPlan, summary: str, surroundings: Surroundings, prompts: Prompts, usage: Usage | None
) -> Proposal:
    """Return the proposal of a model's accepted summary: exact names and file lists are added to it from data."""
    limit = plan.allowance.summary
    names = _missing_names(plan, summary, limit // 5)
    room = limit - sum(estimate_text(name) + 2 for name in names)
    text = add_identifiers(shorten(summary, room), names)
    text = with_file_lists(text, plan.file_operations, list_room(plan, surroundings))
    return _propose(plan, text, surroundings, prompts, usage=usage, rung="serialised")


def propose_digest(
    plan: CompactionPlan, surroundings: Surroundings, prompts: Prompts, usage: Usage | None = None
) -> Proposal:
    """Return the proposal that needs no model (rung 7); `usage` is what failed attempts cost."""
    return _propose(plan, digest(plan, surroundings), surroundings, prompts, usage=usage, rung="digest")


def _propose(
    plan: CompactionPlan,
    summary: str,
    surroundings: Surroundings,
    prompts: Prompts,
    *,
    usage: Usage | None,
    rung: str,
) -> Proposal:
    replacement = build_replacement(plan, summary, surroundings, prompts)
    estimated = sum(map(estimate_message, replacement)) + plan.kept_tokens
    return Proposal(
        summary=summary,
        replacement=replacement,
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=plan.file_operations.details(),
        usage=usage,
        rung=rung,
        tokens_before=plan.tokens_before,
        tokens_after=plan.size.fixed + plan.size.queued + round(estimated * plan.size.calibration),
        trigger=plan.budget.trigger,
    )


def _missing_names(plan: CompactionPlan, summary: str, limit: int) -> list[str]:
    """Return exact names of the latest summarised part that neither the summary nor the kept tail shows."""
    summarised = (*plan.history, *plan.turn_prefix)
    latest = SEPARATOR.join(serialize_blocks(summarised[-_LATEST_ENTRIES:]))[-IDENTIFIER_REACH:]
    files = "\n".join((*plan.file_operations.read, *plan.file_operations.modified))
    kept = SEPARATOR.join(serialize_blocks(plan.kept))
    names: list[str] = []
    for name in missing_identifiers(latest, (summary, files, kept)):
        limit -= estimate_text(name) + 2
        if limit < 0:
            break
        names.append(name)
    return names


def find_flaw(proposal: Proposal, plan: CompactionPlan) -> str:
    """Return why a proposal must not be written, as one line for a person; empty when it may.

    It has to be smaller than what there is, to begin its tail where a cut may fall, and to leave every call with its
    result (R-004, R-048).
    """
    if proposal.tokens_after >= proposal.tokens_before:
        return (
            f"it would not make the context smaller ({proposal.tokens_before:,} tokens now, "
            f"{proposal.tokens_after:,} afterwards)"
        )
    if not proposal.replacement:
        return "nothing would stand for the summarised part"
    if _has_open_calls(proposal.replacement):
        return "the summary's messages contain a call without its result"
    if not _is_valid_cut(plan, proposal.first_kept_index):
        return f"entry {proposal.first_kept_index} is not a place where the conversation can be cut"
    return ""


def _has_open_calls(messages: Sequence[Message]) -> bool:
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, AssistantMessage):
            waiting.update(call.id for call in calls_of(message))
        elif isinstance(message, ToolResultMessage):
            if message.call_id not in waiting:
                return True
            waiting.discard(message.call_id)
    return bool(waiting)


def _is_valid_cut(plan: CompactionPlan, seq: int) -> bool:
    entries = (*plan.history, *plan.turn_prefix, *plan.kept)
    if not plan.kept and seq > entries[-1].seq:
        return is_complete(entries)
    return any(entries[index].seq == seq for index in valid_cuts(entries))
