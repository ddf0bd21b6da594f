"""What travels as a user's message in Claude Code: words, commands, their output, notes of the program. Pure."""

from __future__ import annotations

import re

from tenuto.protocol.entry import Origin, ShellEntry
from tenuto.protocol.message import UserMessage
from tenuto.protocol.part import ContentPart, TextPart

BASH_INPUT = re.compile(r"\s*<bash-input>(.*)</bash-input>\s*\Z", re.DOTALL)
BASH_OUTPUT = re.compile(r"<bash-std(out|err)>(.*?)</bash-std(?:out|err)>", re.DOTALL)
COMMAND = re.compile(r"<command-name>(.*?)</command-name>", re.DOTALL)
COMMAND_ARGUMENTS = re.compile(r"<command-args>(.*?)</command-args>", re.DOTALL)
INTERRUPTED = "[Request interrupted by user"
_REMINDERS = re.compile(r"(?:\s*<system-reminder>.*?</system-reminder>\s*)+", re.DOTALL)
HARNESS = ("Caveat: The messages below were generated", "<local-command-", "<system-reminder>")
NOTIFICATION = ("<task-notification>", "<bash-notification>")
"""Beginnings of the word of a command in the background that has ended; the model waits for it."""


def without_reminders(parts: tuple[ContentPart, ...]) -> tuple[ContentPart, ...]:
    """Return the parts without the reminders that the program put before what the user wrote."""
    found: list[ContentPart] = []
    for part in parts:
        reminders = _REMINDERS.match(part.text) if isinstance(part, TextPart) else None
        if reminders is None or not isinstance(part, TextPart):
            found.append(part)
        elif reminders.end() < len(part.text):
            found.append(TextPart(text=part.text[reminders.end() :]))
    return tuple(found)


def shell_entry(command: str, words: str) -> ShellEntry:
    """Return a command of the user. Its exit code is not stored; one that only complains has failed."""
    found = [(name, output.strip("\n")) for name, output in BASH_OUTPUT.findall(words) if output.strip()]
    failed = bool(found) and all(name == "err" for name, _ in found)
    return ShellEntry(command=command, output="\n".join(output for _, output in found), exit_code=int(failed))


def user_message(parts: tuple[ContentPart, ...], words: str, *, is_meta: bool) -> UserMessage:
    """Return what the user said: a command as they typed it, else the parts as they are."""
    command = COMMAND.search(words)
    is_told = is_meta or words.lstrip().startswith((INTERRUPTED, *NOTIFICATION))
    origin: Origin = "extension" if is_told else "typed"
    if command is not None and words.lstrip().startswith("<command-"):
        arguments = COMMAND_ARGUMENTS.search(words)
        line = " ".join(part for part in (command[1].strip(), arguments[1].strip() if arguments else "") if part)
        images = tuple(part for part in parts if not isinstance(part, TextPart))
        return UserMessage(parts=(TextPart(text=line), *images), origin="command")
    return UserMessage(parts=parts, origin=origin)
