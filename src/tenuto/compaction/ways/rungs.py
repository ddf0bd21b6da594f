"""The single ways of making the view smaller that need the whole environment, one function each (DESIGN section 6).

Each returns an outcome, `None` where it does not apply, or raises `RungError`; none writes anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

import msgspec

from tenuto.compaction.data.calls import error_text
from tenuto.compaction.data.files import with_file_lists
from tenuto.compaction.measure.budget import MANUAL_KEEP_DIVISOR
from tenuto.compaction.measure.meter import Meter
from tenuto.compaction.measure.weight import estimate_message
from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact
from tenuto.compaction.summary.additions import affordable, audit_names, cost, unnamed_errors
from tenuto.compaction.summary.digest import digest, list_room
from tenuto.compaction.summary.prompts import Prompts
from tenuto.compaction.summary.summarise import Summariser, SummaryContext, SummaryError
from tenuto.compaction.summary.summary import (
    MAX_IDENTIFIERS,
    add_context,
    add_identifiers,
    exact_names,
    shorten,
)
from tenuto.compaction.summary.view import SessionData, build_replacement
from tenuto.compaction.ways.environment import BoundContext, SummaryModel, accept
from tenuto.compaction.ways.remote import plan_from_history
from tenuto.compaction.ways.validate import evaluate, find_flaw
from tenuto.protocol.compaction import CompactionOutcome, NothingLeftError, RungError
from tenuto.protocol.entry import ViewEdit
from tenuto.protocol.message import AssistantMessage, Message, NameAudit, ToolResultMessage
from tenuto.protocol.part import text_of
from tenuto.protocol.usage import Usage
from tenuto.session.view.projection import edit_message
from tenuto.text.estimate import estimate_text

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
    """Say whether a saving pays for what comes after the first edit and has to be read again."""
    return saved >= max(MIN_WARM_SAVING, int(MIN_WARM_SAVING_SHARE * window))


def _first_preserved(view: Sequence[Message], preserved_groups: int) -> int:
    """Return the place of the oldest group that stays. Ids do not tell: some sessions have one for all their calls."""
    groups = [
        place for place, message in enumerate(view) if isinstance(message, AssistantMessage) and message.tool_calls
    ]
    if not preserved_groups:
        return len(view)
    return groups[-preserved_groups] if len(groups) > preserved_groups else 0


def propose_summary(
    plan: CompactionPlan,
    summary: str,
    session_data: SessionData,
    prompts: Prompts,
    usage: Usage | None = None,
    *,
    rung: str = "serialised",
) -> CompactionOutcome:
    """Return the outcome of a model's accepted summary: what it lacks is added from data.

    That is errors, exact names and file lists. Beside the lists a full summary loses a tenth of its room to it at most;
    one that leaves room gets up to a fifth.
    """
    limit = plan.allowance.summary
    audited = audit_names(plan, summary)
    room = max(limit // 10, min(limit // 5, limit - estimate_text(summary)))
    errors = affordable(unnamed_errors(plan, summary), room)
    room -= sum(map(cost, errors))
    names = affordable(audited.missing[:MAX_IDENTIFIERS], room)
    text = shorten(summary, limit - sum(map(cost, (*errors, *names))))
    for error in errors:
        text = add_context(text, error)
    text = add_identifiers(text, names)
    text = with_file_lists(text, plan.file_operations, list_room(plan, session_data))
    audit = NameAudit(found=audited.found, kept=audited.found - len(audited.missing), added=len(names))
    return _propose(plan, text, session_data, prompts, usage=usage, rung=rung, audit=audit)


def propose_digest(
    plan: CompactionPlan, session_data: SessionData, prompts: Prompts, usage: Usage | None = None
) -> CompactionOutcome:
    """Return the outcome that needs no model (rung 7); `usage` is what failed attempts cost."""
    text = digest(plan, session_data)
    audited = audit_names(plan, text)
    audit = NameAudit(found=audited.found, kept=audited.found - len(audited.missing))
    return _propose(plan, text, session_data, prompts, usage=usage, rung="digest", audit=audit)


def _propose(
    plan: CompactionPlan,
    summary: str,
    session_data: SessionData,
    prompts: Prompts,
    *,
    usage: Usage | None,
    rung: str,
    audit: NameAudit,
) -> CompactionOutcome:
    return CompactionOutcome(
        summary=summary,
        replacement=build_replacement(plan, summary, session_data, prompts),
        first_kept_index=plan.cut,
        edits=plan.edits,
        details=msgspec.structs.replace(plan.file_operations.details(), names=audit if audit.found else None),
        usage=usage,
        rung=rung,
    )


KEEP_SHARES = (1, 2, 8)
"""What the digest's tail is divided by, one attempt after the other: keep, half, next to nothing."""


class Rung(Protocol):
    """One way of summarising what a plan covers."""

    async def __call__(self, ctx: BoundContext, plan: CompactionPlan, /) -> CompactionOutcome | None:
        """Return the outcome, or `None` where this way does not apply. Raises `RungError`."""
        ...


def hide(ctx: BoundContext) -> CompactionOutcome | None:
    """Return the outcome that hides old results (rung 1), `None` when there is nothing to hide."""
    edits = hide_results(ctx.environment.current.view)
    return CompactionOutcome(edits=edits, rung="hide") if edits else None


def hide_if_it_pays(ctx: BoundContext, limit: int | None = None) -> CompactionOutcome | None:
    """Return the same only if it brings the context to its target and is worth what a changed prefix costs.

    `limit` is tokens, `None` for the target.
    """
    outcome = hide(ctx)
    if outcome is None:
        return None
    current = ctx.environment.current
    proposal = evaluate(outcome, current)
    pays = not ctx.cache.is_warm or is_worth_a_cold_cache(proposal.gain, current.budget.window)
    limit = current.budget.target if limit is None else limit
    return outcome if pays and proposal.tokens_after <= limit else None


async def serialised_rungs(ctx: BoundContext) -> list[Rung]:
    """Return rung 4 once for every model that may write the summary, in the order to try them."""
    return [partial(_summarise, model) for model in await ctx.environment.summarisers()]


async def _summarise(model: SummaryModel, ctx: BoundContext, plan: CompactionPlan) -> CompactionOutcome | None:
    """Return the outcome, `None` for a model that could not be reached a moment ago. Raises `SummaryError`."""
    environment = ctx.environment
    if model.model.facts.id in environment.patience.given_up:
        return None
    context = SummaryContext(
        facts=model.model.facts,
        budget=model.budget,
        prompts=environment.prompts,
        focus=ctx.focus,
        constraints=environment.constraints,
        calibration=plan.size.calibration,
    )
    plan = plan_from_history(environment, plan)
    summariser = Summariser(model.model.client, context, environment.progress, environment.patience)
    try:
        summary = await summariser.summarise(plan)
    except SummaryError as error:
        if model.model.facts.id != environment.request.model.id:
            error.notice = f"{model.model.facts.id} could not write the summary: {error}."
        raise
    finally:
        environment.spending.add(summariser.usage)
    return propose_summary(plan, summary, environment.session_data, environment.prompts, environment.spending.usage)


def build_digest(ctx: BoundContext, reason: str = "") -> CompactionOutcome:
    """Return the digest that needs no model (rung 7, R-003), with as much of the tail as fits.

    `reason` is why no other way could be used. Raises `RungError` when not even this makes the context smaller.
    """
    environment = ctx.environment
    current = environment.current
    usual = current.budget.keep_recent // (MANUAL_KEEP_DIVISOR if ctx.is_manual else 1)
    keep = environment.keep_tokens or usual
    best: CompactionOutcome | None = None
    for divisor in KEEP_SHARES:
        plan = environment.plan(manual=ctx.is_manual, keep_tokens=keep // divisor)
        if isinstance(plan, NothingToCompact):
            reason = plan.reason
            continue
        usage = environment.spending.usage
        plan = plan_from_history(environment, plan)
        outcome = propose_digest(plan, environment.session_data, environment.prompts, usage)
        flaw = find_flaw(evaluate(outcome, current), current)
        if flaw:
            reason = flaw
            continue
        best = outcome
        try:
            accept(ctx, outcome)
        except RungError:
            continue
        break
    if best is None:
        raise RungError(f"the conversation could not be made smaller: {reason}")
    return best


def plan_or_shorten(ctx: BoundContext) -> CompactionPlan | CompactionOutcome:
    """Return the plan, or where there is nothing to summarise the edits that shorten huge results instead.

    Raises `NothingLeftError` when there is neither.
    """
    plan = ctx.environment.plan(manual=ctx.is_manual)
    if not isinstance(plan, NothingToCompact):
        return plan
    if not plan.edits:
        raise NothingLeftError(plan.reason)
    note = f"Shortened {len(plan.edits)} large results in the model's view."
    return CompactionOutcome(edits=plan.edits, rung="truncate", notes=(note,))
