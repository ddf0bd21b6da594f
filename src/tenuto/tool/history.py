"""The history as text: what each entry says, piece by piece, for searching and for showing it word for word."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

from tenuto.protocol.entry import (
    BranchSummaryEntry,
    ExtensionEntry,
    NoticeEntry,
    PinEntry,
    PlanEntry,
    ShellEntry,
    TodoEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    HistoryEvent,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ContentPart, TextPart, ThinkingPart, ToolCallPart
from tenuto.text.writable import to_json

RECALL = "recall"


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


def pieces_of(entry: HistoryEvent, outputs: Path) -> Iterator[Piece]:
    """Yield what an entry says, in order; nothing for an entry that only keeps state. Opens no file."""
    match entry:
        case UserMessage():
            yield Piece(kind="user", text=_content(entry.parts))
        case AssistantMessage():
            yield from _answer(entry)
        case ToolResultMessage():
            yield _result(entry, outputs)
        case ShellEntry():
            yield _shell(entry)
        case CompactionEntry():
            kind = f"summary of the entries before {entry.first_kept_index}, a paraphrase"
            yield Piece(kind=kind, text=entry.summary, is_summary=True)
        case BranchSummaryEntry():
            yield Piece(kind="summary of a branch that was left, a paraphrase", text=entry.summary)
        case DeveloperMessage():
            yield Piece(kind="note of the program", text=entry.text)
        case ExtensionEntry():
            yield Piece(kind=f"extension {entry.extension}", text=_content(entry.parts), is_private=not entry.in_view)
        case PinEntry() | PlanEntry():
            yield Piece(kind="pin" if isinstance(entry, PinEntry) else "approved plan", text=entry.text)
        case TodoEntry():
            yield Piece(kind="todo", text="\n".join(f"{item.status}: {item.text}" for item in entry.items))
        case NoticeEntry():
            yield Piece(kind="notice to the user", text=entry.text, is_private=True)
        case _:
            return


def _answer(entry: AssistantMessage) -> Iterator[Piece]:
    for part in entry.parts:
        if isinstance(part, TextPart):
            yield Piece(kind="assistant", text=part.text)
        elif isinstance(part, ThinkingPart):
            yield Piece(kind="assistant thinking", text=part.text)
        elif isinstance(part, ToolCallPart):
            yield Piece(kind=f"call of {part.name}", text=_arguments(part), is_echo=part.name == RECALL)


def _arguments(call: ToolCallPart) -> str:
    """Return the arguments with their texts as they are, so that a search finds what a JSON string would escape."""
    try:
        values = msgspec.json.decode(call.arguments, type=dict[str, object])
    except msgspec.DecodeError:
        return call.arguments
    return "\n".join(f"{name}: {_value(value)}" for name, value in values.items())


def _value(value: object) -> str:
    return value if isinstance(value, str) else to_json(value).decode()


def _result(entry: ToolResultMessage, outputs: Path) -> Piece:
    text = _content(entry.parts)
    paths = (Path(entry.output_path),) if entry.output_path else _named_files(text, outputs)
    return Piece(
        kind=f"result of {entry.name}",
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


def _shell(entry: ShellEntry) -> Piece:
    return Piece(
        kind="command of the user",
        text=f"{entry.command}\n{entry.output}",
        paths=(Path(entry.output_path),) if entry.output_path else (),
        is_private=entry.excluded,
    )


def _content(parts: tuple[ContentPart, ...]) -> str:
    return "\n".join(part.text if isinstance(part, TextPart) else f"[image {part.name}]" for part in parts)
