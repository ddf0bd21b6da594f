"""Commands on the tree of a session: branches, labels, rewinding, undo."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import partial
from itertools import takewhile

from tenuto.command.outcome import Choice, Choose, CommandOutcome, Edit, RowFilter, Say
from tenuto.command.session_commands import age
from tenuto.core.errors import TaskFailedError, UsageError
from tenuto.core.files_back import count_restores, restore_files, undo_turn
from tenuto.core.navigation import find_destination, is_anything_left, is_present, prompt_of
from tenuto.core.runtime import Runtime
from tenuto.protocol.entry import LabelEntry, UndoEntry, ViewEditEntry
from tenuto.protocol.message import AssistantMessage, CompactionEntry, HistoryEvent, ToolResultMessage, UserMessage
from tenuto.protocol.operation import MoveLeafOperation
from tenuto.protocol.part import ContentPart, ImagePart, text_of
from tenuto.session.describe import LINE_CHARACTERS, Place, is_shown, line_of, pieces_of
from tenuto.session.session import Session
from tenuto.session.view.projection import compaction_of_edits
from tenuto.session.view.tree import TreeRow, read_rows
from tenuto.text.bounding import bound_middle, shorten
from tenuto.text.figures import plural

MAX_CHARACTERS = 200
_PLACED = re.compile(r"#(\d+)(?:\s+(.*))?\Z", re.DOTALL)


async def run_label(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Label the present place; `#SEQ TEXT` another one, `#SEQ` alone takes its label away, nothing lists all."""
    session = runtime.live.session
    if not argument:
        rows = [f"#{seq}  {text}" for seq, text in sorted(session.state.labels.items())]
        return [Say("\n".join(rows) or "No labels. /label TEXT labels this point of the session.")]
    placed = _PLACED.match(argument)
    target = int(placed[1]) if placed else next((e.seq for e in reversed(session.path()) if is_shown(e, Place.TREE)), 0)
    entry = session.find(target)
    if entry is None or not is_shown(entry, Place.TREE):
        raise TaskFailedError("there is nothing to label there; /tree shows the entries")
    text = shorten((placed[2] or "") if placed else argument, MAX_CHARACTERS)
    if not text and target not in session.state.labels:
        raise TaskFailedError(f"entry {target} has no label")
    session.append(LabelEntry(target=target, text=text))
    name = shorten(line_of(entry), 60)
    return [Say(f"Label “{text}” set on #{target} ({name})." if text else f"Label removed from #{target} ({name}).")]


async def run_undo(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Take the edits of the newest turn that has any back; once more goes one turn further."""
    if argument:
        raise TaskFailedError("/undo undoes the last turn's edits and takes no argument; /rewind goes to any message")
    live = runtime.live
    if live.task.submissions or runtime.executor.tasks.running(live.id) is not None:
        raise TaskFailedError("busy: press Esc first, then /undo")
    undo_turn(live)
    return []  # the core has put a notice into the transcript


async def go(
    runtime: Runtime, seq: int, *, notes: bool = False, focus: str = "", files: bool = False
) -> list[CommandOutcome]:
    """Go there, and return when that has come to its end. Raises `TaskFailedError` for an entry that is not there."""
    live = runtime.live
    destination = find_destination(live.session, seq)
    if is_present(live.session, destination.leaf) and not files:
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


LABEL_CHARACTERS = 160
PREVIEW_CHARACTERS = 8_000
MESSAGES = 200
"""How many messages are offered at most; /tree has them all."""
BOTH, TALK, FILES = "both", "talk", "files"


async def run_rewind(runtime: Runtime, argument: str) -> list[CommandOutcome]:
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
    if live.task.submissions or runtime.executor.tasks.running(live.id) is not None:
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
    return count_restores(runtime.live.session.entries_after(min(seqs)), seqs)


def _files(count: int) -> str:
    return f"{plural(count, 'file')} changed" if count else "no file changed"


REACH = 4_000
"""Entries of the log that are shown at a time; the first row leads to those before."""
LEAF, ON_PATH = "●", "│"
PROMPT, RESULT, OTHER = "prompt", "result", "other"
FILTERS = (
    RowFilter("hide tool results", (PROMPT, OTHER)),
    RowFilter("your messages", (PROMPT,)),
    RowFilter("everything"),
)


def tree_choices(session: Session, before: int) -> tuple[Choice, ...]:
    """Return the rows for the newest entries of the log, or with `before` for the newest before that seq."""
    entries = _stretch(session, before)
    if not entries:
        return ()
    first = entries[0].seq
    on_path = {entry.seq for entry in takewhile(lambda entry: entry.seq >= first, reversed(session.path()))}
    leaf = next((entry.seq for entry in reversed(session.path()) if is_shown(entry, Place.TREE)), 0)
    describe = _Describer(session, on_path, leaf, time.time())
    rows = [describe.row(row) for row in read_rows(entries, on_path, partial(is_shown, place=Place.TREE))]
    if any(session.entries_between(1, first - 1)):
        rows.insert(0, Choice(f"before {first}", "… what came before", f"entries up to #{first - 1}"))
    return tuple(rows)


class _Describer:
    def __init__(self, session: Session, on_path: set[int], leaf: int, now: float) -> None:
        self._session = session
        self._on_path = on_path
        self._leaf = leaf
        self._now = now

    def row(self, row: TreeRow) -> Choice:
        entry = row.entry
        label = self._session.state.labels.get(entry.seq, "")
        facts = [f"#{entry.seq}"]
        if label:
            facts.insert(0, f"⚑ {label}")
        if len(row.ways) > 1:
            facts.append(plural(len(row.ways), "way") + " on")
        if entry.ts:
            facts.append(age(self._now - entry.ts))
        return Choice(
            value=str(entry.seq),
            label=shorten(line_of(entry), LINE_CHARACTERS),
            detail=" · ".join(facts),
            present=entry.seq == self._leaf,
            indent=row.depth,
            mark=LEAF if entry.seq == self._leaf else ON_PATH if entry.seq in self._on_path else " ",
            kind=_kind(entry),
            preview=self._preview(row, label),
        )

    def _preview(self, row: TreeRow, label: str) -> str:
        entry = row.entry
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(entry.ts)) if entry.ts else "at an unknown time"
        where = "the conversation is here" if entry.seq == self._leaf else ""
        where = where or ("on the present path" if entry.seq in self._on_path else "on a branch that was left")
        head = " · ".join(part for part in (f"#{entry.seq}", when, where, label and f"⚑ {label}") if part)
        lines = [head]
        if len(row.ways) > 1:
            lines.append("goes on in " + ", ".join(f"#{seq}" for seq in row.ways))
        text = "\n".join(self._texts(entry)).strip() or self._in_words(entry)
        bounded = bound_middle(text, PREVIEW_CHARACTERS)
        notice = f"… {bounded.omitted_chars:,} characters; /recall #{entry.seq} has them …" if bounded else ""
        return "\n".join([*lines, "", bounded.joined(notice) if bounded else text])

    def _in_words(self, entry: HistoryEvent) -> str:
        """Return what an entry is that has no words of its own."""
        match entry:
            case UndoEntry():
                target = next(iter(self._session.entries_between(entry.target, entry.target)), None)
                if isinstance(target, UndoEntry):
                    return f"Taken back: the undo #{target.seq}. #{target.target} holds again."
                what = line_of(target) if target is not None else f"#{entry.target}"
                return f"Undone: #{entry.target}, {what}. What it had replaced is in the view again."
            case ViewEditEntry():
                return f"{line_of(entry)}. {compaction_of_edits(entry).summary}"
            case CompactionEntry():
                kept = f" From #{entry.first_kept_index} on everything stays." if entry.first_kept_index else ""
                return f"{line_of(entry)}, without a summary.{kept}"
            case ToolResultMessage():
                return "(no output)"
            case AssistantMessage():
                return "(an answer without words)"
            case _:
                return "(an empty message)"

    def _texts(self, entry: HistoryEvent) -> list[str]:
        pieces = list(pieces_of(entry, self._session.store.outputs)) or []
        alone = len(pieces) == 1
        return [
            piece.text if alone or piece.kind == "assistant" else f"[{piece.kind}]\n{piece.text}" for piece in pieces
        ]


def _kind(entry: HistoryEvent) -> str:
    if prompt_of(entry):
        return PROMPT
    return RESULT if isinstance(entry, ToolResultMessage) else OTHER


def _stretch(session: Session, before: int) -> Sequence[HistoryEvent]:
    """Return a stretch of the log, `REACH` long at most, that ends before `before` (0: at its end)."""
    last = before - 1 if before else session.highest_seq
    return list(session.entries_between(max(1, last - REACH + 1), last))


WITHOUT, NOTES, OWN = "plain", "summary", "instructions"


async def run_tree(runtime: Runtime, argument: str) -> list[CommandOutcome]:
    """Show the tree; `SEQ` goes there, `SEQ summary [instructions]` with notes on what is left.

    `ask SEQ` lets the user choose between the two, `before SEQ` shows the part of the tree before an entry.
    """
    words = argument.split(maxsplit=2)
    if words[:1] == ["ask"]:
        words = words[1:]
        if words and words[0] != "before":
            return await _tree_ask(runtime, read_seq(words[0], "tree"))
    if not words or words[0] == "before":
        return [_show(runtime, read_seq(words[1], "tree") if words[1:] else 0)]
    seq = read_seq(words[0], "tree")
    wish, instructions = words[1] if words[1:] else WITHOUT, words[2] if words[2:] else ""
    if wish == OWN:
        return [Edit(f"/tree {seq} {NOTES} {instructions}")]
    if wish not in (WITHOUT, NOTES):
        raise UsageError(f"/tree {seq} takes “{NOTES}” behind it, and then your own instructions for it")
    return await go(runtime, seq, notes=wish == NOTES, focus=instructions)


def _show(runtime: Runtime, before: int) -> CommandOutcome:
    choices = tree_choices(runtime.live.session, before)
    if not choices:
        return Say("Nothing has been said yet.")
    return Choose("Session tree: continue from", "tree ask", choices, FILTERS, in_order=True)


async def _tree_ask(runtime: Runtime, seq: int) -> list[CommandOutcome]:
    """Ask what is to become of the part that is left; where nothing is, go there at once."""
    live = runtime.live
    leaf = find_destination(live.session, seq).leaf
    if is_present(live.session, leaf) or not is_anything_left(live.session, leaf):
        return await go(runtime, seq)
    rows = (
        Choice(WITHOUT, "Without notes", "what is left stays in the tree, out of the model's sight"),
        Choice(NOTES, "With notes on what is left", "a model writes them; interrupted, nothing has moved"),
        Choice(OWN, "With notes by your own instructions", "write them behind the command"),
    )
    return [Choose(f"Go to #{seq}, and what is left?", f"tree {seq}", rows)]
