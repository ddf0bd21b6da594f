"""/queue: what waits to be sent, and changes to it, for those who have no panel for that."""

from __future__ import annotations

from typing import Literal

from tenuto.command.outcome import CommandOutcome, Say
from tenuto.core.runtime import Runtime
from tenuto.protocol.entry import QueuedEntry
from tenuto.protocol.operation import EditQueueOperation
from tenuto.protocol.part import text_of

USAGE = "/queue lists what waits; /queue edit, delete, steer, up or down and a number change it"
MAX_CHARACTERS = 200
Action = Literal["delete", "take_back", "steer", "unsteer", "move"]


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """List the queued prompts by number, or change the one of a number."""
    queue = runtime.live.session.state.queue
    words = argument.split()
    if not words:
        return [Say("\n".join(_rows(queue)) if queue else "Nothing is queued.")]
    if len(words) != 2 or not words[1].isdecimal():
        return [Say(USAGE, "warning")]
    place = int(words[1]) - 1
    if not 0 <= place < len(queue):
        return [Say(f"There is no number {words[1]} in the queue of {len(queue)}", "warning")]
    change = _change(words[0], queue, place)
    if change is None:
        return [Say(USAGE, "warning")]
    action, before = change
    operation = EditQueueOperation(session_id=runtime.session_id, target=queue[place].seq, action=action, before=before)
    await runtime.submit(operation)
    left = runtime.live.session.state.queue
    return [Say("\n".join(_rows(left)) if left else "Nothing is queued any more.")]


def _rows(queue: tuple[QueuedEntry, ...]) -> list[str]:
    return [f"{number}. {_describe(entry)}" for number, entry in enumerate(queue, 1)]


def _describe(entry: QueuedEntry) -> str:
    text = " ".join(text_of(entry.parts).split())
    shown = text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}…"
    images = len(entry.parts) - sum(hasattr(part, "text") for part in entry.parts)
    marks = [*(["at the next tool boundary"] if entry.steer else []), *([f"{images} images"] if images else [])]
    return f"{shown} ({', '.join(marks)})" if marks else shown


def _change(word: str, queue: tuple[QueuedEntry, ...], place: int) -> tuple[Action, int] | None:
    """Return what a word asks for, and in front of which seq (0: at the end); `None` for another word."""
    match word:
        case "delete":
            return "delete", 0
        case "edit":
            return "take_back", 0
        case "steer":
            return ("unsteer" if queue[place].steer else "steer"), 0
        case "up":
            return "move", queue[max(0, place - 1)].seq
        case "down":
            return "move", queue[place + 2].seq if place + 2 < len(queue) else 0
        case _:
            return None
