"""What of a path the model sees, entry by entry, and which places a cut may fall on (DESIGN section 5). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from tenuto.compaction.measure.meter import Meter
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, ShellEntry, UndoEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    Message,
    ToolResultMessage,
    UserMessage,
)
from tenuto.session.view.projection import is_usable
from tenuto.session.view.tree import newest_of_kind

Visible = (
    UserMessage
    | AssistantMessage
    | ToolResultMessage
    | DeveloperMessage
    | ShellEntry
    | BranchSummaryEntry
    | ExtensionEntry
)


class Item(msgspec.Struct, frozen=True):
    """A visible entry and its estimated tokens as it stands in the view (edits applied)."""

    entry: Visible
    tokens: int


def visible_entry(entry: HistoryEvent) -> Visible | None:
    """Return `entry` if the model sees it, else `None` (state, compactions, excluded commands)."""
    if isinstance(entry, UserMessage | AssistantMessage | ToolResultMessage | DeveloperMessage | BranchSummaryEntry):
        return entry
    if isinstance(entry, ShellEntry):
        return None if entry.excluded else entry
    if isinstance(entry, ExtensionEntry):
        return entry if entry.in_view else None
    return None


def position_of(path: Sequence[HistoryEvent], seq: int) -> int:
    """Return the index of the first entry of the path whose seq is at least `seq`."""
    position = len(path)
    for entry in reversed(path):  # from the end, because the older part may not be in memory
        if entry.seq < seq:
            break
        position -= 1
    return position


def active_compaction(path: Sequence[HistoryEvent], model_id: str) -> CompactionEntry | None:
    """Return the compaction that the view starts from: the newest that is not undone and that the model can read."""
    cancelled: set[int] = set()
    for entry in newest_of_kind(path, UndoEntry, CompactionEntry):
        if isinstance(entry, UndoEntry):
            if entry.seq not in cancelled:
                cancelled.add(entry.target)
        elif entry.seq not in cancelled and is_usable(entry, model_id):
            return entry
    return None


def visible_items(entries: Iterable[HistoryEvent], view: Mapping[int, Message], meter: Meter) -> list[Item]:
    """Return what the model sees of `entries`; `view` has the live view's messages by seq.

    What is not in the view (an edit took it out, a result whose call is gone) is left out here too.
    """
    items: list[Item] = []
    for entry in entries:
        shown = view.get(entry.seq)
        if shown is not None:
            visible = visible_entry(entry)
            if visible is not None:
                items.append(Item(visible, meter.estimate(shown)))
    return items


def valid_cuts(entries: Sequence[Visible]) -> list[int]:
    """Return the indexes that a kept tail may begin with, in order.

    Never a tool result, never a developer message, never between a call and its result, parallel calls included.
    """
    call_index: dict[str, int] = {}
    last_result: dict[int, int] = {}
    for index, entry in enumerate(entries):
        if isinstance(entry, AssistantMessage):
            call_index = {call.id: index for call in entry.tool_calls}
        elif isinstance(entry, ToolResultMessage) and entry.call_id in call_index:
            last_result[call_index[entry.call_id]] = index
    cuts: list[int] = []
    open_until = -1
    for index, entry in enumerate(entries):
        if index > open_until and not isinstance(entry, ToolResultMessage | DeveloperMessage):
            cuts.append(index)
        open_until = max(open_until, last_result.get(index, -1))
    return cuts


def is_complete(entries: Sequence[Visible]) -> bool:
    """Say whether every call of the last answer has its result, so that a cut may also fall behind all entries."""
    waiting: set[str] = set()
    for entry in entries:
        if isinstance(entry, AssistantMessage):
            waiting = {call.id for call in entry.tool_calls}
        elif isinstance(entry, ToolResultMessage):
            waiting.discard(entry.call_id)
    return not waiting


def starts_turn(items: Sequence[Item], index: int) -> bool:
    """Say whether a turn begins at `index`: a user message, or something else that comes while the model is at rest.

    At the end of the items nothing has begun yet: there it is only whether the model is at rest.
    """
    if index < len(items):
        entry = items[index].entry
        if isinstance(entry, UserMessage):
            return True
        if not isinstance(entry, ShellEntry | BranchSummaryEntry | ExtensionEntry):
            return False
    for earlier in range(index - 1, -1, -1):
        before = items[earlier].entry
        if isinstance(before, AssistantMessage):
            return not before.tool_calls
        if isinstance(before, UserMessage | ToolResultMessage):
            return False
    return True
