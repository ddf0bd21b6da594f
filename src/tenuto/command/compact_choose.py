"""`/compact up-to` and `/compact from`: the user chooses the message that divides what stays from what does not."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.message import DeveloperMessage, Message, UserMessage
from tenuto.protocol.operation import CompactFromOperation, CompactSessionOperation
from tenuto.protocol.part import text_of
from tenuto.text.bounding import shorten
from tenuto.text.figures import format_count

TITLES = {
    "up-to": "Summarise everything before which message?",
    "from": "Put notes in the place of which message and everything after it?",
    "undo up-to": "Undo, and summarise everything before which message instead?",
}
NOTHING = {
    "up-to": "There is no message with anything before it that is not summarised already.",
    "from": "There is no message yet.",
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
    from tenuto.core.pending import find_gainless

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
        if isinstance(message, UserMessage) and message.seq and message.origin in ("typed", "command"):
            earlier = (one for one in view[1:place] if one.seq and not isinstance(one, DeveloperMessage))
            if word != "from" and next(earlier, None) is None:
                continue
            size = format_count(round(after * calibration))
            effect = f"~{size} tokens become notes" if word == "from" else f"~{size} tokens stay"
            label = " ".join(shorten(text_of(message.parts), 160).split()) or "(image)"
            rows.append(Choice(f"{word} {message.seq}", label, f"#{message.seq} · {effect}"))
    return Choose(TITLES[word], "compact", tuple(rows)) if rows else Say(NOTHING[word], "warning")
