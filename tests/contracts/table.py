"""The table of contracts: what comes of an answer, by how it ended and where, on each protocol.

A row is a stop reason in the wire's own words, a moment, and the name of what must follow. `python -m
tests.contracts.table` writes the table into `docs/contracts.md`; a test compares the two.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tests.server import Call, Cut, Reply, Search, StreamError
from tests.server.reply import AnyReply

Protocol = Literal["anthropic", "openai", "openai-chat", "gemini"]
TEXT = "The answer is for"
FILE = "notes.txt"
ARGUMENTS = '{"path": "notes.txt", "content": "one two three four five six seven eight nine ten eleven twelve"}'
TENTHS = tuple(range(0, len(ARGUMENTS), 10))
LOOK = Call("glob", '{"pattern": "*"}')
PATCH = "*** Begin Patch\n*** Add File: notes.txt\n+one two three four five six seven\n*** End Patch\n"
PATCH_ARGUMENTS = json.dumps({"input": PATCH})
FOUND = Search("the answer", [("Answers", "https://answers.example/42")])
BEGUN = Search("the answer", part="begun")


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
    "applied": Follows("the patch is applied, and its result sent", AFTER, told="The patch was applied", files=(FILE,)),
    "no patch": Follows(
        "no file is changed; the result says what is wrong with the patch", AFTER, told="The patch was not applied"
    ),
    "told of the cut patch": Follows(
        "no file is changed; the result names the output limit and how a file is added in parts",
        AFTER,
        told="add its first part",
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
class Setting:
    """Whose answer it is: the model's name, what the user has set, and what the server refuses at first."""

    model: str = "test"
    environ: Mapping[str, str] = field(default_factory=dict)
    refuse: tuple[str, ...] = ()


@dataclass(frozen=True)
class Row:
    protocol: Protocol
    stop: str
    moment: str
    follows: str
    reply: AnyReply = field(compare=False, hash=False, repr=False)
    setting: Setting = field(compare=False, hash=False, repr=False)

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
WHOLE = tuple(name for name in MOMENTS if "cut" not in name)
"""The moments of a protocol whose calls come whole."""


def whole_calls(moments: dict[str, str]) -> dict[str, str]:
    """Return what follows at those of these moments that a protocol with whole calls has."""
    return {name: follows for name, follows in moments.items() if name in WHOLE}


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
    "gemini": {
        "STOP": whole_calls(ENDED),
        "MAX_TOKENS": whole_calls(LIMIT),
        **dict.fromkeys(
            ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE"), whole_calls(REFUSED)
        ),
        "OTHER": whole_calls(UNKNOWN),
        "BRAND_NEW_REASON": whole_calls(UNKNOWN),
        **dict.fromkeys(
            ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"), dict.fromkeys(WHOLE, "again")
        ),
    },
}
BROKEN = ("thinking", "text", "thinking, text", "a whole call", "text, a whole call", "a call cut at byte 50")

PATCH_TENTHS = tuple(range(10, PATCH.index("*** End Patch"), 10))
PATCHES: dict[str, dict[str, Any]] = {
    "an empty patch": _answer(tool_calls=[Call("apply_patch", "")]),
    "a whole patch": _answer(tool_calls=[Call("apply_patch", PATCH)]),
    "thinking, a whole patch": _answer(thinking="Think.", tool_calls=[Call("apply_patch", PATCH)]),
    "text, a whole patch": _answer(text="I write it.", tool_calls=[Call("apply_patch", PATCH)]),
    "a whole call, a cut patch": _answer(tool_calls=[LOOK, Call("apply_patch", PATCH[:50])]),
} | {f"a patch cut at byte {place}": _answer(tool_calls=[Call("apply_patch", PATCH[:place])]) for place in PATCH_TENTHS}
WHOLE_PATCHES = dict.fromkeys(("a whole patch", "thinking, a whole patch", "text, a whole patch"), "applied")
CUT_PATCHES = ("an empty patch", "a whole call, a cut patch", *(f"a patch cut at byte {at}" for at in PATCH_TENTHS))
PATCHES_LIMITED = WHOLE_PATCHES | dict.fromkeys(CUT_PATCHES, "told of the cut patch")
PATCHES_ENDED = WHOLE_PATCHES | dict.fromkeys(CUT_PATCHES, "no patch")
PATCHES_REFUSED = dict.fromkeys(("an empty patch", "a whole patch", "a patch cut at byte 50"), "declined")

AS_FUNCTION: dict[str, dict[str, Any]] = {
    "a whole patch as a function": _answer(tool_calls=[Call("apply_patch", PATCH_ARGUMENTS)]),
    "an empty patch as a function": _answer(tool_calls=[Call("apply_patch", {"input": ""})]),
    "a patch as a function cut at byte 50": _answer(tool_calls=[Call("apply_patch", PATCH_ARGUMENTS[:50])]),
}
AS_FUNCTION_ENDED = dict(zip(AS_FUNCTION, ("applied", "no patch", "unreadable"), strict=True))
AS_FUNCTION_LIMITED = dict(zip(AS_FUNCTION, ("applied", "no patch", "told of the cut patch"), strict=True))

SEARCHES: dict[str, dict[str, Any]] = {
    "a search": _answer(searches=[FOUND]),
    "a failed search": _answer(searches=[Search("the answer", error="max_uses_exceeded")]),
    "a search, text": _answer(searches=[FOUND], text=TEXT),
    "thinking, a search, text": _answer(thinking="Think.", searches=[FOUND], text=TEXT),
    "a failed search, text": _answer(searches=[Search("the answer", error="max_uses_exceeded")], text=TEXT),
    "a search, a whole call": _answer(searches=[FOUND], tool_calls=[Call("write", ARGUMENTS)]),
    "a search, a call cut at byte 50": _answer(searches=[FOUND], tool_calls=[Call("write", ARGUMENTS[:50])]),
    "a search without its result": _answer(searches=[BEGUN]),
    "a search without its result, text": _answer(searches=[BEGUN], text=TEXT),
}
NOTHING_SAID = ("a search", "a failed search")
SOMETHING_SAID = ("a search, text", "thinking, a search, text", "a failed search, text")
SEARCHES_ENDED = {
    **dict.fromkeys(NOTHING_SAID, "must speak"),
    **dict.fromkeys(SOMETHING_SAID, "done"),
    "a search, a whole call": "runs",
    "a search, a call cut at byte 50": "unreadable",
}
SEARCHES_LIMITED = {
    **dict.fromkeys(NOTHING_SAID, "begins again"),
    **dict.fromkeys(SOMETHING_SAID, "goes on"),
    "a search, a whole call": "runs",
    "a search, a call cut at byte 50": "told of the cut",
}
SEARCHES_PAUSED = {
    **dict.fromkeys((*NOTHING_SAID, *SOMETHING_SAID), "waits"),
    "a search without its result": "waits",
    "a search without its result, text": "waits",
    "a search, a whole call": "runs",
}
SEARCHES_CUT = {
    "a search without its result": "begins again",
    "a search without its result, text": "goes on",
}
SEARCHES_REFUSED = dict.fromkeys((*NOTHING_SAID, *SOMETHING_SAID, "a search, a whole call"), "declined")


@dataclass(frozen=True)
class Group:
    """Rows of one setting: what an answer has at a moment, what follows each way to stop, moments of broken streams."""

    moments: dict[str, dict[str, Any]]
    stops: dict[Protocol, dict[str, dict[str, str]]]
    broken: tuple[str, ...] = ()
    setting: Setting = Setting()


GROUPS = (
    Group(MOMENTS, STOPS, BROKEN),
    Group(
        PATCHES,
        {
            "openai": {
                "completed": PATCHES_ENDED,
                "max_output_tokens": PATCHES_LIMITED,
                "content_filter": PATCHES_REFUSED,
                "brand_new_reason": PATCHES_LIMITED,
            }
        },
        ("an empty patch", "a whole patch", "text, a whole patch", "a patch cut at byte 50"),
        Setting(model="gpt-test"),
    ),
    Group(
        AS_FUNCTION,
        {"openai": {"completed": AS_FUNCTION_ENDED, "max_output_tokens": AS_FUNCTION_LIMITED}},
        setting=Setting(model="gpt-test", refuse=("custom",)),
    ),
    Group(
        SEARCHES,
        {
            "anthropic": {
                "end_turn": SEARCHES_ENDED,
                "tool_use": {"a search, a whole call": "runs"},
                "max_tokens": SEARCHES_LIMITED | SEARCHES_CUT,
                "pause_turn": SEARCHES_PAUSED,
                "refusal": SEARCHES_REFUSED,
            },
            "openai": {
                "completed": SEARCHES_ENDED,
                "max_output_tokens": SEARCHES_LIMITED,
                "content_filter": SEARCHES_REFUSED,
            },
        },
        ("a search", "a search, text", "a search, a whole call"),
        Setting(environ={"TENUTO_TOOLS__WEB_SEARCH": "true"}),
    ),
)


def _broken(parts: dict[str, Any], after: int) -> Iterator[tuple[str, AnyReply]]:
    """Yield the ways in which a stream ends without an end."""
    yield "the connection drops", Cut(Reply(**parts, chunk_size=8), after_events=after)
    yield "the body ends early", Cut(Reply(**parts, chunk_size=8), after_events=after, how="clean")
    yield "an error in the stream", StreamError(after_events=after, reply=Reply(**parts, chunk_size=8))


def rows(protocol: Protocol) -> list[Row]:
    """Return the rows of a protocol."""
    found: list[Row] = []
    for group in GROUPS:
        if protocol not in group.stops:
            continue
        found += [
            Row(protocol, stop, moment, follows, _ended(group.moments[moment], stop), group.setting)
            for stop, moments in group.stops[protocol].items()
            for moment, follows in moments.items()
        ]
        for moment in group.broken:
            if protocol == "gemini" and moment not in WHOLE:
                continue
            broken = _broken(group.moments[moment], 1 if protocol == "gemini" else 4)
            found += [Row(protocol, stop, moment, "again", reply, group.setting) for stop, reply in broken]
    return found


def _ended(parts: dict[str, Any], stop: str) -> Reply:
    return Reply(**parts, reason="" if stop == "completed" else stop)


PROTOCOLS: tuple[Protocol, ...] = ("anthropic", "openai", "openai-chat", "gemini")
NAMES = {
    "anthropic": "Anthropic Messages",
    "openai": "OpenAI Responses",
    "openai-chat": "Chat Completions",
    "gemini": "Gemini",
}
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
