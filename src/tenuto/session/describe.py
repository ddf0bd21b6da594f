"""What an entry of the history is: its kind, who made it, where it is shown, one line for it, and its texts.

The tree, the exports, `recall` and the search of a transcript all ask here. Each function knows every type of entry:
the type checker names the place where a new one is missing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from enum import Flag, auto
from pathlib import Path
from typing import assert_never

import msgspec

from tenuto.protocol.entry import (
    ApprovalEntry,
    BranchEntry,
    BranchSummaryEntry,
    DequeuedEntry,
    DirectoryEntry,
    ExtensionEntry,
    HeaderEntry,
    LabelEntry,
    ModeEntry,
    ModelEntry,
    MovedEntry,
    NoticeEntry,
    Origin,
    PinEntry,
    PlanEntry,
    QueuedEntry,
    QueueEditEntry,
    ShellEntry,
    SkillEntry,
    TitleEntry,
    TodoEntry,
    UndoEntry,
    UnknownEntry,
    UnpinEntry,
    UsageEntry,
    ViewEditEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    FilesEntry,
    HistoryEvent,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import (
    ContentPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    WebSearch,
    WebSource,
    cited_in,
    searches_in,
    text_of,
)
from tenuto.session.plans import as_shown
from tenuto.text.bounding import shorten
from tenuto.text.call_summary import listed_objects, read_arguments, summarise_call
from tenuto.text.figures import describe_rung, format_change, plural
from tenuto.text.writable import to_json

LINE_CHARACTERS = 160
RECALL = "recall"
_WHO: dict[Origin, str] = {
    "typed": "You",
    "command": "You, by a command",
    "skill": "A skill",
    "hook": "A hook",
    "extension": "An extension",
    "continuation": "Going on",
}
_STATE = (
    HeaderEntry, BranchEntry, FilesEntry, QueuedEntry, DequeuedEntry, QueueEditEntry, MovedEntry, TitleEntry,
    LabelEntry, UsageEntry,
)  # fmt: skip
"""What only keeps state: it says nothing of its own."""


class Place(Flag):
    """Where an entry is shown: on the screen, in `/tree`, in exports, and by `recall`."""

    NOWHERE = 0
    SCREEN = auto()
    TREE = auto()
    EXPORT = auto()
    RECALL = auto()


_EVERYWHERE = Place.SCREEN | Place.TREE | Place.EXPORT | Place.RECALL


class Kind(msgspec.Struct, frozen=True):
    """What an entry is, in words for the model (`name`) and for a user (`who`), and where it is shown."""

    name: str
    who: str
    places: Place = Place.EXPORT


class Piece(msgspec.Struct, frozen=True, kw_only=True):
    """One text of an entry. `paths` are files under `outputs/` that belong to it; `is_whole`: they have all of it.

    `is_private`: the user kept it from the model. `is_echo`: an earlier recall, which a search must not find.
    `is_summary`: a paraphrase of entries before it, which are pieces themselves.
    """

    kind: str
    text: str
    paths: tuple[Path, ...] = ()
    is_whole: bool = False
    is_private: bool = False
    is_echo: bool = False
    is_summary: bool = False


def kind_of(entry: HistoryEvent) -> Kind:  # noqa: PLR0912 (one case a type)
    """Return what an entry is, who made it and where it is shown."""
    entry = as_shown(entry)
    if isinstance(entry, _STATE):
        return Kind("state", "", Place.NOWHERE)
    match entry:
        case UserMessage():
            kind = Kind("user", _WHO[entry.origin], _EVERYWHERE)
        case AssistantMessage():
            kind = Kind("assistant", "Assistant", _EVERYWHERE)
        case ToolResultMessage():
            kind = Kind(f"result of {entry.name}", entry.name, _EVERYWHERE)
        case ShellEntry():
            kind = Kind("command of the user", "You ran", _EVERYWHERE)
        case CompactionEntry():
            name = f"summary of the entries before {entry.first_kept_index}, a paraphrase"
            kind = Kind(name, "Compacted", _EVERYWHERE)
        case ViewEditEntry():
            is_compaction = Place.SCREEN | Place.TREE if entry.rung else Place.NOWHERE
            kind = Kind("edit of the view", "Compacted", Place.EXPORT | is_compaction)
        case UndoEntry():
            kind = Kind("undo", "You", Place.SCREEN | Place.TREE | Place.EXPORT)
        case BranchSummaryEntry():
            kind = Kind("summary of a branch that was left, a paraphrase", "Notes", _EVERYWHERE)
        case ExtensionEntry():
            places = Place.RECALL | (Place.TREE | Place.SCREEN if entry.in_view else Place.NOWHERE)
            places |= Place.EXPORT if entry.parts else Place.NOWHERE
            kind = Kind(f"extension {entry.extension}", f"Extension {entry.extension}", places)
        case NoticeEntry():
            kind = Kind("notice to the user", "Notice", Place.SCREEN | Place.EXPORT | Place.RECALL)
        case DeveloperMessage():
            kind = Kind("note of the program", "Told to the model", Place.EXPORT | Place.RECALL)
        case PinEntry():
            kind = Kind("pin", "You", Place.EXPORT | Place.RECALL)
        case PlanEntry():
            kind = Kind("approved plan", "You", Place.RECALL)
        case SkillEntry():
            kind = Kind("skill", "Skill", Place.RECALL)
        case TodoEntry():
            kind = Kind("todo", "Assistant", Place.RECALL)
        case SystemMessage():
            kind = Kind("system prompt", "System prompt")
        case UnpinEntry() | ModelEntry() | ModeEntry() | ApprovalEntry() | DirectoryEntry():
            kind = Kind("choice of the user", "You")
        case UnknownEntry():
            kind = Kind(f"unknown entry {entry.kind}", "Unknown")
        case _:
            assert_never(entry)
    return kind


def is_shown(entry: HistoryEvent, place: Place) -> bool:
    """Return whether an entry has a place of its own there."""
    return place in kind_of(entry).places


def line_of(entry: HistoryEvent) -> str:  # noqa: PLR0912, PLR0915 (one case a type)
    """Return one line for an entry: who or what, and how it begins. Empty for what only keeps state."""
    entry = as_shown(entry)
    if isinstance(entry, _STATE):
        return ""
    match entry:
        case UserMessage():
            line = f"{_WHO[entry.origin]}: {_beginning(text_of(entry.parts)) or '(image)'}"
        case AssistantMessage():
            line = f"Model: {_answer_line(entry)}"
        case ToolResultMessage():
            line = f"{entry.name}: {_beginning(text_of(entry.parts))}"
        case ShellEntry():
            line = f"{'!!' if entry.excluded else '!'}{entry.command}"
        case CompactionEntry():
            line = _compaction_line(entry, describe_rung(entry.rung, entry.from_extension))
        case ViewEditEntry() if entry.rung:
            line = _compaction_line(entry, describe_rung(entry.rung))
        case ViewEditEntry():
            line = _edits_line(entry)
        case UndoEntry():
            line = f"Undo of #{entry.target}"
        case BranchSummaryEntry():
            words = " ".join(row for row in entry.summary.splitlines() if row.strip() and not row.startswith("#"))
            line = f"Notes on #{entry.from_seq}: {_beginning(words)}"
        case ExtensionEntry():
            line = describe_added(entry)
        case NoticeEntry():
            line = entry.text
        case DeveloperMessage():
            line = f"Told to the model{f': {entry.kind}' if entry.kind else ''}"
        case PinEntry():
            line = f"Pinned: {_beginning(entry.text)}"
        case PlanEntry():
            line = f"Approved plan: {_beginning(entry.text)}"
        case SkillEntry():
            line = f"{'Unloaded' if entry.unloads else 'Loaded'} the skill {entry.name}"
        case TodoEntry():
            line = f"Todo list: {plural(len(entry.items), 'item')}"
        case SystemMessage():
            line = f"System prompt, {plural(len(entry.tools), 'tool')}"
        case UnpinEntry():
            line = f"Took back the pin #{entry.target}"
        case ModelEntry():
            line = f"Model: {entry.model}" + (f", effort {entry.effort}" if entry.effort else "")
        case ModeEntry():
            line = f"Approval mode: {entry.mode}"
        case ApprovalEntry():
            line = f"{'Taken back' if entry.withdrawn else 'Rule'} of this session: {entry.effect} {entry.text}"
        case DirectoryEntry():
            line = f"{'No longer part' if entry.withdrawn else 'Part'} of the workspace: {entry.path}"
        case UnknownEntry():
            line = f"An entry of a kind that this version does not know: {entry.kind}"
        case _:
            assert_never(entry)
    return line


def _answer_line(entry: AssistantMessage) -> str:
    searches = [_beginning(search_line(search)) for search in searches_in(entry.parts)]
    calls = [f"{call.name} {summarise_call(call.name, call.arguments)}".strip() for call in entry.tool_calls]
    said = (_beginning(text_of(entry.parts)), *searches, *calls)
    return " · ".join(part for part in said if part)


def describe_added(entry: ExtensionEntry) -> str:
    """Return the line that stands for what an extension has added to the conversation."""
    return f"Extension {entry.extension}: {_beginning(text_of(entry.parts))}"


def _beginning(text: str) -> str:
    return shorten(text[: 4 * LINE_CHARACTERS], LINE_CHARACTERS)


def compaction_sizes(entry: CompactionEntry | ViewEditEntry) -> str:
    """Return what the context was before and after; empty where that is not known."""
    if entry.tokens_before is None or entry.tokens_after is None:
        return ""
    return f"{format_change(entry.tokens_before, entry.tokens_after, rough=entry.rough)} tokens"


def _compaction_line(entry: CompactionEntry | ViewEditEntry, rung: str) -> str:
    return f"Compaction: {', '.join(part for part in (compaction_sizes(entry), rung) if part)}"


def _edits_line(entry: ViewEditEntry) -> str:
    kinds: dict[str, int] = {}
    for edit in entry.edits:
        kinds[edit.kind] = kinds.get(edit.kind, 0) + 1
    done = ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "nothing"
    sizes = f": {compaction_sizes(entry)}" if entry.tokens_before or entry.tokens_after else ""
    return f"Results in the model's view: {done}{sizes}"


def pieces_of(entry: HistoryEvent, outputs: Path) -> Iterator[Piece]:  # noqa: PLR0912 (one case a type)
    """Yield what an entry says, in order; nothing for an entry that says nothing. Opens no file."""
    entry = as_shown(entry)
    if isinstance(entry, _STATE):
        return
    kind = kind_of(entry).name
    match entry:
        case UserMessage():
            yield Piece(kind=kind, text=_content(entry.parts))
        case AssistantMessage():
            yield from _answer(entry)
        case ToolResultMessage():
            yield _result(entry, kind, outputs)
        case ShellEntry():
            paths = (Path(entry.output_path),) if entry.output_path else ()
            text = f"{entry.command}\n{entry.output}"
            yield Piece(kind=kind, text=text, paths=paths, is_private=entry.excluded)
        case CompactionEntry():
            yield Piece(kind=kind, text=entry.summary, is_summary=True)
        case BranchSummaryEntry():
            yield Piece(kind=kind, text=entry.summary)
        case ExtensionEntry():
            yield Piece(kind=kind, text=_content(entry.parts), is_private=not entry.in_view)
        case DeveloperMessage() | PinEntry() | PlanEntry() | SkillEntry():
            yield Piece(kind=kind, text=entry.text)
        case TodoEntry():
            yield Piece(kind=kind, text="\n".join(f"{item.status}: {item.text}" for item in entry.items))
        case NoticeEntry():
            yield Piece(kind=kind, text=entry.text, is_private=True)
        case SystemMessage() | ViewEditEntry() | UndoEntry() | UnpinEntry() | UnknownEntry():
            return
        case ModelEntry() | ModeEntry() | ApprovalEntry() | DirectoryEntry():  # a choice, and no text
            return
        case _:
            assert_never(entry)


def _answer(entry: AssistantMessage) -> Iterator[Piece]:
    for part in entry.parts:
        if isinstance(part, TextPart):
            yield Piece(kind="assistant", text=part.text)
        elif isinstance(part, ThinkingPart):
            yield Piece(kind="assistant thinking", text=part.text)
        elif isinstance(part, ToolCallPart):
            yield Piece(kind=f"call of {part.name}", text=_arguments(part), is_echo=part.name == RECALL)
    for search in searches_in(entry.parts):
        yield Piece(kind="web search", text=f"{search_line(search)}\n{sources_text(search.sources)}".rstrip())
    if cited := cited_in(entry.parts):
        yield Piece(kind="sources of the answer", text=sources_text(cited))


def search_line(search: WebSearch) -> str:
    """Return a look at the web in one line: what was looked for, and how much was found. Foreign text, not cleaned."""
    match search.action:
        case "search":
            line = f"{'Searched' if search.done else 'Searching'} the web{f': {search.query}' if search.query else ''}"
        case "open":
            line = f"{'Opened' if search.done else 'Opening'} {search.query or 'a page'}"
        case "find":
            line = f"{'Looked' if search.done else 'Looking'} into a page for {search.query or 'a text'}"
        case _:
            assert_never(search.action)
    if search.error:
        return f"{line} (failed: {search.error.replace('_', ' ')})"
    found = plural(len(search.sources), "result")
    return f"{line} ({found})" if search.done and (search.sources or search.action == "search") else line


def source_line(source: WebSource) -> str:
    """Return a page in one line: its title and its address."""
    return f"{source.title} · {source.url}" if source.title and source.title != source.url else source.url


def sources_text(sources: Iterable[WebSource]) -> str:
    """Return pages, one a line."""
    return "\n".join(map(source_line, sources))


def _arguments(call: ToolCallPart) -> str:
    """Return the arguments with their texts as they are, so that a search finds what a JSON string would escape."""
    values = read_arguments(call.arguments)
    if values is None:
        return call.arguments
    return "\n".join(f"{name}: {_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    if objects := listed_objects(value):
        return "\n".join(f"{name}: {_plain(inner)}" for fields in objects for name, inner in fields.items())
    return _plain(value)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


def _result(entry: ToolResultMessage, kind: str, outputs: Path) -> Piece:
    text = _content(entry.parts)
    paths = (Path(entry.output_path),) if entry.output_path else _named_files(text, outputs)
    return Piece(
        kind=kind,
        text=text,
        paths=paths,
        is_whole=bool(entry.output_path),
        is_echo=entry.name == RECALL,
    )


def _named_files(text: str, outputs: Path) -> tuple[Path, ...]:
    """Return the files under `outputs` that a result names: the log of a background job."""
    prefix = f"{outputs}/"
    if prefix not in text:
        return ()
    names = re.findall(re.escape(prefix) + r"[\w.-]*\w", text)
    return tuple(Path(name) for name in dict.fromkeys(names))


def _content(parts: tuple[ContentPart, ...]) -> str:
    return "\n".join(part.text if isinstance(part, TextPart) else f"[image {part.name}]" for part in parts)
