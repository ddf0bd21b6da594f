"""Rung 1: old tool results become a short placeholder, decided by structure alone (seed 004, section 3). Pure.

Every answer with tool calls is one group, parallel calls included. The last groups stay as they are; in the older
ones the results are replaced, the calls and their ids stay. Nothing is deleted: it is an edit of the view. The exact
names in a result, and the lines in which it told of an error, stay in its placeholder, so that a summary made from
the view can have them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.summary.digest import error_text
from tenuto.compaction.summary.summary import exact_names
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import AssistantMessage, Message, ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.session.view.projection import edit_message

PRESERVED_GROUPS = 5
MIN_WARM_SAVING = 12_500
"""Tokens: with a warm prefix cache a smaller saving costs more than it brings (DESIGN section 6)."""
MIN_WARM_SAVING_SHARE = 0.05
_LONGEST_ERROR = 200
"""Characters of one line of an error in a placeholder."""
_HIDDEN = "[This result is hidden to save room; it was not empty."


def hidden_text(seq: int, names: Sequence[str] = (), error: str = "") -> str:
    """Return the placeholder for the result with this seq, with the `error` and exact `names` that stay known."""
    mark = "\n" if error else " "
    parts = (f"{_HIDDEN} It failed: {error}" if error else _HIDDEN,)
    if names:
        parts += (f"It had {', '.join(f'`{name}`' for name in names)}.",)
    return mark.join((*parts, f"Entry {seq} has it: use recall to read it.]"))


def is_hidden(message: ToolResultMessage) -> bool:
    """Say whether what the view has of a result is its placeholder, whatever names are in it."""
    text = text_of(message.parts)
    return text.startswith(_HIDDEN) and text.endswith(f"Entry {message.seq} has it: use recall to read it.]")


def hide_results(view: Sequence[Message], preserved_groups: int = PRESERVED_GROUPS) -> tuple[ViewEdit, ...]:
    """Return the edits that hide the results of all but the newest groups; empty when nothing would change.

    A placeholder has the error that the result told of, and names what was exact in it, the latest first. What is
    hidden already does not count, nor does a result that is no longer than its placeholder.
    """
    edits = (
        _hide(message)
        for message in view[: _first_preserved(view, preserved_groups)]
        if isinstance(message, ToolResultMessage) and message.seq and not is_hidden(message)
    )
    return tuple(edit for edit in edits if edit is not None)


def _hide(message: ToolResultMessage) -> ViewEdit | None:
    """Return the edit that hides a result with as many of its names as pay, `None` where not even none do."""
    error = error_text(message, _LONGEST_ERROR)
    names = [name for name in exact_names(text_of(message.parts)) if name not in error]
    for kept in (names[:count] for count in (len(names), len(names) // 2, 0)):
        edit = ViewEdit(target=message.seq, kind="hidden", text=hidden_text(message.seq, kept, error))
        if saved_by(edit, message) > 0:
            return edit
    return None


def saved_by(edit: ViewEdit, message: Message, meter: Meter | None = None) -> int:
    """Return the estimated tokens that an edit of a message saves."""
    before = estimate_message(message) if meter is None else meter.estimate(message)
    after = edit_message(message, edit)
    return before - (estimate_message(after) if after is not None else 0)


def is_worth_a_cold_cache(saved: int, window: int) -> bool:
    """Say whether a saving pays for what comes after the first edit and has to be read anew."""
    return saved >= max(MIN_WARM_SAVING, int(MIN_WARM_SAVING_SHARE * window))


def _first_preserved(view: Sequence[Message], preserved_groups: int) -> int:
    """Return the place of the oldest group that stays. Ids do not tell: some sessions have one for all their calls."""
    groups = [
        place for place, message in enumerate(view) if isinstance(message, AssistantMessage) and message.tool_calls
    ]
    if not preserved_groups:
        return len(view)
    return groups[-preserved_groups] if len(groups) > preserved_groups else 0
