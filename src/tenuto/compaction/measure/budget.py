"""The numbers that decide when to compact and how large the result may be (DESIGN section 4). All in tokens."""

from __future__ import annotations

import msgspec

from tenuto.config.settings import CompactionSettings
from tenuto.protocol.model import ModelFacts

DEFAULT_CONTEXT_WINDOW = 128_000
"""Used, and named as a default, where nobody says how large the model's window is (R-026)."""
DEFAULT_RESERVE = 16_384
DEFAULT_KEEP_RECENT = 20_000
MAX_PLANNED_OUTPUT = 16_384
"""The trigger keeps room for an answer of at most this; a longer one is what the overflow chain is for."""
SMALL_WINDOW = 32_768
"""Up to such a window the planned answer takes at most a quarter of it."""
TARGET_SHARE = 0.8
CROWDED_SHARE = 0.9
"""Of the window: what a request may take whose fixed parts and queued texts leave too little under the trigger."""
MANUAL_KEEP_DIVISOR = 4
SUMMARY_SHARE_OF_RESERVE = 0.8
PREFIX_SHARE_OF_RESERVE = 0.5
TAIL_SHARE, SUMMARY_SHARE, PREFIX_SHARE, USER_SHARE, EXTRAS_SHARE = 0.45, 0.25, 0.12, 0.2, 0.1
LEAST_TAIL_SHARE, MOST_USER_SHARE = 0.15, 0.5
"""What the tail keeps when something else needs its room, and what the user's words may take for what must stay."""
MIN_FREE = 1_000
"""What a compaction has to work with before its limit is raised to make room."""
LEAST_FREE = 500
"""What it has to have at all: a frame, a few lines of summary and of the user's words."""
MIN_OUTPUT = 256
"""A request is never sent with room for less output than this."""


MARGIN_DIVISOR, MAX_MARGIN = 64, DEFAULT_RESERVE // 4
"""Part of the window that is left free, because not even a counted request is known to the token; of a huge window no
more than a part of the reserve, which is for the output."""
ESTIMATE_ERROR_DIVISOR = 4
"""Part of an estimate by which it may be too low."""


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for one model. `known` is false when `window` is assumed for want of a better one.

    `output_limit` is the longest answer that the model gives and the user wants, `None` where nobody knows it;
    `planned_output` is what of it the trigger keeps room for. `reserve_raised_from` is the configured reserve when it
    was too small for the model and was raised, else `None`.
    """

    window: int
    known: bool
    output_limit: int | None
    planned_output: int
    reserve: int
    keep_recent: int
    trigger: int
    target: int
    max_summary: int
    max_turn_prefix: int
    user_messages: int
    reserve_raised_from: int | None = None

    @property
    def margin(self) -> int:
        """The tokens of the window that no request plans with."""
        return min(self.window // MARGIN_DIVISOR, MAX_MARGIN)

    def output_for(self, request_tokens: int, uncounted_tokens: int = 0) -> int | None:
        """Return the output limit for a request of `request_tokens`: the model's own, or what the window leaves.

        `None` where nobody knows the model's limit: then the server's own holds (R-007).
        """
        if self.output_limit is None:
            return None
        return max(MIN_OUTPUT, min(self.output_limit, self.room_behind(request_tokens, uncounted_tokens)))

    def room_behind(self, request_tokens: int, uncounted_tokens: int = 0) -> int:
        """Return the tokens that the window leaves behind a request; it may be less than none.

        `uncounted_tokens` of the request are an estimate and no provider's count: the more they are, the more stays
        free for their error, at most half of what is left.
        """
        left = self.window - request_tokens - self.margin
        return left - min(uncounted_tokens // ESTIMATE_ERROR_DIVISOR, max(left, 0) // 2)

    def has_no_room(self, request_tokens: int) -> bool:
        """Say whether a request of so many tokens would be refused: nothing is left for an answer."""
        return self.known and self.room_behind(request_tokens) < MIN_OUTPUT


class Allowance(msgspec.Struct, frozen=True, kw_only=True):
    """How the room after a compaction is shared out; `free` is what fixed parts and the queue leave of the target.

    `user_messages` is for what the user said, `user_floor` of it for what must stay: rules, corrections, heads, ends.
    `tail` is what the cut aims at, `tail_ceiling` what the kept tail may become with its first entry whole, `tail_room`
    all that there is for one whose results the model has not seen yet. `spare` is what lies between target and trigger,
    less a margin.
    """

    free: int
    tail: int
    tail_ceiling: int
    tail_room: int
    summary: int
    turn_prefix: int
    user_messages: int
    extras: int
    spare: int = 0
    user_floor: int = 0


USUAL_WINDOWS = (DEFAULT_CONTEXT_WINDOW, 200_000, 262_144, 400_000, 524_288, 1_048_576, 2_097_152)
"""What models come with; a window that nobody names is the first of these that is over what was served."""


def assumed_window(served: int) -> int:
    """Return the window to go by where nobody says how large it is: a request of `served` tokens fits it."""
    return next((window for window in USUAL_WINDOWS if served < window), served * 2)


def budget_for(
    facts: ModelFacts,
    settings: CompactionSettings,
    max_output_tokens: int | None = None,
    *,
    assumed: int = DEFAULT_CONTEXT_WINDOW,
) -> Budget:
    """Return the budget of a model; `max_output_tokens` is the user's bound for all models.

    `assumed` is the window where the facts name none.

    The planned answer takes at most half of the window, of a small one a quarter, and the trigger is never under half
    of the window (R-007).
    """
    known = facts.context_window is not None and facts.context_window > 0
    window = facts.context_window if known and facts.context_window else assumed
    # A quarter of a small window. From there to a middling one the trigger stays the same, so it never falls.
    most = max(window // 4, window - 3 * SMALL_WINDOW // 4)
    limits = [limit for limit in (max_output_tokens, facts.max_output_tokens) if limit]
    planned = min(MAX_PLANNED_OUTPUT, most, *limits)
    adapted = min(DEFAULT_RESERVE, window // 4)
    configured = settings.reserve_tokens
    reserve = adapted if configured is None else min(max(configured, adapted), window // 2)
    keep = settings.keep_recent_tokens
    room = reserve if facts.input_only_limit else max(reserve, planned)
    trigger = max(window - room, window // 2)
    max_summary = int(SUMMARY_SHARE_OF_RESERVE * reserve)
    if settings.max_summary_tokens is not None:
        max_summary = min(max_summary, settings.max_summary_tokens)
    return Budget(
        window=window,
        known=known,
        output_limit=min(limits, default=None),
        planned_output=max(1, planned),
        reserve=reserve,
        keep_recent=min(DEFAULT_KEEP_RECENT, window // 4) if keep is None else min(keep, window // 2),
        trigger=trigger,
        target=int(TARGET_SHARE * trigger),
        max_summary=max(1, max_summary),
        max_turn_prefix=max(1, min(int(PREFIX_SHARE_OF_RESERVE * reserve), max_summary)),
        user_messages=settings.user_message_tokens,
        reserve_raised_from=configured if configured is not None and configured < adapted else None,
    )


def aim_for(budget: Budget, asked: int) -> Budget:
    """Return the budget with the trigger and the target of a compaction that leaves `asked` tokens as they are.

    These are the fixed parts and the queued texts. Where they leave too little under the trigger, nothing comes under
    it: then the limit is most of the window, or all that it has beside the least output.
    """
    whole = budget.window - MIN_OUTPUT - budget.margin
    crowded = int(CROWDED_SHARE * budget.window)
    if budget.trigger - asked >= 2 * MIN_FREE:
        target = max(int(TARGET_SHARE * budget.trigger), (asked + budget.trigger) // 2)
        return msgspec.structs.replace(budget, target=target)
    limit = max(budget.trigger, crowded if crowded - asked >= MIN_FREE else max(crowded, whole))
    return msgspec.structs.replace(budget, trigger=limit, target=asked + int(TARGET_SHARE * max(0, limit - asked)))


def allowance_for(
    budget: Budget,
    *,
    fixed: int,
    queued: int = 0,
    calibration: float = 1.0,
    manual: bool = False,
    keep_tokens: int | None = None,
) -> Allowance:
    """Share out what `fixed` parts (system prompt, tools) and queued texts leave of the target.

    A manual compaction keeps a quarter of the usual tail; `keep_tokens` sets another size. The shares are in plain
    estimated tokens: real ones divided by `calibration`, so that estimates can be compared with them as they are.
    """
    asked = fixed + queued
    free = int(max(0, budget.target - asked) / calibration)
    keep = budget.keep_recent // MANUAL_KEEP_DIVISOR if manual else budget.keep_recent
    if keep_tokens is not None:
        keep = keep_tokens
    share = int(TAIL_SHARE * free)
    tail = min(int(keep / calibration), share)
    return Allowance(
        free=free,
        tail=tail,
        tail_ceiling=min(2 * tail, share),
        tail_room=share,
        summary=min(int(budget.max_summary / calibration), int(SUMMARY_SHARE * free)),
        turn_prefix=min(int(budget.max_turn_prefix / calibration), int(PREFIX_SHARE * free)),
        user_messages=min(int(budget.user_messages / calibration), int(USER_SHARE * free)),
        extras=int(EXTRAS_SHARE * free),
        spare=int(max(0, budget.trigger - budget.margin - max(budget.target, asked)) / calibration),
    )


def reserve_words(allowance: Allowance, floor: int) -> Allowance:
    """Return the shares when `floor` estimated tokens of what the user said must stay.

    What that is over the share of the user's words comes from the tail.
    """
    words = max(allowance.user_messages, floor)
    floor = min(floor, words)
    shares = _take_from_tail(allowance, words - allowance.user_messages)
    return msgspec.structs.replace(shares, user_messages=words, user_floor=floor)


def leave_room(allowance: Allowance, message: int) -> Allowance:
    """Return the shares when a message of `message` estimated tokens has to stay whole (R-034).

    It may take of the share of the user's words what is not reserved there. The rest comes from the tail; where that is
    not enough, all shares become smaller.
    """
    words = allowance.user_messages - allowance.user_floor
    needed = message - words
    if needed <= 0:
        return allowance
    given = min(needed, max(0, allowance.tail_room - int(LEAST_TAIL_SHARE * allowance.free)))
    shares = _take_from_tail(allowance, given)
    rest = max(allowance.free - message, min(MIN_FREE, allowance.free + allowance.spare - message))
    part = min(1.0, max(0, rest) / max(1, allowance.free - given - words))
    return msgspec.structs.replace(
        shares,
        tail=int(shares.tail * part),
        tail_ceiling=int(shares.tail_ceiling * part),
        tail_room=int(shares.tail_room * part),
        summary=int(shares.summary * part),
        turn_prefix=int(shares.turn_prefix * part),
        user_messages=int(shares.user_messages * part),
        user_floor=int(shares.user_floor * part),
        extras=int(shares.extras * part),
    )


def lend_tail(allowance: Allowance, budget: Budget, kept: int, calibration: float) -> Allowance:
    """Return the shares when the kept tail has `kept` estimated tokens: what it leaves of its room is the summary's.

    Never more than the budget has for a summary.
    """
    most = int(budget.max_summary / calibration)
    unused = allowance.tail_room - kept
    if unused <= 0 or allowance.summary >= most:
        return allowance
    return msgspec.structs.replace(allowance, summary=min(most, allowance.summary + unused))


def _take_from_tail(allowance: Allowance, tokens: int) -> Allowance:
    room = max(0, allowance.tail_room - tokens)
    return msgspec.structs.replace(
        allowance,
        tail=min(allowance.tail, room),
        tail_ceiling=min(allowance.tail_ceiling, room),
        tail_room=room,
    )
