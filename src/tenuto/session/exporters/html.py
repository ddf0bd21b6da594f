"""The HTML export: `page.html` filled with side bar, transcript and branches, piece by piece.

The page asks for nothing and runs nothing but its own script. Markup can only be made safely: text is cleaned and
escaped, and everything else is built from elements. `Markup` is a type of its own, so that the type checker finds
every place where plain text would get into the page. Answers are rendered by markdown-it and code by Pygments, both
imported at the first answer.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterable, Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any, NewType, cast

from tenuto.guard.terminal import blank_for_terminal, sanitize_line, sanitize_output
from tenuto.protocol.entry import (
    BranchSummaryEntry,
    Entry,
    ExtensionEntry,
    NoticeEntry,
    ShellEntry,
    UnknownEntry,
    ViewEditEntry,
)
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
from tenuto.protocol.part import (
    ContentPart,
    ImagePart,
    OpaquePart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    WebSearch,
    WebSource,
    cited_in,
    text_of,
)
from tenuto.session.describe import Place, is_shown, kind_of, line_of, search_line, source_line
from tenuto.session.diff_rows import DIFF_SIGNS, DiffRow, parse_diff
from tenuto.session.exporters.markdown import (
    MAX_BRACKETS,
    MAX_CHARACTERS,
    answer_facts,
    branch_name,
    call_facts,
    call_state,
    call_subject,
    clean,
    compaction_facts,
    cut_note,
    describe_arguments,
    first_line,
    image_name,
    is_long,
    shell_facts,
)
from tenuto.session.exporters.source import (
    Answer,
    Call,
    Item,
    Outline,
    Share,
    Source,
    Writing,
    format_machine_time,
    format_time,
    read_image,
    read_outline,
    read_shares,
)
from tenuto.session.results import change_words, shown_text
from tenuto.text.figures import count_lines, format_bytes, format_cost, format_seconds, plural
from tenuto.text.lexer import highlight
from tenuto.version import __version__

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


Markup = NewType("Markup", str)
EMPTY = Markup("")
MAX_CODE, MAX_LINE = 20_000, 2_000
"""Characters of a block of code, and of a line in it, beyond which it stays plain: some lexers cost the square."""
_NON_CHARACTERS = dict.fromkeys(
    [*range(0xFDD0, 0xFDF0), *(p << 16 | c for p in range(17) for c in (0xFFFE, 0xFFFF))], "�"
)
_LIVE_SCHEMES = ("https://", "http://", "mailto:")


def text(content: str) -> Markup:
    """Return a text as it can stand in an element or an attribute: no control characters, nothing that is markup."""
    return Markup(escape(clean(content).translate(_NON_CHARACTERS)))


def line(content: str) -> Markup:
    """Return a text on one line, for labels and attributes."""
    return text(sanitize_line(content))


def element(name: str, /, *children: Markup, **attributes: str | None) -> Markup:
    """Return an element. Attribute names lose a `_` at their end; `None` leaves one out.

    Names are ours, values may be anybody's.
    """
    return Markup(f"{opening(name, **attributes)}{''.join(children)}</{name}>")


def opening(name: str, /, **attributes: str | None) -> Markup:
    """Return the opening tag alone; also for elements that have no end."""
    pairs = [f' {key.rstrip("_")}="{line(value)}"' for key, value in attributes.items() if value is not None]
    return Markup(f"<{name}{''.join(pairs)}>")


def preformatted(content: str, class_: str) -> Markup:
    """Return a text with its own lines and spaces."""
    # A browser drops one newline after the tag.
    return element("pre", Markup("\n"), text(content), class_=class_, dir="auto")


def fold(summary: Markup, *body: Markup, class_: str = "long", id_: str | None = None) -> Markup:
    """Return a part that opens at a click, without a script."""
    return element("details", element("summary", summary), *body, class_=class_, id=id_)


def prose(source: str) -> Markup:
    """Return a Markdown text as markup: raw HTML is text, pictures are named, links go where a user can see.

    A text that is too long or too deep for that stays as it is.
    """
    if len(source) > MAX_CHARACTERS or source.count("[") > MAX_BRACKETS:
        return preformatted(source, "plain")
    parser = _parser()
    try:
        tokens = parser.parse(clean(source).translate(_NON_CHARACTERS))
        for token in tokens:
            _settle(token)
        made = parser.renderer.render(tokens, parser.options, {})
    except RecursionError:
        return preformatted(source, "plain")
    # An entity (`&#x202e;`) becomes a character only now.
    return element("div", Markup(blank_for_terminal(made)), class_="prose", dir="auto")


@lru_cache(maxsize=1)
def _parser() -> MarkdownIt:
    """Return the one parser: CommonMark with tables, strikethrough and bare addresses as links, raw HTML as text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "xhtmlOut": False, "linkify": True, "highlight": _highlight})
    links = cast("Any", parser.linkify)  # it comes without types
    links.set({"fuzzy_link": False, "fuzzy_email": False, "fuzzy_ip": False}).add("//", None)
    return parser.enable(["table", "strikethrough", "linkify"]).disable(["html_block", "html_inline"])


def _settle(token: Token) -> None:
    """Take from a token what the page must not have: live links to anywhere else, pictures to load, own styles."""
    if token.type in ("heading_open", "heading_close"):
        token.tag = f"h{min(int(token.tag[1]) + 2, 6)}"  # below the headings of the page
    if style := str(token.attrs.pop("style", "")):
        token.attrs["class"] = style.removeprefix("text-align:")
    for child in token.children or ():
        if child.type == "image":
            child.type, child.content = "text", f"[image: {child.content} {str(child.attrs.get('src', ''))[:200]}]"
        elif child.type == "link_open":
            address = str(child.attrs.get("href", ""))
            is_live = address.lower().startswith(_LIVE_SCHEMES)
            target = {"href": address, "rel": "noopener noreferrer nofollow"} if is_live else {"class": "dead"}
            child.attrs = {**target, "title": address}


def _highlight(code: str, language: str, _attributes: str) -> str:
    """Return a block of code as markup, coloured where its language is known and it is short enough."""
    name = language.partition(",")[0].strip("{}.").lower()[:40]
    is_short = len(code) <= MAX_CODE and all(len(row) <= MAX_LINE for row in code.split("\n"))
    rows = ("".join(_coloured(*span) for span in spans) for spans in highlight(code, name if is_short else ""))
    return "<pre><code>" + "\n".join(rows) + "</code></pre>"


def _coloured(words: str, style: str) -> str:
    """Return a piece of code; its class is its style's name (`code-keyword`), plain code has none."""
    made = escape(words)
    return made if style == "code" else f'<span class="{style.replace(".", "-")}">{made}</span>'


_TEMPLATE = Path(__file__).parent / "page.html"
_DAMAGE_SHOWN, _FILES_SHOWN, _RAW_SHOWN = 20, 200, 20_000
_TODO_MARKS = {"pending": "☐", "in_progress": "▸", "done": "☑", "cancelled": "☒"}


def write_page(source: Source) -> Iterator[str]:
    """Yield the whole page. Nothing in it refers to anything outside, and only its own script can run."""
    outline = read_outline(source.entries)
    blocks, writing = _Blocks(source, outline.undone), Writing(source)
    head, middle, tail = _template()
    yield Template(head).substitute(policy=policy(), version=line(__version__), title=line(source.title))
    yield from _contents(outline, source.state.labels)
    yield middle
    yield from _about(source, outline)
    yield '<section id="transcript">\n'
    for item in writing.items(outline.pieces[0]):
        yield f"{blocks.render(item)}\n"
    yield "</section>\n"
    if source.state.queue:
        yield "<h2>Not sent yet</h2>\n"
    for entry in source.state.queue:
        yield blocks.block("user", "You, not sent yet", entry, *blocks.contents(entry.parts))
    for number, piece in enumerate(outline.branches, 1):
        summary = element("summary", Markup("Branch: "), line(branch_name(piece)))
        yield f"{opening('details', class_='branch', id=f'b{number}')}{summary}\n"
        for item in writing.items(piece):
            yield f"{blocks.render(item)}\n"
        yield "</details>\n"
    yield tail


@lru_cache(maxsize=1)
def _template() -> tuple[str, str, str]:
    """Return what stands before the side bar, between it and the transcript, and behind that.

    Raises `OSError` where the package is incomplete.
    """
    head, _, rest = _TEMPLATE.read_text(encoding="utf-8").partition("$contents")
    middle, _, tail = rest.partition("$transcript")
    return head, middle, tail


def policy() -> str:
    """Return the content security policy: images in the page, and the style and script with these very bytes."""
    whole, hashes = "".join(_template()), dict[str, str]()
    for tag in ("style", "script"):
        content = whole.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
        hashes[tag] = b64encode(hashlib.sha256(content.encode()).digest()).decode()
    own = "; ".join(f"{tag}-src 'sha256-{digest}'" for tag, digest in hashes.items())
    return f"default-src 'none'; img-src data:; {own}; base-uri 'none'; form-action 'none'"


# --- around the transcript ---


def _contents(outline: Outline, labels: dict[int, str]) -> Iterator[Markup]:
    """Yield a list for each piece: its prompts, compactions and labelled entries, and the branches that leave it."""
    leaving: dict[int, list[tuple[int, Markup]]] = {}
    for number, piece in enumerate(outline.branches, 1):
        link = element("a", line(branch_name(piece)), href=f"#b{number}")
        leaving.setdefault(max(piece.parent, 0), []).append((piece.after, element("li", link, class_="branch")))
    for number, piece in enumerate(outline.pieces):
        stops = [
            (position, _stop(entry, labels.get(entry.seq, "")))
            for position, entry in zip(piece.positions, piece.entries, strict=True)
            if is_shown(entry, Place.EXPORT) and (_is_stop(entry) or entry.seq in labels)
        ]
        rows = sorted([*stops, *leaving.get(number, ())], key=lambda stop: stop[0])
        name = f"Branch: {branch_name(piece)}" if number else "Session"
        body = element("ol", *(row for _, row in rows))
        yield element("details", element("summary", line(name)), body, open="open")


def _stop(entry: HistoryEvent, label: str) -> Markup:
    words = first_line(text_of(entry.parts)) if isinstance(entry, UserMessage) else ""
    link = element("a", line(words or first_line(line_of(entry))), href=f"#e{entry.seq}")
    return element("li", link, element("mark", line(label)) if label else EMPTY)


def _is_stop(entry: HistoryEvent) -> bool:
    if isinstance(entry, ViewEditEntry):
        return bool(entry.rung)
    return isinstance(entry, UserMessage | CompactionEntry | BranchSummaryEntry)


def _about(source: Source, outline: Outline) -> Iterator[Markup]:
    state = source.state
    sizes = f"{len(outline.path):,} entries on the path, {len(source.entries):,} in all"
    facts = [line(words) for words in (source.id, source.cwd, state.model, sizes)]
    if source.forked_from is not None:
        facts.append(line(f"forked from {source.forked_from.session} after #{source.forked_from.seq}"))
    if state.created > 0:
        facts.append(Markup(f"{_moment(state.created)} to {_moment(state.updated)}"))
    rows = [element("li", fact) for fact in facts if fact]
    yield element("header", element("h1", line(source.title)), element("ul", *rows, class_="about"))
    if source.damage:
        words = [str(damage) for damage in source.damage[:_DAMAGE_SHOWN]]
        words += [f"and {len(source.damage) - _DAMAGE_SHOWN:,} more"] if len(source.damage) > _DAMAGE_SHOWN else []
        head = line(f"Lines of the log that could not be read as they stand: {len(source.damage):,}")
        yield fold(head, preformatted("\n".join(words), "plain"), class_="block aside")
    yield _totals(read_shares(source.entries))


def _totals(shares: list[Share]) -> Markup:
    """Return the table of what each model used; nothing when nothing is known."""
    if not shares:
        return EMPTY
    rows: list[tuple[str, ...]] = [("", "calls", "input", "from cache", "to cache", "output", "reasoning", "cost")]
    for share in shares:
        usage = share.usage
        numbers = (share.calls, usage.input, usage.cache_read, usage.cache_write, usage.output, usage.reasoning)
        cost = format_cost(usage.cost) if usage.cost is not None else "–"
        rows.append((share.name, *(f"{number:,}" for number in numbers), cost))
    made = [element("tr", *(element("td", line(cell)) for cell in row)) for row in rows]
    return element("table", *made, class_="totals", id="tokens")


def _moment(ts: float) -> Markup:
    """Return a time; the page's script shows it in the reader's own zone."""
    words = format_time(ts)
    return element("time", line(words), datetime=format_machine_time(ts)) if words else EMPTY


# --- the transcript ---


class _Blocks:
    """Makes the blocks: one for each item, with its anchor `e<seq>`, once, whatever a damaged log repeats."""

    def __init__(self, source: Source, undone: frozenset[int]) -> None:
        self._load_blob = source.load_blob
        self._labels = source.state.labels
        self._undone = undone
        self._targets = {entry.seq for entry in source.entries if is_shown(entry, Place.EXPORT)}
        self._anchored: set[int] = set()

    def render(self, item: Item) -> Markup:
        """Return one block."""
        match item:
            case Answer():
                return self._answer(item)
            case UserMessage() | ExtensionEntry():
                kind = "user" if isinstance(item, UserMessage) else "extension"
                return self.block(kind, kind_of(item).who, item, *self.contents(item.parts))
            case ToolResultMessage():
                facts = " · ".join(["a result without its call", *call_facts(item)])
                return self._tool(item.name, "", facts, item)
            case ShellEntry():
                command = preformatted(f"$ {item.command}", "output")
                facts = element("footer", line(" · ".join(shell_facts(item))))
                return self.block("shell", kind_of(item).who, item, command, _output(item.output), facts)
            case CompactionEntry():
                return self._compaction(item)
            case SystemMessage():
                words = (item.text, f"Tools: {', '.join(item.tools)}" if item.tools else "")
                return self._aside(item, *words)
            case DeveloperMessage():
                return self._aside(item, item.text)
            case UnknownEntry():
                return self._aside(item, item.raw[:_RAW_SHOWN].decode("utf-8", "replace"))
            case _:
                return self._mark(item)

    def block(self, kind: str, who: str, entry: Entry, *body: Markup) -> Markup:
        """Return a block with a head: who, its label, which entry, when."""
        anchor = self._anchor(entry.seq)
        label = self._labels.get(entry.seq, "")
        head = element(
            "header",
            element("b", line(who)),
            element("mark", line(label)) if label else EMPTY,
            element("a", line(f"#{entry.seq}"), href=f"#{anchor}") if anchor else EMPTY,
            _moment(entry.ts),
        )
        return element("article", head, *body, class_=f"block {kind}", id=anchor)

    def contents(self, parts: tuple[ContentPart, ...]) -> Iterator[Markup]:
        """Yield texts and images that somebody sent, in order."""
        for part in parts:
            yield self._image(part) if isinstance(part, ImagePart) else preformatted(part.text, "said")

    def _anchor(self, seq: int) -> str | None:
        if seq < 1 or seq in self._anchored:
            return None
        self._anchored.add(seq)
        return f"e{seq}"

    def _aside(self, entry: HistoryEvent, *body: str) -> Markup:
        summary = Markup(f"{line(line_of(entry))} #{entry.seq} {_moment(entry.ts)}")
        shown = (preformatted(words, "plain") for words in body if words)
        return fold(summary, *shown, class_="block aside", id_=self._anchor(entry.seq))

    def _answer(self, answer: Answer) -> Markup:
        message, calls = answer.message, iter(answer.calls)
        body: list[Markup] = []
        for part in message.parts:
            match part:
                case TextPart() if part.text.strip():
                    body.append(prose(part.text))
                case ThinkingPart() if part.text.strip():
                    seconds = message.thinking_duration
                    head = f"Thinking, {format_seconds(seconds)}" if seconds >= 1 else "Thinking"
                    body.append(fold(line(head), preformatted(part.text, "plain")))
                case ToolCallPart():
                    body.append(self._call(next(calls)))
                case OpaquePart(search=search) if search is not None:
                    body += [_search(search)] if search.done else []
                case OpaquePart():
                    size = format_bytes(len(bytes(part.block)))
                    body.append(_note(f"[a block of {part.provider} that only it can read, {size}]"))
                case _:
                    continue
        if cited := cited_in(message.parts):
            body.append(element("div", _note("Sources"), _pages(cited), class_="sources"))
        facts = " · ".join(answer_facts(message))
        foot = element("footer", line(facts)) if facts else EMPTY
        return self.block("assistant", kind_of(message).who, message, *body, foot)

    def _call(self, call: Call) -> Markup:
        arguments = describe_arguments(call.part.arguments)
        body: list[Markup] = []
        if arguments:
            is_aside = is_long(arguments) or (call.result is not None and any(map(_is_diff, call.result.ui)))
            block = preformatted(arguments, "output")
            body.append(fold(Markup("arguments"), block) if is_aside else block)
        if call.part.fault:
            body.append(_note(f"The arguments could not be read: {call.part.fault}"))
        facts = " · ".join(call_facts(call.result))
        return self._tool(call.part.name or "tool", call_subject(call), facts, call.result, *body)

    def _tool(self, name: str, subject: str, facts: str, result: ToolResultMessage | None, *body: Markup) -> Markup:
        """Return a call and its result as one folded block, which has the anchor of the result."""
        head = f"{element('b', line(name))} {element('code', line(subject))} {element('span', line(facts))}"
        anchor = self._anchor(result.seq) if result is not None else None
        shown = self._result(result) if result is not None else ()
        return fold(Markup(head), *body, *shown, class_=f"tool {call_state(result)}", id_=anchor)

    def _result(self, result: ToolResultMessage) -> Iterator[Markup]:
        for view in result.ui:
            if isinstance(view, DiffView):
                yield _diff(view)
            elif isinstance(view, TodoView):
                yield preformatted("\n".join(f"{_TODO_MARKS[item.status]} {item.text}" for item in view.items), "plain")
        yield _output(shown_text(result))
        yield from (self._image(part) for part in result.parts if isinstance(part, ImagePart))
        if result.truncated:
            yield _note(cut_note(result))

    def _compaction(self, entry: CompactionEntry) -> Markup:
        is_undone = entry.seq in self._undone
        body = [_note(" · ".join(compaction_facts(entry, undone=is_undone)))]
        if entry.first_kept_index > 0:
            number = line(f"#{entry.first_kept_index}")
            is_there = entry.first_kept_index in self._targets
            place = element("a", number, href=f"#e{entry.first_kept_index}") if is_there else number
            body.append(element("p", Markup(f"Kept word for word from {place} on"), class_="note"))
        if entry.summary:
            body.append(fold(Markup("Summary"), prose(entry.summary)))
        if entry.details is not None:
            body += [_names("Read", entry.details.read_files), _names("Modified", entry.details.modified_files)]
        return self.block("compaction undone" if is_undone else "compaction", kind_of(entry).who, entry, *body)

    def _mark(self, item: HistoryEvent) -> Markup:
        kind = f"mark {item.level}" if isinstance(item, NoticeEntry) else "mark"
        body = fold(Markup("Summary"), prose(item.summary)) if isinstance(item, BranchSummaryEntry) else EMPTY
        words = line(line_of(item))
        return element("div", words, _moment(item.ts), body, class_=f"block {kind}", id=self._anchor(item.seq))

    def _image(self, part: ImagePart) -> Markup:
        """Return an image as a `data:` address, or its name and why it is not shown."""
        name = image_name(part)
        address, missing = read_image(part, self._load_blob)
        if missing:
            return _note(f"[{name}: {missing}]")
        # Not through `opening`: the address is ours, and cleaning megabytes of base64 would take its time.
        return Markup(f'{opening("img", alt=name, title=name)[:-1]} src="{address}">')


def _search(search: WebSearch) -> Markup:
    """Return a web search as a folded block of the pages that it found."""
    head = line(search_line(search))
    return fold(head, _pages(search.sources)) if search.sources else _note(search_line(search))


def _pages(sources: Iterable[WebSource]) -> Markup:
    """Return pages as a list; an address of the web is a link, every other one is only text."""
    return element("ol", *(element("li", _page(source)) for source in sources))


def _page(source: WebSource) -> Markup:
    words = line(source.title or source.url)
    if not source.url.startswith(("https://", "http://")):
        return line(source_line(source))
    return element("a", words, href=source.url, title=source.url, rel="noopener noreferrer nofollow")


def _note(words: str) -> Markup:
    return element("p", line(words), class_="note")


def _names(head: str, names: tuple[str, ...]) -> Markup:
    if not names:
        return EMPTY
    more = [f"… {len(names) - _FILES_SHOWN:,} more"] if len(names) > _FILES_SHOWN else []
    return fold(line(f"{head}: {len(names):,}"), preformatted("\n".join([*names[:_FILES_SHOWN], *more]), "plain"))


def _output(content: str) -> Markup:
    """Return a program's output as a terminal would have left it; a long one is folded."""
    if not content.strip():
        return EMPTY
    block = preformatted(sanitize_output(content), "output")
    return fold(line(plural(count_lines(content), "line")), block) if is_long(content) else block


def _is_diff(view: object) -> bool:
    return isinstance(view, DiffView)


def _diff(view: DiffView) -> Markup:
    """Return a folded diff with the numbers and signs of its lines. No element comes from what a line says."""
    head = line(f"{view.path} +{view.added} −{view.removed} {change_words(view)}".rstrip())
    rows = parse_diff(view.diff, marked=0)
    if not rows:
        return fold(head, preformatted(view.diff, "diff")) if view.diff else _note(head)
    digits = len(str(max((max(row.old, row.new) for row in rows), default=1)))
    return fold(head, element("pre", Markup("\n"), *(_diff_row(row, digits) for row in rows), class_="diff"))


def _diff_row(row: DiffRow, digits: int) -> Markup:
    if row.kind in ("hunk", "note"):
        return element("span", text(f"{'… ' if row.kind == 'hunk' else ''}{row.text}\n"), class_="hunk")
    number = element("i", text(f"{row.new or row.old:>{digits}} "))
    ending = f" ← {row.ending}" if row.ending else ""
    return element("span", number, text(f"{DIFF_SIGNS[row.kind]}{row.text}{ending}\n"), class_=row.kind)
