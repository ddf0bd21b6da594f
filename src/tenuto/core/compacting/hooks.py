"""The hooks of extensions around compactions and moves: asked before anything is tried, told of what came of it.

With no extension that listens, all of this costs a look at two folders.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import msgspec

from tenuto.compaction.plan.plan import CompactionPlan, NothingToCompact
from tenuto.compaction.summary.branch import common_ancestor
from tenuto.compaction.summary.view import clip_to_tokens
from tenuto.compaction.ways.environment import BoundContext
from tenuto.compaction.ways.ladder import LadderCompaction
from tenuto.core.errors import CompactionRefusedError, MoveRefusedError
from tenuto.core.hooks.asking import ask
from tenuto.core.state.compaction_state import CompactionRequest
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.protocol.compaction import CompactionStrategy
from tenuto.protocol.entry import BranchSummaryEntry
from tenuto.protocol.hooks import (
    BeforeCompactAnswer,
    CompactionPreparation,
    FileOps,
    PreparationSettings,
    SessionBeforeCompact,
    SessionBeforeTree,
    SessionCompact,
    SessionCompactFailed,
    SessionTree,
    SuppliedBranchSummary,
    SuppliedCompaction,
    TreePreparation,
)
from tenuto.protocol.message import CompactionEntry, HistoryEvent
from tenuto.session.view.tree import since

NOTES_DIVISOR = 20
"""Of the window, at most this part is spent on texts that extensions add, and as much on what they ask to stress."""


async def ask_before_compaction(
    services: SessionServices, context: BoundContext, request: CompactionRequest, strategy: CompactionStrategy
) -> tuple[BoundContext, Sequence[tuple[str, SuppliedCompaction]]]:
    """Ask every hook command and extension once; return the context with what they add, and what extensions supply.

    The last extension's comes first. Raises `CompactionRefusedError` when one cancels the compaction. A user's
    `/compact` that will only be told that there is nothing to compact asks nobody.
    """
    host = await services.extensions.host()
    asks_host = host is not None and host.listens("session_before_compact")
    if not asks_host and services.hooks is None:
        return context, ()
    plan = context.environment.plan(manual=context.is_manual)
    is_idle = isinstance(plan, NothingToCompact) and not plan.edits
    if is_idle and context.is_manual and isinstance(strategy, LadderCompaction):
        return context, ()
    answers = await _ask_commands(services, request)
    if host is None or not asks_host:
        return _with_additions(context, answers), ()
    event = SessionBeforeCompact(
        session_id=services.id,
        cwd=str(services.session.cwd),
        preparation=_prepare(context, plan, enabled=services.settings.compaction.enabled),
        branch_entries=tuple(context.environment.current.path),
        custom_instructions=request.focus,
        reason=request.reason,
        will_retry=request.will_retry,
    )
    named = await host.ask_before_compact(
        event, lambda name: context.environment.progress(f"asking the extension {name}", 0)
    )
    for one in named:
        if one.answer.cancel:
            why = _reason(one.answer.cancel_reason)
            raise CompactionRefusedError(f"the extension {one.extension} cancelled the compaction{why}")
    answers += [(one.extension, one.answer) for one in named]
    supplied = [(extension, answer.compaction) for extension, answer in answers if answer.compaction is not None]
    return _with_additions(context, answers), supplied[::-1]


async def _ask_commands(services: SessionServices, request: CompactionRequest) -> list[tuple[str, BeforeCompactAnswer]]:
    """Return what hook commands say to a compaction: what they add is stressed in the summary.

    Raises `CompactionRefusedError` when one blocks it.
    """
    trigger = _trigger(request)
    details = {"trigger": trigger, "custom_instructions": request.focus}
    heard = await ask(services, "PreCompact", details, names=(trigger,))
    if heard is None:
        return []
    for command, answer in heard.answers:
        if answer.verdict == "deny" or answer.ends:
            raise CompactionRefusedError(f"the {command.name} cancelled the compaction{_reason(answer.reason)}")
    return [(command.name, BeforeCompactAnswer(add_focus=answer.context)) for command, answer in heard.answers]


def _trigger(request: CompactionRequest) -> str:
    """Return who wants a compaction, in the words of hook files."""
    return "manual" if request.reason == "manual" else "auto"


def notify_compacted(services: SessionServices, entry: CompactionEntry, request: CompactionRequest) -> None:
    """Tell hook commands and extensions of a compaction that is on disk; nothing waits for extensions."""
    if services.hooks is not None:
        from tenuto.core.hooks.life import note_compaction

        note_compaction(services, entry, _trigger(request))
    host = services.extensions.loaded
    if host is not None:
        host.tell(
            "session_compact",
            SessionCompact(
                session_id=services.id,
                cwd=str(services.session.cwd),
                compaction_entry=entry,
                from_extension=entry.from_extension,
                reason=request.reason,
                will_retry=request.will_retry,
            ),
        )


def notify_compaction_failed(live: LiveSession, request: CompactionRequest, error: str, *, aborted: bool) -> None:
    """Tell the extensions of a compaction that came to nothing; nothing waits for them."""
    host = live.extensions.loaded
    if host is not None:
        host.tell(
            "session_compact_failed",
            SessionCompactFailed(
                session_id=live.id,
                cwd=str(live.session.cwd),
                reason=request.reason,
                error=error,
                aborted=aborted,
                will_retry=request.will_retry,
                tokens_before=live.measure().tokens,
            ),
        )


async def ask_before_move(
    services: SessionServices,
    old_path: Sequence[HistoryEvent],
    new_path: Sequence[HistoryEvent],
    *,
    notes: bool,
    asking: Callable[[str], None],
) -> tuple[str, SuppliedBranchSummary] | None:
    """Ask every extension before the leaf moves; return the notes that one supplies, with its name.

    They are asked whether notes are wanted or not. Raises `MoveRefusedError` when one is against it.
    """
    host = await services.extensions.host()
    if host is None or not host.listens("session_before_tree"):
        return None
    ancestor = common_ancestor(old_path, new_path)
    event = SessionBeforeTree(
        session_id=services.id,
        cwd=str(services.session.cwd),
        preparation=TreePreparation(
            target=new_path[-1].seq if new_path else 0,
            old_leaf=old_path[-1].seq if old_path else 0,
            common_ancestor=ancestor,
            entries_to_summarize=tuple(since(old_path, ancestor + 1)),
            user_wants_summary=notes,
        ),
    )
    supplied: tuple[str, SuppliedBranchSummary] | None = None
    for one in await host.ask_before_tree(event, asking):
        if one.answer.cancel:
            why = _reason(one.answer.cancel_reason)
            raise MoveRefusedError(f"the extension {one.extension} is against going there{why}")
        if one.answer.summary is not None and one.answer.summary.summary.strip():
            supplied = one.extension, one.answer.summary
    return supplied


def notify_moved(services: SessionServices, old_leaf: int, new_leaf: int, notes: BranchSummaryEntry | None) -> None:
    """Tell the extensions that the leaf has moved; nothing waits for them."""
    host = services.extensions.loaded
    if host is not None:
        host.tell(
            "session_tree",
            SessionTree(
                session_id=services.id,
                cwd=str(services.session.cwd),
                new_leaf=new_leaf,
                old_leaf=old_leaf,
                summary_entry=notes,
                from_extension=notes.from_extension if notes is not None else "",
            ),
        )


def _reason(given: str) -> str:
    """Return an extension's reason as it ends a sentence."""
    return f": {' '.join(given.split())}" if given.strip() else ""


def _prepare(context: BoundContext, plan: CompactionPlan | NothingToCompact, *, enabled: bool) -> CompactionPreparation:
    """Return what is about to be summarised; nothing, from entry 0 on, where only results can be shortened."""
    budget = context.environment.current.budget
    settings = PreparationSettings(
        enabled=enabled,
        reserve_tokens=budget.reserve,
        keep_recent_tokens=budget.keep_recent,
        max_summary_tokens=budget.max_summary,
    )
    if isinstance(plan, NothingToCompact):
        return CompactionPreparation(tokens_before=context.token_count, settings=settings)
    files = plan.file_operations
    return CompactionPreparation(
        messages_to_summarize=plan.history,
        turn_prefix_messages=plan.turn_prefix,
        is_split_turn=plan.is_split_turn,
        previous_summary=plan.previous_summary,
        file_ops=FileOps(read=files.read, modified=files.modified),
        tokens_before=plan.tokens_before,
        first_kept_index=plan.cut,
        settings=settings,
    )


def _with_additions(context: BoundContext, answers: Sequence[tuple[str, BeforeCompactAnswer]]) -> BoundContext:
    """Return the context with what the extensions add, each bounded by its share."""
    limit = context.max_context_size // NOTES_DIVISOR
    focus = _bounded([answer.add_focus.strip() for _, answer in answers], limit)
    notes = _bounded([f"{name}: {text}" for name, answer in answers if (text := answer.add_text.strip())], limit)
    environment = context.environment
    session_data = msgspec.structs.replace(environment.session_data, notes=(*environment.session_data.notes, *notes))
    return dataclasses.replace(
        context,
        focus="\n".join(text for text in (context.focus, *focus) if text),
        environment=dataclasses.replace(environment, session_data=session_data),
    )


def _bounded(texts: Sequence[str], limit: int) -> tuple[str, ...]:
    """Return the texts that are not empty, each within its share of `limit` tokens, with a mark where one is cut."""
    given = [text for text in texts if text]
    return tuple(clip_to_tokens(text, limit // len(given)) for text in given)
