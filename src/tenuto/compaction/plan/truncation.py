"""Shortening results that were sent already: an edit of the view, the history stays whole (seed 001, DESIGN 5 and 6).

Three uses share one way of cutting: a huge result in the tail that a compaction keeps (`truncate_result`), results
over the ceiling of the window in a list of messages (`truncate_oversized_tool_results_in_messages`), and the same
written to a session as one `view_edit` (`core/compacting/view_edits.py`). The head stays, and the tail
too where it looks like the point of the whole: an error, the end of a report.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence

import msgspec

from tenuto.compaction.images import carry_images
from tenuto.compaction.measure.weight import IMAGE_TOKENS, MESSAGE_OVERHEAD
from tenuto.compaction.plan.entries import Item
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import AssistantMessage, HistoryEvent, Message, ToolResultMessage
from tenuto.protocol.part import ImagePart, text_of
from tenuto.session.view.projection import edit_message
from tenuto.text.bounding import MIN_KEEP_CHARS, boundary_after, head_length, result_ceiling, tail_length
from tenuto.text.estimate import estimate_text

MIN_KEEP_TOKENS = MIN_KEEP_CHARS // 4
RUNG = "truncate"
TAIL_SHARE = 0.3
MAX_TAIL_CHARS = 4_000
DIAGNOSTIC_REACH = 2_000
"""Characters at the end of a result that are looked at for what tells how it ended."""
_DIAGNOSTIC = re.compile(
    r"\b(?:errors?|exceptions?|fail(?:ed|ures?|s)?|fatal|panic(?:ked)?|traceback|abort(?:ed)?|denied|timed out|killed"
    r"|warnings?|exit (?:code|status)|return code|passed|summary|total|elapsed|finished in)\b",
    re.IGNORECASE,
)


class Truncation(msgspec.Struct, frozen=True):
    """An edit and the estimated tokens of the whole message once it is applied."""

    edit: ViewEdit
    tokens: int


class TruncatedMessages(msgspec.Struct, frozen=True, kw_only=True):
    """Messages with their oversized results shortened; the others are the same objects. `edits` is what was done."""

    messages: tuple[Message, ...]
    edits: tuple[ViewEdit, ...] = ()

    @property
    def truncated_count(self) -> int:
        """How many results were shortened."""
        return len(self.edits)


def session_likely_has_oversized_tool_results(messages: Sequence[Message], context_window_tokens: int) -> bool:
    """Say whether shortening results is worth a try: a look at lengths, not a measurement."""
    max_chars = result_ceiling(context_window_tokens)
    return any(isinstance(message, ToolResultMessage) and _is_over(message, max_chars) for message in messages)


def truncate_oversized_tool_results_in_messages(
    messages: Sequence[Message],
    context_window_tokens: int,
    *,
    original: Callable[[int], HistoryEvent | None] = lambda _seq: None,
    untouched: Collection[int] = (),
) -> TruncatedMessages:
    """Return the messages with every result over the window's ceiling shortened to it; nothing is written.

    `original` finds the entry of a seq: what an earlier edit shortened is cut again from the whole. Results with a seq
    in `untouched` stay as they are.
    """
    max_chars = result_ceiling(context_window_tokens)
    shown = list(messages)
    edits: list[ViewEdit] = []
    for index, message in enumerate(messages):
        if not isinstance(message, ToolResultMessage) or message.seq in untouched or not _is_over(message, max_chars):
            continue
        whole = original(message.seq) if message.seq else None
        whole = whole if isinstance(whole, ToolResultMessage) else message
        edit = cut_result(whole, max_chars)
        if edit is None:
            continue
        edit = carry_images(edit, whole, message)
        edited = edit_message(whole, edit)
        if edited is not None:
            shown[index] = edited
            edits.append(edit)
    return TruncatedMessages(messages=tuple(shown), edits=tuple(edits))


def truncate_result(message: ToolResultMessage, limit: int) -> Truncation | None:
    """Return the edit that brings the text of a result to about `limit` tokens; `None` if it is short enough."""
    text = text_of(message.parts)
    tokens = estimate_text(text)
    if tokens <= limit or len(text) <= MIN_KEEP_CHARS:
        return None
    edit = cut_result(message, max(MIN_KEEP_CHARS, len(text) * limit // tokens))
    if edit is None:
        return None
    rest = MESSAGE_OVERHEAD + sum(IMAGE_TOKENS for part in message.parts if isinstance(part, ImagePart))
    tail = text[-edit.keep_tail :] if edit.keep_tail else ""
    shown = estimate_text(text[: edit.keep_head]) + estimate_text(edit.text) + estimate_text(tail)
    return Truncation(edit, rest + shown)


def cut_result(message: ToolResultMessage, max_chars: int) -> ViewEdit | None:
    """Return the edit that leaves `max_chars` of a result's text, notice included; `None` if that is no less.

    All text parts share the budget, and at least `MIN_KEEP_CHARS` of text stay.
    """
    text = text_of(message.parts)
    keep = max(max_chars - len(_notice(message, len(text), len(text))) - 1, MIN_KEEP_CHARS)
    if len(text) <= max(max_chars, keep):
        return None
    wanted = min(int(keep * TAIL_SHARE), MAX_TAIL_CHARS) if looks_diagnostic(text) else 0
    tail = tail_length(text, wanted) if wanted else 0
    head = head_length(text, keep - wanted)
    if head + tail < MIN_KEEP_CHARS:  # the end of a line is not worth more than what has to stay
        head = boundary_after(text, MIN_KEEP_CHARS - tail)
    before = "" if text[head - 1] == "\n" else "\n"
    notice = before + _notice(message, len(text) - head - tail, len(text))
    if head + len(notice) + tail >= len(text):  # what stands for the rest is no shorter than the rest
        return None
    return ViewEdit(target=message.seq, kind="truncated", text=notice, keep_head=head, keep_tail=tail)


def looks_diagnostic(text: str) -> bool:
    """Say whether the end of a text tells how something went: an error, a report's last lines, the end of JSON."""
    end = text[-DIAGNOSTIC_REACH:].rstrip()
    return end.endswith(("}", "]")) or _DIAGNOSTIC.search(end) is not None


def _is_over(message: ToolResultMessage, max_chars: int) -> bool:
    return sum(len(part.text) for part in message.parts if not isinstance(part, ImagePart)) > max_chars


def _notice(message: ToolResultMessage, omitted: int, size: int) -> str:
    """Return what stands for the part left out: how much it is, and how to read it."""
    if message.output_path:
        where = f"The whole output is in {message.output_path}: read it with offset and limit, or grep it."
    else:
        where = f"Entry {message.seq} has it whole: use recall, or ask for a part of it with narrower arguments."
    return f"[… {omitted:,} of {size:,} characters of this result were left out to save room. {where}]\n"


_SLACK = 0.97
"""Of the room: what is shared out, because the size of a shortened text is an estimate."""
_NOTICE_TOKENS = 60


def first_unseen(items: Sequence[Item]) -> int:
    """Return the index behind the last answer: what stands there the model has not been sent yet, or not accepted."""
    for index in range(len(items) - 1, -1, -1):
        if isinstance(items[index].entry, AssistantMessage):
            return index + 1
    return 0


def fair_share(items: Sequence[Item], room: int) -> int:
    """Return the most tokens that each result among the items may have for all items to take `room` together."""
    results = sorted(item.tokens for item in items if isinstance(item.entry, ToolResultMessage))
    left = int(room * _SLACK) - (sum(item.tokens for item in items) - sum(results))
    for index, tokens in enumerate(results):
        share = left // (len(results) - index)
        if tokens > share:
            return max(MIN_KEEP_TOKENS, share - _NOTICE_TOKENS)
        left -= tokens
    return max(MIN_KEEP_TOKENS, *results) if results else MIN_KEEP_TOKENS


class Limits(msgspec.Struct, frozen=True):
    """Tokens over which results are shortened: those that the model has seen, and those from `unseen_from` on."""

    seen: int
    unseen: int
    unseen_from: int


class Shortening:
    """The items with every result over its limit counted as shortened, and the edits that shorten them."""

    def __init__(self, items: Sequence[Item], limits: Limits) -> None:
        self._original = items
        self._limits = limits
        self._edits: dict[int, ViewEdit] = {}
        seen, unseen = items[: limits.unseen_from], items[limits.unseen_from :]
        self.items = [
            *(self._shorten(item, limits.seen) for item in seen),
            *(self._shorten(item, limits.unseen) for item in unseen),
        ]

    def _shorten(self, item: Item, limit: int) -> Item:
        entry = item.entry
        if item.tokens <= limit or not isinstance(entry, ToolResultMessage):
            return item
        found = truncate_result(entry, limit)
        if found is None or found.tokens >= item.tokens:
            return item
        self._edits[entry.seq] = found.edit
        return Item(entry, found.tokens)

    def fitting(self, cut: int, ceiling: int) -> Shortening:
        """Return this, or a stricter one, so that the tail from `cut` fits `ceiling` tokens if shortening can do it.

        What the model has not seen yet stays as it is.
        """
        present = self
        while present._limits.seen > MIN_KEEP_TOKENS and present.tokens_from(cut) > ceiling:
            stricter = msgspec.structs.replace(present._limits, seen=max(MIN_KEEP_TOKENS, present._limits.seen // 2))
            present = Shortening(self._original, stricter)
        return present

    def tokens_from(self, cut: int) -> int:
        """Return the size of the items from `cut` on."""
        return sum(item.tokens for item in self.items[cut:])

    def edits(self, cut: int, view: Mapping[int, Message]) -> tuple[ViewEdit, ...]:
        """Return the edits of results that stand at or after `cut`; images that the view leaves out stay out."""
        kept = ((item.entry, self._edits.get(item.entry.seq)) for item in self.items[cut:])
        return tuple(
            carry_images(edit, entry, view[entry.seq])
            for entry, edit in kept
            if edit is not None and isinstance(entry, ToolResultMessage)
        )
