"""Hook files: what stands in them, in the shape that Claude Code, Codex and others share.

A file is JSON: `{"hooks": {EVENT: [{"matcher": …, "hooks": [{"type": "command", "command": …, "timeout": …}]}]}}`, or
the same as TOML (Codex). What cannot be used is named and left out; everything else in the file holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal, cast, get_args

import msgspec

from tenuto.config.project import HookFile, RefusedFileError, read_regular
from tenuto.text.bounding import shorten
from tenuto.text.matching import did_you_mean

EventName = Literal[
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "Stop",
    "SubagentStop",
    "Notification",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
]
EVENTS: tuple[EventName, ...] = get_args(EventName)
FOREIGN_EVENTS = frozenset(
    {
        "PermissionRequest",
        "PermissionDenied",
        "PostToolUseFailure",
        "StopFailure",
        "SubagentStart",
        "Setup",
        "InstructionsLoaded",
        "ConfigChange",
        "CwdChanged",
        "FileChanged",
        "WorktreeCreate",
        "WorktreeRemove",
        "TaskCreated",
        "TaskCompleted",
        "TeammateIdle",
        "Elicitation",
        "ElicitationResult",
        "Interrupt",
        "TurnStart",
        "TurnEnd",
        "PreToolUseResult",
        "BeforeReadFile",
        "AfterFileEdit",
        "BeforeShellExecution",
        "AfterShellExecution",
    }
)
"""Events of other agents that do not happen here."""
DEFAULT_TIMEOUT = 60.0
"""Seconds that a command has where its file names none."""
LONGEST = 3_600.0
SHOWN = 60
"""Characters of a command in its name."""


class HookCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One command and when it is asked.

    `condition` is the `if` of its file; `timeout` is seconds. `waits`: its answer is waited for. `blocks_on_failure`:
    one that fails counts as one that blocks.
    """

    event: EventName
    command: str
    file: HookFile
    matcher: str = ""
    condition: str = ""
    timeout: float = DEFAULT_TIMEOUT
    waits: bool = True
    blocks_on_failure: bool = False

    @property
    def name(self) -> str:
        """What it is called in messages."""
        return f"{self.event} hook “{shorten(' '.join(self.command.split()), SHOWN)}”"


class ReadHooks(msgspec.Struct, frozen=True):
    """What stands in a file: its commands, in order, and a line for each thing that is left out."""

    commands: tuple[HookCommand, ...] = ()
    problems: tuple[str, ...] = ()


def read_hook_files(files: Sequence[HookFile]) -> ReadHooks:
    """Return what stands in all of these files, one after the other."""
    found = [read_hook_file(file) for file in files]
    return ReadHooks(
        tuple(command for one in found for command in one.commands),
        tuple(problem for one in found for problem in one.problems),
    )


def read_hook_file(file: HookFile) -> ReadHooks:
    """Return what stands in a file. Never raises for its content."""
    problems: list[str] = []
    inside = tuple(place for place in (file.root, file.plugin) if place is not None)
    try:
        values = _decode(read_regular(file.path, inside), file.path.suffix)
    except FileNotFoundError:
        return ReadHooks()
    except (RefusedFileError, msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        return ReadHooks(problems=(f"{file.path} cannot be read, so none of its hooks run: {error}",))
    events = cast("dict[str, Any]", values).get("hooks") if isinstance(values, dict) else None
    if file.is_shared and (events is None or _are_off(cast("dict[str, Any]", values))):
        return ReadHooks()  # a file of settings without hooks
    if not isinstance(events, dict):
        return ReadHooks(problems=(f'{file.path}: it has no object "hooks", so nothing of it runs',))
    commands = [
        command
        for name, groups in cast("dict[str, object]", events).items()
        if not (name == "state" and file.is_shared)  # what Codex remembers there
        for command in _read_event(file, name, groups, problems)
    ]
    return ReadHooks(tuple(commands), tuple(f"{file.path}: {problem}" for problem in problems))


def find_event(name: str) -> EventName | None:
    """Return the event that a word means: `PreToolUse`, `pretooluse` and `pre_tool_use` are one."""
    plain = name.replace("_", "").lower()
    return next((event for event in EVENTS if event.lower() == plain), None)


def _decode(data: bytes, ending: str) -> object:
    """Return what stands in a file. Raises `msgspec.DecodeError`."""
    if ending != ".toml":
        return msgspec.json.decode(data)
    import tomllib

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except tomllib.TOMLDecodeError as error:
        raise msgspec.DecodeError(str(error)) from None


def _are_off(values: dict[str, Any]) -> bool:
    """Say whether another agent's file switches its hooks off."""
    features = values.get("features")
    return values.get("disableAllHooks") is True or (
        isinstance(features, dict) and cast("dict[str, Any]", features).get("hooks") is False
    )


def _read_event(file: HookFile, name: str, groups: object, problems: list[str]) -> Iterator[HookCommand]:
    event = find_event(name)
    if event is None:
        if name in FOREIGN_EVENTS:
            problems.append(f"{name} is no event here, so its hooks do not run")
        else:
            problems.append(f"there is no event {shorten(name, SHOWN)}{did_you_mean(name, EVENTS)}")
        return
    if not isinstance(groups, list):
        problems.append(f"{name} has to be a list")
        return
    for group in cast("list[object]", groups):
        if not isinstance(group, dict):
            problems.append(f"{name}: {shorten(str(group), SHOWN)} is no object")
            continue
        yield from _read_group(file, event, cast("dict[str, Any]", group), problems)


def _read_group(file: HookFile, event: EventName, group: dict[str, Any], problems: list[str]) -> Iterator[HookCommand]:
    matcher = group.get("matcher") or ""
    if not isinstance(matcher, str) or matcher_fault(matcher):
        problems.append(f"{event}: the matcher {shorten(str(matcher), SHOWN)} cannot be used")
        return
    inner = group.get("hooks", [group] if "command" in group else None)
    if not isinstance(inner, list):
        problems.append(f"{event}: a group has no list “hooks”")
        return
    for hook in cast("list[object]", inner):
        command = _read_hook(file, event, matcher, hook, problems)
        if command is not None:
            yield command


def _read_hook(file: HookFile, event: EventName, matcher: str, hook: object, problems: list[str]) -> HookCommand | None:
    if not isinstance(hook, dict):
        problems.append(f"{event}: {shorten(str(hook), SHOWN)} is no object")
        return None
    values = cast("dict[str, Any]", hook)
    kind, command, timeout = values.get("type", "command"), values.get("command"), values.get("timeout")
    if kind != "command":
        problems.append(f"{event}: a hook of type {shorten(str(kind), SHOWN)} does not run; only commands do")
        return None
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        problems.append(f"{event}: a hook has no command")
        return None
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float) or timeout <= 0):
        problems.append(f"{event}: the timeout {shorten(str(timeout), SHOWN)} is no number of seconds; 60 holds")
        timeout = None
    condition = values.get("if") or ""
    if not isinstance(condition, str) or (condition and CONDITION.fullmatch(condition) is None):
        problems.append(
            f"{event}: the condition {shorten(str(condition), SHOWN)} cannot be read; the hook does not run"
        )
        return None
    return HookCommand(
        event=event,
        command=command,
        file=file,
        matcher=matcher,
        condition=condition,
        timeout=min(float(timeout or DEFAULT_TIMEOUT), LONGEST),
        waits=values.get("async") is not True,
        blocks_on_failure="block" in (values.get("onFailure"), values.get("on_failure")),
    )


CONDITION = re.compile(r"(?P<tool>[\w-]+)(?:\((?P<pattern>.*)\))?", re.DOTALL)
"""An `if`: `Bash`, or `Bash(git push *)`."""
NAMES = re.compile(r"[\w\s,|-]*", re.ASCII)
"""A matcher that is a list of names; one with any other character is a regular expression."""


def matcher_fault(matcher: str) -> str:
    """Return why a matcher cannot be used, empty where it can."""
    if matcher == "*" or NAMES.fullmatch(matcher):
        return ""
    try:
        re.compile(matcher)
    except (re.error, RecursionError, OverflowError) as error:
        return str(error)
    return ""
