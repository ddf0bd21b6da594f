"""Every kind of item as lines: no boxes, one accent, quiet metadata, a gutter that copying leaves out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

import msgspec

from tenuto.command.context_rows import context_rows, in_ascii, spoken_rows
from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.protocol.message import CompactionEntry, NameAudit
from tenuto.protocol.part import WebSource
from tenuto.session.describe import search_line, sources_text
from tenuto.text.figures import (
    REASON_WORDS,
    RUNNING_REASON_WORDS,
    describe_rung,
    format_change,
    format_cost,
    format_count,
    format_seconds,
    format_spending,
    plural,
)
from tenuto.tui.render.frame import (
    Frame,
    Output,
    below,
    frame_for,
    head,
    image_words,
    last_lines,
    more_row,
    wrapped_rows,
)
from tenuto.tui.render.line import EMPTY, Line, Span, indent, plain, with_fill, wrap
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import DEFAULT, GUTTER, MEASURE, SPOKEN, UNICODE, RenderOptions, text_width
from tenuto.tui.render.tools import has_body, render_tool, tool_height
from tenuto.tui.render.width import cell_width
from tenuto.tui.state.item import (
    WELCOME,
    AssistantItem,
    CompactionItem,
    ContextItem,
    Item,
    NoticeItem,
    SearchItem,
    ShellItem,
    SourcesItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)

USER_ROWS = 24
THINKING_ROWS = 4
OWN_HEAD = 5
OWN_TAIL = 15
"""Lines of the output of a command that the user ran: it is there to be read."""
HANGING = 4
PREVIEW_CHARACTERS = 2_000
_COLUMN = re.compile(r" *\S+(?: \S+)* {2,}(?=\S)")


def render_item(item: Item, width: int, options: RenderOptions = DEFAULT) -> list[Line]:
    """Return the lines of an item on a screen of `width` cells; an empty list for what is not to be seen."""
    frame = frame_for(item, width, options)
    match item:
        case UserItem():
            return _user(item, frame)
        case AssistantItem():
            return _assistant(item, frame, width, options)
        case ThinkingItem():
            return _thinking(item, frame)
        case SearchItem():
            return _search(item, frame)
        case SourcesItem():
            return _sources(item, frame)
        case ToolItem():
            return render_tool(item, frame)
        case ShellItem():
            return _shell(item, frame)
        case NoticeItem():
            return _notice(item, frame)
        case CompactionItem():
            return _compaction(item, frame, width, options)
        case ContextItem():
            return _context(item, frame)


def gap_before(previous: Item | None, item: Item) -> int:
    """Return how many empty rows stand between an item and the one before it."""
    if previous is None:
        return 0
    if not isinstance(item, ToolItem | ThinkingItem | SearchItem):
        return 1
    if isinstance(previous, ThinkingItem):
        return int(not (previous.final and previous.folded))
    if isinstance(previous, SearchItem):
        return int(not previous.folded)
    return int(not isinstance(previous, ToolItem) or has_body(previous))


def _text(frame: Frame) -> int:
    return min(frame.width, MEASURE)


def _user(item: UserItem, frame: Frame) -> list[Line]:
    style = "user.text" if item.seq else "user.pending"
    text = sanitize_for_terminal(item.text).expandtabs(4).strip("\n")
    lines = wrap([(text, style)], _text(frame)) if text else []
    if not frame.unfolded and len(lines) > USER_ROWS + 1:
        hidden = len(lines) - USER_ROWS
        lines = [*lines[:USER_ROWS], more_row(f"{hidden:,} rows", frame, "user.pending")]
    for number, image in enumerate(item.images, 1):
        lines.extend(wrap([(image_words(image, number, frame.glyphs.middle), "user.image")], _text(frame)))
    if item.origin != "typed":
        lines.insert(0, plain(item.origin, "user.pending"))
    bar = (f"{frame.glyphs.bar} ", "user.bar")
    return [with_fill(line, style) for line in indent(lines or [EMPTY], bar, bar)]


def _assistant(item: AssistantItem, frame: Frame, width: int, options: RenderOptions) -> list[Line]:
    lines = render_markdown(item.text, width, options)
    if item.interrupted:
        lines.extend(interruption(frame))
    return lines


def interruption(frame: Frame) -> list[Line]:
    """Return what stands below an answer that was cut short."""
    return head(frame.glyphs.stopped, "warning", [("interrupted", "warning")], frame)


def _thinking(item: ThinkingItem, frame: Frame) -> list[Line]:
    text = sanitize_for_terminal(item.text).strip()
    if item.final:
        title = f"Thought for {format_seconds(item.seconds)}" if item.seconds >= 0.1 else "Thought"
    else:
        elapsed = frame.now - item.started if item.started else 0.0
        title = f"Thinking {int(elapsed)}s" if elapsed >= 1 else "Thinking"
    lines = head(frame.glyphs.thinking, "thinking.mark", [(title, "thinking.title")], frame)
    if frame.unfolded:
        lines.extend(below(wrap([(text, "thinking")], min(frame.body, MEASURE)) if text else []))
    elif not item.final and frame.show_thinking and text:
        rows = wrap([(text[-PREVIEW_CHARACTERS:], "thinking")], min(frame.body, MEASURE))
        lines.extend(below(rows[-THINKING_ROWS:]))
    return lines


def _search(item: SearchItem, frame: Frame) -> list[Line]:
    search = item.search
    mark, style = frame.glyphs.dot, "tool.done" if search.done else "tool.running"
    if search.error:
        mark, style = frame.glyphs.failed, "tool.failed"
    lines = head(mark, style, [(sanitize_line(search_line(search)), "text")], frame, whole=frame.unfolded)
    return [*lines, *below(_pages(search.sources, frame))] if frame.unfolded else lines


def _sources(item: SourcesItem, frame: Frame) -> list[Line]:
    rows = [plain("Sources", "dim"), *_pages(item.sources, frame)]
    blank = (" " * GUTTER, "text")
    return indent(rows, blank, blank)


def _pages(sources: Sequence[WebSource], frame: Frame) -> list[Line]:
    """Return each page by title and address; a click opens the address, if it is one of the web."""
    rows: list[Line] = []
    for number, source in enumerate(sources, 1):
        address = sanitize_line(source.url).replace(" ", "%20")
        title = sanitize_line(source.title)
        words: list[Span] = [(f"{number}. ", "dim")]
        words += [(f"{title} ", "text")] if title and title != address else []
        style = f"link.target @{address}" if address.startswith(("https://", "http://")) else "dim"
        rows.extend(wrap([*words, (address, style)], max(frame.body, 4), min(HANGING, frame.width // 4)))
    return rows


def _shell(item: ShellItem, frame: Frame) -> list[Line]:
    command = sanitize_for_terminal(item.command) if frame.unfolded else sanitize_line(item.command)
    spans: list[Span] = [(command, "shell.command")]
    facts: list[Span] = []
    if item.running and item.started and frame.now - item.started >= 2:
        facts.append((f"{int(frame.now - item.started)}s", "dim"))
    if item.interrupted:
        facts.append(("interrupted", "warning"))
    if item.exit_code:
        facts.append((f"exit {item.exit_code}", "warning"))
    if not item.running and item.seconds >= 1:
        facts.append((format_seconds(item.seconds), "dim"))
    if item.excluded:
        facts.append(("not shown to the model", "dim"))
    for fact in facts:
        spans.extend(((f" {frame.glyphs.middle} ", "dim"), fact))
    lines = head("$", "shell.mark", spans, frame, whole=frame.unfolded)
    lines.extend(below(_shell_output(item, frame).lines(frame)))
    if item.output_path and frame.unfolded:
        lines.extend(below(wrap([("whole output: ", "dim"), (sanitize_line(item.output_path), "path")], frame.body)))
    return lines


def _shell_output(item: ShellItem, frame: Frame) -> Output:
    if item.running:
        return last_lines(item.output, OWN_TAIL, unfolded=frame.unfolded)
    return Output(item.output, OWN_HEAD, OWN_TAIL, is_cut=item.truncated)


def _notice(item: NoticeItem, frame: Frame) -> list[Line]:
    glyphs = frame.glyphs
    mark = {"info": glyphs.notice, "warning": glyphs.warning, "error": glyphs.failed}[item.level]
    style = {"info": "notice", "warning": "warning", "error": "error"}[item.level]
    if item.kind == WELCOME:
        name, _, rest = item.text.partition("\n")
        return [*_sentences("", "bold", name, frame), *_sentences("", "dim", rest, frame)]
    if item.kind == "command" and item.level == "info":
        mark, style = "", "text"
    return _sentences(mark, style, _as_sentence(item.text) if item.level != "info" else item.text, frame)


def _as_sentence(text: str) -> str:
    """Return a fault, which others put behind a name and a colon, as a line of its own; names stay as they are."""
    return f"{text[0].upper()}{text[1:]}" if text.split(" ", 1)[0].isalpha() else text


def _sentences(mark: str, style: str, text: str, frame: Frame) -> list[Line]:
    """Return a remark behind its mark, wrapped, its further rows below its first word."""
    shown = sanitize_for_terminal(text).expandtabs(4).strip("\n")
    blank = (" " * GUTTER, "text")
    width = _text(frame)
    columns = [_in_columns(line, width) for line in shown.split("\n")]
    lines = [row for line, hanging in columns for row in wrap([(line, style)], width, hanging)]
    return indent(lines, (f"{mark:<{GUTTER}}", style), blank)


def _in_columns(line: str, width: int) -> tuple[str, int]:
    """Return a row, and where its further rows begin: below its second column, else below its first word.

    Where the second column would leave too little for what is in it, it has no place of its own.
    """
    head = _COLUMN.match(line)
    text = line.lstrip(" ")
    cells = cell_width(head[0]) if head else len(line) - len(text)
    if cells <= width // 2:
        return line, cells
    hanging = min(HANGING, width // 4)
    return (f"{head[0].rstrip(' ')}  {line[head.end() :]}" if head else f"{'':{hanging}}{text}"), hanging


def _context(item: ContextItem, frame: Frame) -> list[Line]:
    blank = (" " * GUTTER, "text")
    is_spoken = frame.glyphs is SPOKEN
    drawn = spoken_rows(item.report) if is_spoken else context_rows(item.report, frame.width)
    rows = [Line(tuple(row)) for row in (drawn if frame.glyphs is UNICODE else map(in_ascii, drawn))]
    lines = [part for row in rows for part in (wrap(row.spans, frame.width) if row.width > frame.width else [row])]
    return indent(lines, blank, blank)


class _Words(msgspec.Struct, frozen=True, kw_only=True):
    """What a compaction is called while it runs, and when it has ended."""

    running: str
    cancelled: str
    failed: str
    done: str


_COMPACTION_WORDS = _Words(
    running="Compacting",
    cancelled="Compaction cancelled, nothing changed",
    failed="Compaction failed",
    done="Compacted",
)
_BRANCH_WORDS = _Words(
    running="Summarising what is left",
    cancelled="Cancelled, nothing has moved",
    failed="The notes were not made",
    done="Notes on what was left",
)


def _words(item: CompactionItem) -> _Words:
    return _BRANCH_WORDS if item.reason == "branch" else _COMPACTION_WORDS


def _compaction(item: CompactionItem, frame: Frame, width: int, options: RenderOptions) -> list[Line]:
    mark, style, words = frame.glyphs.compaction, "compaction", _words(item)
    if item.running:
        return head(mark, style, _compaction_progress(item, frame), frame)
    if item.aborted:
        return head(frame.glyphs.stopped, "warning", [(words.cancelled, "warning")], frame)
    if item.entry is None:
        reason = sanitize_line(item.error) or "no reason given"
        if item.needless:
            return _sentences(mark, style, f"{reason[0].upper()}{reason[1:]}", frame)
        return _sentences(frame.glyphs.failed, "error", f"{words.failed}: {reason}", frame)
    facts = _compaction_facts(item, frame)
    if item.proposed:
        facts[0] = ("Compaction proposed, nothing is written yet", style)
    if item.error:  # something was written, and it was not enough
        mark, style, facts = frame.glyphs.failed, "warning", [(f"Compaction: {sanitize_line(item.error)}", "warning")]
    lines = head(mark, style, _over_rows(facts, frame), frame, whole=True)
    if frame.unfolded:
        lines.append(EMPTY)
        lines.extend(render_markdown(item.entry.summary or "(no text)", width, options))
        lines.extend(_details(item.entry, frame))
    if item.final:
        lines.extend(
            below(
                wrap([(_way_back(item.entry, frame, is_undone=bool(item.undone_by)), "dim")], min(frame.body, MEASURE))
            )
        )
    if item.proposed:
        lines.append(EMPTY)
        ways = f" {frame.glyphs.middle} ".join(("/compact accept", "/compact edit", "/compact drop"))
        lines.extend(below(wrap([(ways, "dim")], frame.body)))
    return lines


def _over_rows(facts: Sequence[Span], frame: Frame) -> list[Span]:
    """Return facts with a line end before each that would not fit the row: none is parted that fits one."""
    separator = f" {frame.glyphs.middle} "
    shown, used = [facts[0]], cell_width(facts[0][0])
    for text, style in facts[1:]:
        if used + cell_width(text) > frame.width and text.startswith(separator):
            fact = text.removeprefix(separator)
            shown.append((f"\n{fact}", style))
            used = min(HANGING, frame.width // 4) + cell_width(fact)
        else:
            shown.append((text, style))
            used += cell_width(text)
    return shown


def _way_back(entry: CompactionEntry, frame: Frame, *, is_undone: bool) -> str:
    """Return how what was compacted can be read, and whether it can be taken back by itself (R-056)."""
    is_shown = frame.unfolded or not entry.summary or not frame.expand_key
    parts = [] if is_shown else [f"{frame.expand_key}: show summary"]
    before = entry.tokens_before or 0
    if is_undone:
        parts.append("undone; /compact redo reverts this")
    elif entry.trigger and before > entry.trigger:
        limit = f"{format_count(before)} of {format_count(entry.trigger)}"
        parts.append(f"undo would exceed the limit ({limit}); /compact undo offers other ways")
    else:
        parts.append("/compact undo reverts this")
    return f" {frame.glyphs.middle} ".join(parts)


def _details(entry: CompactionEntry, frame: Frame) -> list[Line]:
    """Return what a head has no room for: where the kept part begins, what was asked, and what the calls used."""
    rows: list[str] = []
    if entry.first_kept_index:
        rows.append(f"Entries from #{entry.first_kept_index} on stay word for word.")
    if entry.edits and entry.first_kept_index:
        rows.append(f"{plural(len(entry.edits), 'large result')} shortened in the part that stays.")
    details = entry.details
    if details is not None and (details.read_files or details.modified_files):
        rows.append(f"Files: {len(details.read_files)} read, {len(details.modified_files)} changed.")
    if entry.focus:
        rows.append(f"Focus: {sanitize_line(entry.focus)}")
    if entry.usage is not None and entry.usage.sent:
        usage = entry.usage
        rows.append(
            f"{usage.sent:,} tokens read ({usage.cache_read:,} from the cache), {usage.output:,} written"
            + (f", {format_cost(usage.cost)}" if usage.cost is not None else "")
        )
    if not rows:
        return []
    return [EMPTY, *below([line for row in rows for line in wrap([(row, "dim")], min(frame.body, MEASURE))])]


def _compaction_progress(item: CompactionItem, frame: Frame) -> list[Span]:
    """Return what runs, and why; how far it is stands in the status line, once."""
    running = (_words(item).running, "compaction")
    if item.reason == "branch":  # the words before it say so
        return [running]
    return [running, (f" {frame.glyphs.middle} {RUNNING_REASON_WORDS[item.reason]}", "dim")]


def _names_fact(names: NameAudit) -> str:
    """Return how many exact names the summary has of itself, and how many were put in."""
    added = f", {names.added} added" if names.added else ""
    return f"names {names.kept}/{names.found} kept{added}"


def _compaction_facts(item: CompactionItem, frame: Frame) -> list[Span]:
    entry = item.entry
    if entry is None:
        return []
    spans: list[Span] = [(_words(item).done, "compaction")]
    facts = [REASON_WORDS[entry.reason]] if entry.reason != "branch" else []
    if entry.tokens_before is not None and entry.tokens_after is not None:
        before, after, arrow = entry.tokens_before, entry.tokens_after, frame.glyphs.arrow
        facts.insert(0, f"{format_change(before, after, rough=entry.rough, arrow=arrow)} tokens")
    if entry.reason == "branch" and entry.from_extension:
        facts.append(sanitize_line(f"by the extension {entry.from_extension}"))
    elif entry.rung and entry.reason != "branch":
        facts.append(sanitize_line(describe_rung(entry.rung, entry.from_extension)))
    if entry.duration or item.seconds:
        facts.append(format_seconds(entry.duration or item.seconds))
    if entry.usage is not None and entry.usage.total:
        facts.append(format_spending(entry.usage.total, entry.usage.cost))
    if entry.usage is not None and entry.usage.cache_read:
        facts.append(f"cache {100 * entry.usage.cache_read // max(entry.usage.sent, 1)} %")
    if entry.details is not None and entry.details.names is not None:
        facts.append(_names_fact(entry.details.names))
    return [*spans, *[(f" {frame.glyphs.middle} {fact}", "dim") for fact in facts]]


def estimate_height(item: Item, width: int, options: RenderOptions = DEFAULT) -> int:
    """Return about how many rows `render_item` would give, at the cost of counting line ends."""
    frame = frame_for(item, width, options)
    rows = partial(wrapped_rows, width=text_width(width))
    match item:
        case ToolItem():
            return tool_height(item, frame)
        case AssistantItem():
            return rows(item.text) + item.interrupted
        case UserItem():
            height = rows(item.text) + len(item.images)
            return height if frame.unfolded else min(height, USER_ROWS + 1)
        case ThinkingItem() if frame.unfolded:
            return 1 + rows(item.text)
        case ThinkingItem():
            return 1 if item.final else 1 + min(THINKING_ROWS, rows(item.text[-PREVIEW_CHARACTERS:]))
        case SearchItem():
            return 1 + (rows(sources_text(item.search.sources)) if frame.unfolded and item.search.sources else 0)
        case SourcesItem():
            return 1 + rows(sources_text(item.sources))
        case ShellItem():
            return 1 + _shell_output(item, frame).height(frame)
        case NoticeItem():
            return rows(item.text)
        case CompactionItem() if frame.unfolded and item.entry is not None:
            return 6 + rows(item.entry.summary)  # head, details, the way back, empty rows between them
        case CompactionItem():
            return 1 + (item.entry is not None and item.final)
        case ContextItem():
            return 12 + len(item.report.parts) + len(item.report.facts) + (7 if item.report.history else 0)
