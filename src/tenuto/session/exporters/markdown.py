"""The Markdown export: for reading as it stands, and for pages that render it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from html import escape

from tenuto.guard.terminal import sanitize_line, sanitize_output
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, QueuedEntry, ShellEntry, UnknownEntry
from tenuto.protocol.message import (
    CompactionEntry,
    DeveloperMessage,
    DiffView,
    HistoryEvent,
    SystemMessage,
    TodoView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ContentPart, ImagePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.session.describe import kind_of, line_of
from tenuto.session.exporters.fencing import code, embed, fence, plain, quote
from tenuto.session.exporters.items import Answer, Call, Item, arrange
from tenuto.session.exporters.labels import (
    answer_facts,
    branch_name,
    call_facts,
    call_subject,
    compaction_facts,
    cut_note,
    describe_arguments,
    image_name,
    is_long,
    shell_facts,
)
from tenuto.session.exporters.outline import read_outline
from tenuto.session.exporters.source import Source, format_time
from tenuto.session.exporters.spending import Share, read_shares
from tenuto.session.results import shown_text
from tenuto.text.figures import count_lines, format_cost, plural

_TODO_MARKS = {"pending": "[ ]", "in_progress": "[ ] ▸", "done": "[x]", "cancelled": "[x] ✗"}


def write_markdown(source: Source) -> Iterator[str]:
    """Yield the whole document, block by block."""
    outline = read_outline(source.entries)
    undone = outline.undone
    yield from _blocks(_head(source))
    yield from _blocks(_items(outline.path, undone))
    if source.state.queue:
        yield from _blocks(_waiting(source.state.queue))
    for piece in outline.branches:
        yield from _blocks([f"## Branch: {plain(branch_name(piece))}"])
        yield from _blocks(_items(piece.entries, undone))


def _blocks(parts: Iterable[str]) -> Iterator[str]:
    for part in parts:
        if part:
            yield f"{part}\n\n"


def _head(source: Source) -> Iterator[str]:
    state = source.state
    yield f"# {plain(source.title)}"
    facts = [("session", code(source.id)), ("directory", code(source.cwd)), ("model", code(state.model))]
    facts += [("from", format_time(state.created)), ("to", format_time(state.updated))]
    if source.forked_from is not None:
        facts.append(("forked from", f"{code(source.forked_from.session)} after #{source.forked_from.seq}"))
    if source.damage:
        facts.append(("damaged lines of the log", f"{len(source.damage):,}"))
    yield "\n".join(f"- {name}: {value}" for name, value in facts if value)
    yield _totals(read_shares(source.entries))


def _totals(shares: list[Share]) -> str:
    if not shares:
        return ""
    rows = ["| | calls | input | from cache | to cache | output | cost |", "|---|--:|--:|--:|--:|--:|--:|"]
    for share in shares:
        usage = share.usage
        cost = format_cost(usage.cost) if usage.cost is not None else "–"
        numbers = (share.calls, usage.input, usage.cache_read, usage.cache_write, usage.output)
        rows.append(f"| {plain(share.name)} | {' | '.join(f'{number:,}' for number in numbers)} | {cost} |")
    return "\n".join(rows)


def _items(entries: tuple[HistoryEvent, ...], undone: frozenset[int]) -> Iterator[str]:
    for item in arrange(entries):
        yield from _item(item, undone)


def _waiting(queue: tuple[QueuedEntry, ...]) -> Iterator[str]:
    yield "## Not sent yet"
    for entry in queue:
        yield from _said(entry.parts)


def _item(item: Item, undone: frozenset[int]) -> Iterator[str]:
    match item:
        case Answer():
            yield from _answer(item)
        case UserMessage() | ExtensionEntry():
            yield _heading(kind_of(item).who, item.seq, item.ts)
            yield from _said(item.parts)
        case ToolResultMessage():
            yield f"**{plain(item.name)}** · {plain(' · '.join(['a result without its call', *call_facts(item)]))}"
            yield from _result(item)
        case ShellEntry():
            yield from _shell(item)
        case CompactionEntry():
            yield from _compaction(item, is_undone=item.seq in undone)
        case SystemMessage() | DeveloperMessage():
            yield _folded(line_of(item), fence(item.text))
        case UnknownEntry():
            yield _folded(line_of(item), fence(item.raw.decode("utf-8", "replace")))
        case _:
            yield f"*{plain(line_of(item))}*"
            if isinstance(item, BranchSummaryEntry):
                yield _folded("Summary", quote(item.summary))


def _heading(who: str, seq: int, ts: float) -> str:
    parts = [plain(who), f"#{seq}" if seq > 0 else "", format_time(ts)]
    return f"## {' · '.join(part for part in parts if part)}"


def _folded(head: str, body: str) -> str:
    """Return a part that a page folds; the words stand between tags, so they are HTML and no Markdown."""
    return f"<details><summary>{escape(sanitize_line(head))}</summary>\n\n{body}\n\n</details>"


def _said(parts: tuple[ContentPart, ...]) -> Iterator[str]:
    for part in parts:
        match part:
            case TextPart():
                yield quote(part.text)
            case ImagePart():
                yield _image(part)


def _image(part: ImagePart) -> str:
    return f"*Image: {plain(image_name(part))}, {code(part.sha256[:16])}*"


def _answer(answer: Answer) -> Iterator[str]:
    yield _heading(kind_of(answer.message).who, answer.seq, answer.ts)
    calls = iter(answer.calls)
    for part in answer.message.parts:
        match part:
            case TextPart() if part.text.strip():
                yield embed(part.text)
            case ThinkingPart() if part.text.strip():
                yield _folded("Thinking", quote(part.text))
            case ToolCallPart():
                yield from _call(next(calls))
            case _:
                continue
    facts = answer_facts(answer.message)
    if facts:
        yield f"*{plain(' · '.join(facts))}*"


def _call(call: Call) -> Iterator[str]:
    words = [f"**{plain(call.part.name)}**", code(call_subject(call)), plain(" · ".join(call_facts(call.result)))]
    yield " · ".join(word for word in words if word)
    has_diff = call.result is not None and any(isinstance(view, DiffView) for view in call.result.ui)
    if not has_diff:
        yield _output(describe_arguments(call.part.arguments), "arguments")
    if call.result is not None:
        yield from _result(call.result)


def _result(result: ToolResultMessage) -> Iterator[str]:
    for view in result.ui:
        if isinstance(view, DiffView):
            yield f"{code(view.path)} +{view.added} −{view.removed}"
            yield fence(view.diff, "diff")
        elif isinstance(view, TodoView):
            yield "\n".join(f"- {_TODO_MARKS[item.status]} {plain(item.text)}" for item in view.items)
    yield _output(sanitize_output(shown_text(result)), "")
    yield from (_image(part) for part in result.parts if isinstance(part, ImagePart))
    if result.truncated:
        yield f"*{plain(cut_note(result))}*"


def _output(text: str, name: str) -> str:
    """Return a text as code, folded when it is long."""
    if not text.strip():
        return ""
    lines = plural(count_lines(text), "line")
    return _folded(f"{name}, {lines}" if name else lines, fence(text)) if is_long(text) else fence(text)


def _shell(entry: ShellEntry) -> Iterator[str]:
    yield _heading(kind_of(entry).who, entry.seq, entry.ts)
    yield fence(entry.command, "sh")
    yield _output(sanitize_output(entry.output), "")
    yield f"*{plain(' · '.join(shell_facts(entry)))}*"


def _compaction(entry: CompactionEntry, *, is_undone: bool) -> Iterator[str]:
    yield "---"
    yield f"**{kind_of(entry).who}** #{entry.seq} · {plain(' · '.join(compaction_facts(entry, undone=is_undone)))}"
    if entry.summary:
        yield _folded("Summary", quote(entry.summary))
    if entry.details is not None:
        for head, names in (("Read", entry.details.read_files), ("Modified", entry.details.modified_files)):
            if names:
                yield _folded(f"{head}: {len(names):,}", fence("\n".join(names)))
    yield "---"
