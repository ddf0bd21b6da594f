"""Importing lines and looking at what came of them."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from tenuto.protocol.entry import Entry
from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.session.importers.import_session import Imported, import_source, open_source
from tenuto.session.session import Session
from tests.session.importers.sources import Line, write_lines

EntryT = TypeVar("EntryT", bound=Entry)


def bring(tmp_path: Path, lines: list[Line], name: str = "source/session.jsonl") -> tuple[Session, Imported]:
    return bring_file(tmp_path, write_lines(tmp_path / name, lines))


def bring_file(tmp_path: Path, path: Path) -> tuple[Session, Imported]:
    made = import_source(open_source(path), tmp_path / "home")
    return Session.open(made.directory, read_only=True), made


def of(session: Session, kind: type[EntryT]) -> list[EntryT]:
    return [entry for entry in session.entries() if isinstance(entry, kind)]


def view_words(session: Session) -> list[str]:
    """The view in short: who says what, calls as `name()`; without the note on the tools that ends each import."""
    *said, note = session.get_llm_history()
    assert words_of(note).startswith("note: The conversation up to here took place in ")
    return [words_of(message) for message in said]


def words_of(message: Message) -> str:
    match message:
        case SystemMessage():
            return f"system: {message.text}"
        case UserMessage():
            return f"user: {text_of(message.parts)}"
        case AssistantMessage():
            calls = "".join(f" {part.name}()" for part in message.parts if isinstance(part, ToolCallPart))
            return f"model: {text_of(message.parts)}{calls}"
        case ToolResultMessage():
            return f"{message.name}: {text_of(message.parts)}"
        case _:
            return f"note: {message.text}"


def check_view(messages: list[Message]) -> None:
    """What every provider asks of a conversation."""
    rest = [message for message in messages if not isinstance(message, (SystemMessage, DeveloperMessage))]
    if rest:
        assert isinstance(rest[0], UserMessage), words_of(rest[0])
    open_calls: list[str] = []
    seen: set[str] = set()
    for message in rest:
        if isinstance(message, ToolResultMessage):
            assert message.call_id in open_calls
            open_calls.remove(message.call_id)
            continue
        assert not open_calls
        if isinstance(message, AssistantMessage):
            open_calls = [part.id for part in message.parts if isinstance(part, ToolCallPart)]
            assert not seen.intersection(open_calls)
            assert len(set(open_calls)) == len(open_calls)
            seen.update(open_calls)
    assert not open_calls
