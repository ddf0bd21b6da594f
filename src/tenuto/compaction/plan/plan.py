"""Where to cut, and what the cut means: pure (DESIGN section 5, seeds 000 and 003).

A plan is made from the path and the live view alone. It says which entries a summary has to cover, which stay word
for word, and which results in the kept tail are shortened so that one huge output does not defeat the compaction.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from tenuto.compaction.data.files import FileOperations, collect_files, strip_file_lists
from tenuto.compaction.data.ledger import ledger_floor
from tenuto.compaction.data.said import Said
from tenuto.compaction.measure.budget import (
    CROWDED_SHARE,
    LEAST_FREE,
    MOST_USER_SHARE,
    Allowance,
    Budget,
    allowance_for,
    leave_room,
    lend_tail,
    reserve_words,
)
from tenuto.compaction.measure.meter import ContextSize, Meter
from tenuto.compaction.plan.entries import (
    Item,
    Visible,
    active_compaction,
    is_complete,
    position_of,
    starts_turn,
    valid_cuts,
    visible_items,
)
from tenuto.compaction.plan.truncation import MIN_KEEP_TOKENS, Limits, Shortening, fair_share, first_unseen
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import (
    CompactionEntry,
    DeveloperMessage,
    FileUse,
    HistoryEvent,
    Message,
    ToolResultMessage,
    UserMessage,
)
from tenuto.session.view.tree import newest_of_kind

NOTHING_NEW = "nothing has been said since the last compaction"
LEAST_GAIN = 0.1
"""Of the context: what a compaction that a user asks for has to save to be worth a model's call."""
SHORT_SUMMARY, FRAME_TOKENS = 250, 120
"""What a short summary has in tokens, and what goes around it."""
RESULT_SHARE_OF_KEEP = 4
"""A result in the kept tail that is larger than a quarter of keep-recent is shortened, once the model has seen it."""


class CompactionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction will do. `cut` is the seq that the kept tail begins with; token numbers are plain estimates.

    The tail is empty where the last step alone is too large to stay; `cut` is then the seq after the last entry.
    `turn_start` is the seq of the split turn's first entry (0: no split) and `turn_message` its user message, if that
    is what it began with. `tokens_before` is the meter's number of the whole request.
    """

    cut: int
    is_split_turn: bool
    turn_start: int
    turn_message: UserMessage | None
    history: tuple[Visible, ...]
    turn_prefix: tuple[Visible, ...]
    kept: tuple[Visible, ...]
    kept_tokens: int
    replaced_tokens: int
    tokens_before: int
    size: ContextSize
    budget: Budget
    allowance: Allowance
    previous: CompactionEntry | None
    previous_summary: str
    edits: tuple[ViewEdit, ...]
    file_operations: FileOperations
    path: Sequence[HistoryEvent]
    said: Sequence[Said]


class NothingToCompact(msgspec.Struct, frozen=True, kw_only=True):
    """Why there is nothing to summarise, as one line, and in few words (`brief`).

    `edits` can make the view smaller all the same, if not empty. `cut` is the seq up to which a summary could be made
    that would save too little (0: none could).
    """

    reason: str
    brief: str
    edits: tuple[ViewEdit, ...] = ()
    cut: int = 0


def plan_compaction(
    path: Sequence[HistoryEvent],
    view: Sequence[Message],
    *,
    size: ContextSize,
    budget: Budget,
    meter: Meter,
    model_id: str,
    manual: bool = False,
    keep_tokens: int | None = None,
    tracker: Mapping[str, FileUse] | None = None,
    directory: str = "",
    first_kept: int = 0,
    unseen_tokens: int | None = None,
) -> CompactionPlan | NothingToCompact:
    """Return what a compaction of this path would do, or why it would do nothing.

    `path` is the entries from root to leaf, `view` the live view, `size` the meter's measure of it. `keep_tokens`
    overrides how much of the end is kept, `first_kept` names the seq that the kept tail has to begin with. `tracker`
    is the session's newest use of every file, `directory` the working directory that they are listed relative to.
    `unseen_tokens` bounds the results that the model has not seen yet (`None`: by what the window leaves).
    """
    if size.fixed >= CROWDED_SHARE * budget.window or budget.trigger - size.fixed - size.queued < LEAST_FREE:
        return NothingToCompact(reason=_fixed_parts_reason(size, budget), brief="what has to stay is too large")
    previous = active_compaction(path, model_id)
    start = position_of(path, previous.first_kept_index) if previous is not None else 0
    by_seq = {message.seq: message for message in view if message.seq}
    items = visible_items(path[start:], by_seq, meter)
    if reason := _unfit_reason(items, previous, first_kept):
        return NothingToCompact(reason=reason, brief=_brief(reason, reason))
    divides = manual and (previous is None or items[-1].entry.seq > previous.seq)
    basis = _Basis(path, start, items, by_seq, size, budget, meter, first_kept, unseen_tokens, divides)
    said = meter.texts.of(path)
    shares = _with_words(_allowance(size, budget, manual=manual, keep_tokens=keep_tokens), said, size, budget)
    division = _divide(basis, shares)
    if not _tells(basis, division) and not division.shortened.edits(0, by_seq):
        division = _divide_later(basis, shares, division)
    allowance, cut, shortened, split = division
    if not _tells(basis, division):
        reason = _too_small_reason(items, previous, allowance) + _what_takes_room(size, budget)
        return NothingToCompact(
            reason=reason, brief=_brief(reason, "too little to summarise"), edits=shortened.edits(0, by_seq)
        )
    kept_tokens = shortened.tokens_from(cut)
    kept_whole = _kept_whole(split.message, basis, allowance, kept_tokens)
    history_end = split.index if split.index is not None else cut
    prefix = items[history_end:cut]
    replaced = _replaced_tokens(items[:cut], previous, meter)
    first = items[cut].entry.seq if cut < len(items) else items[-1].entry.seq + 1
    gain = round(_best_gain(replaced, items[:cut], split.message, allowance) * size.calibration)
    if manual and not first_kept and gain < LEAST_GAIN * size.tokens:
        return NothingToCompact(reason=_no_gain_reason(size, gain, first), brief="nothing to gain", cut=first)
    return CompactionPlan(
        cut=first,
        is_split_turn=split.start > 0,
        turn_start=split.start,
        turn_message=_as_shown(split.message, by_seq),
        history=_entries(items[:history_end]),
        turn_prefix=_entries(prefix) if _has_content(prefix, kept_whole) else (),
        kept=_entries(items[cut:]),
        kept_tokens=kept_tokens,
        replaced_tokens=replaced,
        tokens_before=size.tokens,
        size=size,
        budget=budget,
        allowance=lend_tail(allowance, budget, kept_tokens, size.calibration),
        previous=previous,
        previous_summary=strip_file_lists(previous.summary) if previous is not None else "",
        edits=shortened.edits(cut, by_seq),
        file_operations=_collect_files(items, cut, previous, tracker or {}, directory),
        path=path,
        said=said,
    )


class _Basis(msgspec.Struct, frozen=True):
    """What a plan is made from. `items` is what is visible from the position `start` of the path on."""

    path: Sequence[HistoryEvent]
    start: int
    items: Sequence[Item]
    by_seq: Mapping[int, Message]
    size: ContextSize
    budget: Budget
    meter: Meter
    first_kept: int
    unseen_tokens: int | None
    divides: bool
    """Whether a tail over its aim is divided although it would fit."""

    def estimate(self, message: UserMessage) -> int:
        """Return the tokens of a message as the view has it."""
        return self.meter.estimate(self.by_seq.get(message.seq, message))


class _Split(msgspec.Struct, frozen=True):
    """The turn that a cut falls into: its first seq (0: none), its place among the items, its user message."""

    start: int = 0
    index: int | None = None
    message: UserMessage | None = None


class _Division(NamedTuple):
    """Where the kept tail begins (an index), what is shortened in it, the turn that it divides, the room for all."""

    allowance: Allowance
    cut: int
    shortened: Shortening
    split: _Split


def _divide(basis: _Basis, allowance: Allowance) -> _Division:
    """Return the cut. The request of a split turn stays whole; what else is kept shares what it leaves (R-034)."""
    division = _divide_within(basis, allowance)
    message = division.split.message
    needed = basis.estimate(message) if message is not None else 0
    if needed + LEAST_FREE > allowance.free + allowance.spare:  # it has to be cut
        return division
    left = leave_room(allowance, needed)
    return division if left is allowance else _divide_within(basis, left)


def _tells(basis: _Basis, division: _Division) -> bool:
    """Say whether there is anything to summarise before the cut."""
    message = _kept_whole(
        division.split.message, basis, division.allowance, division.shortened.tokens_from(division.cut)
    )
    return _has_content(basis.items[: division.cut], message)


def _divide_later(basis: _Basis, shares: Allowance, division: _Division) -> _Division:
    """Return the first division behind one with nothing to summarise that has something; that one, if none has.

    A message that stays whole as the request of a split turn is summarised with its turn where a later turn begins.
    """
    later = _first_cut_that_tells(basis, division.cut, _latest_cut(basis.items))
    total = sum(item.tokens for item in basis.items)
    if basis.first_kept or later == division.cut or later >= len(basis.items) or total <= shares.tail_ceiling:
        return division
    return _divide(msgspec.structs.replace(basis, first_kept=basis.items[later].entry.seq), shares)


def _latest_cut(items: Sequence[Item]) -> int:
    """Return the last index that may be a cut: a step whose results the model has not seen yet stays."""
    unseen = first_unseen(items)
    return unseen - 1 if any(isinstance(item.entry, ToolResultMessage) for item in items[unseen:]) else len(items)


def _is_cut(items: Sequence[Item], seq: int) -> bool:
    """Say whether the kept tail may begin with `seq`, or behind everything."""
    entries = [item.entry for item in items]
    if seq == entries[-1].seq + 1:
        return is_complete(entries)
    return any(entries[index].seq == seq for index in valid_cuts(entries))


def _divide_within(basis: _Basis, allowance: Allowance) -> _Division:
    cut, shortened = _choose_cut(basis, allowance)
    return _Division(allowance, cut, shortened, _find_split(basis, cut))


def _choose_cut(basis: _Basis, allowance: Allowance) -> tuple[int, Shortening]:
    """Return where the kept tail begins, behind everything if need be, and the results in it that are shortened.

    A step whose results the model has not seen yet stays: there is room of its own for it.
    """
    items, room = basis.items, min(allowance.tail_room, basis.unseen_tokens or allowance.tail_room)
    unseen = first_unseen(items)
    limits = Limits(
        seen=max(MIN_KEEP_TOKENS, allowance.tail // RESULT_SHARE_OF_KEEP),
        unseen=fair_share(items[unseen:], room),
        unseen_from=unseen,
    )
    shortened = Shortening(items, limits)
    if basis.first_kept:
        cut = sum(item.entry.seq < basis.first_kept for item in items)
        return cut, shortened.fitting(cut, allowance.tail_ceiling)
    latest = _latest_cut(items)
    cut = find_cut(shortened.items, allowance.tail, allowance.tail_ceiling, latest)
    if basis.divides and shortened.tokens_from(cut) > allowance.tail:
        cut = _first_cut_that_tells(basis, cut, latest)
    shortened = shortened.fitting(cut, allowance.tail_ceiling)
    is_too_large = shortened.tokens_from(cut) > _tail_limit(basis.size, basis.budget, allowance)
    if basis.size.tokens > basis.budget.trigger and is_too_large and is_complete([item.entry for item in items]):
        cut = len(items)
    return cut, shortened


def _first_cut_that_tells(basis: _Basis, cut: int, latest: int) -> int:
    """Return the first place from `cut` on that leaves something to summarise; `cut` where there is none.

    A user asked for it: a tail that is larger than its aim does not stay just because everything fits.
    """
    items = basis.items
    for later in valid_cuts([item.entry for item in items]):
        if cut <= later <= latest and _has_content(items[:later], _find_split(basis, later).message):
            return later
    return cut


def _best_gain(replaced: int, items: Sequence[Item], message: UserMessage | None, allowance: Allowance) -> int:
    """Return the estimated tokens that summarising `items` would save with a short summary.

    What the user wrote stays beside the summary, as far as there is room.
    """
    asked = [item for item in items if isinstance(item.entry, UserMessage)]
    turn = sum(item.tokens for item in asked if item.entry is message)
    texts = min(allowance.user_messages, sum(item.tokens for item in asked) - turn)
    return replaced - turn - texts - min(allowance.summary, SHORT_SUMMARY) - FRAME_TOKENS


def _no_gain_reason(size: ContextSize, gain: int, first: int) -> str:
    saved = f"at most {gain:,}" if gain > 0 else "none"
    return (
        f"there is nothing to gain: of {size.tokens:,} tokens a summary would save {saved}; "
        f"/compact up-to {first} makes one all the same"
    )


def _entries(items: Sequence[Item]) -> tuple[Visible, ...]:
    return tuple(item.entry for item in items)


def _replaced_tokens(items: Sequence[Item], previous: CompactionEntry | None, meter: Meter) -> int:
    """Return the tokens of what a compaction takes out of the view: entries, and what the last one put there."""
    before = meter.estimate_all(previous.replacement) if previous is not None else 0
    return sum(item.tokens for item in items) + before


def _collect_files(
    items: Sequence[Item],
    cut: int,
    previous: CompactionEntry | None,
    tracker: Mapping[str, FileUse],
    directory: str,
) -> FileOperations:
    before, after = _entries(items[:cut]), _entries(items[cut:])
    return collect_files(before, after, previous.details if previous is not None else None, tracker, directory)


def _allowance(size: ContextSize, budget: Budget, *, manual: bool, keep_tokens: int | None) -> Allowance:
    return allowance_for(
        budget,
        fixed=size.fixed,
        queued=size.queued,
        calibration=size.calibration,
        manual=manual,
        keep_tokens=keep_tokens,
    )


def _with_words(shares: Allowance, said: Sequence[Said], size: ContextSize, budget: Budget) -> Allowance:
    """Return the shares with room for what must stay of the user's words."""
    most = min(int(budget.user_messages / size.calibration), int(MOST_USER_SHARE * shares.free))
    return reserve_words(shares, ledger_floor(said, most))


def _tail_limit(size: ContextSize, budget: Budget, allowance: Allowance) -> int:
    """Return how large a tail may be at all: with everything that comes before it, it has to be under the trigger."""
    room = int((budget.trigger - size.fixed - size.queued) / size.calibration)
    return room - allowance.summary - allowance.user_messages - allowance.extras


def _kept_whole(
    message: UserMessage | None, basis: _Basis, allowance: Allowance, kept_tokens: int
) -> UserMessage | None:
    """Return the split turn's message if it stays word for word, `None` where it is so large that it has to be cut."""
    room = max(allowance.free + allowance.spare - kept_tokens, allowance.user_messages)
    return message if message is not None and basis.estimate(message) <= room else None


def _as_shown(message: UserMessage | None, view: Mapping[int, Message]) -> UserMessage | None:
    """Return a message as the view has it: images that left it for their bytes do not come back."""
    shown = view.get(message.seq) if message is not None else None
    return shown if isinstance(shown, UserMessage) else message


def find_cut(items: Sequence[Item], keep: int, ceiling: int, latest: int | None = None) -> int:
    """Return the index that the kept tail begins with, at most `latest`; 0 keeps everything.

    The first valid point at or after the entry with which the tail reaches `keep` tokens; the last valid one if there
    is none after it. A developer message moves the cut back to what it belongs to. While the tail is over `ceiling`
    (its first entry alone can be huge), the cut moves on.
    """
    cuts = [cut for cut in valid_cuts([item.entry for item in items]) if latest is None or cut <= latest]
    reached = _reached(items, keep)
    if reached is None or not cuts:
        return 0
    if isinstance(items[reached].entry, DeveloperMessage):
        place = max((n for n, index in enumerate(cuts) if index < reached), default=0)
    else:
        place = next((n for n, index in enumerate(cuts) if index >= reached), len(cuts) - 1)
    tail = sum(item.tokens for item in items[cuts[place] :])
    while tail > ceiling and place + 1 < len(cuts):
        tail -= sum(item.tokens for item in items[cuts[place] : cuts[place + 1]])
        place += 1
    return cuts[place]


def _reached(items: Sequence[Item], keep: int) -> int | None:
    total = 0
    for index in range(len(items) - 1, -1, -1):
        total += items[index].tokens
        if total >= keep:
            return index
    return None


def _find_split(basis: _Basis, cut: int) -> _Split:
    """Return the turn that the cut divides. A turn that an earlier compaction divided begins before `basis.start`."""
    items = basis.items
    if starts_turn(items, cut):
        return _Split()
    for index in range(cut - 1, -1, -1):
        if starts_turn(items, index):
            entry = items[index].entry
            return _Split(entry.seq, index, entry if isinstance(entry, UserMessage) else None)
    first = basis.path[basis.start].seq
    for entry in newest_of_kind(basis.path, UserMessage):
        if entry.seq < first:
            return _Split(entry.seq, None, entry)
    return _Split()


def _has_content(items: Sequence[Item], kept_whole: UserMessage | None) -> bool:
    """Say whether there is anything to summarise beside the user message that is kept word for word anyway."""
    return any(item.entry is not kept_whole and not isinstance(item.entry, DeveloperMessage) for item in items)


def _unfit_reason(items: Sequence[Item], previous: CompactionEntry | None, first_kept: int) -> str:
    """Return why nothing of `items` can be summarised up to where the user wants it; empty where it can."""
    if not items:
        return NOTHING_NEW if previous is not None else "there are no messages yet"
    if first_kept and not _is_cut(items, first_kept):
        return f"entry {first_kept} is not a place where the conversation can be cut"
    return ""


def _brief(reason: str, otherwise: str) -> str:
    return "nothing new" if reason.startswith(NOTHING_NEW) else otherwise


def _fixed_parts_reason(size: ContextSize, budget: Budget) -> str:
    return (
        f"the parts that no compaction can shorten are too big for the usable {budget.trigger:,} tokens: "
        f"system prompt {size.system:,}, tools {size.tools:,}, queued texts {size.queued:,}"
    )


def _what_takes_room(size: ContextSize, budget: Budget) -> str:
    """Return what takes most of the window, where that is nothing that a compaction shortens."""
    if 2 * (size.fixed + size.queued) < budget.window:
        return ""
    return (
        f"; most of the {budget.window:,} tokens of the window is what no compaction can shorten: "
        f"system prompt {size.system:,}, tools {size.tools:,}, queued texts {size.queued:,}"
    )


def _too_small_reason(items: Sequence[Item], previous: CompactionEntry | None, allowance: Allowance) -> str:
    if previous is not None and items[-1].entry.seq < previous.seq:
        return NOTHING_NEW
    total = sum(item.tokens for item in items)
    since = " since the last compaction" if previous is not None else ""
    what = f"the conversation{since} is about {total:,} tokens"
    if total > allowance.tail_ceiling:
        return f"{what}, and all of it is one message or one step, which stays word for word"
    return f"{what}, all of it in the recent part that stays word for word (up to {allowance.tail_ceiling:,})"
