"""The table of contracts: what comes of an answer, by how it ended and where, on each protocol.

A row is a stop reason in the wire's own words, a moment, and the name of what must follow. `python -m
tests.contracts.table` writes the table into `docs/contracts.md`; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.server import Call, Cut, Reply, StreamError
from tests.server.reply import AnyReply

Protocol = Literal["anthropic", "openai", "openai-chat"]
TEXT = "The answer is for"
FILE = "notes.txt"
ARGUMENTS = '{"path": "notes.txt", "content": "one two three four five six seven eight nine ten eleven twelve"}'
TENTHS = tuple(range(0, len(ARGUMENTS), 10))
LOOK = Call("glob", '{"pattern": "*"}')


@dataclass(frozen=True)
class Follows:
    """What follows an answer, in words and as it can be observed.

    `shown` is what standard output has at the end, where the next answer says "ty-two."; `code` the exit code;
    `requests` how many requests there are; `told` what the second one has more than the first; `kept` whether the
    answer's text is in the log.
    """

    words: str
    shown: str = ""
    code: int = 0
    requests: int = 2
    told: str = ""
    kept: bool = True
    error: str = ""
    files: tuple[str, ...] = ()


AFTER = "ty-two."
FOLLOWS = {
    "done": Follows("it is the answer", shown=TEXT, requests=1),
    "checked": Follows("it is the answer; a warning says to check that it is whole", shown=TEXT, requests=1),
    "goes on": Follows(
        "the model is told to go on where it stopped; both texts are the answer",
        TEXT + AFTER,
        told="Go on exactly where it stopped",
    ),
    "begins again": Follows(
        "the model is told to think less and to work in smaller parts", AFTER, told="before it said or did anything"
    ),
    "must speak": Follows(
        "the model is told to say something; the third time the run fails",
        AFTER,
        told="without a word and without a call",
    ),
    "waits": Follows("the same conversation is sent, with what has come of the answer", AFTER),
    "runs": Follows("the call is run, and its result sent", AFTER, told="Created notes.txt", files=(FILE,)),
    "told of the cut": Follows(
        "the call is not run; its result names the output limit and `append`", AFTER, told="cut off at its output limit"
    ),
    "runs the whole ones": Follows(
        "the whole call is run; the result of the other names the output limit",
        AFTER,
        told="cut off at its output limit",
    ),
    "unreadable": Follows(
        "the call is not run; its result says what is wrong with its arguments", AFTER, told="could not be read"
    ),
    "declined": Follows("the run ends; what was said is shown", code=6, requests=1, error="declined to answer"),
    "too long": Follows(
        "the answer is taken back, the conversation compacted and sent again; with nothing to compact the run fails",
        code=1,
        requests=1,
        kept=False,
        error="does not fit",
    ),
    "again": Follows("what was shown is taken back, and the same request is made again", AFTER, kept=False),
}
"""By name."""


@dataclass(frozen=True)
class Row:
    protocol: Protocol
    stop: str
    moment: str
    follows: str
    reply: AnyReply = field(compare=False, hash=False, repr=False)

    @property
    def name(self) -> str:
        return f"{self.protocol}: {self.stop}: {self.moment}"


def _answer(**more: Any) -> dict[str, Any]:
    return more


MOMENTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "thinking": _answer(thinking="Let me think about"),
    "text": _answer(text=TEXT),
    "thinking, text": _answer(thinking="Think.", text=TEXT),
    "a whole call": _answer(tool_calls=[Call("write", ARGUMENTS)]),
    "thinking, a whole call": _answer(thinking="Think.", tool_calls=[Call("write", ARGUMENTS)]),
    "text, a whole call": _answer(text="I write it.", tool_calls=[Call("write", ARGUMENTS)]),
    "a whole call, a cut one": _answer(tool_calls=[LOOK, Call("write", ARGUMENTS[:50])]),
} | {f"a call cut at byte {place}": _answer(tool_calls=[Call("write", ARGUMENTS[:place])]) for place in TENTHS}

ENDED = {
    "nothing": "must speak",
    "thinking": "must speak",
    "text": "done",
    "thinking, text": "done",
    "a whole call": "runs",
    "text, a whole call": "runs",
    "thinking, a whole call": "runs",
    "a whole call, a cut one": "unreadable",
    "a call cut at byte 50": "unreadable",
}
LIMIT = {
    "nothing": "begins again",
    "thinking": "begins again",
    "text": "goes on",
    "thinking, text": "goes on",
    "a whole call": "runs",
    "text, a whole call": "runs",
    "thinking, a whole call": "runs",
    "a whole call, a cut one": "runs the whole ones",
    **{f"a call cut at byte {place}": "told of the cut" for place in TENTHS},
}
REFUSED = dict.fromkeys(
    (
        "nothing",
        "thinking",
        "text",
        "thinking, text",
        "a whole call",
        "text, a whole call",
        "a whole call, a cut one",
        "a call cut at byte 50",
    ),
    "declined",
)
PAUSED = {
    "nothing": "waits",
    "thinking": "waits",
    "text": "waits",
    "thinking, text": "waits",
    "a whole call": "runs",
    "text, a whole call": "runs",
    "a call cut at byte 50": "unreadable",
}
UNKNOWN = ENDED | {"text": "checked", "thinking, text": "checked"}
FULL = dict.fromkeys(
    ("nothing", "thinking", "text", "thinking, text", "a whole call", "a call cut at byte 50"), "too long"
)
STOPS: dict[Protocol, dict[str, dict[str, str]]] = {
    "anthropic": {
        "end_turn": ENDED,
        "stop_sequence": ENDED,
        "tool_use": ENDED,
        "max_tokens": LIMIT,
        "pause_turn": PAUSED,
        "refusal": REFUSED,
        "model_context_window_exceeded": FULL,
        "brand_new_reason": UNKNOWN,
    },
    "openai": {"completed": ENDED, "max_output_tokens": LIMIT, "content_filter": REFUSED, "brand_new_reason": LIMIT},
    "openai-chat": {
        "stop": ENDED,
        "tool_calls": ENDED,
        "function_call": ENDED,
        "eos": ENDED,
        "length": LIMIT,
        "content_filter": REFUSED,
        "brand_new_reason": UNKNOWN,
    },
}
BROKEN = ("thinking", "text", "thinking, text", "a whole call", "text, a whole call", "a call cut at byte 50")


def _broken(parts: dict[str, Any]) -> Iterator[tuple[str, AnyReply]]:
    """Yield the ways in which a stream ends without an end."""
    yield "the connection drops", Cut(Reply(**parts, chunk_size=8), after_events=4)
    yield "the body ends early", Cut(Reply(**parts, chunk_size=8), after_events=4, how="clean")
    yield "an error in the stream", StreamError(after_events=4, reply=Reply(**parts, chunk_size=8))


def rows(protocol: Protocol) -> list[Row]:
    """Return the rows of a protocol."""
    found = [
        Row(protocol, stop, moment, follows, Reply(**MOMENTS[moment], reason="" if stop == "completed" else stop))
        for stop, moments in STOPS[protocol].items()
        for moment, follows in moments.items()
    ]
    for moment in BROKEN:
        found += [Row(protocol, stop, moment, "again", reply) for stop, reply in _broken(MOMENTS[moment])]
    return found


PROTOCOLS: tuple[Protocol, ...] = ("anthropic", "openai", "openai-chat")
NAMES = {"anthropic": "Anthropic Messages", "openai": "OpenAI Responses", "openai-chat": "Chat Completions"}
PAGE = Path(__file__).parents[2] / "docs" / "contracts.md"
BEGIN, END = "<!-- table: python -m tests.contracts.table -->", "<!-- /table -->"


def describe() -> str:
    """Return the table as Markdown: what can follow, then a table for each protocol."""
    lines = ["| name | what follows | exit code |", "|---|---|---|"]
    lines += [f"| {name} | {follows.words} | {follows.code} |" for name, follows in FOLLOWS.items()]
    for protocol in PROTOCOLS:
        found = rows(protocol)
        lines += [
            "",
            f"### {NAMES[protocol]}: {len(found)} rows",
            "",
            "| the answer ends with | by then it has | name |",
            "|---|---|---|",
        ]
        lines += [f"| {_code(row.stop)} | {row.moment} | {row.follows} |" for row in found]
    return "\n".join(lines)


def _code(stop: str) -> str:
    return stop if " " in stop else f"`{stop}`"


def with_table(page: str) -> str:
    """Return the page with the present table in it."""
    head, _, rest = page.partition(BEGIN)
    return f"{head}{BEGIN}\n\n{describe()}\n\n{END}{rest.partition(END)[2]}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
