"""What tool calls were about, and which failures nothing has answered since: from data alone. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import cast

from tenuto.compaction.data.wording import is_error_line, is_opaque
from tenuto.guard.terminal import sanitize_for_terminal
from tenuto.protocol.message import AssistantMessage, HistoryEvent, ToolResultMessage
from tenuto.protocol.part import ToolCallPart, text_of
from tenuto.text.bounding import shorten
from tenuto.text.call_summary import read_arguments
from tenuto.text.patch import patched_files

MAX_LINES = 3
MAX_LINE = 400
"""Characters of one line."""
_ADDED = re.compile(r"\[.*\]")
_ENDED = re.compile(
    r"\[?(?:(?:command|process) (?:exited|finished|failed) with )?(?:exit )?(?:code|status):? \d+(?:\.|\]| · .*\])?",
    re.IGNORECASE,
)
"""What says only that a command failed."""
_FRAME = re.compile(r"at .+:\d+\)?|(?:>\s*)?\d+ ?\|.*|[\s~^+|─━=-]+")
"""A frame of a stack, a line of code that is shown beside its number, a pointer or a rule."""
MAX_ERRORS = 8
FAILED = " failed: "
_CALL_LENGTH = 100
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file_path", "filePath", "notebook_path", "filename")
_SOUGHT = ("pattern", "query", "regex")
"""Arguments of calls, by the usual names: what is run, which file it is about, what is looked for in it."""
_SHELL = (["-c"], ["-lc"], ["-ic"])


def error_text(result: ToolResultMessage, longest: int = MAX_LINE) -> str:
    """Return the last lines of a failed result that name the error, with the last ones of all where these are few.

    No line has more than `longest` characters. Empty for a result that did not fail, that the user stopped, or that has
    no words.
    """
    if not result.failed or result.interrupted:
        return ""
    output = sanitize_for_terminal(text_of(result.parts))
    lines = [line for line in map(str.strip, output.splitlines()) if line and not is_opaque(line)]
    lines = [line for line in lines if not _ENDED.fullmatch(line)]
    lines = [line for line in lines if not _FRAME.fullmatch(line)] or lines
    named = [place for place, line in enumerate(lines) if is_error_line(line)][-MAX_LINES:]
    # What a tool adds behind an output stands in brackets.
    others = [place for place, line in enumerate(lines) if place not in named and not _ADDED.fullmatch(line)]
    shown = sorted(named + others[max(0, len(others) - MAX_LINES + len(named)) :])
    return "\n".join(shorten(lines[place], longest) for place in shown)


def describe_call(call: ToolCallPart) -> str:
    """Return a call in one line: its tool and what it is about; calls that are about the same have the same one."""
    arguments = read_arguments(call.arguments)
    said = call.arguments if arguments is None else _subject(arguments)
    flat = " ".join(said.split())
    if len(flat) > _CALL_LENGTH:
        half = _CALL_LENGTH // 2
        flat = f"{flat[:half]}…{flat[-half:]}"
    return f"{call.name}: {flat}" if flat else call.name


def _subject(arguments: dict[str, object]) -> str:
    """Return what a call is about: a command, the files, or else the texts among its arguments.

    The rest (what a command is for, what an edit replaces) changes from one attempt to the next.
    """
    for key in _COMMANDS:
        if said := _words(arguments.get(key)):
            return said
    texts = [value for value in arguments.values() if isinstance(value, str)]
    if patched := patched_files("\n".join(texts)):
        return ", ".join(dict.fromkeys(path for _, path in patched))
    if arguments.keys().isdisjoint(_SOUGHT):
        for key in _PATHS:
            if said := _words(arguments.get(key)):
                return said
    if "prompt" in arguments and (said := _words(arguments.get("description"))):
        return said
    return ", ".join(texts)


def _words(value: object) -> str:
    """Return an argument that is a text, or a command as a list of its words, as one text without the shell's name."""
    if isinstance(value, list):
        words = [word for word in cast("list[object]", value) if isinstance(word, str)]
        return " ".join(words[2:] if words[1:2] in _SHELL else words)
    return value if isinstance(value, str) else ""


def open_errors(entries: Sequence[HistoryEvent], earlier: Sequence[str], longest: int = MAX_LINE) -> list[str]:
    """Return the errors that no later success of the same call has answered, word for word, oldest first.

    No line of one has more than `longest` characters. A failure without words is none: a search that finds nothing
    ends as one.
    """
    calls = {
        call.id: describe_call(call)
        for entry in entries
        if isinstance(entry, AssistantMessage)
        for call in entry.tool_calls
    }
    found = {line.removeprefix("- ").partition(FAILED)[0]: line for line in earlier}
    for entry in entries:
        if not isinstance(entry, ToolResultMessage) or entry.interrupted:
            continue
        call = calls.get(entry.call_id, entry.name)
        text = error_text(entry, min(longest, MAX_LINE))
        if text or not entry.is_error:
            found.pop(call, None)
        if text:
            found[call] = set_in(f"- {call}{FAILED}{text}")
    return list(found.values())[-MAX_ERRORS:]


def set_in(item: str) -> str:
    """Return an item of a list with its further lines set in, and without blank ones."""
    return "\n  ".join(line for line in item.splitlines() if line.strip())
