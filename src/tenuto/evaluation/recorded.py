"""Sessions that were recorded, of Tenuto's importers' agents: their entries in equal parts, and what must not be lost.

The facts come from data alone: short texts of the user and the first and last sentence of long ones, paths of files
that calls read or changed, items of todo lists, lines of errors, and exact names in results that the agent itself used
again later.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from tenuto.compaction.data.wording import sentences
from tenuto.evaluation.folders import new_token, played_in
from tenuto.evaluation.stories import Fact, Kind
from tenuto.protocol.entry import Entry, TodoEntry, TodoItem
from tenuto.protocol.message import AssistantMessage, ToolResultMessage, UserMessage
from tenuto.protocol.part import TextPart, ToolCallPart, text_of
from tenuto.session.importers.import_session import NotImportable, import_source, open_source
from tenuto.session.session import Session
from tenuto.text.estimate import estimate_text

SHORT_TOKENS = 60
"""A text of the user of up to so many tokens is one fact."""
FEWEST_WORDS = 3
"""Of a sentence; what has fewer in a long text is a tag or a prompt."""
MAX_NAMES = 3
"""Exact names and errors of one result that count."""
MAX_ERROR = 160
_NAME = re.compile(
    r"https?://[^\s\"'<>)\]]+|\b(?=[0-9a-f]*\d)(?=[0-9a-f]*[a-f])[0-9a-f]{7,40}\b|\b[A-Z][A-Z0-9]*_[A-Z0-9_]{3,}\b"
    r"|(?<![\w./])[\w.-]+(?:/[\w.-]+)+\.\w{1,5}\b|\b[a-z]\w*_\w{3,}\b|\b[a-z]+[A-Z]\w{3,}\b|#[0-9a-fA-F]{6}\b"
)
"""Addresses, hashes, constants, paths, names in snake or camel case, colours."""
_ERROR = re.compile(r"^.*\b(?:\w*Error|\w*Exception|error|failed|fatal|FAILED)\b[:( ].*$", re.MULTILINE)
_TODO_LISTS = ("todos", "items", "todo")
_TODO_TEXTS = ("content", "text", "title", "description")


class RecordedError(Exception):
    """A file cannot be used as a recorded session; the text says why, for a user."""


class Segment(msgspec.Struct, frozen=True):
    """Entries of one round, what is to be remembered of them, and what holds no more."""

    entries: tuple[Entry, ...]
    facts: tuple[Fact, ...]
    over: tuple[Fact, ...]


def read_recorded(file: Path) -> tuple[Entry, ...]:
    """Return the messages of a recorded session. Raises `RecordedError`."""
    with played_in(new_token()) as home:
        try:
            imported = import_source(open_source(file), home, cwd=home)
        except (NotImportable, OSError) as error:
            raise RecordedError(str(error)) from error
        session = Session.open(imported.directory, read_only=True)
        try:
            entries = tuple(entry for entry in map(_plain, session.path()) if entry is not None)
        finally:
            session.close()
    if not any(isinstance(entry, AssistantMessage) for entry in entries):
        raise RecordedError(f"{file} holds no answer of a model")
    return entries


def _plain(entry: Entry) -> Entry | None:
    """Return what of an entry is replayed: texts and calls, without what only its model and its time had."""
    match entry:
        case UserMessage(origin="typed"):
            texts = tuple(part for part in entry.parts if isinstance(part, TextPart) and part.text.strip())
            return UserMessage(parts=texts, origin="typed") if texts else None
        case AssistantMessage():
            parts = tuple(part for part in entry.parts if isinstance(part, TextPart | ToolCallPart))
            return AssistantMessage(parts=parts, stop_reason=entry.stop_reason) if parts else None
        case ToolResultMessage():
            parts = tuple(part for part in entry.parts if isinstance(part, TextPart))
            return ToolResultMessage(
                call_id=entry.call_id, name=entry.name, parts=parts, is_error=entry.is_error, files=entry.files
            )
        case _:
            return None


def split(entries: Sequence[Entry], rounds: int) -> list[Segment]:
    """Return the entries as `rounds` parts of about the same size. A part ends where no call waits for its result."""
    sizes = [_size(entry) for entry in entries]
    whole = sum(sizes)
    reader = _Facts(entries)
    parts: list[list[Entry]] = [[]]
    spent = 0
    waiting: set[str] = set()
    for entry, size in zip(entries, sizes, strict=True):
        if not waiting and len(parts) < rounds and parts[-1] and spent * rounds >= whole * len(parts):
            parts.append([])
        parts[-1].append(entry)
        spent += size
        if isinstance(entry, AssistantMessage):
            waiting |= {call.id for call in entry.tool_calls}
        elif isinstance(entry, ToolResultMessage):
            waiting.discard(entry.call_id)
    parts += [[] for _ in range(rounds - len(parts))]
    return [reader.segment(part) for part in parts]


def _size(entry: Entry) -> int:
    return estimate_text("\n".join(_texts(entry)))


def _texts(entry: Entry) -> Iterator[str]:
    match entry:
        case UserMessage() | ToolResultMessage():
            yield text_of(entry.parts)
        case AssistantMessage():
            yield from (part.text for part in entry.parts if isinstance(part, TextPart))
            yield from (call.arguments for call in entry.tool_calls)
        case _:
            return


class _Facts:
    """Reads the facts of entries, in their order; each counts once."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        self._later = _last_uses(entries)
        self._place = 0
        self._seen: set[str] = set()
        self._read: dict[str, Fact] = {}
        self._todo: list[Fact] = []

    def segment(self, entries: Sequence[Entry]) -> Segment:
        """Return entries with their facts, and the todo lists that their calls wrote as the session's own."""
        kept: list[Entry] = []
        facts: dict[Fact, None] = {}
        over: list[Fact] = []
        for entry in entries:
            kept.append(entry)
            new, gone = self._of(entry)
            facts.update(dict.fromkeys(new))
            for fact in gone:
                over += [] if fact in facts else [fact]
                facts.pop(fact, None)
            if isinstance(entry, AssistantMessage):
                todo = [one for call in entry.tool_calls if (one := _todo_list(call)) is not None]
                kept += todo[-1:]
                for one in todo[-1:]:
                    over += [fact for fact in self._todo if fact not in facts]
                    for fact in self._todo:
                        facts.pop(fact, None)
                    self._todo = [_fact("todo", item.text) for item in one.items]
                    facts.update(dict.fromkeys(self._todo))
            self._place += 1
        return Segment(tuple(kept), tuple(facts), tuple(over))

    def _of(self, entry: Entry) -> tuple[list[Fact], list[Fact]]:
        match entry:
            case UserMessage():
                return [fact for fact in said_facts(text_of(entry.parts)) if self._is_new(fact)], []
            case ToolResultMessage():
                new, gone = self._files(entry)
                text = text_of(entry.parts)
                names = [name for name in dict.fromkeys(_NAME.findall(text)) if self._later.get(name, -1) > self._place]
                found = [_fact("identifier", name) for name in names]
                found += [_fact("error", line) for line in _errors(text)] if entry.is_error else []
                fresh = [fact for fact in found if self._is_new(fact)]
                return [*new, *fresh[:MAX_NAMES]], gone
            case _:
                return [], []

    def _files(self, entry: ToolResultMessage) -> tuple[list[Fact], list[Fact]]:
        new: list[Fact] = []
        gone: list[Fact] = []
        if entry.is_error:
            return new, gone
        for use in entry.files:
            kind: Kind = "read" if use.op == "read" else "modified"
            fact = Fact(kind=kind, text=_short_path(use.path), ask=use.path.rpartition("/")[2])
            if kind == "modified" and use.path in self._read:
                gone.append(self._read.pop(use.path))
            if f"modified {use.path}" in self._seen or f"{kind} {use.path}" in self._seen:
                continue
            self._seen.add(f"{kind} {use.path}")
            new.append(fact)
            if kind == "read":
                self._read[use.path] = fact
        return new, gone

    def _is_new(self, fact: Fact) -> bool:
        key = f"{fact.kind} {fact.text}"
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new


def _last_uses(entries: Sequence[Entry]) -> dict[str, int]:
    """Return where the agent named each exact name last, in an answer or a call."""
    found: dict[str, int] = {}
    for place, entry in enumerate(entries):
        if isinstance(entry, AssistantMessage):
            for text in _texts(entry):
                found.update(dict.fromkeys(_NAME.findall(text), place))
    return found


def said_facts(text: str) -> Iterator[Fact]:
    """Yield what must stay of a text of the user: all of a short one, the first and the last sentence of a long one."""
    words = " ".join(text.split())
    if estimate_text(words) <= SHORT_TOKENS:
        if len(words) > 1:
            yield _fact("number" if any(map(str.isdecimal, words)) else "user short", words)
        return
    said = [" ".join(text[span.start : span.end].split()) for span in sentences(text)]
    said = [sentence for sentence in said if len(sentence.split()) >= FEWEST_WORDS]
    kinds: tuple[tuple[Kind, int], ...] = (("user head", 0), ("user end", -1))
    for kind, place in kinds:
        if said and estimate_text(said[place]) <= SHORT_TOKENS:
            yield _fact(kind, said[place])


def _errors(text: str) -> Iterable[str]:
    return (" ".join(line.split()) for line in _ERROR.findall(text)[-1:] if len(line.strip()) <= MAX_ERROR)


def _fact(kind: Kind, text: str) -> Fact:
    words = re.findall(r"[^\W_][\w.-]*\w", text)
    ask = text if kind == "identifier" else " ".join(sorted(dict.fromkeys(words), key=len)[-4:])
    return Fact(kind=kind, text=text, ask=ask or text)


def _short_path(path: str) -> str:
    """Return a path by its last four names: how a view writes what is before them is its own affair."""
    return "/".join(path.strip("/").split("/")[-4:])


def _todo_list(call: ToolCallPart) -> TodoEntry | None:
    """Return the list that a call of a tool for todo lists wrote, `None` for other calls."""
    if "todo" not in call.name.lower():
        return None
    try:
        arguments = msgspec.json.decode(call.arguments, type=dict[str, object])
    except msgspec.MsgspecError:
        return None
    for name in _TODO_LISTS:
        try:
            rows = msgspec.convert(arguments.get(name), type=list[dict[str, object]])
        except msgspec.ValidationError:
            continue
        items = tuple(item for row in rows if (item := _todo_item(row)) is not None)
        if items:
            return TodoEntry(items=items)
    return None


def _todo_item(row: dict[str, object]) -> TodoItem | None:
    text = next((value for name in _TODO_TEXTS if isinstance(value := row.get(name), str) and value.strip()), "")
    match row.get("status"):
        case "completed" | "done":
            return TodoItem(text=text, status="done") if text else None
        case "in_progress":
            return TodoItem(text=text, status="in_progress") if text else None
        case _:
            return TodoItem(text=text) if text else None
