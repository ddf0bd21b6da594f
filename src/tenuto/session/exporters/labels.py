"""The words that every export uses for the same things."""

from __future__ import annotations

import msgspec

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import ShellEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.describe import compaction_sizes
from tenuto.session.exporters.source import Call, Piece
from tenuto.session.results import result_facts
from tenuto.text.call_summary import summarise_call
from tenuto.text.figures import (
    REASON_WORDS,
    describe_rung,
    format_bytes,
    format_cost,
    format_count,
    format_seconds,
)
from tenuto.text.writable import to_json

LONG_LINES = 30
LONG_CHARACTERS = 3_000
"""An output above either is folded where not everything is."""


def is_long(text: str) -> bool:
    """Return whether a text is too long to be shown unfolded."""
    return len(text) > LONG_CHARACTERS or text.count("\n") >= LONG_LINES


def first_line(text: str, length: int = 80) -> str:
    """Return how a text begins, on one line of at most `length` characters."""
    line = sanitize_line(text[: length * 4])
    return line if len(line) <= length else line[: length - 1] + "…"


def branch_name(piece: Piece) -> str:
    """Return what a branch is called: how it begins, and how much it is."""
    said = next((entry for entry in piece.entries if isinstance(entry, UserMessage)), None)
    begin = first_line(text_of(said.parts), 60) if said is not None else ""
    return f"{begin or 'left here'} ({len(piece.entries):,} {'entry' if len(piece.entries) == 1 else 'entries'})"


def call_subject(call: Call) -> str:
    """Return the path, command or pattern of a call, on one line."""
    return sanitize_line(summarise_call(call.part.name, call.part.arguments))


def call_state(result: ToolResultMessage | None) -> str:
    """Return how a call ended, in one word: done, failed, denied, interrupted, or unanswered."""
    if result is None:
        return "unanswered"
    if result.denied:
        return "denied"
    if result.interrupted:
        return "interrupted"
    return "failed" if result.is_error else "done"


def shell_facts(entry: ShellEntry) -> list[str]:
    """Return how a command of the user ended, and what is to be known of its output."""
    ending = "not finished" if entry.exit_code is None else f"exit {entry.exit_code}"
    facts = ["interrupted" if entry.interrupted else ending]
    facts += [format_seconds(entry.duration)] if entry.duration >= 1 else []
    facts += ["kept from the model"] if entry.excluded else []
    facts += ["not all of its output"] if entry.truncated else []
    return facts


def call_facts(result: ToolResultMessage | None) -> list[str]:
    """Return what became of a call, most telling first."""
    facts = [] if call_state(result) == "done" else [call_state(result)]
    if result is None:
        return facts
    facts += [" ".join(words for words, _tone in fact) for fact in result_facts(result, lines=True)]
    return [*facts, format_seconds(result.duration)] if result.duration >= 1 else facts


def cut_note(result: ToolResultMessage) -> str:
    """Return the note about an output that was too long for the model; it stays beside the log."""
    name = sanitize_line(result.output_path.replace("\\", "/").rpartition("/")[2])
    size = f" ({format_bytes(result.output_size)})" if result.output_size else ""
    where = f"; all of it{size} is in outputs/{name} of the session" if name else ""
    return f"This is what the model was sent{where}."


def image_name(part: ImagePart) -> str:
    """Return the words that stand for an image."""
    facts = [
        part.media_type,
        f"{part.width}×{part.height}" if part.width else "",
        format_bytes(part.size) if part.size > 0 else "",
    ]
    return sanitize_line(f"{part.name or 'image'} ({', '.join(fact for fact in facts if fact)})")


def answer_facts(message: AssistantMessage) -> list[str]:
    """Return what an answer cost and how it ended, where that is known."""
    facts = [message.model] if message.model else []
    if message.usage is not None:
        facts.append(f"{format_count(message.usage.sent)} tokens in, {format_count(message.usage.output)} out")
        if message.usage.cost is not None:
            facts.append(format_cost(message.usage.cost))
    if message.duration >= 1:
        facts.append(format_seconds(message.duration))
    if message.stop_reason not in ("end_turn", "tool_use"):
        facts.append(message.stop_reason.replace("_", " "))
    return [sanitize_line(fact) for fact in facts]


def compaction_facts(entry: CompactionEntry, *, undone: bool) -> list[str]:
    """Return sizes, reason, what made it, time and cost of a compaction."""
    sizes = compaction_sizes(entry)
    facts = [sizes] if sizes else []
    facts.append(f"{entry.reason} ({REASON_WORDS[entry.reason]})")
    if entry.rung:
        facts.append(describe_rung(entry.rung, entry.from_extension))
    if entry.duration:
        facts.append(format_seconds(entry.duration))
    facts += _cost(entry.usage)
    if entry.focus:
        facts.append(f"focus: {first_line(entry.focus)}")
    if entry.from_extension and entry.rung != "extension":
        facts.append(f"by the extension {entry.from_extension}")
    if undone:
        facts.append("taken back")
    return [sanitize_line(fact) for fact in facts]


def _cost(usage: Usage | None) -> list[str]:
    return [format_cost(usage.cost)] if usage is not None and usage.cost is not None else []


def describe_arguments(arguments: str) -> str:
    """Return a call's arguments as `name: text`, one below the other; what is no JSON object stays as it is."""
    try:
        values = msgspec.json.decode(arguments.encode("utf-8", "replace"), type=dict[str, object])
        return "\n".join(_argument(name, value) for name, value in values.items())
    except (ValueError, RecursionError):
        return arguments


def _argument(name: str, value: object) -> str:
    words = value if isinstance(value, str) else msgspec.json.format(to_json(value), indent=2).decode()
    return f"{name}:\n{words}" if "\n" in words else f"{name}: {words}"
