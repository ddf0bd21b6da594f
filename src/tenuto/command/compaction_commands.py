"""Commands on the context: compact it, show it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, Say, ShowContext
from tenuto.compaction.measure.budget import MANUAL_KEEP_DIVISOR, Budget
from tenuto.compaction.measure.meter import divide, sizes_over_time
from tenuto.compaction.measure.weight import estimate_tools
from tenuto.core.compacting.undo import (
    Undone,
    UndoRefusedError,
    find_undoable,
    redo_compaction,
    seq_before,
    undo_compaction,
    undo_without_later_turns,
)
from tenuto.core.errors import TaskFailedError
from tenuto.core.runtime import Runtime
from tenuto.core.state.live import LiveSession
from tenuto.core.state.place import find_place
from tenuto.core.state.prompt import build_system_entry, instructions_in
from tenuto.core.state.reminders import due_messages, is_place_due, last_told
from tenuto.core.state.request import describe_web_search
from tenuto.protocol.entry import USER_ORIGINS
from tenuto.protocol.message import CompactionEntry, DeveloperMessage, Message, SystemMessage, UserMessage
from tenuto.protocol.model import ModelFacts
from tenuto.protocol.operation import (
    AcceptCompactionOperation,
    CompactFromOperation,
    CompactSessionOperation,
    DropCompactionOperation,
    ForkSessionOperation,
    PreviewCompactionOperation,
)
from tenuto.protocol.part import text_of
from tenuto.protocol.usage import ContextReport
from tenuto.text.bounding import shorten
from tenuto.text.estimate import estimate_text
from tenuto.text.figures import describe_origin, format_count, format_prices

UNDO = re.compile(r"(?:undo|redo|undo fork|undo drop|undo up-to(?: #?\d+)?)\Z")
CHOSEN = re.compile(r"(up-to|from)(?:\s+#?(\d+)(?:\s+(.*))?)?\Z", re.DOTALL)
"""A focus may begin with these words as well; with a number behind it, or nothing, it is a message that is meant."""
PROPOSED = re.compile(r"(accept|edit|drop)(?:\s+(.*))?\Z", re.DOTALL)


async def run_compact(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Start a compaction; the argument is extra guidance for the summary, unless it is a word that means more."""
    words = " ".join(argument.lower().split())
    if UNDO.match(words):
        return await run_undo(runtime, words)
    if argument == "--preview" or argument.startswith("--preview "):
        return await run_preview(runtime, argument.removeprefix("--preview").strip())
    proposed = PROPOSED.match(argument)
    if proposed is not None and (runtime.live.compaction.pending is not None or not proposed[2]):
        return await run_answer(runtime, proposed[1], proposed[2] or "")
    chosen = CHOSEN.match(argument)
    if chosen is not None:
        return await run_chosen(runtime, chosen[1], int(chosen[2] or 0), chosen[3] or "")
    if runtime.executor.tasks.running(runtime.session_id) is None and not runtime.live.task.submissions:
        question = await ask_about_gain(runtime, argument)
        if question is not None:
            return [question]
    await runtime.submit(
        CompactSessionOperation(session_id=runtime.session_id, reason="manual", focus=argument or None)
    )
    return []


TITLES = {
    "up-to": "Summarise everything before which message?",
    "from": "Put notes in the place of which message and everything after it?",
    "undo up-to": "Undo, and summarise everything before which message instead?",
}
NOTHING = {
    "up-to": "There is no message with anything before it that is not summarised already.",
    "from": "There is no message that is not summarised already.",
    "undo up-to": "There is no message with anything before it.",
}


async def run_chosen(runtime: Runtime, word: str, seq: int, focus: str) -> list[CommandOutcome]:
    """Compact up to the message with that seq, or from it on; without one, offer the user's messages."""
    if not seq:
        return [offer_messages(runtime, word, runtime.live.session.get_llm_history())]
    session_id = runtime.session_id
    if word == "from":
        await runtime.submit(CompactFromOperation(session_id=session_id, target=seq, focus=focus or None))
    else:
        await runtime.submit(CompactSessionOperation(session_id=session_id, first_kept=seq, focus=focus or None))
    return []


async def ask_about_gain(runtime: Runtime, focus: str) -> CommandOutcome | None:
    """Return a question where a compaction would save too little to be worth a model's call; `None` elsewhere."""
    from tenuto.core.compacting.preview import find_gainless

    found = await find_gainless(runtime.live)
    if found is None:
        return None
    reason = found.reason.partition(";")[0]
    return Choose(
        f"{reason[0].upper()}{reason[1:]}. Compact all the same?",
        "compact",
        (
            Choice("", "Leave it as it is", "nothing changes", present=True),
            Choice(f"up-to {found.cut} {focus}".rstrip(), "Compact", f"from #{found.cut} on all stays word for word"),
        ),
    )


def offer_messages(runtime: Runtime, word: str, view: Sequence[Message]) -> CommandOutcome:
    """Return the user's messages of a view to choose from, the newest first, with what each choice comes to."""
    meter = runtime.live.meter
    calibration = runtime.live.measure().calibration
    rows: list[Choice] = []
    after = 0
    for place in range(len(view) - 1, -1, -1):
        message = view[place]
        after += meter.estimate(message)
        if isinstance(message, UserMessage) and message.seq and message.origin in USER_ORIGINS:
            earlier = (one for one in view[1:place] if one.seq and not isinstance(one, DeveloperMessage))
            if word != "from" and next(earlier, None) is None:
                continue
            size = format_count(round(after * calibration))
            effect = f"~{size} tokens become notes" if word == "from" else f"~{size} tokens stay"
            label = " ".join(shorten(text_of(message.parts), 160).split()) or "(image)"
            rows.append(Choice(f"{word} {message.seq}", label, f"#{message.seq} · {effect}"))
    return Choose(TITLES[word], "compact", tuple(rows)) if rows else Say(NOTHING[word], "warning")


UP_TO = re.compile(r"up-to\s+#?(\d+)(?:\s+(.*))?\Z", re.DOTALL)
ACCEPT_LINE = "/compact accept\n"


async def run_preview(runtime: Runtime, focus: str) -> list[CommandOutcome]:
    """Have a compaction made and shown; an event brings it, and nothing is written before it is accepted."""
    chosen = UP_TO.match(focus)
    first_kept, stress = (int(chosen[1]), chosen[2]) if chosen else (0, focus)
    await runtime.submit(
        PreviewCompactionOperation(session_id=runtime.session_id, focus=stress or None, first_kept=first_kept)
    )
    return []


async def run_answer(runtime: Runtime, word: str, text: str) -> list[CommandOutcome]:
    """Accept the proposal (with `text` as its summary, if there is one), let it be edited, or drop it."""
    if word == "accept":
        await runtime.submit(AcceptCompactionOperation(session_id=runtime.session_id, summary=text or None))
        return []
    if word == "drop":
        await runtime.submit(DropCompactionOperation(session_id=runtime.session_id))
        return []
    from tenuto.core.compacting.preview import require_pending

    summary = require_pending(runtime.live).summary
    if not summary:
        raise TaskFailedError("this proposal has no summary that could be edited; /compact accept or /compact drop")
    return [Edit(f"{ACCEPT_LINE}{summary}")]


async def run_undo(runtime: Runtime, words: str) -> list[CommandOutcome]:
    """Carry out what `words` say. Raises `TaskFailedError` when it cannot be."""
    live = runtime.live
    if live.task.submissions or runtime.executor.tasks.running(live.id) is not None:
        raise TaskFailedError(f"busy: press Esc first, then /compact {words}")
    if words == "undo fork":
        return await _fork_before(runtime)
    if words.startswith("undo up-to"):
        return await _compact_again(runtime, words.removeprefix("undo up-to").strip().removeprefix("#"))
    try:
        match words:
            case "undo":
                undone = undo_compaction(live)
            case "undo drop":
                undone = undo_without_later_turns(live)
            case _:
                undone = redo_compaction(live)
    except UndoRefusedError as error:
        return [Say(str(error), "error"), *_offer(error)]
    _show(runtime, undone)
    return []  # the core has put a notice into the transcript


def _show(runtime: Runtime, undone: Undone) -> None:
    """Show the session again where another part of the conversation is the present one now."""
    if undone.has_moved:
        runtime.opener.show_again(runtime.session_id)


def _offer(error: UndoRefusedError) -> list[CommandOutcome]:
    """Offer what can be done instead (R-056); leaving it is the first row, because nothing asks for a hurry."""
    rows = [Choice("", "Leave it as it is", "nothing changes", present=True)]
    if error.drop_tokens:
        size = format_count(error.drop_tokens)
        rows.append(
            Choice("undo drop", "Undo, and leave the later turns", f"~{size} tokens; /compact redo brings back")
        )
    if isinstance(error.change, CompactionEntry):
        rows.append(
            Choice("undo up-to", "Undo, and compact up to a message that you choose", "keeps more word for word")
        )
    return [Choose("The undo would be over the limit", "compact", tuple(rows))] if len(rows) > 1 else []


async def _compact_again(runtime: Runtime, seq: str) -> list[CommandOutcome]:
    """Undo the newest compaction and compact up to a chosen message in one step."""
    live = runtime.live
    change = find_undoable(live.session)
    if not isinstance(change, CompactionEntry):
        raise TaskFailedError("the newest change is no compaction; /compact undo reverts it")
    if seq:
        operation = CompactSessionOperation(session_id=live.id, first_kept=int(seq), undoing=change.seq)
        await runtime.submit(operation)
        return []
    from tenuto.core.compacting.environment import context_without

    return [offer_messages(runtime, "undo up-to", context_without(live, change.seq).view)]


async def _fork_before(runtime: Runtime) -> list[CommandOutcome]:
    """Go on in a copy of the session that ends before the newest compaction; this one stays as it is."""
    origin = runtime.session_id
    seq = seq_before(runtime.live.session, find_undoable(runtime.live.session))
    if not seq:
        raise TaskFailedError("there is nothing before that compaction")
    await runtime.submit(ForkSessionOperation(session_id=origin, seq=seq))
    return [Say(f"This is a copy from before the compaction; the whole session is {origin[:8]}.")]


async def run_context(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the meter's own numbers, by part: the same that the footer and the trigger use (R-024)."""
    del argument
    live = runtime.live
    if is_place_due(last_told(live.session.get_llm_history()), live.session.cwd):
        live.reminders.place = await find_place(live.session.cwd, live.tool_context.environ)
    return [ShowContext(report_context(live))]


def report_context(live: LiveSession) -> ContextReport:
    """Return the window by part, with the meter's own number.

    Before the first request it is what that would begin with, because nothing is in the log yet.
    """
    view: list[Message] = list(live.session.get_llm_history())
    budget = live.budget()
    is_first = not view or not isinstance(view[0], SystemMessage)
    if is_first:
        due = due_messages({}, live.mode_text, live.session.cwd, live.clock(), live.reminders.place)
        view = [build_system_entry(live), *view, *due]
        size = live.measure_path(view, live.session.path())
    else:
        size = live.measure()
    system = view[0]
    instructions = estimate_text(instructions_in(system.text)) if isinstance(system, SystemMessage) else 0
    return ContextReport(
        parts=divide(view, size, tools=estimate_tools(live.tool_schemas()), instructions=instructions),
        tokens=size.tokens,
        estimated=size.estimated,
        window=budget.window,
        known=budget.known,
        trigger=budget.trigger,
        free=max(0, budget.trigger - size.tokens),
        reserve=max(0, budget.window - max(size.tokens, budget.trigger)),
        next_request=is_first,
        history=sizes_over_time(live.session.path()),
        facts=_facts(live, budget),
    )


def _reserved(budget: Budget) -> str:
    """Say which other number decides what of the window is reserved for output, if any does (DESIGN section 4)."""
    held = budget.window - budget.trigger
    if held == budget.reserve:
        return ""
    if held == budget.planned_output:
        return "; a planned answer is larger and is reserved"
    return "; at most half of the window is reserved"


def _facts(live: LiveSession, budget: Budget) -> tuple[tuple[str, str], ...]:
    window = f"{budget.window:,}"
    origin = describe_origin(live.facts.source, live.facts.assumed_from)
    if budget.known and origin:
        window += f" ({origin})"
    elif not budget.known:
        served = live.served_tokens()
        proof = f"; it has served {served:,}" if served else ""
        window += f", assumed: the model's window is not known{proof}"
    raised = budget.reserve_raised_from
    reserve = f"{budget.reserve:,}"
    if raised is not None:
        reserve += f" (the configured {raised:,} is too small for this model)"
    reserve += _reserved(budget)
    return (
        ("window", window),
        *_prices(live.facts),
        ("longest answer", "the server's own limit" if budget.output_limit is None else f"{budget.output_limit:,}"),
        ("reserve_tokens", reserve),
        ("kept word for word", _kept(budget)),
        ("summary at most", f"{budget.max_summary:,}"),
        ("automatic", _automatic(live, budget)),
        *([("web search", search)] if (search := describe_web_search(live)) else []),
    )


def _prices(facts: ModelFacts) -> tuple[tuple[str, str], ...]:
    """Return a row for prices that are assumed; the others are in `/model`."""
    if facts.price_source not in ("name", "nearest"):
        return ()
    price = format_prices(facts.input_price, facts.output_price)
    return (("price", f"{price} ({describe_origin(facts.price_source, facts.assumed_from)})"),) if price else ()


def _kept(budget: Budget) -> str:
    """Say what the next compaction aims at keeping: whole steps, so that it is no exact number."""
    manual = budget.keep_recent // MANUAL_KEEP_DIVISOR
    return f"about {budget.keep_recent:,} at the end, {manual:,} with /compact; and the last step, whatever its size"


def _automatic(live: LiveSession, budget: Budget) -> str:
    """Say whether and when the next automatic compaction comes."""
    if not live.settings.compaction.enabled:
        return "off (compaction.enabled = false)"
    if live.compaction.automatic.is_stopped:
        return "stopped, because two in a row were of no use, until you compact or change the model"
    if live.measure().fixed >= budget.trigger:
        return f"on, over {budget.window:,}: system prompt and tools alone are over {budget.trigger:,}"
    waits = live.compaction.automatic.waits_for
    return f"on, over {waits:,} after the last one that failed or was undone" if waits > budget.trigger else "on"
