"""Sessions of any length, written as the program would have written them, to see what length costs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tenuto.protocol.entry import HeaderEntry, ModeEntry, ModelEntry, TitleEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    HistoryEvent,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import TextPart, ToolCallPart
from tenuto.protocol.usage import Usage
from tenuto.session.log.log import LOG_NAME
from tenuto.session.log.record import encode
from tenuto.session.paths import project_directory
from tenuto.session.session import Session

STEPS_A_TURN = 12
ENTRIES_A_COMPACTION = 480
KEPT_ENTRIES = 60
WORDS = "the session goes on and nothing that was said in it is ever lost "


def write_session(home: Path, project: Path, entries: int, size: int, model: str, number: int = 0) -> Path:
    """Write a session of so many entries and bytes; return its folder, with metadata and index as after a close.

    Another `number` makes it another session.
    """
    name = f"{number or entries:08x}-20260101-000000"
    directory = project_directory(home, project) / name
    directory.mkdir(parents=True, mode=0o700)
    header = HeaderEntry(ts=1.0, session_id=name, cwd=str(project))
    with (directory / LOG_NAME).open("wb") as log:
        log.write(encode(header)[1])
        for entry in _entries(entries, max(20, size // entries * 2 - 480), model):
            log.write(encode(entry)[1])
    Session.open(directory).close()
    return directory


def write_many(home: Path, project: Path, count: int) -> None:
    """Write so many short sessions of one project, each as after a close."""
    for number in range(count):
        write_session(home, project, 20, 2_000, "openai-chat/test", 1 + number)


def _entries(count: int, result_size: int, model: str) -> Iterator[HistoryEvent]:
    text = (WORDS * (result_size // len(WORDS) + 1))[:result_size]
    yield SystemMessage(seq=1, ts=1.0, text="You are a coding agent.")
    yield ModelEntry(seq=2, ts=1.0, model=model)
    yield ModeEntry(seq=3, ts=1.0, mode="auto")
    yield TitleEntry(seq=4, ts=1.0, title="A long session")
    call = 0
    for seq in range(5, count + 1):
        ts = 1.0 + seq
        place = seq % (2 * STEPS_A_TURN)
        if seq % ENTRIES_A_COMPACTION == 2 * STEPS_A_TURN:
            yield _compaction(seq, ts)
        elif place == 1:
            yield UserMessage(seq=seq, ts=ts, parts=(TextPart(text=f"Please go on with part {seq} of the work."),))
        elif place == 0:
            yield _answer(seq, ts, model)
        elif place % 2 == 0:
            call = seq
            yield _answer(seq, ts, model, f"call-{call}")
        elif call == seq - 1:
            parts = (TextPart(text=f"result {seq}: {text}"),)
            yield ToolResultMessage(seq=seq, ts=ts, call_id=f"call-{call}", name="read", parts=parts)
        else:
            yield _answer(seq, ts, model)


def _answer(seq: int, ts: float, model: str, call: str = "") -> AssistantMessage:
    calls = (ToolCallPart(id=call, name="read", arguments='{"path":"src/main.py"}'),) if call else ()
    usage = Usage(input=9_000 + seq % 1_000, output=60)
    stop = "tool_use" if call else "end_turn"
    parts = (TextPart(text=f"Answer {seq}."), *calls)
    return AssistantMessage(
        seq=seq, ts=ts, parts=parts, model=model, stop_reason=stop, usage=usage, estimate=9_000, duration=1.0
    )


def _compaction(seq: int, ts: float) -> CompactionEntry:
    kept = max(1, seq - KEPT_ENTRIES)
    first = kept - kept % (2 * STEPS_A_TURN) + 1
    frame = SystemMessage(text="What was done so far: " + WORDS * 40)
    return CompactionEntry(
        seq=seq, ts=ts, summary=WORDS * 40, first_kept_index=first, replacement=(frame,), reason="threshold"
    )
