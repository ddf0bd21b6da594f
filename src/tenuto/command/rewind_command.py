"""/rewind: back to an earlier message of yours, the conversation, the files, or both (Esc Esc)."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.command.navigate import go, read_seq
from tenuto.command.outcome import Choice, Choose, CommandOutcome, Say
from tenuto.core.destination import prompt_of
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.core.files_back import count_ways_back
from tenuto.core.restoring import restore_files
from tenuto.core.runtime import Runtime
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import text_of
from tenuto.text.bounding import shorten
from tenuto.text.figures import plural

LABEL_CHARACTERS = 160
PREVIEW_CHARACTERS = 8_000
MESSAGES = 200
"""How many messages are offered at most; /tree has them all."""
BOTH, TALK, FILES = "both", "talk", "files"


async def run(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Offer the messages; `SEQ both|talk|files` goes back to one."""
    words = argument.split()
    if not words:
        return [_offer(runtime)]
    seq = read_seq(words[0], "rewind")
    entry = runtime.live.session.find(seq)
    message = prompt_of(entry) if entry is not None else None
    if message is None:
        raise TaskFailedError(f"entry {seq} is no message of yours; /rewind lists them, /tree goes to any entry")
    match words[1:]:
        case []:
            return await _ask(runtime, message)
        case [("both" | "talk") as wish]:
            return await go(runtime, seq, files=wish == BOTH)
        case ["files"]:
            return _restore(runtime, seq)
        case _:
            raise UsageError(f"/rewind {seq} takes one word behind it: {BOTH}, {TALK} or {FILES}")


def _offer(runtime: Runtime) -> CommandOutcome:
    """Return the user's messages, the newest first, with what going back to each would change."""
    messages = _newest_messages(runtime)
    if not messages:
        return Say("There is no message to go back to yet.")
    counts = _count(runtime, messages)
    rows = tuple(
        Choice(
            str(message.seq),
            shorten(text_of(message.parts), LABEL_CHARACTERS) or "(image)",
            f"#{message.seq} · {_files(counts[message.seq])}",
            preview=text_of(message.parts)[:PREVIEW_CHARACTERS],
        )
        for message in messages
    )
    return Choose("Rewind to before…", "rewind", rows, in_order=True)


async def _ask(runtime: Runtime, message: UserMessage) -> list[CommandOutcome]:
    """Ask what is to go back; where no file was changed that is the conversation."""
    changed = _count(runtime, [message])[message.seq]
    if not changed:
        return await go(runtime, message.seq)
    rows = (
        Choice(BOTH, "The conversation and the files", f"{_files(changed)} since; what you changed yourself stays"),
        Choice(TALK, "The conversation", "files stay as they are"),
        Choice(FILES, "The files", "the conversation stays as it is"),
    )
    title = f"Go back to before “{shorten(text_of(message.parts), 60)}”?"
    return [Choose(title, f"rewind {message.seq}", rows)]


def _restore(runtime: Runtime, seq: int) -> list[CommandOutcome]:
    live = runtime.live
    if live.submissions or runtime.executor.tasks.running(live.id) is not None:
        raise TaskFailedError("something is running; wait for it, or interrupt it, and ask again")
    if restore_files(live, seq):
        return []  # the core has put a notice into the transcript
    return [Say("No file was changed since.")]


def _newest_messages(runtime: Runtime) -> Sequence[UserMessage]:
    found: list[UserMessage] = []
    for entry in reversed(runtime.live.session.path()):
        message = prompt_of(entry)
        if message is not None:
            found.append(message)
            if len(found) == MESSAGES:
                break
    return found


def _count(runtime: Runtime, messages: Sequence[UserMessage]) -> dict[int, int]:
    seqs = [message.seq for message in messages]
    return count_ways_back(runtime.live.session.entries_after(min(seqs)), seqs)


def _files(count: int) -> str:
    return f"{plural(count, 'file')} changed" if count else "no file changed"
