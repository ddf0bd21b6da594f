"""Instruction files as the model is told them: in the system prompt, and those of nested folders when they are touched.

Nested files, and rules for some files only, come as developer messages behind the results that touched something
there, so what was sent stays as it is. What was told, and what is touched, is read from the view: so they are told
once, again when a file changes, and again behind a compaction where the folder is still in use.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from tenuto.config.imports import as_attribute
from tenuto.config.instructions import InstructionFile, Instructions, read_instructions, read_touched
from tenuto.core.state.live import LiveSession, SessionServices
from tenuto.protocol.message import DeveloperMessage, Message, SystemMessage
from tenuto.text.bounding import shorten
from tenuto.text.estimate import estimate_text
from tenuto.text.late import late
from tenuto.tool.run.context import ToolError
from tenuto.tool.search.patterns import fits, split_pattern

KIND = "instructions"
REMEMBERED = "remembered"
_KIND_OF = f"{KIND}: "
"""Begins the kind of a note; the file's path ends it."""
NOTE_CHARS = 16_000
"""Characters of one nested file that are told; the rest is left out with a notice in the text."""
MAX_TOKENS = 16_000
MAX_PATTERN = 200
"""Characters of a rule's pattern."""
MAX_STARS = 8
"""Stars between two slashes of it: each costs another look at a name."""
_WINDOW_SHARE = 10
"""Of the window, at most this part is spent on nested files that the model sees, and at most `MAX_TOKENS`."""
_GIVEN = late(r'^<(?:instructions|imported) path="([^"\n]*)">$', re.MULTILINE)


def instructions_of(services: SessionServices) -> Instructions:
    """Return the instruction files that hold in the session's directory, as they are on disk now."""
    return read_instructions(services.home, services.session.cwd, services.settings.instructions.also)


def frame_instructions(file: InstructionFile) -> str:
    """Return a file as the model sees it. Its text cannot end the tags (`clean_instructions`)."""
    return f'<instructions path="{as_attribute(file.path)}">\n{file.text}\n</instructions>'


def tell_nested(live: LiveSession) -> None:
    """Tell what holds where the files lie that the model has touched, if it does not see it yet (B14)."""
    view = live.session.get_llm_history()
    seen = live.reminders.seen.follow(view)
    if not seen.touched:
        return
    prompt = view[0].text if isinstance(view[0], SystemMessage) else ""
    given = {os.path.realpath(path) for path in _GIVEN.findall(prompt)}
    found = read_touched(live.home, live.session.cwd, live.settings.instructions.also, seen.folders, given)
    rules, problems = _matching(found.on_touch, seen.touched)
    for problem in (*found.problems, *problems):
        live.notify_once(problem, problem, "warning")
    files = [file for file in (*found.files, *rules) if f"\n{file.text}\n</instructions>" not in prompt]
    due = _due(files, seen.notes, min(MAX_TOKENS, live.budget().window // _WINDOW_SHARE))
    for _, note in due:
        live.session.append(note)
    if due:
        names = ", ".join(_describe(file, live.session.cwd) for file, _ in due)
        live.notify(f"Told the model what holds there: {names}", kind=KIND, keep=True)


def remember(live: LiveSession, path: Path) -> None:
    """Have the model told what an instruction file says now, before the next request, where it has a prompt already."""
    if isinstance(next(iter(live.session.get_llm_history()), None), SystemMessage):
        live.reminders.changed_instructions.append(os.path.realpath(path))


def tell_remembered(live: LiveSession) -> None:
    """Tell the new text of the files that the user has added to: what was sent before stays as it is."""
    due = set(live.reminders.changed_instructions)
    live.reminders.changed_instructions.clear()
    for file in instructions_of(live).files if due else ():
        if os.path.realpath(file.path) in due:
            shown = InstructionFile(file.path, file.text[:NOTE_CHARS])
            text = (
                f"The user has added to {as_attribute(file.path)}. This is what it says now, in the place of what you "
                f"were told of it before:\n{frame_instructions(shown)}"
            )
            live.session.append(DeveloperMessage(text=text, kind=REMEMBERED))


def told_instructions(view: Sequence[Message]) -> dict[str, str]:
    """Return the newest note of each nested file that the model still sees, by the file's path."""
    return {message.kind.removeprefix(_KIND_OF): message.text for message in _notes(view)}


def describe_patterns(file: InstructionFile) -> str:
    """Return which files a rule holds for, as what is added to a line on it; empty for what always holds."""
    return f", for {', '.join(file.patterns)}" if file.patterns else ""


def _notes(view: Sequence[Message]) -> Iterator[DeveloperMessage]:
    for message in view:
        if isinstance(message, DeveloperMessage) and message.kind.startswith(_KIND_OF):
            yield message


def _matching(rules: Sequence[InstructionFile], touched: Mapping[str, None]) -> tuple[list[InstructionFile], list[str]]:
    """Return the rules whose patterns match a touched file, and a line for each pattern that is none."""
    found: list[InstructionFile] = []
    problems: list[str] = []
    for rule in rules:
        top = os.path.realpath(rule.folder).rstrip("/") + "/"
        names = [path.removeprefix(top).split("/") for path in touched if path.startswith(top)]
        for pattern in rule.patterns:
            try:
                choices = _parts_of(pattern)
            except ValueError as error:
                problems.append(f"{rule.path}: {error}")
                continue
            if any(fits(parts, name) for parts in choices for name in names):
                found.append(rule)
                break
    return found, problems


@lru_cache
def _parts_of(pattern: str) -> list[list[str]]:
    """Return what stands between the slashes of a pattern, for each choice in braces. Raises `ValueError`."""
    shown = shorten(pattern, 80)
    if len(pattern) > MAX_PATTERN or any(part.count("*") > MAX_STARS for part in pattern.split("/")):
        raise ValueError(f"the pattern {shown} is longer than {MAX_PATTERN} characters, or has too many stars")
    if pattern.startswith("~") or ".." in pattern.split("/"):
        raise ValueError(f"the pattern {shown} is not one of files below the rule's folder")
    try:
        return split_pattern(pattern)
    except ToolError as error:
        raise ValueError(str(error)) from None


def _due(
    files: Sequence[InstructionFile], view: Sequence[Message], room: int
) -> list[tuple[InstructionFile, DeveloperMessage]]:
    """Return the files that have to be told, each with its note; what has no `room` (tokens) is only named."""
    told = told_instructions(view)
    left = room - sum(estimate_text(note.text) for note in _notes(view))
    due: list[tuple[InstructionFile, DeveloperMessage]] = []
    for file in files:
        path = as_attribute(file.path)
        whole, name = _note_text(file), _name_only(file)
        if told.get(path) in (whole, name):
            continue
        size = estimate_text(whole)
        text = whole if size <= left else name
        left -= size if text is whole else estimate_text(name)
        due.append((file, DeveloperMessage(text=text, kind=_KIND_OF + path)))
    return due


def _note_text(file: InstructionFile) -> str:
    text = file.text
    if len(text) > NOTE_CHARS:
        text = f"{text[:NOTE_CHARS]}\n[... cut: {as_attribute(file.path)} goes on; read it before you work there]"
    shown = InstructionFile(file.path, text)
    return (
        f"These instructions hold for {_where(file)}. They bind you like those of the system prompt; "
        "where they differ from those, these hold there, and what the user says holds above both.\n"
        f"{frame_instructions(shown)}"
    )


def _name_only(file: InstructionFile) -> str:
    return (
        f"{as_attribute(file.path)} has instructions for {_where(file)}. They are too long to be told "
        "here: read that file before you work there, and follow it."
    )


def _where(file: InstructionFile) -> str:
    folder = as_attribute(file.folder)
    patterns = ", ".join(as_attribute(pattern) for pattern in file.patterns)
    return f"files that match {patterns} below {folder}" if patterns else f"what lies below {folder}"


def _describe(file: InstructionFile, cwd: Path) -> str:
    """Return a file as the user reads it, with its lines."""
    name = as_attribute(os.path.relpath(file.path, os.path.realpath(cwd)))
    lines = file.text.count("\n") + 1
    return f"{name} ({lines:,} line{'s'[: lines != 1]})"
