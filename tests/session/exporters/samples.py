"""Sessions to export: one with everything in it, and one of any length."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator

import msgspec

from tenuto.protocol.entry import (
    ApprovalEntry,
    BranchEntry,
    BranchSummaryEntry,
    Entry,
    ExtensionEntry,
    HeaderEntry,
    LabelEntry,
    ModeEntry,
    ModelEntry,
    NoticeEntry,
    PinEntry,
    QueuedEntry,
    ShellEntry,
    TitleEntry,
    TodoItem,
    UndoEntry,
    UnknownEntry,
    UnpinEntry,
    UsageEntry,
    ViewEdit,
    ViewEditEntry,
)
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionDetails,
    CompactionEntry,
    DeveloperMessage,
    DiffView,
    HistoryEvent,
    ShellView,
    SystemMessage,
    TodoView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart, WebSearch, WebSource
from tenuto.protocol.usage import Usage
from tenuto.session.exporters.source import Source
from tenuto.text.writable import clean

START = 1_790_000_000.0
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
IMAGE = "ab" * 32


def text(words: str) -> tuple[TextPart, ...]:
    return (TextPart(text=words),)


def number(entries: Iterable[Entry]) -> list[HistoryEvent]:
    """Give each entry its seq and time, as the session does."""
    counter = itertools.count(1)
    made: list[HistoryEvent] = []
    for entry in entries:
        seq = 0 if isinstance(entry, HeaderEntry) else next(counter)
        made.append(msgspec.structs.replace(entry, seq=seq, ts=START + 60 * len(made)))  # type: ignore[arg-type]
    return made


def load_blob(sha256: str) -> bytes:
    if sha256 != IMAGE:
        raise FileNotFoundError(sha256)
    return PNG


def source_of(entries: Iterable[HistoryEvent], loader=load_blob, **more) -> Source:
    return Source.read(entries, loader, **more)


def call(name: str, call_id: str, **arguments: object) -> ToolCallPart:
    return ToolCallPart(id=call_id, name=name, arguments=json.dumps(clean(arguments)))


def pages(word: str, name: str) -> tuple[WebSource, ...]:
    """Pages of the web with any words for title and address."""
    return (
        WebSource("https://example.org/a?b=1&c", word),
        WebSource(word, name),
        WebSource(f"javascript:{word}", word),
    )


def everything(word: str = "word", name: str = "name") -> Iterator[Entry]:
    """Every kind of entry; `word` stands wherever a text of somebody's can, `name` where a name can."""
    usage = Usage(input=1_200, cache_read=9_000, cache_write=300, output=420, reasoning=60, cost=0.0123)
    yield HeaderEntry(session_id="feedc0de-20261121-080000", cwd=f"/home/somebody/{name}")
    yield ModelEntry(model=name, effort=name)
    yield ModeEntry(mode="edits")
    yield QueuedEntry(parts=text(word))
    yield SystemMessage(text=word, tools=(name, "read"))
    yield DeveloperMessage(text=word, kind=name)
    yield UserMessage(parts=(*text(word), ImagePart(sha256=IMAGE, media_type="image/png", name=name)), from_queued=3)
    yield AssistantMessage(
        parts=(
            ThinkingPart(text=word),
            TextPart(text="Some **prose**."),
            call("edit", "c1", path=name, old_string=word, new_string=word),
            call("bash", "c2", command=word),
            ToolCallPart(id="c3", name=name, arguments=word, fault=word),
            OpaquePart(provider=name, block=msgspec.Raw(b'{"a":1}')),
            OpaquePart(provider=name, block=msgspec.Raw(b'{"a":1}'), search=WebSearch(id="s1", query=word)),
            OpaquePart(
                provider=name,
                block=msgspec.Raw(b'{"a":2}'),
                search=WebSearch(id="s1", query=word, sources=pages(word, name), error=name, done=True),
            ),
            TextPart(text="Some **prose**.", sources=pages(word, name)),
        ),
        model=name,
        usage=usage,
        duration=3.2,
        thinking_duration=1.5,
        stop_reason="tool_use",
    )
    diff = DiffView(
        path=name, diff=f"@@ -1,2 +1,2 @@\n same\n-{one_line(word)}\n+{one_line(word)} new", added=1, removed=1
    )
    yield ToolResultMessage(call_id="c1", name="edit", parts=text(word), ui=(diff,), duration=2.0)
    yield ToolResultMessage(
        call_id="c2",
        name="bash",
        parts=(*text(word), ImagePart(sha256="00", media_type="image/png", name=name)),
        ui=(
            ShellView(command=word, exit_code=1),
            TodoView(items=(TodoItem(text=word), TodoItem(text=word, status="done"))),
        ),
        is_error=True,
        truncated=True,
        output_path=f"/somewhere/outputs/{name}",
        output_size=1_234_567,
    )
    yield ToolResultMessage(call_id=name, name=name, parts=text(word), denied=True)
    yield ShellEntry(command=word, output=word, exit_code=2, excluded=True, duration=4.0)
    yield NoticeEntry(text=word, level="warning", kind=name)
    yield ApprovalEntry(tool=name, pattern=word)
    yield PinEntry(text=word)
    yield UnpinEntry(target=14)
    yield ViewEditEntry(
        edits=(ViewEdit(target=8, kind="hidden", text=word),), reason=word, tokens_before=90, tokens_after=40
    )
    yield CompactionEntry(
        summary=word,
        first_kept_index=6,
        tokens_before=182_000,
        tokens_after=24_000,
        trigger=180_000,
        reason="threshold",
        rung=name,
        focus=word,
        details=CompactionDetails(read_files=(name,), modified_files=(name,)),
        from_extension=name,
        usage=usage,
        duration=12.0,
    )
    yield UndoEntry(target=17)
    yield UserMessage(parts=text(word), origin="command")
    yield AssistantMessage(parts=text(word), model=name, usage=usage, stop_reason="interrupted")
    yield BranchEntry(parent=9)
    yield BranchSummaryEntry(summary=word, from_seq=20, usage=usage)
    yield UserMessage(parts=text(word))
    yield LabelEntry(target=23, text=word)
    yield AssistantMessage(parts=text("Another way."), model=name, usage=usage)
    yield ExtensionEntry(extension=name, in_view=True, parts=text(word))
    yield UnknownEntry(kind=name, raw=b'{"type":"later","text":"' + word.encode("utf-8", "replace") + b'"}')
    yield TitleEntry(title=word)
    yield UsageEntry(usage=usage, purpose=name, model=name)
    yield QueuedEntry(parts=text(word))


def one_line(words: str) -> str:
    return " ".join(words.split())


def long_session(entries: int, *, output: int = 2_000) -> list[HistoryEvent]:
    """About so many entries of an ordinary session: prompts, steps with calls, a compaction now and then."""
    return number(itertools.islice(_ordinary(output), entries))


def _ordinary(output: int) -> Iterator[Entry]:
    yield HeaderEntry(session_id="feedc0de-20261121-080000", cwd="/home/somebody/project")
    size = 20_000
    for turn in itertools.count(1):
        yield UserMessage(parts=text(f"Please mend part {turn} of the parser, and run the tests."))
        for step in range(6):
            size += 900
            call_id = f"call-{turn}-{step}"
            yield AssistantMessage(
                parts=(
                    TextPart(
                        text=f"Part **{turn}**, step `{step}`:\n\n```python\ndef part_{step}():\n    return {turn}\n```"
                    ),
                    call("bash", call_id, command=f"pytest tests/part_{turn}.py -k step_{step}"),
                ),
                model="test/model",
                stop_reason="tool_use",
                usage=Usage(input=900, cache_read=size, output=200, cost=0.004),
            )
            lines = "\n".join(f"line {line} of the output of step {step}" for line in range(output // 32))
            yield ToolResultMessage(
                call_id=call_id, name="bash", parts=text(lines), ui=(ShellView(command="", exit_code=0),)
            )
        yield AssistantMessage(
            parts=text("Done: the tests pass."), model="test/model", usage=Usage(input=900, cache_read=size, output=50)
        )
        if size > 150_000:
            yield CompactionEntry(
                summary="## Goal\nA parser.",
                first_kept_index=1,
                tokens_before=size,
                tokens_after=20_000,
                reason="threshold",
                trigger=150_000,
            )
            size = 20_000
