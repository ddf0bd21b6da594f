"""The tasks of a batch: one JSON object a line, all of them checked before anything starts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec
from msgspec import Struct

from tenuto.api.schema import OutputSchema, read_schema
from tenuto.config.consent import digest_of
from tenuto.core.errors import UsageError
from tenuto.guard.rules import RuleError, read_rule
from tenuto.text.matching import did_you_mean
from tenuto.text.writable import to_json

MODES = ("plan", "ask", "edits", "auto")
ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,99}")
_KEYS = ("id", "prompt", "cwd", "repo", "ref", "model", "mode", "allow", "setup", "check", "schema")
_TYPES = {"allow": "a list of rules", "schema": "a JSON schema, or the name of a file with one"}


class Task(Struct, frozen=True):
    """One task: what an agent is asked, where, and what it may do. Paths are absolute."""

    id: str
    prompt: str
    cwd: str = ""
    """A directory to work in as it is; empty for a worktree of `repo`."""
    repo: str = ""
    ref: str = "HEAD"
    model: str = ""
    mode: str = ""
    allow: tuple[str, ...] = ()
    setup: str = ""
    check: str = ""
    schema: dict[str, Any] = {}

    @property
    def digest(self) -> str:
        """What tells this task, with all that it says, from every other."""
        return digest_of(to_json(self))[:16]


class Defaults(Struct, frozen=True):
    """What holds for each task that does not say otherwise; paths are seen from `cwd`."""

    cwd: Path
    model: str = ""
    mode: str = ""


class TasksError(Exception):
    """The file cannot be used. The message has a line for each fault."""


def read_tasks(file: Path, defaults: Defaults) -> list[Task]:
    """Return the tasks of a file, in their order. Raises `TasksError`, which names all bad lines, and `OSError`."""
    try:
        lines = file.read_bytes().decode("utf-8-sig").split("\n")
    except UnicodeDecodeError:
        raise TasksError(f"{file} is not UTF-8 text") from None
    tasks: list[Task] = []
    faults: list[str] = []
    first: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            task = read_task(line, defaults)
        except ValueError as error:
            faults.append(f"line {number}: {error}")
            continue
        if task.id in first:
            faults.append(f"line {number}: the id “{task.id}” is that of line {first[task.id]} too")
        first.setdefault(task.id, number)
        tasks.append(task)
    if faults:
        raise TasksError("\n".join(faults))
    if not tasks:
        raise TasksError(f"{file} has no tasks")
    return tasks


def read_task(line: str, defaults: Defaults) -> Task:
    """Return the task that a line is. Raises `ValueError` with what is wrong with it."""
    try:
        value: object = msgspec.json.decode(line)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ValueError(f"it is no JSON ({error})") from None
    if not isinstance(value, dict):
        raise ValueError("it is no JSON object")
    given = cast("dict[str, Any]", value)
    for fault in _faults(given):
        raise ValueError(fault)
    task = Task(
        id=given["id"],
        prompt=given["prompt"],
        ref=given.get("ref") or "HEAD",
        model=given.get("model") or defaults.model,
        mode=given.get("mode") or defaults.mode,
        setup=given.get("setup", ""),
        check=given.get("check", ""),
        allow=_read_rules(given.get("allow", ())),
        schema=_read_schema(given.get("schema"), defaults.cwd),
    )
    place = (defaults.cwd / Path(given.get("cwd") or given.get("repo") or ".").expanduser()).resolve()
    if not place.is_dir():
        raise ValueError(f"there is no directory {place}")
    if given.get("cwd"):
        return msgspec.structs.replace(task, cwd=str(place))
    return msgspec.structs.replace(task, repo=str(place))


def _faults(given: dict[str, Any]) -> Iterator[str]:
    """Yield what is wrong with the keys and the forms of their values."""
    for key, value in given.items():
        if key not in _KEYS:
            yield f"“{key}” is none of {', '.join(_KEYS)}{did_you_mean(key, _KEYS)}"
        elif key not in _TYPES and not isinstance(value, str):
            yield f"“{key}” is a text"
        elif key not in _TYPES and "\0" in value:
            yield f"“{key}” has a null character"
    if not ID.fullmatch(given.get("id", "")):
        yield "“id” has 1 to 100 letters, digits and any of . _ -, and begins with none of . -"
    if not given.get("prompt", "").strip():
        yield "“prompt” is missing"
    if given.get("cwd") and (given.get("repo") or given.get("ref")):
        yield "“cwd” is worked in as it is: it goes with neither “repo” nor “ref”"
    for key in ("ref", "model"):
        if given.get(key, "").startswith("-"):
            yield f"“{key}” begins with “-”"
    mode = given.get("mode", "")
    if mode and mode not in MODES:
        yield f"“mode” is none of {', '.join(MODES)}{did_you_mean(mode, MODES)}"


def _read_rules(value: object) -> tuple[str, ...]:
    """Return the rules, which can be read. Raises `ValueError`."""
    rules = cast("Sequence[object]", value)
    if not isinstance(value, list | tuple) or not all(isinstance(rule, str) for rule in rules):
        raise ValueError(f"“allow” is {_TYPES['allow']}")
    texts = tuple(str(rule) for rule in rules)
    for text in texts:
        try:
            read_rule(text)
        except RuleError as error:
            raise ValueError(f"“allow” {error}") from None
    return texts


def _read_schema(value: object, cwd: Path) -> dict[str, Any]:
    """Return the schema, which is one, as it stands or from a file. Raises `ValueError`."""
    try:
        if isinstance(value, str) and value:
            return read_schema(cwd / value).schema
        if isinstance(value, dict):
            return OutputSchema(cast("dict[str, Any]", value)).schema
    except UsageError as error:
        raise ValueError(f"“schema”: {str(error).removeprefix('--output-schema: ')}") from None
    if value:
        raise ValueError(f"“schema” is {_TYPES['schema']}")
    return {}
