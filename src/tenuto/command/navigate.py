"""Going to another entry, for `/tree` and `/rewind`: the move, and then the text of a message back in the prompt."""

from __future__ import annotations

from tenuto.command.outcome import CommandOutcome, Edit, Say
from tenuto.core.destination import find_destination, is_present
from tenuto.core.errors import UsageError
from tenuto.core.runtime import Runtime
from tenuto.protocol.operation import MoveLeafOperation
from tenuto.protocol.part import ContentPart, ImagePart, text_of


async def go(
    runtime: Runtime, seq: int, *, notes: bool = False, focus: str = "", files: bool = False
) -> list[CommandOutcome]:
    """Go there, and return when that has come to its end. Raises `TaskFailedError` for an entry that is not there."""
    live = runtime.live
    destination = find_destination(live, seq)
    if is_present(live, destination.leaf) and not files:
        if destination.parts:
            return [_edit(destination.parts)]
        return [Say("That is where the conversation is already.")]
    operation = MoveLeafOperation(session_id=live.id, target=seq, notes=notes, focus=focus or None, files=files)
    finished = await runtime.wait_for(await runtime.submit(operation))
    if finished is None or finished.outcome != "completed" or not destination.parts:
        return []
    return [_edit(destination.parts)]


def read_seq(word: str, command: str) -> int:
    """Return the entry that a word names, with or without `#`. Raises `UsageError`."""
    number = word.removeprefix("#")
    if not number.isdecimal():
        raise UsageError(f"“{word}” is not the number of an entry; /{command} alone lists them")
    return int(number)


def _edit(parts: tuple[ContentPart, ...]) -> Edit:
    return Edit(text_of(parts), tuple(part for part in parts if isinstance(part, ImagePart)))
