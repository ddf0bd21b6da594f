"""A compaction whose summary somebody else wrote: an extension (seed 003). Frame, lists and pins are added as usual."""

from __future__ import annotations

import msgspec

from tenuto.compaction.digest import list_room
from tenuto.compaction.environment import BoundContext, accept
from tenuto.compaction.errors import RungError
from tenuto.compaction.files import with_file_lists
from tenuto.compaction.plan import NothingToCompact
from tenuto.compaction.view import build_replacement
from tenuto.protocol.compaction import CompactionOutcome
from tenuto.protocol.hooks import SuppliedCompaction


def take_supplied(ctx: BoundContext, supplied: SuppliedCompaction, extension: str) -> CompactionOutcome:
    """Return the outcome of a supplied compaction. Raises `RungError` with why it must not be written."""
    environment = ctx.environment
    if not supplied.summary.strip():
        raise RungError("its summary is empty")
    if supplied.first_kept_index < 1:
        raise RungError(f"first_kept_index is {supplied.first_kept_index}, which is no entry")
    plan = environment.plan(manual=ctx.is_manual, first_kept=supplied.first_kept_index)
    if isinstance(plan, NothingToCompact):
        raise RungError(plan.reason)
    lists = list_room(plan, environment.surroundings)
    summary = with_file_lists(supplied.summary, plan.file_operations, lists)
    outcome = CompactionOutcome(
        summary=summary,
        replacement=build_replacement(plan, summary, environment.surroundings, environment.prompts),
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=msgspec.structs.replace(plan.file_operations.details(), extension=supplied.details),
        rung="extension",
        from_extension=extension,
    )
    accept(ctx, outcome)
    return outcome
