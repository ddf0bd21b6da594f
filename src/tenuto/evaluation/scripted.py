"""A model in process: it plays a story's steps and one of four summarisers, counts by word pieces, has a window.

It is plugged in where bytes leave for the network (`register_transport`), so encoders, decoders and everything behind
them are the real ones.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import cycle
from random import Random
from typing import Any, Literal

from tenuto.compaction.summary.prompts import CHECK, OVER, SAME_PREFIX
from tenuto.evaluation.stories import FROM_USER, Fact, Kind, Step, View
from tenuto.evaluation.wires import (
    NOTHING,
    Reply,
    Request,
    ToolCall,
    Usage,
    Wire,
    read_request,
    refusal,
    stream,
    too_long,
)
from tenuto.model.errors import classify
from tenuto.protocol.model import ModelError
from tenuto.text.bounding import result_ceiling
from tenuto.text.json_access import as_dict, as_list

IMAGE_TOKENS = 1_200
FRAME = 4
"""What role and separators of one item cost."""
CALL = 8
"""What a call costs beside its arguments."""
_PIECES = re.compile(r" ?[A-Za-z]+| ?[^\W\d_A-Za-z]+|\d{1,3}| ?[^\s\w]+|_+|\s*[\r\n]+|\s+")
_WORD_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_WIDE = re.compile(r"[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef\U00010000-\U0010ffff]")
_VOWELS = frozenset("aeiouyAEIOUY")
_UNREAD = frozenset({"type", "role", "id", "call_id", "tool_use_id", "tool_call_id", "signature"}) | frozenset(
    {"encrypted_content", "status", "cache_control", "phase", "detail"}
)
_IMAGES = frozenset({"image", "image_url", "input_image"})


def count_text(text: str) -> int:
    """Return the tokens of a text."""
    return sum(_count_piece(piece) for piece in _PIECES.findall(text))


@lru_cache(maxsize=20_000)
def _count_piece(piece: str) -> int:
    bare = piece.strip()
    if not bare:
        return 1
    if bare.isascii() and bare.isalpha():
        return sum(_count_word(part) for part in _WORD_PARTS.findall(bare))
    if bare[0].isdecimal():
        return 1
    if bare[0].isalpha():
        wide = len(_WIDE.findall(bare))
        return max(1, -(-wide * 4 // 5) + -(-(len(bare) - wide) * 2 // 5))
    wide = sum(ord(character) > 0xFFFF for character in bare)
    narrow = len(bare) - wide
    return 2 * wide + (-(-narrow // 8) if len(set(bare)) == 1 else -(-narrow // 2))


def _count_word(word: str) -> int:
    length = len(word)
    if length > 2 and not _VOWELS.intersection(word):
        return -(-length // 2)
    if word.isupper():
        return -(-length // 3)
    return 1 if length <= 8 else -(-length // 6)


@lru_cache(maxsize=8_192)
def count_item(item: str) -> int:
    """Return the tokens of one prefix item: the JSON of a tool or of a block, maybe with a role before it."""
    start = next((place for place, character in enumerate(item) if character in '{["'), None)
    try:
        value = json.loads(item[start:]) if start is not None else item
    except ValueError:
        value = item
    if isinstance(value, dict) and ("parameters" in value or "input_schema" in value or "function" in value):
        return CALL + count_text(item)
    return FRAME + _count_value(value)


def _count_value(value: Any) -> int:
    match value:
        case str():
            return count_text(value)
        case list():
            return sum(map(_count_value, as_list(value)))
        case dict():
            return _count_object(as_dict(value))
        case _:
            return 1 if value else 0


def _count_object(value: dict[str, Any]) -> int:
    if value.get("type") in _IMAGES:
        return min(IMAGE_TOKENS, len(json.dumps(value)) // 4)
    if value.get("type") == "compaction" and value.get("encrypted_content"):
        return len(value["encrypted_content"]) * 3 // 16  # base64 of a text
    if value.get("type") == "tool_use":
        return CALL + count_text(json.dumps(value["input"], ensure_ascii=False))
    if value.get("type") in {"function", "function_call"}:
        return CALL + count_text(value.get("function", value)["arguments"])
    return sum(_count_value(inner) for key, inner in value.items() if key not in _UNREAD)


@dataclass(frozen=True, slots=True)
class Counter:
    """One way of counting: the items of a prompt together, and a text of an answer."""

    prompt: Callable[[Iterable[str]], int]
    text: Callable[[str], int]


def _quarter(items: Iterable[str]) -> int:
    """Return characters / 4, at most 1 200 tokens for an item with an image."""
    most = 4 * IMAGE_TOKENS
    return sum(min(len(item), most) if '"base64' in item or "data:image" in item else len(item) for item in items) // 4


WORDS = Counter(lambda items: sum(map(count_item, items)), count_text)
CHARACTERS = Counter(_quarter, lambda text: len(text) // 4)


Summariser = Literal["honest", "lossy", "refusing", "babbling"]
SUMMARISERS: tuple[Summariser, ...] = ("honest", "lossy", "refusing", "babbling")
KEEPS = 0.6
"""Share of the facts that the lossy summariser puts into each summary."""
TOKENS_A_WORD = 1.5
TOOL_CHARS = 30_000
_LENGTH = re.compile(r"under (\d+) words")
_KEPT_BY_PROGRAM: frozenset[Kind] = frozenset({"pin", "todo", "read", "modified", "buried", "content"})
"""What summarisers are told to leave out, or cannot know."""
_LISTED = re.compile(r"^(\d+)\. (.*(?:\n  .*)*)", re.MULTILINE)
_FAILURES = ("error", "refusal", "empty", "call")
_BABBLE = ("The session is about a code base and things were done in it. " * 12, "I will now open the next file.")


@dataclass(slots=True)
class Account:
    """What was seen of the requests, besides facts.

    `over` are tokens of requests over the window, `stubs` results that came as less than a fifth (printed and sent
    characters, free tokens), `cached` of each summary request in place the characters that the request before it began
    with too, and all its characters. `steps` and `compactions` are what both kinds of requests used.
    """

    requests: int = 0
    summaries: int = 0
    steps: Usage = NOTHING
    compactions: Usage = NOTHING
    over: list[int] = field(default_factory=list[int])
    stubs: list[tuple[int, int, int]] = field(default_factory=list[tuple[int, int, int]])
    cached: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])

    def count(self, usage: Usage, *, is_summary: bool) -> None:
        """Add what an answer used."""
        if is_summary:
            self.compactions += usage
        else:
            self.steps += usage


_RANDOM_NAMES = re.compile(rb"(?<=-project-)[0-9a-f]{8}(?=/)|[0-9a-f]{8}(?=-\d{8}-\d{6}/)")


def steady(body: bytes) -> bytes:
    """Return a request in which names that are drawn anew for each session, in paths, are the same in every one.

    They have letters and figures at random, so they would count differently, and no measurement would come out twice.
    """
    return _RANDOM_NAMES.sub(b"00000000", body)


class ScriptedModel:
    """Answers requests. `facts` are those that hold now; `look` is called once with what the next step is sent."""

    def __init__(self, kind: Wire, window: int, summariser: Summariser, seed: int, keeps: float = KEEPS) -> None:
        self.kind: Wire = kind
        self.window = window
        self.account = Account()
        self.facts: dict[Fact, None] = {}
        self.look: Callable[[View], None] | None = None
        self.filler: Callable[[], Step | None] | None = None
        self._seed = seed
        self._keeps = keeps
        self._summariser: Summariser = summariser
        self._steps: deque[Step] = deque()
        self._failures = cycle(_FAILURES)
        self._babble = cycle(_BABBLE)
        self._printed: dict[str, int] = {}
        self._sent: tuple[str, ...] = ()
        self._step_items: tuple[str, ...] = ()

    def begin(self, steps: tuple[Step, ...], filler: Callable[[], Step | None] | None = None) -> None:
        """Play these steps next. Before the last one come those of `filler`, as long as it has any."""
        self._steps = deque(steps)
        self.filler = filler

    def answer(self, body: bytes) -> Iterator[bytes]:
        """Return the stream of an answer. Raises `ModelError` for what a provider would refuse."""
        request = read_request(self.kind, steady(body))
        if request.asks_compaction:
            text = "compaction: Extra inputs are not permitted"
            raise classify("scripted", 400, refusal(self.kind, text))
        self.account.requests += 1
        size = count_request(request)
        limit = self.window - (request.asked if self.kind != "openai" else 0)
        if size > limit:
            self.account.over.append(size)
            raise classify("scripted", 400, too_long(self.kind, size, self.window))
        is_check = request.last_user.startswith(CHECK)
        in_place = request.has_tools and (is_check or SAME_PREFIX in request.last_user)
        is_summary = in_place or not request.has_tools
        if is_summary:
            self.account.summaries += 1
            if in_place:
                same = sum(map(len, _common(self._sent if is_check else self._step_items, request.items)))
                self.account.cached.append((same, sum(map(len, request.items))))
            reply = self._check(request) if is_check else self._summarise(request)
        else:
            reply = self._go_on(request, size)
        shared = sum(count_item(item) for item in _common(self._sent, request.items))
        self._sent = request.items
        said = "".join((reply.text, *(str(call.arguments) for call in reply.calls)))
        usage = Usage(size - shared, shared, count_text(said))
        self.account.count(usage, is_summary=is_summary)
        return stream(self.kind, reply, usage, self.account.requests)

    # --- steps ---

    def _go_on(self, request: Request, size: int) -> Reply:
        self._step_items = request.items
        self._watch_results(request, size)
        if self.look is not None:
            look, self.look = self.look, None
            look(View(request.texts))
        step = self._next_step()
        calls: list[ToolCall] = []
        for place, call in enumerate(step.calls):
            call_id = f"call_{self.account.requests:05d}_{place}"
            self._printed[call_id] = call.printed
            calls.append(ToolCall(call_id, call.name, call.arguments))
        self.learn(step.facts, step.over)
        return Reply(text=step.text, calls=tuple(calls))

    def learn(self, facts: tuple[Fact, ...], over: tuple[Fact, ...] = ()) -> None:
        """Take note of facts that hold from now on, and of those that do no more."""
        for fact in over:
            self.facts.pop(fact, None)
        self.facts.update(dict.fromkeys(facts))

    def _next_step(self) -> Step:
        if len(self._steps) == 1 and self.filler is not None and (step := self.filler()) is not None:
            return step
        return self._steps.popleft() if self._steps else Step(text="OK.")

    def _watch_results(self, request: Request, size: int) -> None:
        """Hold each new result against what its tool printed."""
        free = self.window - size
        for call_id, text in request.results.items():
            printed = self._printed.pop(call_id, 0)
            whole = min(printed, TOOL_CHARS, result_ceiling(self.window))
            if len(text) < whole / 5 and free >= self.window / 4:
                self.account.stubs.append((printed, len(text), free))

    # --- summaries ---

    def _summarise(self, request: Request) -> Reply:
        match self._summariser:
            case "honest" | "lossy":
                return Reply(text=self._write_notes(request))
            case "refusing":
                return self._fail()
            case "babbling":
                return Reply(text=next(self._babble))

    def _check(self, request: Request) -> Reply:
        """Answer what is asked about notes: it forgets of this as much as of everything else."""
        if self._summariser in {"refusing", "babbling"}:
            return self._fail() if self._summariser == "refusing" else Reply(text=next(self._babble))
        lines = _LISTED.findall(request.last_user)
        over = [number for number, line in lines if not any(fact.text in line for fact in self.facts)]
        over = [number for number in over if self._remembers(f"line {number}")]
        known = View((*request.texts[-2:],))
        told = [fact for fact in self._told(View(request.texts)) if not known.has(fact.text)]
        sections: dict[str, list[str]] = {}
        for fact in told[: _words(request) // 12]:
            sections.setdefault(_SECTION_OF.get(fact.kind, _CRITICAL), []).append(f"- {fact.text}")
        body = ("\n".join((heading, *lines)) for heading, lines in sections.items())
        return Reply(text="\n\n".join((f"## {OVER}\n{', '.join(over) or 'none'}", *body)))

    def _told(self, view: View) -> list[Fact]:
        """Return the facts of a request that come to mind, what results and answers said first."""
        told = [fact for fact in reversed(self.facts) if fact.kind not in _KEPT_BY_PROGRAM and view.has(fact.text)]
        told = [fact for fact in told if self._remembers(fact.text)]
        return sorted(told, key=lambda fact: fact.kind in FROM_USER)

    def _fail(self) -> Reply:
        match next(self._failures):
            case "error":
                raise classify("scripted", 400, refusal(self.kind, "The request was blocked by a policy."))
            case "refusal":
                return Reply(text="I'm sorry, I can't help with that.", refused=True)
            case "call":
                return Reply(calls=(ToolCall(f"call_{self.account.requests:05d}", "bash", {"command": "ls"}),))
            case _:
                return Reply()

    def _write_notes(self, request: Request) -> str:
        """Return notes with the facts that the request has, as many as the length allows: results and answers first."""
        told = self._told(View(request.texts))
        room = _words(request) * TOKENS_A_WORD - 60
        sections: dict[str, list[str]] = {heading: [] for heading in _SECTIONS}
        for fact in told:
            line = f"- {fact.text}"
            room -= count_text(line) + 1
            if room < 0:
                break
            sections[_SECTION_OF.get(fact.kind, _CONSTRAINTS)].append(line)
        body = ("\n".join((heading, *(lines or ["- none"]))) for heading, lines in sections.items())
        return "\n\n".join(("## Goal\nThe work goes on.", *body))

    def _remembers(self, text: str) -> bool:
        if self._summariser != "lossy":
            return True
        return Random(f"{self._seed} {self.account.summaries} {text}").random() < self._keeps


_CONSTRAINTS = "## Constraints & Preferences"
_DECISIONS, _NEXT, _CRITICAL = "## Key Decisions", "## Next Steps", "## Critical Context"
_SECTIONS = (_CONSTRAINTS, "## Progress\n### Blocked", _DECISIONS, _NEXT, _CRITICAL)
_SECTION_OF: dict[Kind, str] = {
    "decision": _DECISIONS,
    "reversed": _DECISIONS,
    "promise": _NEXT,
    "identifier": _CRITICAL,
    "error": "## Progress\n### Blocked",
}


def _words(request: Request) -> int:
    """Return how many words are asked for."""
    lengths = _LENGTH.findall(request.last_user)
    return int(lengths[-1]) if lengths else 700


def count_request(request: Request) -> int:
    """Return the tokens of a request."""
    return sum(map(count_item, request.items))


def _common(before: tuple[str, ...], after: tuple[str, ...]) -> tuple[str, ...]:
    """Return the items that both begin with."""
    count = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        count += 1
    return after[:count]


class ScriptedTransport:
    """What a client sends goes to `answer`, and what that returns comes back."""

    def __init__(self, answer: Callable[[bytes], Iterator[bytes]]) -> None:
        self._answer = answer

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Yield the answer (see `Transport`)."""
        if url.endswith("/compact"):
            raise ModelError("not_found", f"there is nothing at {url}", status=404)
        for chunk in self._answer(body):
            yield chunk

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Nothing is listed (see `Transport`)."""
        raise ModelError("not_found", f"there is nothing at {url}", status=404)

    async def close(self) -> None:
        """Nothing is open."""
