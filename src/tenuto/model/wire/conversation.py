"""Encoding a view once: what a request repeats of the one before it costs nothing (DESIGN section 10).

A conversation remembers the segments (gaps and answers) of the last request of one session. The next request finds
how far its messages are the same objects and encodes only what follows.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol

import msgspec
from msgspec import Struct, field

from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import ModelRequest, ToolSchema, WebSearchUse
from tenuto.protocol.part import ImagePart, ToolCallPart
from tenuto.text import json_access
from tenuto.text.json_access import as_text
from tenuto.text.late import late
from tenuto.text.patch import is_whole

MAX_ECHO = 200
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw])


class CallDraft(Struct):
    """A call while it is streamed."""

    id: str = ""
    name: str = ""
    fragments: list[str] = field(default_factory=list)

    @property
    def arguments(self) -> str:
        """The arguments so far, as the model wrote them."""
        return "".join(self.fragments)


def finish_call(draft: CallDraft, taken: set[str], *, cut_at: int | None = None) -> ToolCallPart:
    """Return the call as it is stored; its id is unique and goes into `taken`.

    `cut_at`: the answer ended at its output limit, after so many tokens, and this call is the last thing in it. Then
    arguments that are empty or cannot be read were cut off.
    """
    arguments, fault = check_arguments(draft.arguments)
    if cut_at is not None:
        written = draft.arguments.strip()
        if written and not fault:
            cut_at = None
        else:
            fault = f"the answer was cut off; written was: {_echo(written)}" if written else "the answer was cut off"
    if not draft.name:
        fault = fault or "the call has no tool name"
    call_id = unique_id(draft.id, f"{draft.name}{draft.arguments}", taken)
    taken.add(call_id)
    return ToolCallPart(id=call_id, name=draft.name or "unknown", arguments=arguments, fault=fault, cut_at=cut_at)


def finish_freeform(draft: CallDraft, taken: set[str], *, cut_at: int | None = None) -> ToolCallPart:
    """Return a call whose draft is one text and no JSON, as it is stored; the rest is as in `finish_call`.

    The text alone cannot tell whether it was cut off, but for a patch, which says where it ends.
    """
    given = draft.arguments
    written = CallDraft(draft.id, draft.name, [json_access.encode({"input": given}).decode()])
    call = finish_call(written, taken)
    is_cut = cut_at is not None and not is_whole(given)
    fault = f"the answer was cut off; written was: {_echo(given.strip())}" if is_cut else call.fault
    return msgspec.structs.replace(call, freeform=True, fault=fault, cut_at=cut_at if is_cut else None)


def freeform_input(arguments: str) -> str:
    """Return the text of a freeform call, as the model wrote it."""
    return as_text((json_access.decode_object(arguments) or {}).get("input"))


def check_arguments(text: str) -> tuple[str, str]:
    """Return valid JSON text of one object, and why the model's text was not that (empty: it was)."""
    stripped = text.strip()
    if not stripped or stripped == "null":
        return "{}", ""
    try:
        _OBJECT.decode(stripped)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError) as error:
        found = json_access.decode_object(stripped)
        if found is not None:
            return json_access.encode(found).decode(), ""
        return "{}", _fault(stripped, error)
    if "\\ud" in stripped or "\\uD" in stripped or "\\u0000" in stripped:
        found = json_access.decode_object(stripped)
        return ("{}", "") if found is None else (json_access.encode(found).decode(), "")
    return json_access.clean_text(stripped), ""


def _fault(text: str, error: Exception) -> str:
    import json

    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as reason:
        why = f"the arguments are not valid JSON ({reason or error})"
    else:
        why = f"the arguments are {type(value).__name__} where a JSON object is needed"
    return f"{why}; written was: {_echo(text)}"


def _echo(text: str) -> str:
    echo = text if len(text) <= MAX_ECHO else f"{text[: MAX_ECHO // 2]} … {text[-MAX_ECHO // 2 :]}"
    return json_access.clean_text(echo)


def unique_id(wanted: str, content: str, taken: Collection[str]) -> str:
    """Return `wanted` if nobody has it, else one made from the content, always the same for the same history."""
    candidate, number = json_access.clean_text(wanted).strip(), 0
    while not candidate or candidate in taken:
        seed = f"{wanted}\n{content}\n{number}\n{len(taken)}".encode("utf-8", "replace")
        candidate = f"call_{hashlib.sha256(seed).hexdigest()[:24]}"
        number += 1
    return candidate


def taken_ids(messages: Iterable[Message]) -> set[str]:
    """Return the call ids that results of the conversation carry."""
    return {message.call_id for message in messages if isinstance(message, ToolResultMessage)}


def arguments_object(arguments: str) -> bytes:
    """Return stored arguments as JSON bytes of an object, whatever an imported session has there."""
    valid, _ = check_arguments(arguments)
    return valid.encode()


_NAME = late(r"[^a-zA-Z0-9_-]")
MAX_NAME = 64


def wire_name(name: str) -> str:
    """Return a tool name that every provider takes; what a model made up may not be one."""
    return _NAME.sub("_", name)[:MAX_NAME] or "unknown"


def wire_call_id(call_id: str, longest: int) -> str:
    """Return a call id of letters, digits, `_` and `-`, at most `longest` characters, always the same for the same."""
    if call_id and len(call_id) <= longest and not _NAME.search(call_id):
        return call_id
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'replace')).hexdigest()[:24]}"


NOTE_TAG = "harness-note"
EMPTY_TEXT = "(empty)"


class Gap(Struct, frozen=True):
    """The messages of one gap. `notes` belong to the last user message, else to the last result, else stand alone."""

    results: tuple[ToolResultMessage, ...]
    users: tuple[UserMessage, ...]
    notes: tuple[str, ...]
    freeform: frozenset[str] = frozenset()
    """The ids of the freeform calls among those that the results answer."""

    @property
    def note_text(self) -> str:
        """The developer texts, each in its tag; empty when there are none."""
        return "\n\n".join(frame_note(note) for note in self.notes)


def frame_note(text: str) -> str:
    """Return a developer text as the model sees it: told by the harness, not by the user."""
    return f"<{NOTE_TAG}>\n{text}\n</{NOTE_TAG}>"


def gap_of(messages: Iterable[Message], answer: Message | None = None) -> Gap:
    """Return the gap that these messages, none of them an answer, form behind `answer`."""
    results: list[ToolResultMessage] = []
    users: list[UserMessage] = []
    notes: list[str] = []
    for message in messages:
        if isinstance(message, ToolResultMessage):
            results.append(message)
        elif isinstance(message, UserMessage):
            users.append(message)
        elif isinstance(message, DeveloperMessage) and message.text:
            notes.append(message.text)
    calls = answer.tool_calls if isinstance(answer, AssistantMessage) else ()
    return Gap(tuple(results), tuple(users), tuple(notes), frozenset(call.id for call in calls if call.freeform))


def head_of(messages: Sequence[Message]) -> tuple[str, ...]:
    """Return the system prompt and, after it, every further system text (the summary), empty ones left out."""
    return tuple(message.text for message in messages if isinstance(message, SystemMessage) and message.text)


def next_boundary(messages: Sequence[Message], start: int) -> int:
    """Return where the run of messages that begins at `start` ends: one answer, or everything up to the next one."""
    if isinstance(messages[start], AssistantMessage):
        return start + 1
    end = start + 1
    while end < len(messages) and not isinstance(messages[end], AssistantMessage):
        end += 1
    return end


DIGEST_BYTES = 16


def extend(chain: bytes, items: Iterable[bytes]) -> bytes:
    """Return the chain hash after `items`, each with its length so that boundaries count."""
    digest = hashlib.blake2b(chain, digest_size=DIGEST_BYTES)
    for item in items:
        digest.update(len(item).to_bytes(8, "big"))
        digest.update(item)
    return digest.digest()


def format_prefix(chain: bytes, thinking_from: int) -> str:
    """Return what an answer stores; `thinking_from` counts the view's answers from 0."""
    return f"{chain.hex()}.{thinking_from}"


def thinking_floor(message: AssistantMessage, model_id: str, chain: bytes) -> int | None:
    """Return from which answer on thinking may go along if this answer's may; `None` when its own may not.

    `chain` is the hash of what is now sent before the answer.
    """
    stored, dot, start = message.prefix.rpartition(".")
    if not dot or message.model != model_id or stored != chain.hex() or not start.isdecimal():
        return None
    return int(start)


MAX_CONVERSATIONS = 8
LoadBlob = Callable[[str], bytes]


class WireEncoder(Protocol):
    """What differs from wire to wire. All methods are pure but for the images that they load."""

    def encode_tools(self, tools: Sequence[ToolSchema]) -> bytes:
        """Return the tools as a JSON array; empty bytes when there are none."""
        ...

    def encode_search(self, use: WebSearchUse) -> bytes:
        """Return the provider's own web search as an item of the tools, empty bytes where it is not among them."""
        ...

    def encode_head(self, texts: Sequence[str]) -> list[bytes]:
        """Return the head's items."""
        ...

    def encode_gap(self, gap: Gap, images: ImageSource) -> list[bytes]:
        """Return the items of a gap."""
        ...

    def encode_answer(self, message: AssistantMessage, *, thinking: bool) -> list[bytes]:
        """Return the items of an answer, with or without the thinking that can be sent back."""
        ...


class ImageSource(Struct, frozen=True):
    """Gives the bytes of images to a model that sees them; `None` for one that cannot be shown."""

    load_blob: LoadBlob
    visible: bool

    def load(self, image: ImagePart) -> bytes | None:
        """Return the image's bytes, `None` when the model sees no images or the file is gone."""
        if not self.visible:
            return None
        try:
            return self.load_blob(image.sha256)
        except (OSError, KeyError):
            return None

    def missing_text(self, image: ImagePart) -> str:
        """Return what stands in for an image that cannot be shown."""
        why = "its file is missing" if self.visible else "this model cannot see images"
        return f"[image {image.name or image.sha256[:12]} left out: {why}]"


Run = tuple[bool, bytes]
"""One gap or one answer as it is sent: whether it is an answer, and its JSON items joined by commas."""


class Segment(Struct):
    """One gap or one answer, encoded.

    `end` is the place after it in the view; `chain` the hash up to and with it; `floor` from which answer on thinking
    goes along as far as everything up to here tells. `with_thinking` is `None` when there is none that may be sent.
    """

    end: int
    is_answer: bool
    plain: Run
    with_thinking: Run | None
    chain: bytes
    answers: int
    floor: int
    thinks: bool
    """Whether there is thinking that may be sent, up to here."""


class Encoded(Struct):
    """A request's conversation: tools as a JSON array, the head's items, then the runs that have something to send."""

    tools: bytes
    head: list[bytes]
    runs: list[Run]
    prefix: str

    @property
    def bodies(self) -> list[bytes]:
        """The items of all runs."""
        return [body for _, body in self.runs]


class Conversation:
    """The segments of one session's last request."""

    def __init__(self, encoder: WireEncoder, images: ImageSource) -> None:
        self._encoder = encoder
        self._images = images
        self._messages: tuple[Message, ...] = ()
        self._segments: list[Segment] = []
        self._tools: tuple[ToolSchema, ...] = ()
        self._web_search: WebSearchUse = ""
        self._tools_body = b""
        self._head_texts: tuple[str, ...] | None = None
        self._head: list[bytes] = []
        self._seed = b""

    def encode(self, request: ModelRequest) -> Encoded:
        """Return the request's conversation, encoding only what the last request did not have."""
        self._set_head(request)
        self._grow(request.messages, request.model.id)
        self._messages = request.messages
        last = self._segments[-1] if self._segments else None
        answers, floor = (last.answers, last.floor) if last else (0, 0)
        runs, thinking_from = self._choose_runs(answers, floor if request.thinking else answers)
        chain = last.chain if last else self._seed
        return Encoded(self._tools_body, self._head, runs, format_prefix(chain, thinking_from))

    def _choose_runs(self, answers: int, floor: int) -> tuple[list[Run], int]:
        """Return what is sent of each segment, and from which answer on thinking goes along: above `floor`."""
        segments, thinking_from = self._segments, answers
        if not segments or not segments[-1].thinks:  # nothing to choose, in a thousand segments perhaps
            return [segment.plain for segment in segments if segment.plain[1]], thinking_from
        runs: list[Run] = []
        for segment in segments:
            if segment.with_thinking is not None and segment.answers > floor:
                runs.append(segment.with_thinking)
                if segment.answers <= thinking_from:
                    thinking_from = segment.answers - 1
            elif segment.plain[1]:
                runs.append(segment.plain)
        return runs, thinking_from

    def _set_head(self, request: ModelRequest) -> None:
        """Encode tools and system texts again only when they changed; then nothing after them holds."""
        if request.tools is not self._tools or request.web_search != self._web_search:
            body = self._encoder.encode_tools(request.tools)
            if body:
                body = add_item(body, self._encoder.encode_search(request.web_search))
            if body != self._tools_body:
                self._tools_body = body
                self._head_texts = None
            self._tools, self._web_search = request.tools, request.web_search
        texts = head_of(request.messages)
        if texts != self._head_texts:
            self._head_texts = texts
            self._head = self._encoder.encode_head(texts)
            self._seed = extend(b"", (self._tools_body, *self._head))
            self._segments = []
            self._messages = ()

    def _grow(self, messages: tuple[Message, ...], model_id: str) -> None:
        """Keep the segments that are the same and encode the rest."""
        common = common_length(self._messages, messages)
        segments = self._segments
        while segments and not self._holds(segments[-1], messages, common):
            segments.pop()
        start = segments[-1].end if segments else 0
        while start < len(messages):
            end = next_boundary(messages, start)
            segments.append(self._encode_run(messages, start, end, model_id))
            start = end

    def _holds(self, segment: Segment, messages: tuple[Message, ...], common: int) -> bool:
        """Whether a segment stands as it is: unchanged, and for a gap not continued."""
        if segment.end > common:
            return False
        return segment.is_answer or segment.end == len(messages) or isinstance(messages[segment.end], AssistantMessage)

    def _encode_run(self, messages: tuple[Message, ...], start: int, end: int, model_id: str) -> Segment:
        before = self._segments[-1] if self._segments else None
        chain, answers, floor = (before.chain, before.answers, before.floor) if before else (self._seed, 0, 0)
        message = messages[start]
        is_answer = isinstance(message, AssistantMessage)
        with_thinking: Run | None = None
        if isinstance(message, AssistantMessage):
            items = self._encoder.encode_answer(message, thinking=False)
            own_floor = thinking_floor(message, model_id, chain)
            if own_floor is not None:
                floor = max(floor, own_floor)
                complete = self._encoder.encode_answer(message, thinking=True)
                with_thinking = (True, b",".join(complete)) if complete != items else None
            answers += 1
        else:
            items = self._encoder.encode_gap(
                gap_of(messages[start:end], messages[start - 1] if start else None), self._images
            )
        return Segment(
            end=end,
            is_answer=is_answer,
            plain=(is_answer, b",".join(items)),
            with_thinking=with_thinking,
            chain=extend(chain, items),
            answers=answers,
            floor=floor,
            thinks=with_thinking is not None or (before is not None and before.thinks),
        )


def add_item(array: bytes, item: bytes) -> bytes:
    """Return an encoded JSON array that is not empty with one item more; an empty item adds nothing."""
    return b"%s,%s]" % (array[:-1], item) if item else array


def common_length(before: Sequence[Message], now: Sequence[Message]) -> int:
    """Return how many messages from the start are the same objects."""
    length = min(len(before), len(now))
    for index in range(length):
        if before[index] is not now[index]:
            return index
    return length


class ConversationCache:
    """The conversations of the sessions that used a client last."""

    def __init__(self, encoder: WireEncoder, load_blob: LoadBlob) -> None:
        self._encoder = encoder
        self._load_blob = load_blob
        self._conversations: OrderedDict[tuple[str, str, bool], Conversation] = OrderedDict()

    def encode(self, request: ModelRequest) -> Encoded:
        """Return the request's conversation."""
        key = (request.cache_key, request.model.id, request.model.images)
        conversation = self._conversations.get(key)
        if conversation is None:
            conversation = Conversation(self._encoder, ImageSource(self._load_blob, visible=request.model.images))
            self._conversations[key] = conversation
            if len(self._conversations) > MAX_CONVERSATIONS:
                self._conversations.popitem(last=False)
        self._conversations.move_to_end(key)
        return conversation.encode(request)
