"""The blocks of the transcript: one for each item, with its anchor `e<seq>`."""

from __future__ import annotations

from tenuto.protocol.entry import BranchSummaryEntry, ExtensionEntry, NoticeEntry, QueuedEntry, ShellEntry, UnknownEntry
from tenuto.protocol.message import (
    CompactionEntry,
    DeveloperMessage,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.part import ImagePart, OpaquePart, TextPart, ThinkingPart, ToolCallPart
from tenuto.session.exporters.html.images import picture
from tenuto.session.exporters.html.markup import EMPTY, Markup, element, fold, join, line, preformatted, text
from tenuto.session.exporters.html.prose import prose
from tenuto.session.exporters.html.tools import lone_result, output, tool_call
from tenuto.session.exporters.items import Answer, Item, Mark, is_shown
from tenuto.session.exporters.labels import (
    answer_facts,
    compaction_facts,
    describe_mark,
    is_long,
    shell_ending,
    who_said,
)
from tenuto.session.exporters.source import Source, format_machine_time, format_time
from tenuto.text.figures import format_bytes, format_seconds, plural

_FILES_SHOWN = 200
_RAW_SHOWN = 20_000


class Blocks:
    """Makes blocks. Each seq gets its anchor once, whatever a damaged log repeats."""

    def __init__(self, source: Source, undone: frozenset[int]) -> None:
        self._load_blob = source.load_blob
        self._labels = source.state.labels
        self._undone = undone
        self._targets = {entry.seq for entry in source.entries if is_shown(entry)}
        self._anchored: set[int] = set()

    def render(self, item: Item) -> Markup:
        """Return one block."""
        match item:
            case Answer():
                return self._answer(item)
            case UserMessage():
                return self._user(item)
            case ToolResultMessage():
                return lone_result(item, self._load_blob, self._anchor(item.seq))
            case ShellEntry():
                return self._shell(item)
            case CompactionEntry():
                return self._compaction(item)
            case SystemMessage():
                head = f"System prompt, {plural(len(item.tools), 'tool')}"
                body = join(preformatted(item.text, "plain"), _names("Tools", item.tools))
                return self._aside(item.seq, item.ts, head, body)
            case DeveloperMessage():
                head = f"Told to the model{f': {item.kind}' if item.kind else ''}"
                return self._aside(item.seq, item.ts, head, preformatted(item.text, "plain"))
            case ExtensionEntry():
                body = self._spoken(item.parts)
                return self._block("extension", f"Extension {item.extension}", item.seq, item.ts, body)
            case UnknownEntry():
                raw = item.raw[:_RAW_SHOWN].decode("utf-8", "replace")
                head = f"An entry of a kind that this version does not know: {item.kind}"
                return self._aside(item.seq, item.ts, head, preformatted(raw, "plain"))
            case _:
                return self._mark(item)

    def queued(self, entry: QueuedEntry) -> Markup:
        """Return a prompt that was not sent yet."""
        return self._block("user", "You, not sent yet", entry.seq, entry.ts, self._spoken(entry.parts))

    def _anchor(self, seq: int) -> str | None:
        if seq < 1 or seq in self._anchored:
            return None
        self._anchored.add(seq)
        return f"e{seq}"

    def _block(self, kind: str, who: str, seq: int, ts: float, *body: Markup) -> Markup:
        """Return a block with a head: who, which entry, when, its label."""
        anchor = self._anchor(seq)
        label = self._labels.get(seq, "")
        head = element(
            "header",
            element("b", line(who)),
            element("mark", line(label)) if label else EMPTY,
            element("a", Markup(f"#{seq}"), href=f"#{anchor}", class_="seq") if anchor else EMPTY,
            moment(ts),
        )
        return element("article", head, *body, class_=f"block {kind}", id=anchor)

    def _aside(self, seq: int, ts: float, head: str, body: Markup) -> Markup:
        summary = join(line(head), Markup(f" #{seq}" if seq > 0 else ""), moment(ts))
        return fold(summary, body, class_="block aside", id_=self._anchor(seq))

    def _user(self, message: UserMessage) -> Markup:
        return self._block("user", who_said(message), message.seq, message.ts, self._spoken(message.parts))

    def _spoken(self, parts: tuple[TextPart | ImagePart, ...]) -> Markup:
        shown: list[Markup] = []
        for part in parts:
            if isinstance(part, ImagePart):
                shown.append(picture(part, self._load_blob))
            elif is_long(part.text):
                words = f"{len(part.text):,} characters"
                shown.append(fold(line(words), preformatted(part.text, "said"), class_="long", is_open=True))
            else:
                shown.append(preformatted(part.text, "said"))
        return join(*shown)

    def _answer(self, answer: Answer) -> Markup:
        message = answer.message
        calls = iter(answer.calls)
        body: list[Markup] = []
        for part in message.parts:
            match part:
                case TextPart():
                    body.append(prose(part.text) if part.text.strip() else EMPTY)
                case ThinkingPart():
                    body.append(_thinking(part, message.thinking_duration))
                case ToolCallPart():
                    call = next(calls)
                    seq = call.result.seq if call.result is not None else 0
                    body.append(tool_call(call, self._load_blob, self._anchor(seq)))
                case OpaquePart():
                    words = (
                        f"[a block of {part.provider} that only it can read, {format_bytes(len(bytes(part.block)))}]"
                    )
                    body.append(element("p", line(words), class_="note"))
        facts = " · ".join(answer_facts(message))
        foot = element("footer", line(facts)) if facts else EMPTY
        return self._block("assistant", "Assistant", answer.seq, answer.ts, *body, foot)

    def _shell(self, entry: ShellEntry) -> Markup:
        facts = [shell_ending(entry)]
        facts += [format_seconds(entry.duration)] if entry.duration >= 1 else []
        facts += ["kept from the model"] if entry.excluded else []
        facts += ["not all of its output"] if entry.truncated else []
        head = element("pre", Markup("$ "), text(entry.command), class_="command")
        foot = element("footer", line(" · ".join(facts)))
        return self._block("shell", "You ran", entry.seq, entry.ts, head, output(entry.output), foot)

    def _compaction(self, entry: CompactionEntry) -> Markup:
        is_undone = entry.seq in self._undone
        facts = element("p", line(" · ".join(compaction_facts(entry, undone=is_undone))), class_="facts")
        body = [facts, self._kept(entry.first_kept_index)]
        if entry.summary:
            body.append(fold(Markup("Summary"), prose(entry.summary), class_="long"))
        if entry.details is not None:
            body.append(_names("Read", entry.details.read_files))
            body.append(_names("Modified", entry.details.modified_files))
        kind = "compaction undone" if is_undone else "compaction"
        return self._block(kind, "Compacted", entry.seq, entry.ts, *body)

    def _kept(self, seq: int) -> Markup:
        if seq < 1:
            return EMPTY
        number = Markup(f"#{seq}")
        place = element("a", number, href=f"#e{seq}") if seq in self._targets else number
        return element("p", Markup("Kept word for word from "), place, Markup(" on"), class_="note")

    def _mark(self, item: Mark) -> Markup:
        words = line(describe_mark(item))
        kind = f"mark {item.level}" if isinstance(item, NoticeEntry) else "mark"
        body = EMPTY
        if isinstance(item, BranchSummaryEntry):
            body = fold(Markup("Summary"), prose(item.summary), class_="long")
        return element("div", words, moment(item.ts), body, class_=f"block {kind}", id=self._anchor(item.seq))


def moment(ts: float) -> Markup:
    """Return a time; the page's script shows it in the reader's own zone."""
    words = format_time(ts)
    return element("time", line(words), datetime=format_machine_time(ts)) if words else EMPTY


def _thinking(part: ThinkingPart, seconds: float) -> Markup:
    if not part.text.strip():
        return EMPTY
    head = f"Thinking, {format_seconds(seconds)}" if seconds >= 1 else "Thinking"
    return fold(line(head), preformatted(part.text, "plain"), class_="thinking")


def _names(head: str, names: tuple[str, ...]) -> Markup:
    if not names:
        return EMPTY
    shown = "\n".join(names[:_FILES_SHOWN])
    more = f"\n… {len(names) - _FILES_SHOWN:,} more" if len(names) > _FILES_SHOWN else ""
    return fold(line(f"{head}: {len(names):,}"), preformatted(shown + more, "plain"), class_="long")
