"""`tenuto prompt show`: the first request of a new session, as the wire client makes it. Nothing is sent.

A temporary session takes the prompt the usual way, up to the place where bytes leave for the network.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Raw

from tenuto.api.agent import Agent
from tenuto.cli.arguments import MODES, read_mode
from tenuto.cli.output import write_bytes
from tenuto.cli.parsing import Parser, add_directory, complain, parse_here
from tenuto.command.registry import find_command
from tenuto.command.runtime import typed_name
from tenuto.compaction.measure.weight import estimate_tools
from tenuto.config.sources import load_settings
from tenuto.core.errors import EXPECTED_FAILURES, UsageError, describe_failure
from tenuto.core.start import Start
from tenuto.core.state.prompt import instructions_in
from tenuto.core.state.windows import split_model
from tenuto.exit_codes import BAD_USAGE, FAILED, OK
from tenuto.guard.terminal import escape_json, sanitize_line, write_text
from tenuto.model.endpoints import LOCAL_PORTS, Endpoints
from tenuto.model.http.transport import register_transport, unregister_transport
from tenuto.model.registry import DEFAULT_MODELS, OFFLINE, ModelRegistry
from tenuto.model.wire.conversation import NOTE_TAG
from tenuto.protocol.entry import Mode
from tenuto.protocol.event import AnyEvent, NoticeEvent
from tenuto.protocol.model import ModelError, ToolSchema
from tenuto.text.estimate import estimate_text
from tenuto.text.figures import plural
from tenuto.text.json_access import as_dict, as_list, as_text, decode_object, encode

PROMPT = "…"
"""Stands for the user's text where none is given."""
QUIET = {
    "TENUTO_EXTENSIONS__ENABLED": "false",
    "TENUTO_COMPACTION__MODEL": "",
    "TENUTO_COMPACTION__STRATEGY": "",
}
"""Settings for a look: no code of extensions runs, and what only a compaction needs is not checked."""
_NOTE = re.compile(rf"(<{NOTE_TAG}>\n.*?\n</{NOTE_TAG}>)", re.DOTALL)


class RequestPart(NamedTuple):
    """A part of a request: its name, its text, and its estimated tokens (0: the model does not read it)."""

    name: str
    text: str
    tokens: int


class FirstRequest(NamedTuple):
    """The body of a request, and what the user was warned of before it."""

    body: bytes
    warnings: tuple[str, ...]


class Recorder:
    """A `Transport` that keeps the first body and sends nothing."""

    def __init__(self) -> None:
        self.body: bytes | None = None

    async def post_stream(self, url: str, headers: Mapping[str, str], body: bytes) -> AsyncGenerator[bytes]:
        """Keep the body. Raises an error that nothing repeats."""
        del url, headers
        if self.body is None:
            self.body = body
        raise _refusal()
        yield b""

    async def get_json(self, url: str, headers: Mapping[str, str]) -> dict[str, Any]:
        """Raises: nobody is asked."""
        del url, headers
        raise _refusal()

    async def close(self) -> None:
        """There is no connection."""


def _refusal() -> ModelError:
    return ModelError("auth", "nothing is sent")


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the words behind `tenuto prompt show`."""
    parser = Parser(
        prog="tenuto prompt show",
        description="Print the first request that tenuto -p PROMPT would send in this directory, by part, with "
        "estimated tokens. Nothing is sent, no key is needed, and no session is saved.",
    )
    parser.add_argument("prompt", nargs="*", metavar="PROMPT", help=f"the user's text; default {PROMPT}")
    parser.add_argument("-m", "--model", default="", metavar="PROVIDER/NAME[:EFFORT]", help="the model to show it for")
    parser.add_argument("--mode", type=read_mode, metavar="{" + ",".join(MODES) + "}", help="what needs approval")
    add_directory(parser, "the directory to show it for")
    parser.add_argument("--json", action="store_true", help="the body of the request, byte for byte")
    return parser


def run_prompt(arguments: tuple[str, ...], home: Path, environ: Mapping[str, str]) -> int:
    """Run `tenuto prompt WORD …`; returns the exit code: 1 where the prompt would not be sent, 2 for bad usage."""
    if arguments[:1] != ("show",):
        wants_help = arguments[:1] in (("-h",), ("--help",))
        text = "usage: tenuto prompt show [--help]"
        if wants_help:
            write_text(text)
            return OK
        return complain(f"{text}; to send a text that begins with “prompt”: tenuto -p prompt …")
    asked = parse_here(build_parser(), arguments[1:])
    if isinstance(asked, int):
        return asked
    parsed, cwd = asked
    prompt = " ".join(parsed.prompt) or PROMPT
    if find_command(typed_name(prompt)) is not None:
        return complain(f"{prompt.split()[0]} is a command; no request is made of it")
    try:
        model, remark = choose_model(parsed.model, cwd, home, environ)
        request = asyncio.run(record_request(prompt, cwd, home, environ, model=model, mode=parsed.mode))
    except EXPECTED_FAILURES as error:
        return complain(describe_failure(error), BAD_USAGE)
    except NotSentError as error:
        return complain(f"this would not be sent: {error}", FAILED)
    for warning in filter(None, (remark, *request.warnings)):
        write_text(f"tenuto: {sanitize_line(warning)}", to_errors=True)
    if parsed.json:
        on_screen = sys.stdout.isatty()
        write_bytes([escape_json(request.body.decode()).encode() if on_screen else request.body, b"\n"])
    else:
        write_text(describe_request(model, divide_request(request.body)))
    return OK


def choose_model(named: str, cwd: Path, home: Path, environ: Mapping[str, str]) -> tuple[str, str]:
    """Return the model of a new session, and what the user has to know of the choice. Local servers are not looked
    for.

    Raises `UsageError` for the offline model: it is sent nothing.
    """
    settings, _ = load_settings(home, cwd, environ)
    chosen = named or settings.model
    model = chosen or ModelRegistry(settings, home, environ).default_model()
    if _provider_of(model) != OFFLINE:
        return model, ""
    if chosen:
        raise UsageError(f"{chosen} is built in and gets no request; name another model with --model PROVIDER/NAME")
    provider, name = next(iter(DEFAULT_MODELS.items()))
    return f"{provider}/{name}", f"no key is set; this is for {provider}/{name}, --model names another one"


def _provider_of(model: str) -> str:
    return split_model(model)[0].partition("/")[0]


class NotSentError(Exception):
    """The prompt would not be sent; the message says why."""


async def record_request(
    prompt: str, cwd: Path, home: Path, environ: Mapping[str, str], *, model: str, mode: Mode | None = None
) -> FirstRequest:
    """Return the first request of a new session, made by the model's own client.

    Raises `UsageError` or `ModelError` for a model that is none, `NotSentError` where the prompt would not be sent.
    """
    environ = {**environ, **QUIET}
    settings, _ = load_settings(home, cwd, environ)
    endpoints = Endpoints(settings, home, environ)
    endpoint = endpoints.get(_provider_of(model))
    if endpoints.missing_key(endpoint) is not None:
        environ[endpoint.key_name] = "none"  # it would go into a header, and headers go nowhere
    recorder = Recorder()
    providers = {*endpoints.names(), *LOCAL_PORTS}
    for name in providers:
        register_transport(name, lambda _: recorder)
    start = Start(cwd=cwd, home=home, model=model, mode=mode, temporary=True, interactive=False, environ=environ)
    try:
        return await _record(start, prompt, recorder)
    finally:
        for name in providers:
            unregister_transport(name)


async def _record(start: Start, prompt: str, recorder: Recorder) -> FirstRequest:
    warnings: list[str] = []

    def listen(event: AnyEvent) -> None:
        if isinstance(event, NoticeEvent) and event.level != "info" and recorder.body is None:
            warnings.append(event.text)

    agent = Agent.of(start)
    agent.subscribe(listen)
    async with agent:
        answer = await agent.run(prompt)
    if recorder.body is None:
        raise NotSentError(answer.error)
    return FirstRequest(recorder.body, tuple(warnings))


def divide_request(body: bytes) -> list[RequestPart]:
    """Return the parts of a first request on any wire: system prompt, what was said in order, tools, other fields."""
    fields = decode_object(body) or {}
    tools = as_list(fields.pop("tools", None))
    messages = [as_dict(one) for key in ("messages", "input") for one in as_list(fields.pop(key, None))]
    system = [text for key in ("system", "instructions") for text in _texts(fields.pop(key, None))]
    system += [text for one in messages if one.get("role") == "system" for text in _texts(one.get("content"))]
    said = [text for one in messages if one.get("role") != "system" for text in _texts(one.get("content"))]
    prompt = "\n\n".join(system)
    files = instructions_in(prompt)
    parts = [_part("System prompt", prompt.removesuffix(files).rstrip())]
    parts += [_part("Instruction files", files)] if files else []
    for text in said:
        pieces = (piece.strip() for piece in _NOTE.split(text))
        parts += [_part("Note" if _NOTE.fullmatch(piece) else "Prompt", piece) for piece in pieces if piece]
    parts += [_tool_part(as_dict(tool)) for tool in tools]
    others = "\n".join(f"{name}: {encode(value).decode()}" for name, value in fields.items())
    return [*parts, RequestPart("Other fields", others, 0)]


def _texts(content: object) -> list[str]:
    """Return the texts of a message's content; what is none is named by its kind."""
    if isinstance(content, str):
        return [content]
    blocks = [as_dict(block) for block in as_list(content)]
    return [as_text(block.get("text")) or f"[{as_text(block.get('type'))}, not counted]" for block in blocks]


def _part(name: str, text: str) -> RequestPart:
    return RequestPart(name, text, estimate_text(text))


def _tool_part(tool: dict[str, Any]) -> RequestPart:
    tool = as_dict(tool.get("function")) or tool
    if "description" not in tool:  # the provider knows what it is, and adds what the model reads of it
        return _part(f"The provider's tool: {as_text(tool.get('name') or tool.get('type'))}", encode(tool).decode())
    grammar = as_text(as_dict(tool.get("format")).get("definition"))
    schema = b"" if grammar else encode(tool.get("input_schema") or tool.get("parameters"))
    name, description = as_text(tool.get("name")), as_text(tool.get("description"))
    tokens = estimate_tools([ToolSchema(name=name, description=description, parameters=Raw(schema), grammar=grammar)])
    return RequestPart(f"Tool: {name}", f"{description}\n{grammar or schema.decode()}", tokens)


def describe_request(model: str, parts: list[RequestPart]) -> str:
    """Return the parts as text, each under a heading with its tokens; the sum stands at both ends."""
    total = f"about {sum(part.tokens for part in parts):,} tokens"
    lines = [f"The first request to {model}, {total} (estimated). Nothing was sent.", ""]
    for part in parts:
        size = f"{plural(part.tokens, 'token')}" if part.tokens else "not read by the model"
        lines += [f"# {part.name} ({size})", part.text, ""]
    return "\n".join([*lines, f"Total: {total}"])
