"""`--output-schema`: the answer as JSON that fits a schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, cast

from msgspec import Struct

from tenuto.core.errors import UsageError
from tenuto.text.bounding import shorten

MAX_SCHEMA_BYTES = 1_000_000
MOST_RETRIES = 2
"""Times that the model is told what is wrong with its answer."""
_FENCE = re.compile(r"```(?:json)?[ \t]*\n(?P<inner>.*?)\n?```", re.DOTALL)
_SHOWN = 300
_MOST_PROBLEMS = 5


class Checked(Struct, frozen=True):
    """An answer read as JSON. `problem` says why it does not fit, empty when it does."""

    value: Any = None
    problem: str = ""


class OutputSchema:
    """A JSON schema that the last answer has to fit."""

    def __init__(self, schema: dict[str, Any]) -> None:
        from jsonschema import Draft202012Validator, validators
        from jsonschema.exceptions import SchemaError

        kind = cast("Any", validators).validator_for(schema, default=Draft202012Validator)
        try:
            kind.check_schema(schema)
        except SchemaError as error:
            raise UsageError(f"--output-schema: it is no JSON schema: {shorten(error.message, _SHOWN)}") from None
        self.schema = schema
        self._validator = kind(schema)

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
        return Checked(problem="; ".join(problems)) if problems else Checked(value)


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
