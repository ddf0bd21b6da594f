"""Outcomes made from a plan: a model's accepted summary, or the digest (DESIGN sections 5 and 6). Pure."""

from __future__ import annotations

from tenuto.compaction.digest import digest, list_room
from tenuto.compaction.files import with_file_lists
from tenuto.compaction.plan import CompactionPlan
from tenuto.compaction.prompts import Prompts
from tenuto.compaction.serialize import SEPARATOR, serialize_blocks
from tenuto.compaction.summary import IDENTIFIER_REACH, add_identifiers, missing_identifiers, shorten
from tenuto.compaction.view import Surroundings, build_replacement
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import estimate_text

_LATEST_ENTRIES = 12
"""Entries at the end of the summarised part whose exact names are looked for in the summary."""


def propose_summary(
    plan: CompactionPlan,
    summary: str,
    surroundings: Surroundings,
    prompts: Prompts,
    usage: Usage | None = None,
    *,
    rung: str = "serialised",
) -> CompactionOutcome:
    """Return the outcome of a model's accepted summary: exact names and file lists are added to it from data."""
    limit = plan.allowance.summary
    names = _missing_names(plan, summary, limit // 5)
    room = limit - sum(estimate_text(name) + 2 for name in names)
    text = add_identifiers(shorten(summary, room), names)
    text = with_file_lists(text, plan.file_operations, list_room(plan, surroundings))
    return _propose(plan, text, surroundings, prompts, usage=usage, rung=rung)


def propose_digest(
    plan: CompactionPlan, surroundings: Surroundings, prompts: Prompts, usage: Usage | None = None
) -> CompactionOutcome:
    """Return the outcome that needs no model (rung 7); `usage` is what failed attempts cost."""
    return _propose(plan, digest(plan, surroundings), surroundings, prompts, usage=usage, rung="digest")


def _propose(
    plan: CompactionPlan,
    summary: str,
    surroundings: Surroundings,
    prompts: Prompts,
    *,
    usage: Usage | None,
    rung: str,
) -> CompactionOutcome:
    return CompactionOutcome(
        summary=summary,
        replacement=build_replacement(plan, summary, surroundings, prompts),
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=plan.file_operations.details(),
        usage=usage,
        rung=rung,
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
