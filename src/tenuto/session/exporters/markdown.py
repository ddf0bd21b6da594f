"""The Markdown export: for reading as it stands, and for pages that render it.

Foreign text inside the file stays what it is and changes nothing around it.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from html import escape
from typing import TYPE_CHECKING

import msgspec

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line, sanitize_output
from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, QueuedEntry, ShellEntry, UnknownEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DeveloperMessage,
    DiffView,
    SystemMessage,
    TodoView,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import (
    ContentPart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    WebSource,
    cited_in,
    text_of,
)
from tenuto.protocol.usage import Usage
from tenuto.session.describe import compaction_sizes, kind_of, line_of, search_line, source_line
from tenuto.session.exporters.source import (
    Answer,
    Call,
    Item,
    Piece,
    Share,
    Source,
    Writing,
    format_time,
    read_outline,
    read_shares,
)
from tenuto.session.results import change_words, changed_path, result_facts, shown_text
from tenuto.text.call_summary import listed_objects, summarise_call
from tenuto.text.figures import (
    REASON_WORDS,
    count_lines,
    describe_rung,
    format_bytes,
    format_cost,
    format_count,
    format_seconds,
    plural,
)
from tenuto.text.writable import to_json

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


_ADDRESS = re.compile(r"https?://[\w.~:/?#@!$&'*+,;=%-]{1,2000}", re.ASCII)
LONG_LINES = 30
LONG_CHARACTERS = 3_000
"""An output above either is folded where not everything is."""


def is_long(text: str) -> bool:
    """Return whether a text is too long to be shown unfolded."""
    return len(text) > LONG_CHARACTERS or text.count("\n") >= LONG_LINES


def first_line(text: str, length: int = 80) -> str:
    """Return how a text begins, on one line of at most `length` characters."""
    line = sanitize_line(text[: length * 4])
    return line if len(line) <= length else line[: length - 1] + "…"


def branch_name(piece: Piece) -> str:
    """Return what a branch is called: how it begins, and how much it is."""
    said = next((entry for entry in piece.entries if isinstance(entry, UserMessage)), None)
    begin = first_line(text_of(said.parts), 60) if said is not None else ""
    return f"{begin or 'left here'} ({len(piece.entries):,} {'entry' if len(piece.entries) == 1 else 'entries'})"


def call_subject(call: Call) -> str:
    """Return the path, command or pattern of a call, on one line."""
    return sanitize_line(summarise_call(call.part.name, call.part.arguments, changed_path(call.result)))


def call_state(result: ToolResultMessage | None) -> str:
    """Return how a call ended, in one word: done, failed, denied, interrupted, or unanswered."""
    if result is None:
        return "unanswered"
    if result.denied:
        return "denied"
    if result.interrupted:
        return "interrupted"
    return "failed" if result.failed else "done"


def shell_facts(entry: ShellEntry) -> list[str]:
    """Return how a command of the user ended, and what is to be known of its output."""
    ending = "not finished" if entry.exit_code is None else f"exit {entry.exit_code}"
    facts = ["interrupted" if entry.interrupted else ending]
    facts += [format_seconds(entry.duration)] if entry.duration >= 1 else []
    facts += ["kept from the model"] if entry.excluded else []
    facts += ["not all of its output"] if entry.truncated else []
    return facts


def call_facts(result: ToolResultMessage | None) -> list[str]:
    """Return what became of a call, most telling first."""
    facts = [] if call_state(result) == "done" else [call_state(result)]
    if result is None:
        return facts
    facts += [" ".join(words for words, _tone in fact) for fact in result_facts(result, lines=True)]
    return [*facts, format_seconds(result.duration)] if result.duration >= 1 else facts


def cut_note(result: ToolResultMessage) -> str:
    """Return the note about an output that was too long for the model; it stays beside the log."""
    name = sanitize_line(result.output_path.replace("\\", "/").rpartition("/")[2])
    size = f" ({format_bytes(result.output_size)})" if result.output_size else ""
    where = f"; all of it{size} is in outputs/{name} of the session" if name else ""
    return f"This is what the model was sent{where}."


def image_name(part: ImagePart) -> str:
    """Return the words that stand for an image."""
    facts = [
        part.media_type,
        f"{part.width}×{part.height}" if part.width else "",
        format_bytes(part.size) if part.size > 0 else "",
    ]
    return sanitize_line(f"{part.name or 'image'} ({', '.join(fact for fact in facts if fact)})")


def answer_facts(message: AssistantMessage) -> list[str]:
    """Return what an answer cost and how it ended, where that is known."""
    facts = [message.model] if message.model else []
    if message.usage is not None:
        facts.append(f"{format_count(message.usage.sent)} tokens in, {format_count(message.usage.output)} out")
        if message.usage.cost is not None:
            facts.append(format_cost(message.usage.cost))
    if message.duration >= 1:
        facts.append(format_seconds(message.duration))
    if message.stop_reason not in ("end_turn", "tool_use"):
        facts.append(message.stop_reason.replace("_", " "))
    return [sanitize_line(fact) for fact in facts]


def compaction_facts(entry: CompactionEntry, *, undone: bool) -> list[str]:
    """Return sizes, reason, what made it, time and cost of a compaction."""
    sizes = compaction_sizes(entry)
    facts = [sizes] if sizes else []
    facts.append(f"{entry.reason} ({REASON_WORDS[entry.reason]})")
    if entry.rung:
        facts.append(describe_rung(entry.rung, entry.from_extension))
    if entry.duration:
        facts.append(format_seconds(entry.duration))
    facts += _cost(entry.usage)
    if entry.focus:
        facts.append(f"focus: {first_line(entry.focus)}")
    if entry.from_extension and entry.rung != "extension":
        facts.append(f"by the extension {entry.from_extension}")
    if undone:
        facts.append("taken back")
    return [sanitize_line(fact) for fact in facts]


def _cost(usage: Usage | None) -> list[str]:
    return [format_cost(usage.cost)] if usage is not None and usage.cost is not None else []


def describe_arguments(arguments: str) -> str:
    """Return a call's arguments as `name: text`, one below the other; what is no JSON object stays as it is."""
    try:
        values = msgspec.json.decode(arguments.encode("utf-8", "replace"), type=dict[str, object])
        return "\n".join(_argument(name, value) for name, value in values.items())
    except (ValueError, RecursionError):
        return arguments


def _argument(name: str, value: object) -> str:
    objects = listed_objects(value)
    if any(isinstance(text, str) and "\n" in text for fields in objects for text in fields.values()):
        # JSON would give each of these texts as one long line.
        items = ("\n".join(_argument(name, text) for name, text in fields.items()) for fields in objects)
        return "\n".join((f"{name}:", *items))
    words = value if isinstance(value, str) else msgspec.json.format(to_json(value), indent=2).decode()
    return f"{name}:\n{words}" if "\n" in words else f"{name}: {words}"


MAX_CHARACTERS = 200_000
"""A longer text is fenced as it stands: parsing it would take long."""
MAX_BRACKETS = 4_000
"""The parser costs the square of them."""
_BACKTICKS = re.compile(r"`+")
_BLANK = re.compile(r"(\n[ \t]*\n)")
_PREFIX = re.compile(r"^[ \t>*+.)\-\d]*\t", re.MULTILINE)
_MOST_BACKSLASHES = 1_000
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SENTINEL = "tenuto-end-of-text"


def clean(text: str) -> str:
    """Return a text without control characters, its lines ending as Unix has them."""
    return sanitize_for_terminal(text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text)


def fence(text: str, language: str = "") -> str:
    """Return a text as a block of code whose fence is longer than any run of its sign in the text."""
    text = clean(text).removesuffix("\n")
    longest = max(map(len, _BACKTICKS.findall(text)), default=0)
    marks = "`" * max(3, longest + 1)
    return f"{marks}{language}\n{text}\n{marks}"


def code(text: str) -> str:
    """Return a short text as inline code, on one line; empty stays empty."""
    words = " ".join(clean(text).split())
    if not words:
        return ""
    longest = max(map(len, _BACKTICKS.findall(words)), default=0)
    marks = "`" * (longest + 1)
    gap = " " if longest else ""
    return f"{marks}{gap}{words}{gap}{marks}"


def plain(text: str) -> str:
    """Return a text on one line in which nothing is markup."""
    return re.sub(r"([\\`*_\[\]<|~&])", r"\\\1", " ".join(clean(text).split()))


def quote(text: str) -> str:
    """Return a Markdown text as a quotation: whatever it leaves open ends with it."""
    if "\t" in text and "<" in text:
        # Behind the sign a tab is narrower: what was a block of code would be text, and its tags would be live.
        text = _PREFIX.sub(lambda found: found[0].expandtabs(4), text)
    quoted = _quoted(embed(text))
    return _quoted(fence(text, "markdown")) if "<" in quoted and _has_html(quoted) else quoted


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.split("\n"))


def embed(text: str) -> str:
    """Return somebody's Markdown such that it can stand between ours: no HTML in it, no fence left open.

    A text that cannot be made so is fenced.
    """
    text = clean(text).strip("\n")
    if len(text) > MAX_CHARACTERS:
        return fence(text, "markdown")
    try:
        made = _without_html(text)
        left_open = _left_open(made)
        if left_open:
            made = f"{made}\n{left_open}"
        # Readers differ on what is a fence and what a table: where one would still see a tag, all of it is code.
        is_open = bool(left_open) and bool(_left_open(made))
        return fence(text, "markdown") if is_open or ("<" in made and _has_html(made)) else made
    except RecursionError:
        return fence(text, "markdown")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).disable(["html_block", "html_inline"])


@lru_cache(maxsize=1)
def _html_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def _read_blocks(text: str) -> list[Token]:
    """Parse the blocks of a text and leave their inline content alone."""
    parser, tokens = _parser(), list["Token"]()
    parser.block.parse(text, parser, {}, tokens)
    return tokens


def _without_html(text: str) -> str:
    """Write what would be a tag as text, outside of code; where code cannot be told for sure, in code spans as well."""
    if "<" not in text:
        return text
    escaped = _outside_read_blocks(text, _escape_outside_spans)
    return _outside_read_blocks(text, _escape_tags) if _has_html(escaped) else escaped


def _has_html(text: str) -> bool:
    """Return whether a reader that knows HTML finds any; a text that would take it long counts as one that has."""
    if text.count("[") > MAX_BRACKETS:
        return True
    tokens = _html_parser().parse(text)
    inline = (child for token in tokens for child in token.children or ())
    return any(token.type in ("html_block", "html_inline") for token in (*tokens, *inline))


def _outside_read_blocks(text: str, change: Callable[[str], str]) -> str:
    """Change what stands outside of fences and indented code."""
    lines = text.split("\n")
    inside = {
        number
        for token in _read_blocks(text)
        if token.type in ("fence", "code_block") and token.map
        for number in range(*token.map)
    }
    parts: list[str] = []
    start = 0
    while start < len(lines):
        end = start + 1
        while end < len(lines) and (end in inside) == (start in inside):
            end += 1
        block = "\n".join(lines[start:end])
        parts.append(block if start in inside else change(block))
        start = end
    return "\n".join(parts)


def _escape_tags(block: str) -> str:
    return _TAG.sub("&lt;", block)


def _escape_outside_spans(block: str) -> str:
    parts: list[str] = []
    for paragraph in _BLANK.split(block):
        position = 0
        for start, end in _code_spans(paragraph):
            parts += [_escape_tags(paragraph[position:start]), paragraph[start:end]]
            position = end
        parts.append(_escape_tags(paragraph[position:]))
    return "".join(parts)


def _code_spans(paragraph: str) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each code span: a run of backticks up to the next run of the same length."""
    runs = [(found.start(), found.end()) for found in _BACKTICKS.finditer(paragraph)]
    by_length: dict[int, list[int]] = {}
    for index, (start, end) in enumerate(runs):
        by_length.setdefault(end - start, []).append(index)
    index = 0
    while index < len(runs):
        start, end = runs[index]
        if _is_escaped(paragraph, start):
            start += 1
        same = by_length.get(end - start, [])
        following = bisect_right(same, index)
        if start < end and following < len(same):
            index = same[following]
            yield start, runs[index][1]
        index += 1


def _is_escaped(text: str, position: int) -> bool:
    before = text[max(0, position - _MOST_BACKSLASHES) : position]
    return (len(before) - len(before.rstrip("\\"))) % 2 == 1


def _left_open(text: str) -> str:
    """Return the marks of a fence that would swallow what follows, empty when there is none."""
    tokens = _read_blocks(f"{text}\n\n{_SENTINEL}")
    last = tokens[-1]
    if last.type == "fence" and last.level == 0 and _SENTINEL in last.content:
        return last.markup
    return ""


_TODO_MARKS = {"pending": "[ ]", "in_progress": "[ ] ▸", "done": "[x]", "cancelled": "[x] ✗"}


def write_markdown(source: Source) -> Iterator[str]:
    """Yield the whole document, block by block."""
    outline = read_outline(source.entries)
    undone, writing = outline.undone, Writing(source)
    yield from _blocks(_head(source))
    yield from _blocks(_items(writing.items(outline.pieces[0]), undone))
    if source.state.queue:
        yield from _blocks(_waiting(source.state.queue))
    for piece in outline.branches:
        yield from _blocks([f"## Branch: {plain(branch_name(piece))}"])
        yield from _blocks(_items(writing.items(piece), undone))


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


def _items(items: Iterable[Item], undone: frozenset[int]) -> Iterator[str]:
    for item in items:
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
            case OpaquePart(search=search) if search is not None and search.done:
                yield f"*{plain(search_line(search))}*"
                if search.sources:
                    yield _folded(plural(len(search.sources), "result"), _pages(search.sources))
            case ToolCallPart():
                yield from _call(next(calls))
            case _:
                continue
    if cited := cited_in(answer.message.parts):
        yield f"Sources:\n\n{_pages(cited)}"
    facts = answer_facts(answer.message)
    if facts:
        yield f"*{plain(' · '.join(facts))}*"


def _pages(sources: Sequence[WebSource]) -> str:
    return "\n".join(f"{number}. {_page(source)}" for number, source in enumerate(sources, 1))


def _page(source: WebSource) -> str:
    """Return a page as a link, if its address is one of the web and could not be read as anything else."""
    if not _ADDRESS.fullmatch(source.url):
        return plain(source_line(source))
    return f"{plain(source.title)} · <{source.url}>" if source.title else f"<{source.url}>"


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
            yield f"{code(view.path)} +{view.added} −{view.removed} {sanitize_line(change_words(view))}".rstrip()
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
