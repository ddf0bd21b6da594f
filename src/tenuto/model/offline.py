"""The built-in model that needs no key and no network (DESIGN section 7).

It is no language model, and says so: it knows a few verbs at the start of a prompt, makes the call that the verb names
with the real tool, and shows what came of it. So a new user has a working agent, with its approvals, log and
compaction, in one command, and tests have one that is deterministic. What was done already is read from the results in
the conversation; nothing is kept between two calls of the model.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Any

import msgspec

from tenuto.protocol.message import (
    AssistantMessage,
    DeveloperMessage,
    Message,
    SystemMessage,
    ToolResultMessage,
    UserMessage,
)
from tenuto.protocol.model import Finished, ModelError, ModelFacts, ModelRequest, StreamPart, TextDelta, ToolCallDelta
from tenuto.protocol.part import AssistantPart, TextPart, ThinkingPart, ToolCallPart, text_of
from tenuto.protocol.usage import Usage
from tenuto.text.estimate import CHARS_PER_TOKEN, estimate_text

FACTS = ModelFacts(
    provider="offline",
    name="tenuto",
    context_window=128_000,
    max_output_tokens=8_192,
    can_summarise=False,
    images=False,
    input_price=0.0,
    output_price=0.0,
    cache_read_price=0.0,
    cache_write_price=0.0,
    source="provider",
    output_source="provider",
    price_source="provider",
)
"""It cannot summarise: a compaction goes to the digest, which needs no model."""
HELP = """\
I am Tenuto's offline model: a few fixed rules, not a language model. I need no key and no network, and I drive the \
real tools. A prompt can begin with:

- `list` or `list FOLDER`
- `read FILE`, `read FILE:10-40`
- `search WORDS`, `search WORDS in FOLDER`
- `run COMMAND`
- `write FILE: TEXT`
- `replace OLD by NEW in FILE`

Backticks stand around names and texts with blanks in them. To connect a real model, set one of these and start \
again (or choose with `/model`):

- `ANTHROPIC_API_KEY` for Claude: `tenuto --model anthropic/NAME`
- `OPENAI_API_KEY` for OpenAI: `tenuto --model openai/NAME`
- a local server (Ollama, LM Studio, llama.cpp, vLLM …): `OPENAI_BASE_URL=http://localhost:11434/v1` and \
`tenuto --model openai-chat/NAME`"""
"""The answer to everything that begins with no verb."""
_DELTA_CHARS = 24
_IMAGE_TOKENS = 1_200
_SHOWN_LINES = 12
_LINE_CHARS = 200

Call = tuple[str, dict[str, Any]]
"""A tool and its arguments."""


class OfflineClient:
    """Implements `protocol.model.ModelClient`."""

    def __init__(self) -> None:
        # By identity, as the view hands over the same message objects again: one estimate a message, not one a step.
        self._sizes: dict[int, tuple[Message, int]] = {}

    async def stream(self, request: ModelRequest) -> AsyncIterator[StreamPart]:
        """Yield the answer in small pieces. Raises `ModelError` (overflow) when the request exceeds the window."""
        size = self._measure(request)
        window = request.model.context_window
        if window is not None and size > window:
            raise ModelError(
                "overflow", f"prompt is too long: {size} tokens > {window} maximum", observed=size, limit=window
            )
        parts = answer(request)
        for index, part in enumerate(parts):
            if isinstance(part, TextPart):
                for start in range(0, len(part.text), _DELTA_CHARS):
                    yield TextDelta(part.text[start : start + _DELTA_CHARS])
                    await asyncio.sleep(0)
            elif isinstance(part, ToolCallPart):
                yield ToolCallDelta(index, name=part.name)
                yield ToolCallDelta(index, fragment=part.arguments)
                await asyncio.sleep(0)
        message = AssistantMessage(
            parts=parts,
            model=request.model.id,
            stop_reason="tool_use" if isinstance(parts[-1], ToolCallPart) else "end_turn",
            usage=Usage(input=size, output=sum(_measure_part(part) for part in parts), cost=0.0),
        )
        yield Finished(message)

    async def models(self) -> list[ModelFacts]:
        """Return the one model that there is."""
        return [FACTS]

    async def count(self, request: ModelRequest) -> int | None:
        """Return the estimate that the usage and the window go by, in tokens."""
        return self._measure(request)

    async def close(self) -> None:
        """Forget the sizes; there is no connection."""
        self._sizes.clear()

    def _measure(self, request: ModelRequest) -> int:
        known = self._sizes
        self._sizes = {id(m): known.get(id(m)) or (m, _measure_message(m)) for m in request.messages}
        tools = sum(
            estimate_text(tool.description) + len(bytes(tool.parameters)) // CHARS_PER_TOKEN for tool in request.tools
        )
        return tools + sum(size for _, size in self._sizes.values())


def _measure_message(message: Message) -> int:
    if isinstance(message, (SystemMessage, DeveloperMessage)):
        return estimate_text(message.text)
    return sum(_measure_part(part) for part in message.parts)


def _measure_part(part: msgspec.Struct) -> int:
    if isinstance(part, (TextPart, ThinkingPart)):
        return estimate_text(part.text)
    if isinstance(part, ToolCallPart):
        return estimate_text(part.name) + estimate_text(part.arguments)
    return _IMAGE_TOKENS


def answer(request: ModelRequest) -> tuple[AssistantPart, ...]:
    """Return the parts of the answer: a text, and the next call if the newest prompt needs one."""
    asked, after = _newest_prompt(request.messages)
    calls = parse(asked)
    if not calls:
        return (TextPart(text=HELP),)
    results = [m for m in after if isinstance(m, ToolResultMessage)] or _given_along(calls, after)
    failed = bool(results) and (results[-1].denied or results[-1].is_error)
    if failed or len(results) >= len(calls):
        return (TextPart(text=_report(calls[min(len(results), len(calls)) - 1], results[-1], failed=failed)),)
    name, arguments = calls[len(results)]
    if name not in {tool.name for tool in request.tools}:
        return (TextPart(text=f"For this I need the {name} tool, which is not available in this session."),)
    # The seq of the last message never comes twice, so neither does an id that is made of it.
    place = max((message.seq for message in request.messages), default=0) or len(request.messages)
    call = ToolCallPart(id=f"offline_{place}", name=name, arguments=msgspec.json.encode(arguments).decode())
    return (TextPart(text=f"Next: {_described(calls[len(results)])}."), call)


def _newest_prompt(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    """Return what the user asked last, and what came after it."""
    for place, message in reversed(list(enumerate(messages))):
        if isinstance(message, UserMessage) and message.origin != "continuation" and text_of(message.parts).strip():
            return text_of(message.parts).strip(), messages[place + 1 :]
    return "", ()


def _given_along(calls: Sequence[Call], after: Sequence[Message]) -> list[ToolResultMessage]:
    """Return a file that the prompt mentions with `@` as if it had been read: it is not read a second time."""
    name, arguments = calls[0]
    first, count = arguments.get("offset", 0), arguments.get("limit", 0)
    lines = f' lines="{first}-{first + count - 1}"' if first else ""
    begin, end = f'<mentioned path="{arguments.get("path")}"{lines}>\n', "\n</mentioned>"
    for message in after if name == "read" and len(calls) == 1 else ():
        if isinstance(message, DeveloperMessage) and message.kind == "mention":
            text = message.text.partition(begin)[2].partition(end)[0]
            if text and not text.startswith(("(not read: ", "(as it was given before)")):
                return [ToolResultMessage(call_id="mention", name="read", parts=(TextPart(text=text),))]
    return []


# --- what a prompt asks for ---


def parse(text: str) -> list[Call]:
    """Return the calls that a prompt asks for, in order; none where it begins with no verb."""
    for pattern, make in _VERBS:
        # Compiled when first tried: importing this module costs next to nothing.
        match = re.fullmatch(pattern, text.strip(), re.IGNORECASE | re.DOTALL)
        if match is not None:
            return make(match)
    return []


def _bare(text: str | None) -> str:
    """Return a text without the backticks around it."""
    text = (text or "").strip()
    return text[1:-1] if len(text) > 2 and text[0] == text[-1] == "`" else text


def _path(text: str | None) -> str:
    bare = _bare(text)
    return bare.removeprefix("@") or bare or "."


def _read(match: re.Match[str]) -> list[Call]:
    arguments: dict[str, Any] = {"path": _path(match[1])}
    if match[2]:
        first = int(match[2])
        arguments |= {"offset": first, "limit": max(1, int(match[3] or first) - first + 1)}
    return [("read", arguments)]


def _search(match: re.Match[str]) -> list[Call]:
    words, found, folder = match[1].rpartition(" in ")
    return [("grep", {"pattern": _bare(words if found else folder), "path": _path(found and folder), "literal": True})]


def _replace(match: re.Match[str]) -> list[Call]:
    """An edit is refused before the file was read."""
    path = _path(match[3])
    edit = {"path": path, "old_string": _bare(match[1]), "new_string": _bare(match[2])}
    return [("read", {"path": path}), ("edit", edit)]


_VERBS: tuple[tuple[str, Callable[[re.Match[str]], list[Call]]], ...] = (
    (r"list(?:\s+(\S.*))?", lambda match: [("glob", {"pattern": "**/*", "path": _path(match[1])})]),
    (r"read\s+(\S.*?)(?::(\d+)(?:-(\d+))?)?", _read),
    (r"search\s+(\S.*)", _search),
    (r"run\s+(\S.*)", lambda match: [("bash", {"command": _bare(match[1])})]),
    (
        r"write\s+(`[^`\n]+`|[^\s:]+):\s*?(?:\n|[ ])(.*)",
        lambda match: [("write", {"path": _path(match[1]), "content": f"{match[2]}\n"})],
    ),
    (r"replace\s+(`[^`]+`|\S+)\s+by\s+(`[^`]+`|\S+)\s+in\s+(`[^`]+`|\S+)", _replace),
)
"""The verbs, and what they make of what stands behind them."""


# --- what is said of a result ---


def _report(call: Call, result: ToolResultMessage, *, failed: bool) -> str:
    """Show what the tool said: a command's last lines, of everything else the first."""
    lines = [line for line in text_of(result.parts).splitlines() if line.strip()]
    last = call[0] == "bash"
    kept = lines[-_SHOWN_LINES:] if last else lines[:_SHOWN_LINES]
    said = f"{'That failed' if failed else 'Done'}: {_described(call)}."
    if len(kept) < len(lines):
        said += f" The {'last' if last else 'first'} {len(kept)} of {len(lines)} lines:"
    return f"{said}\n\n{_fenced(kept)}" if lines else said


def _described(call: Call) -> str:
    """Return a call in words: its verb, and its command, pattern or path."""
    name, arguments = call
    subject = arguments.get("command") or (arguments["pattern"] if name == "grep" else arguments["path"])
    verb = {"bash": "run", "glob": "list", "grep": "search"}.get(name, name)
    if (name, subject) == ("glob", "."):
        return "list what is here"  # “list ..” would be read as the folder above
    return f"{verb} {_coded(subject)}"


def _shortened(line: str) -> str:
    return line if len(line) <= _LINE_CHARS else f"{line[: _LINE_CHARS - 1]}…"


def _coded(text: str) -> str:
    """Return the text as inline code."""
    one_line = _shortened(" ".join(text.split()))
    return f"`` {one_line} ``" if "`" in one_line else f"`{one_line}`"


def _fenced(lines: Sequence[str]) -> str:
    """Return the lines as a code block that no line in it can close."""
    longest = max((len(run) for line in lines for run in re.findall(r"`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return "\n".join([fence, *map(_shortened, lines), fence])
