"""An answer as JSON that fits a schema: checked, and asked for again where it does not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import msgspec
from msgspec import Struct

from tenuto.api.result import Asked
from tenuto.core.errors import UsageError
from tenuto.text.bounding import shorten
from tenuto.text.late import late

if TYPE_CHECKING:
    from tenuto.api.result import RunResult
    from tenuto.protocol.event import TaskSettledEvent

MAX_SCHEMA_BYTES = 1_000_000
MOST_RETRIES = 2
"""Times that the model is told what is wrong with its answer."""
_FENCE = late(r"```(?:json)?[ \t]*\n(?P<inner>.*?)\n?```", re.DOTALL)
_SHOWN = 300
_MOST_PROBLEMS = 5


class Checked(Struct, frozen=True):
    """An answer read as JSON. `problem` says why it does not fit, empty when it does."""

    value: Any = None
    problem: str = ""


class OutputSchema:
    """A JSON schema that the last answer has to fit. `source` is what its faults are told of.

    `convert` makes the value that the caller wants of one that fits; what it raises is a fault of the answer.
    """

    def __init__(
        self, schema: dict[str, Any], source: str = "--output-schema", convert: Callable[[Any], Any] | None = None
    ) -> None:
        from jsonschema import Draft202012Validator, validators
        from jsonschema.exceptions import SchemaError

        kind = cast("Any", validators).validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            raise UsageError(f"{source}: it is no JSON schema: {shorten(error.message, _SHOWN)}") from None
        self.schema = schema
        self._validator = kind(schema)
        self._convert = convert

    @property
    def note(self) -> str:
        """What the model is told before it begins."""
        return (
            "Your last message must be one JSON value that fits this schema, and nothing beside it:\n"
            f"{json.dumps(self.schema, ensure_ascii=False)}"
        )

    def check(self, text: str) -> Checked:
        """Return the value of an answer, also of one in a fence of code, or what is wrong with it."""
        fenced = [found["inner"] for found in _FENCE.finditer(text)]
        for candidate in (text, *reversed(fenced)):
            try:
                value = json.loads(candidate)
            except (ValueError, RecursionError):
                continue
            return self._judge(value)
        return Checked(problem="it is not one JSON value")

    def _judge(self, value: Any) -> Checked:
        found = sorted(self._validator.iter_errors(value), key=lambda error: [str(step) for step in error.path])
        problems = [f"{error.json_path}: {shorten(error.message, _SHOWN)}" for error in found[:_MOST_PROBLEMS]]
        if problems:
            return Checked(problem="; ".join(problems))
        if self._convert is None:
            return Checked(value)
        try:
            return Checked(self._convert(value))
        except Exception as error:  # noqa: BLE001 - the type's own checks: what they say is for the model
            return Checked(problem=shorten(" ".join(str(error).split()), _SHOWN))


def schema_of(wanted: Any) -> OutputSchema:
    """Return the schema of a dict (a JSON schema), a pydantic model, or a type that msgspec knows.

    Those are structs, dataclasses, `TypedDict`s, and `list[int]` and its like. Raises `UsageError` for anything else.
    """
    if isinstance(wanted, OutputSchema):
        return wanted
    if isinstance(wanted, dict):
        return OutputSchema(cast("dict[str, Any]", wanted), "schema")
    describe = getattr(wanted, "model_json_schema", None)
    if describe is not None:
        return OutputSchema(describe(), "schema", wanted.model_validate)
    try:
        return OutputSchema(msgspec.json.schema(wanted), "schema", partial(msgspec.convert, type=wanted))
    except (TypeError, ValueError) as error:
        *_, reason = str(error).splitlines()  # what comes before is advice for authors of libraries
        raise UsageError(f"schema: {wanted!r:.100} is neither a JSON schema nor a type of data: {reason}") from None


async def insist(
    settled: TaskSettledEvent,
    schema: OutputSchema,
    send: Callable[[str], Awaitable[TaskSettledEvent]],
    result: RunResult,
) -> Asked:
    """Return how a prompt ended; where its answer does not fit `schema`, it is asked for again.

    `send` waits until nothing is left to do; `result` gathers what came of it.
    """
    checked = schema.check(result.text)
    for _ in range(MOST_RETRIES):
        if not checked.problem or settled.outcome != "completed":
            break
        settled = await send(ask_again(checked.problem))
        checked = schema.check(result.text)
    if settled.outcome != "completed":
        return Asked(settled, checked.value)
    return Asked(
        settled, checked.value, f"the answer does not fit the schema: {checked.problem}" * bool(checked.problem)
    )


def read_schema(path: Path) -> OutputSchema:
    """Return the schema in a file. Raises `UsageError` with what to do."""
    try:
        data = path.expanduser().read_bytes()[: MAX_SCHEMA_BYTES + 1]
    except OSError as error:
        raise UsageError(f"--output-schema: {path} cannot be read: {error.strerror or error}") from None
    if len(data) > MAX_SCHEMA_BYTES:
        raise UsageError(f"--output-schema: {path} has more than {MAX_SCHEMA_BYTES:,} bytes")
    try:
        schema = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"--output-schema: {path} is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise UsageError(f"--output-schema: {path} has to be a JSON object")
    return OutputSchema(cast("dict[str, Any]", schema))


def ask_again(problem: str) -> str:
    """Return what is sent when an answer did not fit."""
    return f"Your answer does not fit the schema: {problem}. Send the whole answer again, as JSON and nothing else."
