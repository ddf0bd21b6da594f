"""What a model's summary lacks of what the data knows: errors that nothing answered, exact names. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.compaction.data.calls import FAILED, open_errors
from tenuto.compaction.plan.entries import Visible
from tenuto.compaction.plan.plan import CompactionPlan
from tenuto.compaction.summary.digest import list_items
from tenuto.compaction.summary.serialize import SEPARATOR, serialize_blocks
from tenuto.compaction.summary.summary import IDENTIFIER_REACH, Names, audit_identifiers, exact_names
from tenuto.protocol.entry import PLACE_KIND
from tenuto.protocol.message import DeveloperMessage, ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.session.view.projection import read_path
from tenuto.text.estimate import estimate_text

MAX_ADDED = 4
"""Errors that are added to a model's summary."""
_LATEST_ENTRIES = 12
"""Entries at the end of the summarised part whose exact names are looked for in the summary."""


def audit_names(plan: CompactionPlan, summary: str) -> Names:
    """Look for exact names in the summary, the file lists and the kept tail.

    They are those of the latest summarised part, of the results that are hidden or shortened in the view (who wrote the
    summary may not have seen them), and of the summary before, without paths: they are found again more easily than a
    number or a code, and would stay for ever. The note on the place is left out: it is told again. The entries are
    read, not the view.
    """
    summarised = [entry for entry in (*plan.history, *plan.turn_prefix) if not _is_place(entry)]
    latest = SEPARATOR.join(serialize_blocks(summarised[-_LATEST_ENTRIES:]))[-IDENTIFIER_REACH:]
    files = "\n".join((*plan.file_operations.read, *plan.file_operations.modified))
    kept = SEPARATOR.join(serialize_blocks(plan.kept))
    present = (summary, files, kept)
    audited = audit_identifiers(latest, present)
    hidden = audit_identifiers(_names_of_hidden(plan, summarised[:-_LATEST_ENTRIES], latest), present)
    latest_missing = dict.fromkeys((*audited.missing, *hidden.missing))
    earlier = audit_identifiers(plan.previous_summary, present).missing
    carried = [name for name in earlier if "/" not in name and name not in latest_missing]
    return Names(audited.found + hidden.found + len(carried), (*latest_missing, *carried))


def _is_place(entry: Visible) -> bool:
    return isinstance(entry, DeveloperMessage) and entry.kind == PLACE_KIND


def _names_of_hidden(plan: CompactionPlan, entries: Sequence[Visible], latest: str) -> str:
    """Return the exact names that `latest` does not have, one a line, of results that the view does not show whole.

    Of the newest results, as many as an audit reads; the newest result last.
    """
    edits = read_path(plan.path).edits
    lines: dict[str, None] = {}
    length = 0
    for entry in reversed(entries):
        edit = edits.get(entry.seq)
        if edit is None or not isinstance(entry, ToolResultMessage):
            continue
        for name in exact_names(text_of(entry.parts)):
            line = f"`{name}`"
            if line in lines or name in latest:
                continue
            length += len(line) + 1
            if length > IDENTIFIER_REACH:
                return "\n".join(reversed(lines))
            lines[line] = None
    return "\n".join(reversed(lines))


def unnamed_errors(plan: CompactionPlan, summary: str) -> list[str]:
    """Return the errors that neither the summary nor the kept tail has, and no later success answered, newest first.

    They are those of the summarised part, and those of the summary before that name their call.
    """
    kept = SEPARATOR.join(serialize_blocks(plan.kept))
    earlier = [item for item in list_items(plan.previous_summary.splitlines()) if FAILED in item]
    summarised = (*plan.history, *plan.turn_prefix)
    failed = open_errors(summarised, earlier)
    still = open_errors((*summarised, *plan.kept), earlier)
    return [item for item in reversed(failed) if item in still and not _is_told(item, (summary, kept))][:MAX_ADDED]


def _is_told(error: str, present: Sequence[str]) -> bool:
    """Say whether every line of an error's text stands in one of the texts."""
    lines = [line.strip() for line in error.partition(FAILED)[2].splitlines()]
    return all(any(line in text for text in present) for line in lines)


def affordable(items: Sequence[str], limit: int) -> list[str]:
    """Return the leading items that together have at most `limit` estimated tokens."""
    taken: list[str] = []
    for item in items:
        limit -= cost(item)
        if limit < 0:
            break
        taken.append(item)
    return taken


def cost(item: str) -> int:
    """Return what an item takes in a summary, in estimated tokens."""
    return estimate_text(item) + 2
