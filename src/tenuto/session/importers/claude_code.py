"""Claude Code: JSON lines that name their parents; one line a content block, results that point at their calls.

The blocks of an answer share its message id. Each result's parent is the block with its call, so the file is no tree
but a graph; the assembler takes an answer and its results as one step and sees a branch only where a step was left.

Readers are pure; `find` looks at folders.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tenuto.protocol.entry import Entry, NoticeEntry, Origin, QueuedEntry, ShellEntry, TitleEntry
from tenuto.protocol.message import (
    AssistantMessage,
    CompactionEntry,
    DiffView,
    ResultView,
    StopReason,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.operation import CompactionReason
from tenuto.protocol.part import AssistantPart, ContentPart, TextPart, ThinkingPart, ToolCallPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.session.importers.builder import EXTENSION, Piece
from tenuto.session.importers.format import Context, Format, Heading, home_of
from tenuto.session.importers.json_access import (
    LOST_IMAGE,
    Fields,
    arguments_text,
    field,
    items,
    plain_parts,
    plain_text,
    seconds,
    text,
    texts,
    tokens,
    usage_or_none,
)
from tenuto.text.json_access import as_dict, as_list


def patch_views(details: Fields) -> tuple[ResultView, ...]:
    """Return the diff that the details of a result carry, if they carry one."""
    path, hunks = text(details, "filePath"), items(details, "structuredPatch")
    if not path:
        return ()
    if not hunks and details.get("type") == "create" and text(details, "content"):
        lines = [f"+{line}" for line in text(details, "content").removesuffix("\n").split("\n")]
        diff = "\n".join([f"@@ -0,0 +1,{len(lines)} @@", *lines]) + "\n"
        return (DiffView(path=path, diff=diff, added=len(lines), created=True),)
    shown: list[str] = []
    for value in hunks:
        hunk = as_dict(value)
        starts = [tokens(hunk, name) for name in ("oldStart", "oldLines", "newStart", "newLines")]
        shown.append(f"@@ -{starts[0]},{starts[1]} +{starts[2]},{starts[3]} @@")
        shown += texts(hunk, "lines")
    if not shown:
        return ()
    added = sum(line.startswith("+") for line in shown)
    removed = sum(line.startswith("-") for line in shown)
    return (DiffView(path=path, diff="\n".join(shown) + "\n", added=added, removed=removed),)


_WRAPPED = re.compile(r"\s*<tool_use_error>(.*)</tool_use_error>\s*", re.DOTALL)
OPAQUE = "imported:claude-code"


def answer_parts(content: Any, context: Context) -> Iterator[AssistantPart]:
    """Yield the parts of an answer's blocks; what somebody else encrypted is of no use here and left out."""
    if isinstance(content, str):
        yield from [TextPart(text=content)] if content else []
        return
    for value in as_list(content):
        block = as_dict(value)
        match block.get("type"):
            case "text":
                yield from [TextPart(text=text(block, "text"))] if text(block, "text") else []
            case "thinking":
                yield from [ThinkingPart(text=text(block, "thinking"))] if text(block, "thinking") else []
            case "redacted_thinking":
                continue
            case "tool_use":
                arguments = arguments_text(block.get("input"))
                name = text(block, "name") or "unknown"
                yield ToolCallPart(id=text(block, "id"), name=name, arguments=arguments)
            case _:
                yield context.unknown_block(OPAQUE, value)


def content_parts(content: Any, context: Context) -> tuple[ContentPart, ...]:
    """Return what a user or a tool said: a text, or texts and images."""
    parts: list[ContentPart] = []
    for value in [content] if isinstance(content, str) else as_list(content):
        block = as_dict(value)
        if isinstance(value, str):
            parts += plain_parts(value)
        elif block.get("type") == "text":
            parts += plain_parts(text(block, "text"))
        elif block.get("type") == "image":
            source = field(block, "source")
            image = context.base64_image(text(source, "data"), text(source, "media_type"))
            parts.append(image or LOST_IMAGE)
        else:
            parts.append(context.unknown_part(value))
    return tuple(parts)


def _without_wrapper(part: ContentPart) -> ContentPart:
    """Return what a tool said of its failure without the tag that the program put around it."""
    found = _WRAPPED.fullmatch(part.text) if isinstance(part, TextPart) else None
    return TextPart(text=found[1]) if found is not None else part


def tool_result(block: Fields, details: Fields, context: Context) -> ToolResultMessage:
    """Return a result; `details` is what the program kept of it beside what the model was sent."""
    return ToolResultMessage(
        call_id=text(block, "tool_use_id"),
        name="",
        parts=tuple(map(_without_wrapper, content_parts(block.get("content"), context))),
        is_error=block.get("is_error") is True,
        ui=patch_views(details),
    )


def usage_of(usage: Fields) -> Usage | None:
    """Return the tokens of a call, `None` where there are none."""
    return usage_or_none(
        Usage(
            input=tokens(usage, "input_tokens"),
            cache_read=tokens(usage, "cache_read_input_tokens"),
            cache_write=tokens(usage, "cache_creation_input_tokens"),
            output=tokens(usage, "output_tokens"),
        )
    )


BASH_INPUT = re.compile(r"\s*<bash-input>(.*)</bash-input>\s*\Z", re.DOTALL)
BASH_OUTPUT = re.compile(r"<bash-std(out|err)>(.*?)</bash-std(?:out|err)>", re.DOTALL)
COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
COMMAND_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
INTERRUPTED = "[Request interrupted by user"
_REMINDERS = re.compile(r"(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)
HARNESS = ("Caveat: The messages below were generated", "<local-command-", "<system-reminder>")
NOTIFICATION = ("<task-notification>", "<bash-notification>")
"""Beginnings of the word of a command in the background that has ended; the model waits for it."""


def without_reminders(parts: tuple[ContentPart, ...]) -> tuple[ContentPart, ...]:
    """Return the parts without the reminders that the program put before what the user wrote."""
    found: list[ContentPart] = []
    for part in parts:
        reminders = _REMINDERS.match(part.text) if isinstance(part, TextPart) else None
        if reminders is None or not isinstance(part, TextPart):
            found.append(part)
        elif reminders.end() < len(part.text):
            found.append(TextPart(text=part.text[reminders.end() :]))
    return tuple(found)


def shell_entry(command: str, words: str) -> ShellEntry:
    """Return a command of the user. Its exit code is not stored; one that only complains has failed."""
    found = [(name, output.strip("\n")) for name, output in BASH_OUTPUT.findall(words) if output.strip()]
    failed = bool(found) and all(name == "err" for name, _ in found)
    return ShellEntry(command=command, output="\n".join(output for _, output in found), exit_code=int(failed))


def user_message(parts: tuple[ContentPart, ...], words: str, *, is_meta: bool) -> UserMessage:
    """Return what the user said: a command as they typed it, else the parts as they are."""
    command = COMMAND.search(words)
    is_told = is_meta or words.lstrip().startswith((INTERRUPTED, *NOTIFICATION))
    origin: Origin = "extension" if is_told else "typed"
    if command is not None and words.lstrip().startswith("<command-"):
        arguments = COMMAND_ARGUMENTS.search(words)
        line = " ".join(part for part in (command[1].strip(), arguments[1].strip() if arguments else "") if part)
        images = tuple(part for part in parts if not isinstance(part, TextPart))
        return UserMessage(parts=(TextPart(text=line), *images), origin="command")
    return UserMessage(parts=parts, origin=origin)


class Typed(msgspec.Struct, frozen=True):
    """A text that waited, and when it was taken out (seconds since the epoch)."""

    words: str
    ts: float

    @property
    def message(self) -> UserMessage:
        """The text as a message."""
        origin: Origin = "typed"
        if self.words.startswith(NOTIFICATION):
            origin = "extension"
        elif self.words.startswith("/"):
            origin = "command"
        return UserMessage(parts=(TextPart(text=self.words),), origin=origin)


class TypedQueue:
    """Follows the queue through the file."""

    def __init__(self) -> None:
        self._waiting: list[str] = []
        self._taken: list[Typed] = []

    def note(self, fields: Fields) -> None:
        """Take a line about the queue."""
        match text(fields, "operation"):
            case "enqueue":
                self._waiting.append(text(fields, "content").strip())
            case "popAll":
                self._waiting.clear()
            case "dequeue" | "remove" if self._waiting:
                self._taken.append(Typed(self._waiting.pop(0), seconds(fields.get("timestamp"))))
            case _:
                return

    def deliver(self, spoken: str = "") -> list[Typed]:
        """Return what went into the turn since the last time, but for a text that the next line says itself."""
        taken, self._taken = self._taken, []
        for typed in taken:
            if typed.words == spoken.strip():
                taken.remove(typed)
                break
        return [typed for typed in taken if typed.words]

    def left(self) -> list[str]:
        """Return what waits at the end of the file."""
        return [words for words in self._waiting if words and not words.startswith(NOTIFICATION)]


NAME = "claude-code"
_TITLES = {"ai-title": "aiTitle", "custom-title": "customTitle", "summary": "summary"}
_BOOKKEEPING = frozenset(
    {
        "file-history-snapshot",
        "queue-operation",
        "progress",
        "last-prompt",
        "mode",
        "permission-mode",
        "tag",
        "agent-name",
        "agent-color",
        "agent-setting",
        "pr-link",
        "system",
        "worktree-state",
        "content-replacement",
        *_TITLES,
    }
)
_KNOWN = _BOOKKEEPING | {"user", "assistant", "attachment"}
_STOPS: dict[str, StopReason] = {
    "end_turn": "end_turn",
    "stop_sequence": "end_turn",
    "tool_use": "tool_use",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "pause_turn": "pause",
    "model_context_window_exceeded": "window_exceeded",
}


def is_line(fields: Fields) -> bool:
    """Whether an object is a line of a session file of Claude Code."""
    kind = text(fields, "type")
    if kind in ("user", "assistant", "attachment", "system", "progress"):
        return isinstance(fields.get("uuid"), str)
    if kind == "summary":
        return "leafUuid" in fields
    return kind in _BOOKKEEPING and ("sessionId" in fields or "messageId" in fields)


def describe(heading: Heading, fields: Fields) -> None:
    """Add what a line says of the session."""
    heading.session_id = heading.session_id or text(fields, "sessionId")
    heading.cwd = heading.cwd or text(fields, "cwd")
    heading.started = heading.started or seconds(fields.get("timestamp"))
    kind = text(fields, "type")
    if kind in ("ai-title", "custom-title"):
        heading.title = text(fields, _TITLES[kind]) or heading.title
    if kind in ("user", "assistant"):
        heading.is_subagent = fields.get("isSidechain") is True
    if kind == "user" and not heading.first_text and not fields.get("isMeta") and not heading.is_subagent:
        found = plain_text(field(fields, "message").get("content"))
        heading.first_text = "" if found.startswith("<") else found


class _Answer(msgspec.Struct):
    """An answer whose blocks still come in, and the names that wait for it."""

    message_id: str
    message: AssistantMessage
    parent: str | None
    ts: float
    names: list[str]
    links: list[Piece]


class ClaudeCodeReader:
    """Reads one file."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._answer: _Answer | None = None
        self._boundary: Fields = {}
        self._command = ""
        self._seen: set[str] = set()
        self._is_linked = False
        self._titles: dict[str, str] = {}
        self._summaries: dict[str, str] = {}
        self._queue = TypedQueue()

    def read(self, fields: Fields) -> Iterable[Piece]:
        """Return the pieces that a line completes."""
        if fields.get("isSidechain") is True:
            self._context.report.count("sidechain")
            return
        name = text(fields, "uuid")
        kind = text(fields, "type")
        if kind == "assistant" and self._continues(fields):
            self._grow(fields, name)
        elif kind in ("user", "assistant", "attachment"):
            yield from self._flush()
            yield from self._deliver(fields, kind)
            yield from self._message(fields, name)
        elif kind == "system" and text(fields, "subtype") == "compact_boundary":
            yield from self._flush()
            self._boundary = fields
            before = text(fields, "logicalParentUuid")
            yield self._link(fields, name, before if before in self._seen else None)
        elif kind in _TITLES:
            self._note_title(kind, fields)
        elif kind == "queue-operation":
            self._queue.note(fields)
        elif name:
            link = self._link(fields, name, self._parent(fields))
            if self._answer is not None:
                self._answer.links.append(link)
            else:
                yield link
        elif kind not in _KNOWN:
            yield Piece(entry=self._context.aside("unknown", fields))
        if name:
            self._seen.add(name)

    def finish(self) -> Iterable[Piece]:
        """Return the last answer, and the title that counts most."""
        yield from self._flush()
        yield from self._flush_command()
        for typed in self._queue.deliver():
            yield Piece(entry=typed.message, ts=typed.ts)
        for words in self._queue.left():
            yield Piece(entry=QueuedEntry(parts=(TextPart(text=words),)))
        summaries = [title for leaf, title in self._summaries.items() if leaf in self._seen]
        named = [self._titles.get("custom-title"), self._titles.get("ai-title"), *summaries[-1:]]
        title = next((title for title in named if title), "")
        if title:
            yield Piece(entry=TitleEntry(title=title))

    # --- lines ---

    def _parent(self, fields: Fields) -> str | None:
        """Return the name of the line before.

        A line without one goes on where the file is, but for a prompt in a file that links its lines otherwise: there
        the user went back to the very beginning.
        """
        parent = text(fields, "parentUuid") or text(fields, "logicalParentUuid")
        if parent:
            self._is_linked = True
            return parent
        is_anew = self._is_linked and text(fields, "type") == "user" and not fields.get("isMeta")
        return "" if is_anew and "toolUseResult" not in fields and not self._boundary else None

    def _link(self, fields: Fields, name: str, parent: str | None) -> Piece:
        return Piece(entry=None, ts=seconds(fields.get("timestamp")), names=(name,) if name else (), parent=parent)

    def _note_title(self, kind: str, fields: Fields) -> None:
        """Keep a title. A `summary` may be another session's: it counts if its leaf is in this file."""
        title = text(fields, _TITLES[kind])
        if kind == "summary":
            self._summaries[text(fields, "leafUuid")] = title
        else:
            self._titles[kind] = title or self._titles.get(kind, "")

    def _message(self, fields: Fields, name: str) -> Iterable[Piece]:
        kind = text(fields, "type")
        parent, ts = self._parent(fields), seconds(fields.get("timestamp"))
        names = (name,) if name else ()
        if kind == "assistant":
            yield from self._begin(fields, names, parent, ts)
            return
        if kind == "attachment":
            yield Piece(entry=self._attachment(field(fields, "attachment")), ts=ts, names=names, parent=parent)
            return
        if fields.get("isCompactSummary") is True:
            yield self._compaction(fields, names, parent, ts)
            return
        yield from self._user(fields, names, parent, ts)

    def _deliver(self, fields: Fields, kind: str) -> Iterable[Piece]:
        """Return what the user typed into the turn, before the answer or the prompt that comes next."""
        if kind == "assistant":
            taken = self._queue.deliver()
        elif spoken := self._spoken(fields, kind):
            taken = self._queue.deliver(spoken)
        else:
            return
        parent = self._parent(fields) if taken else None
        for typed in taken:
            yield Piece(entry=typed.message, ts=typed.ts, parent=parent, moved=(parent,) if parent else ())

    def _spoken(self, fields: Fields, kind: str) -> str:
        """Return what a line says in the user's name, empty for results, notes and all else."""
        if fields.get("isMeta") is True or fields.get("isCompactSummary") is True:
            return ""
        content = field(fields, "message").get("content")
        if kind == "attachment":
            content = field(fields, "attachment").get("prompt")
        words = plain_text(content)
        return text_of(user_message((TextPart(text=words),), words, is_meta=False).parts) if words.strip() else ""

    # --- answers ---

    def _continues(self, fields: Fields) -> bool:
        message_id = text(field(fields, "message"), "id")
        return self._answer is not None and bool(message_id) and self._answer.message_id == message_id

    def _begin(self, fields: Fields, names: tuple[str, ...], parent: str | None, ts: float) -> Iterable[Piece]:
        message = field(fields, "message")
        if fields.get("isApiErrorMessage") is True or message.get("model") == "<synthetic>":
            said = plain_text(message.get("content"))
            notice = NoticeEntry(text=said, level="warning", kind=EXTENSION) if said else None
            yield Piece(entry=notice, ts=ts, names=names, parent=parent)
            return
        model = text(message, "model")
        model = f"anthropic/{model}" if model and "/" not in model else model
        self._context.heading.model = model or self._context.heading.model
        answer = AssistantMessage(parts=(), model=model, response_id=text(message, "id"))
        self._answer = _Answer(text(message, "id"), answer, parent, ts, list(names), [])
        self._grow(fields, "")

    def _grow(self, fields: Fields, name: str) -> None:
        """Add a line's blocks to the answer; the last line has the final usage and stop reason."""
        answer = self._answer
        if answer is None:
            return
        message = field(fields, "message")
        stop = text(message, "stop_reason")
        answer.message = msgspec.structs.replace(
            answer.message,
            parts=(*answer.message.parts, *answer_parts(message.get("content"), self._context)),
            usage=usage_of(field(message, "usage")) or answer.message.usage,
            stop_reason=_STOPS.get(stop, "other") if stop else answer.message.stop_reason,
        )
        if name:
            answer.names.append(name)

    def _flush(self) -> Iterable[Piece]:
        answer, self._answer = self._answer, None
        if answer is not None:
            message = answer.message
            if any(isinstance(part, ToolCallPart) for part in message.parts):
                message = msgspec.structs.replace(message, stop_reason="tool_use")
            names, group = tuple(answer.names), answer.message_id
            yield Piece(entry=message, ts=answer.ts, names=names, parent=answer.parent, group=group)
            yield from answer.links

    # --- the user's side ---

    def _user(self, fields: Fields, names: tuple[str, ...], parent: str | None, ts: float) -> Iterable[Piece]:
        content = field(fields, "message").get("content")
        said: list[Any] = [content] if isinstance(content, str) else []
        for value in as_list(content):
            block = as_dict(value)
            if block.get("type") != "tool_result":
                said.append(value)
                continue
            result = tool_result(block, as_dict(fields.get("toolUseResult")), self._context)
            yield Piece(entry=result, ts=ts, names=names, parent=parent)
            names, parent = (), None
        parts = content_parts(said, self._context)
        if not parts:
            yield from [Piece(entry=None, ts=ts, names=names, parent=parent)] if names else []
            return
        yield from self._said(parts, Piece(entry=None, ts=ts, names=names, parent=parent), fields)

    def _said(self, parts: tuple[ContentPart, ...], place: Piece, fields: Fields) -> Iterable[Piece]:
        """Tell what the user typed from the commands and notes that travel as their messages."""
        words = text_of(parts)
        shell = BASH_INPUT.match(words)
        if shell is None and self._command and "<bash-std" in words:
            command, self._command = self._command, ""
            yield _at(place, shell_entry(command, words))
            return
        yield from self._flush_command()
        own = without_reminders(parts)
        if own and own != parts:
            self._context.kept.append(self._context.aside("context", words))
            parts, words = own, text_of(own)
        if shell is not None:
            self._command = shell[1]
            yield place
        elif words.lstrip().startswith(HARNESS):
            yield _at(place, self._context.aside("context", words))
        else:
            yield _at(place, user_message(parts, words, is_meta=fields.get("isMeta") is True))

    def _flush_command(self) -> Iterable[Piece]:
        """Return a command of the user whose output is missing."""
        command, self._command = self._command, ""
        if command:
            yield Piece(entry=ShellEntry(command=command))

    def _attachment(self, attachment: Fields) -> Entry | None:
        if attachment.get("type") == "queued_command":
            parts = content_parts(attachment.get("prompt"), self._context)
            if parts and not text_of(parts).lstrip().startswith(HARNESS):
                return UserMessage(parts=parts)
        return self._context.aside("context", attachment) if attachment else None

    # --- compactions ---

    def _compaction(self, fields: Fields, names: tuple[str, ...], parent: str | None, ts: float) -> Piece:
        boundary, self._boundary = self._boundary, {}
        metadata = field(boundary, "compactMetadata")
        reason: CompactionReason = "manual" if text(metadata, "trigger") == "manual" else "threshold"
        entry = CompactionEntry(
            summary=plain_text(field(fields, "message").get("content")),
            tokens_before=tokens(metadata, "preTokens") or None,
            tokens_after=tokens(metadata, "postTokens") or None,
            reason=reason,
            duration=tokens(metadata, "durationMs") / 1000,
        )
        segment = field(metadata, "preservedSegment")
        kept = texts(field(metadata, "preservedMessages"), "uuids")
        kept += tuple(text(segment, name) for name in ("headUuid", "tailUuid"))
        known = tuple(name for name in kept if name and name in self._seen)
        target = known[0] if known else ""
        return Piece(entry=entry, ts=ts, names=names, parent=parent, target=target, moved=known)


def _at(place: Piece, entry: Entry) -> Piece:
    return Piece(entry=entry, ts=place.ts, names=place.names, parent=place.parent)


def find(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """Yield the session files of Claude Code, those of sub-agents left out."""
    folder = home_of(environ, "CLAUDE_CONFIG_DIR", home, ".claude") / "projects"
    for path in folder.glob("*/*.jsonl"):
        if not path.name.startswith("agent-"):
            yield path


FORMAT = Format(name=NAME, label="Claude Code", is_line=is_line, describe=describe, reader=ClaudeCodeReader, find=find)
