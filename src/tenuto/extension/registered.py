"""What an extension registers, as plain data, and what comes back from it, bounded. Nothing here runs foreign code."""

from __future__ import annotations

import inspect
import re
import threading
import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

import msgspec

from tenuto.protocol.model import ModelFacts, ToolSchema
from tenuto.signatures import signature_of
from tenuto.text.bounding import bound_middle, shorten
from tenuto.text.writable import to_json

Function = Callable[..., object]
Wire = Literal["anthropic", "openai", "openai-chat"]
MOST_TEXT = 1_000_000
"""Characters of a tool's result that are taken over; what a model is sent of it is less."""
MOST_DETAILS = 100_000
"""Bytes of a result's details."""
MOST_LINES, LINE_CHARS = 200, 500
"""Of a rendering."""
STATUS_CHARS = 40
DESCRIPTION_CHARS = 2_000
TOOL_TIMEOUT = 120.0
"""Seconds that a tool has, unless it says otherwise."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")


class AskError(Exception):
    """The session's model cannot be asked, or gave no answer; `str(error)` says why in one line."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a tool gives back. `text` and `images` (bytes of PNG, JPEG, GIF or WebP files) go to the model.

    `details` is any JSON value: it is kept in the log and handed to the tool's renderer. `is_error` tells the model
    that the call failed.
    """

    text: str = ""
    images: Sequence[bytes] = ()
    details: object = None
    is_error: bool = False


@dataclass(frozen=True, kw_only=True)
class ToolCall:
    """The call that a tool is run for; a parameter annotated with this type is given it.

    `emit(text)` shows live output. `signal` is set when nobody waits for the call any more.
    """

    id: str
    cwd: Path
    emit: Callable[[str], None]
    signal: threading.Event = field(default_factory=threading.Event)


class Prompt(msgspec.Struct, frozen=True):
    """What a command returns to have a text sent to the model, as if the user had typed it."""

    text: str


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A model of a provider. Token counts and US dollars per million tokens; `None` where nobody says."""

    name: str
    context_window: int | None = None
    max_output_tokens: int | None = None
    input_price: float | None = None
    output_price: float | None = None
    images: bool = False


class OwnTool(msgspec.Struct, frozen=True, kw_only=True):
    """A registered tool: what the model is told, and how its arguments are read."""

    schema: ToolSchema
    function: Function
    arguments: type[msgspec.Struct]
    call_parameter: str
    read_only: bool
    timeout: float

    @property
    def name(self) -> str:
        """The name that the model calls it by."""
        return self.schema.name

    def read(self, values: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments as the function wants them. Raises `ValueError` that names what does not fit."""
        try:
            given = msgspec.convert(values, self.arguments, strict=False)
        except msgspec.ValidationError as error:
            raise ValueError(str(error)) from error
        return {name: getattr(given, name) for name in self.arguments.__struct_fields__}

    def chosen(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments that are not what they would be anyhow."""
        usual = {field.name: field.default for field in msgspec.structs.fields(self.arguments)}
        return {name: value for name, value in arguments.items() if usual[name] != value}


class OwnCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A registered slash command; `complete(typed)` returns what may stand behind it."""

    name: str
    description: str
    argument_hint: str
    function: Function
    complete: Function | None


class OwnProvider(msgspec.Struct, frozen=True, kw_only=True):
    """A registered provider: an address that speaks a known wire, or a function that streams answers."""

    name: str
    models: tuple[ModelFacts, ...]
    base_url: str = ""
    wire: Wire = "openai-chat"
    api_key_env: str = ""
    headers: dict[str, str] = {}
    stream: Function | None = None


@dataclass
class Registered:
    """Everything that one extension has registered, by name, in the order in which it did."""

    tools: dict[str, OwnTool] = field(default_factory=dict[str, OwnTool])
    commands: dict[str, OwnCommand] = field(default_factory=dict[str, OwnCommand])
    providers: dict[str, OwnProvider] = field(default_factory=dict[str, OwnProvider])
    strategies: dict[str, Function] = field(default_factory=dict[str, Function])
    renderers: dict[str, Function] = field(default_factory=dict[str, Function])
    events: dict[type, list[Function]] = field(default_factory=dict[type, "list[Function]"])


def check_name(what: str, name: object, taken: Sequence[str] | dict[str, Any]) -> str:
    """Return a name that can be used. Raises `ValueError`."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name for a {what}: letters, digits, _ and -, a letter first, 64 at most")
    if name in taken:
        raise ValueError(f"there is a {what} {name} of this extension already")
    return name


def check_function(what: str, function: object) -> Function:
    """Return something that can be called. Raises `TypeError`."""
    if not callable(function):
        raise TypeError(f"the {what} has to be a function, not {type(function).__name__}")
    return function


def make_tool(function: Function, name: str, description: str, *, read_only: bool, timeout: float) -> OwnTool:
    """Return a tool made of a function: its hints become the schema. Raises `ValueError` that says what is missing."""
    description = inspect.cleandoc(description or function.__doc__ or "")
    if not description:
        raise ValueError(f"the tool {name} has no description: give its function a docstring")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except Exception as error:
        raise ValueError(f"the hints of the tool {name} cannot be read: {error}") from error
    fields: list[tuple[str, Any] | tuple[str, Any, Any]] = []
    call_parameter = ""
    for parameter in signature_of(function).parameters.values():
        hint = hints.get(parameter.name)
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
            raise ValueError(f"the tool {name}: {parameter} cannot be given by name")
        if hint is ToolCall:
            call_parameter = parameter.name
        elif hint is None:
            raise ValueError(f"the tool {name}: {parameter.name} has no type")
        elif parameter.default is parameter.empty:
            fields.append((parameter.name, _described(hint)))
        else:
            fields.append((parameter.name, _described(hint), _default(parameter.default)))
    arguments = msgspec.defstruct("Arguments", fields, kw_only=True, forbid_unknown_fields=True)
    try:
        parameters = to_json(_schema_of(arguments))
    except TypeError as error:
        *_, reason = str(error).splitlines()  # what comes before is advice for authors of libraries
        raise ValueError(f"the tool {name}: {reason}; a parameter is what JSON has, or a dataclass of it") from error
    schema = ToolSchema(
        name=name, description=shorten(description, DESCRIPTION_CHARS), parameters=msgspec.Raw(parameters)
    )
    return OwnTool(
        schema=schema,
        function=function,
        arguments=arguments,
        call_parameter=call_parameter,
        read_only=read_only,
        timeout=timeout,
    )


def _default(value: Any) -> Any:
    """Return a default as a struct wants it: a list is made anew each time."""
    if isinstance(value, list | dict | set):
        return msgspec.field(default_factory=cast("Any", value).copy)
    return value


def _described(hint: Any) -> Any:
    """Return a hint whose text, in `Annotated[int, "how many"]`, is the parameter's description."""
    if typing.get_origin(hint) is not typing.Annotated:
        return hint
    inner, *notes = typing.get_args(hint)
    made = [msgspec.Meta(description=note) if isinstance(note, str) else note for note in notes]
    for note in made:
        inner = typing.Annotated[inner, note]
    return inner


def _schema_of(arguments: type[msgspec.Struct]) -> dict[str, Any]:
    _, components = msgspec.json.schema_components([arguments], ref_template="#/$defs/{name}")
    made = cast("dict[str, Any]", components.pop("Arguments"))
    made.pop("title", None)
    made.setdefault("properties", {})
    return made | ({"$defs": components} if components else {})


def read_result(given: object) -> Result:
    """Return what a tool gave back, bounded. Raises `ValueError` for what is no result."""
    match given:
        case None:
            return Result(text="Done.")
        case str():
            return Result(text=_bounded(given))
        case Result():
            _check_result(given)
            return Result(
                text=_bounded(given.text),
                images=tuple(given.images),
                details=_plain(given.details),
                is_error=given.is_error,
            )
        case bool() | int() | float() | list() | dict() | tuple():
            try:
                text = msgspec.json.format(to_json(given)).decode()
            except (TypeError, ValueError) as error:
                raise ValueError(f"what it returned is no JSON: {error}") from error
            return Result(text=_bounded(text))
        case _:
            raise ValueError(f"it returned {type(given).__name__}, which is neither a text, nor JSON, nor a Result")


def _check_result(given: Result) -> None:
    if not isinstance(cast("object", given.text), str):
        raise ValueError(f"the text of its Result is {type(given.text).__name__}")
    if not all(isinstance(cast("object", one), bytes) for one in given.images):
        raise ValueError("the images of its Result are not bytes")


def _bounded(text: str) -> str:
    bounded = bound_middle(text, MOST_TEXT, MOST_TEXT)
    if bounded is None:
        return text
    return bounded.joined(f"[… {bounded.omitted_chars:,} characters of this result were left out]")


def _plain(details: object) -> object:
    try:
        encoded = to_json(details)
    except (TypeError, ValueError) as error:
        raise ValueError(f"the details of its Result are no JSON: {error}") from error
    if len(encoded) > MOST_DETAILS:
        raise ValueError(f"the details of its Result have {len(encoded):,} bytes; {MOST_DETAILS:,} are kept at most")
    return msgspec.json.decode(encoded)


def read_lines(given: object) -> tuple[tuple[tuple[str, str], ...], ...]:
    """Return a rendering as lines of (text, style name), bounded. Raises `ValueError` for what is none."""
    if not isinstance(given, list | tuple):
        raise ValueError(f"it returned {type(given).__name__}, not a list of lines")
    lines = cast("Sequence[object]", given)
    made = [_read_line(line) for line in lines[:MOST_LINES]]
    if len(lines) > MOST_LINES:
        made.append(((f"… {len(lines) - MOST_LINES:,} more lines", "dim"),))
    return tuple(made)


def _read_line(line: object) -> tuple[tuple[str, str], ...]:
    if isinstance(line, str):
        return ((line[:LINE_CHARS], "text"),)
    try:
        spans = [(text, style) for text, style in cast("Any", line)]
    except (TypeError, ValueError):
        raise ValueError(f"a line is a text, or a list of (text, style), not {line!r:.80}") from None
    if not all(isinstance(text, str) and isinstance(style, str) for text, style in spans):
        raise ValueError("a line's texts and styles have to be texts")
    return tuple((text[:LINE_CHARS], style[:LINE_CHARS]) for text, style in spans)
