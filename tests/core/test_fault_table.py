"""What answers and is no answer: one table of faults, over the three protocols (`reliability.md` A1, A3, A8).

Each says at once what it is. Where another attempt cannot help, one request is made; where it can, the turn tries
again and fails with the same words.
"""

from __future__ import annotations

import gzip
import zlib
from dataclasses import dataclass
from pathlib import Path

import pytest

from tenuto.protocol.event import RetryEvent
from tests.core.harness import PROTOCOLS, agent
from tests.model.streams import ANTHROPIC, CHAT, RESPONSES
from tests.server import HttpError, RawStream
from tests.server.reply import AnyReply

pytestmark = pytest.mark.usefixtures("task_start")
PAGE = b"""<!DOCTYPE html>
<html><head><title>Sign in to\n the caf\xc3\xa9 &amp; bar</title></head><body><p>Hello.</p></body></html>"""
FIRST = {
    "anthropic": ANTHROPIC["text"][0],
    "openai": RESPONSES["reasoning, text, call"][0],
    "openai-chat": CHAT["text"][0],
}
DIGITS = "9" * 400


def ok(body: bytes, content_type: str = "text/plain", **headers: str) -> HttpError:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpError(200, body, {"content-type": content_type, **names})


def wait(value: str, name: str = "retry-after") -> HttpError:
    return HttpError(429, "Rate limit reached", {name: value})


def bomb() -> bytes:
    """A line of 40 MB as 40 KB, and no event in it."""
    pack = zlib.compressobj(9, wbits=31)
    return b"".join([pack.compress(b"data: "), *(pack.compress(b"0" * 1_000_000) for _ in range(40)), pack.flush()])


@dataclass
class Fault:
    reply: AnyReply
    says: tuple[str, ...]
    requests: int = 1


FAULTS: dict[str, Fault] = {
    "a page": Fault(ok(PAGE, "text/html"), ("web page", "“Sign in to the café & bar”", "right address?")),
    "a page as a stream": Fault(ok(PAGE, "text/event-stream"), ("web page", "Sign in to")),
    "a page without a title": Fault(ok(b"<html><p>It works!", "text/html"), ("web page", "It works!")),
    "a page in one event": Fault(RawStream([b"data: <html><h1>Blocked</h1></html>\n\n"]), ("web page", "Blocked")),
    "text": Fault(ok(b"It works!\n"), ("text where a stream", "“It works!”")),
    "text like a field": Fault(ok(b"Status: fine\n"), ("text where a stream", "Status: fine")),
    "text in an event": Fault(RawStream([b"data: hello\n\n"]), ("not JSON", "“hello”")),
    "text later": Fault(RawStream([b"FIRST", b"data: hello\n\n"]), ("not JSON", "“hello”"), 2),
    "text that names a limit": Fault(ok(b"Rate limit exceeded, slow down"), ("Rate limit exceeded",), 2),
    "an object": Fault(ok(b'{"answer": 42}', "application/json"), ("one JSON object",)),
    "an error as an object": Fault(ok(b'{"error": {"message": "The engine is overloaded"}}'), ("overloaded",), 2),
    "JSON lines": Fault(ok(b'{"a": 1}\n{"a": 2}\n'), ("text where a stream",)),
    "nothing": Fault(ok(b"", "text/event-stream"), ("ended before the answer was complete",), 2),
    "a stream cut in a name": Fault(ok(b"dat", "text/event-stream"), ("ended before the answer",), 2),
    "another encoding": Fault(ok(b"x", content_encoding="br"), ("encoded as 'br'",)),
    "no gzip": Fault(ok(b"plain", content_encoding="gzip"), ("cannot be unpacked",), 2),
    "a page as gzip": Fault(ok(gzip.compress(PAGE), content_encoding="gzip"), ("web page", "Sign in to")),
    "a bomb": Fault(ok(bomb(), "text/event-stream", content_encoding="gzip"), ("event of more than 16 MB",)),
    "a large event": Fault(RawStream([b"data: "] + [b"0" * 1_000_000] * 20), ("event of more than 16 MB",)),
    "a large event of many lines": Fault(RawStream([b"data: 0\n" * 100_000] * 200), ("event of more than 16 MB",)),
    "moved, nobody says where": Fault(HttpError(302), ("answered 302",)),
    **{
        f"moved ({status})": Fault(
            HttpError(status, b"moved", {"location": "https://other.invalid/v2/x?token=secret"}),
            (f"answered {status}", "moved to https://other.invalid/v2/x", "the key neither"),
        )
        for status in (301, 302, 303, 307, 308)
    },
    "moved, relative": Fault(
        HttpError(307, None, {"location": "/login\x1b[31m"}), ("moved to http://127.0.0.1:", "/login")
    ),
    **{
        f"wait {value[:9]!r}": Fault(wait(value), ("Rate limit reached",), 2)
        for value in ("inf", "nan", "-5", "soon", "1e9")
    },
    "wait until 2015": Fault(wait("Wed, 21 Oct 2015 07:28:00 GMT"), ("Rate limit reached",), 2),
    "wait until 9999": Fault(wait("Fri, 31 Dec 9999 23:59:59 GMT"), ("a year or more", "not waited for")),
    "wait 400 digits": Fault(wait(DIGITS), ("a year or more", "not waited for")),
    "wait 400 digits of milliseconds": Fault(wait(DIGITS, "retry-after-ms"), ("a year or more", "not waited for")),
    "wait an hour": Fault(wait("3600"), ("60 minutes", "not waited for")),
    "wait 400 digits, in words": Fault(
        HttpError(429, f"Rate limit reached. Try again in {DIGITS} hours."), ("a year or more", "not waited for")
    ),
    "a number of 5000 digits": Fault(
        HttpError(400, f"maximum context length is {'9' * 5000} tokens, is it not"), ("maximum context length",)
    ),
}


def of_protocol(reply: AnyReply, protocol: str) -> AnyReply:
    """Put the protocol's own first event in."""
    if isinstance(reply, RawStream):
        return RawStream([FIRST[protocol] if chunk == b"FIRST" else chunk for chunk in reply.chunks])
    return reply


WHERE_PROTOCOLS_DIFFER = {name for name, fault in FAULTS.items() if isinstance(fault.reply, RawStream)}
"""Their decoders see these. The others never get as far: one protocol each is enough, in turn."""
CASES = [
    (name, protocol)
    for place, name in enumerate(FAULTS)
    for protocol in (PROTOCOLS if name in WHERE_PROTOCOLS_DIFFER else (PROTOCOLS[place % len(PROTOCOLS)],))
]


@pytest.mark.parametrize(("name", "protocol"), CASES)
async def test_a1_a3_a8_a_fault_is_named_at_once_and_repeated_only_where_that_helps(
    tmp_path: Path, protocol: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tenuto.protocol.model.FIRST_DELAY", 0.01)
    monkeypatch.setattr("tenuto.protocol.model.FIRST_RATE_DELAY", 0.01)
    fault = FAULTS[name]
    script = [of_protocol(fault.reply, protocol)] * 3
    async with agent(tmp_path, script, model=f"{protocol}/test", environ={"TENUTO_REQUEST__RETRIES": "1"}) as running:
        settled = await running.ask("go")
        assert settled.outcome == "failed"
        assert [words for words in fault.says if words not in settled.error] == [], settled.error
        assert "nternal error" not in settled.error
        assert "secret" not in settled.error and "\x1b" not in settled.error
        assert len(settled.error) < 1_000
        assert len(running.server.requests) == fault.requests
        assert len(running.of(RetryEvent)) == fault.requests - 1
