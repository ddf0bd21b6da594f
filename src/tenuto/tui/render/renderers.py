"""The renderers of the built-in tools."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, cast

import msgspec
from msgspec import Struct

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import DiffView, PlanView, ShellView, TodoView
from tenuto.protocol.part import ImagePart, text_of
from tenuto.text.call_summary import first_heading
from tenuto.text.figures import plural
from tenuto.text.writable import to_json
from tenuto.tui.machine.item import ToolItem
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.diff import FOLDED_ROWS, diff_lines, diff_summary
from tenuto.tui.render.frame import Frame, more_row, rows_of
from tenuto.tui.render.line import Line, Span, indent
from tenuto.tui.render.markdown import render_blocks
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.width import truncate
from tenuto.tui.render.wrap import wrap

Arguments = dict[str, Any]
FOLDED_LINES = 4
FAILURE_ROWS = 3
"""Rows of what went wrong, wrapped."""


@lru_cache(maxsize=256)
def read_arguments(text: str) -> Arguments:
    """Return a call's arguments; nothing while they are incomplete or when they are no object."""
    try:
        value: object = msgspec.json.decode(text or "{}")
    except msgspec.DecodeError:
        return {}
    return cast("Arguments", value) if isinstance(value, dict) else {}


def argument(arguments: Arguments, *names: str) -> str:
    """Return the first of the named arguments that is there, as text."""
    for name in names:
        value = arguments.get(name)
        if value is not None and value != "":
            return value if isinstance(value, str) else to_json(value).decode()
    return ""


def result_text(item: ToolItem) -> str:
    """Return what the model got as text; empty while there is no result."""
    return text_of(item.result.parts) if item.result is not None else ""


def is_cut(item: ToolItem) -> bool:
    """Say whether the result has a notice in the place of what was left out."""
    return item.result is not None and item.result.truncated


def count_lines(text: str) -> int:
    """Return how many lines a text has, a last empty one not counted."""
    return text.count("\n") + (0 if text.endswith("\n") or not text else 1)


def first_lines(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the first lines of the result, all of them when unfolded."""
    return rows_of(ansi_lines(result_text(item)), frame, FOLDED_LINES, 0, is_cut=is_cut(item))


def only_unfolded(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the result when unfolded, nothing otherwise."""
    return first_lines(item, frame) if frame.unfolded else []


def no_subject(_arguments: Arguments) -> str:
    """Return nothing: the title says it all."""
    return ""


def no_facts(_item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return nothing: there is nothing to count."""
    return ()


class Look(Struct, frozen=True):
    """How calls of one tool are shown. `subject` is used where the call brings no summary of its own."""

    title: str
    subject: Callable[[Arguments], str] = no_subject
    facts: Callable[[ToolItem, Frame], Sequence[Span]] = no_facts
    body: Callable[[ToolItem, Frame], list[Line]] = first_lines
    live: Callable[[ToolItem, Frame], list[Line]] = lambda _item, _frame: []
    quiet: bool = False
    """Whether a folded call that went well is its head alone."""


PLAN_ROWS = 24


def _plan(item: ToolItem) -> PlanView | None:
    views = item.result.ui if item.result is not None else ()
    return next((view for view in views if isinstance(view, PlanView)), None)


def plan_subject(arguments: Arguments) -> str:
    """Return what the plan is called."""
    return first_heading(argument(arguments, "plan"))


def plan_facts(item: ToolItem, frame: Frame) -> Sequence[Span]:
    """Return what the user made of it."""
    view = _plan(item)
    if view is None:
        return ()
    facts: list[Span] = []
    match view.outcome:
        case "approved":
            facts.append(("approved", "success"))
            if view.mode is not None:
                facts.append((f" {frame.glyphs.middle} mode {view.mode}", "dim"))
        case "continued":
            facts.append(("planning goes on", "warning"))
        case "unasked":
            facts.append(("nobody to approve it", "warning"))
        case "aside":
            pass
    if view.edited:
        facts.append((f" {frame.glyphs.middle} edited by you" if facts else "edited by you", "dim"))
    return facts


def plan_body(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the plan itself, folded its beginning; then what the user said to it."""
    view = _plan(item)
    if view is None:
        return first_lines(item, frame)
    lines = render_blocks(view.text, frame.body, frame.glyphs)
    if not frame.unfolded and len(lines) > PLAN_ROWS + 1:
        hidden = len(lines) - PLAN_ROWS
        lines = [*lines[:PLAN_ROWS], more_row(f"{hidden} rows", frame)]
    if view.feedback:
        lines.append(Line((("You: ", "dim"), (sanitize_line(view.feedback), "text"))))
    return lines


_NO_HIT = ("[", "(", "--", "No ")
_NOTICE = 1_000
"""Characters at the end of a result in which its own notices stand."""
_GREP_MATCH = re.compile(r"^(?:[^\n:]+:)?\d+:", re.MULTILINE)
_GREP_TOTAL = re.compile(r"([\d,]+ matching lines in [\d,]+ files)")
_GLOB_TOTAL = re.compile(r"newest of ([\d,]+ files)")
_NUMBER = re.compile(r"\d+[:-]")
_PLACE = re.compile(r"([^:]+)([:-]\d+[:-])")


def grep_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return how many lines or files matched."""
    text = result_text(item)
    if total := _GREP_TOTAL.search(text, len(text) - _NOTICE):
        return [(total[1], "dim")]
    if read_arguments(item.arguments).get("output", "lines") != "lines":
        return _count(text, "file")
    return _count("\n".join(_GREP_MATCH.findall(text)), "match")


def glob_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return how many files there are."""
    text = result_text(item)
    total = _GLOB_TOTAL.search(text, len(text) - _NOTICE)
    return [(total[1], "dim")] if total else _count(text, "file")


def _count(text: str, noun: str) -> Sequence[Span]:
    hits = sum(1 for line in text.split("\n") if line and not line.startswith(_NO_HIT))
    return [(plural(hits, noun) if hits else "nothing found", "dim")]


def grep_body(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the matching lines, their places told from their text."""
    return rows_of([_with_place(line) for line in ansi_lines(result_text(item))], frame, FOLDED_LINES, 0)


def _with_place(line: Sequence[Span]) -> Sequence[Span]:
    if len(line) != 1 or line[0][0].startswith(_NO_HIT):
        return line
    text, style = line[0]
    if number := _NUMBER.match(text):
        return [(number[0], "faint"), (text[number.end() :], style)]
    if place := _PLACE.match(text):
        return [(place[1], "path"), (place[2], "faint"), (text[place.end() :], style)]
    return [(text, "path")]


LIVE_TAIL = 5
SHELL_HEAD = 2
SHELL_TAIL = 5
_NUMBERED = re.compile(r"^ *\d+[\t|:]", re.MULTILINE)
_ENDING = re.compile(r"\n\[Exit code -?\d+ · [^\n]*\](?=\n\[|\Z)")


def _path(arguments: Arguments) -> str:
    return argument(arguments, "path", "file_path", "file")


def _range(arguments: Arguments) -> str:
    path, offset, limit = _path(arguments), arguments.get("offset"), arguments.get("limit")
    begin = offset if isinstance(offset, int) and offset > 0 else 1
    if isinstance(limit, int):
        return f"{path}:{begin}-{begin + limit - 1}"
    return f"{path}:{begin}-" if begin > 1 else path


def _lines_fact(item: ToolItem, frame: Frame) -> Sequence[Span]:
    for part in item.result.parts if item.result else ():
        if isinstance(part, ImagePart):
            return [(f"{part.width}{frame.glyphs.times}{part.height} image" if part.width else "image", "dim")]
    text = result_text(item)
    numbered = sum(1 for _match in _NUMBERED.finditer(text))
    spans: list[Span] = [(plural(numbered or count_lines(text), "line"), "dim")] if text else []
    if item.result is not None and item.result.truncated:
        spans.append((f" {frame.glyphs.middle} not all of it", "dim"))
    return spans


def _diffs(item: ToolItem) -> list[DiffView]:
    return [view for view in item.result.ui if isinstance(view, DiffView)] if item.result else []


def _diff_facts(item: ToolItem, frame: Frame) -> Sequence[Span]:
    spans: list[Span] = []
    for view in _diffs(item)[:1]:
        if view.created:
            spans += [(f"+{view.added}", "diff.plus"), (f" {frame.glyphs.middle} new file", "dim")]
        else:
            spans.extend(diff_summary(view, frame.glyphs))
    return spans


def _diff_body(item: ToolItem, frame: Frame) -> list[Line]:
    limit = None if frame.unfolded else FOLDED_ROWS
    key = frame.expand_key
    lines = [
        line
        for view in _diffs(item)
        for line in diff_lines(view, frame.body, frame.glyphs, limit, frame.diff_layout, expand_key=key)
    ]
    return lines or only_unfolded(item, frame)


def _shell_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    for view in item.result.ui if item.result else ():
        if isinstance(view, ShellView):
            if view.background:
                return [("in the background", "dim")]
            if view.exit_code:
                return [(f"exit {view.exit_code}", "warning")]
    return []


def _shell_body(item: ToolItem, frame: Frame) -> list[Line]:
    text = result_text(item)
    if item.result is not None and any(isinstance(view, ShellView) for view in item.result.ui):
        # The head already says how it ended.
        text = _ENDING.sub("", text)
    return shell_output(text, frame, is_cut=is_cut(item))


def shell_output(
    text: str, frame: Frame, *, is_cut: bool, first: int = SHELL_HEAD, last: int = SHELL_TAIL
) -> list[Line]:
    """Return a finished command's output: folded, its first and its last lines, and how many it wrote between."""
    return rows_of(ansi_lines(text), frame, first, last, is_cut=is_cut)


def live_tail(text: str, frame: Frame, last: int = LIVE_TAIL) -> list[Line]:
    """Return the last lines of what a running command has written so far."""
    tail = text.rstrip("\n").split("\n")[-last:] if not frame.unfolded else text.split("\n")
    return rows_of(ansi_lines("\n".join(tail)), frame, 0, last)


def _page_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    """Return status, type and size, which the first line of a page names behind its address."""
    _address, _dot, facts = result_text(item).partition("\n")[0].partition(" · ")
    return [(sanitize_line(facts), "dim")] if facts else []


_TODO_STYLES = {"pending": "todo.pending", "in_progress": "todo.active", "done": "todo.done", "cancelled": "todo.done"}


def todo_lines(items: Sequence[TodoItem], width: int, glyphs: Glyphs) -> list[Line]:
    """Return a todo list's rows within `width` cells; also for the panel that pins it."""
    lines: list[Line] = []
    for item in items:
        mark, style = _todo_mark(item, glyphs), _TODO_STYLES[item.status]
        text = wrap([(sanitize_line(item.text), style)], max(width - len(mark), 4))
        lines.extend(indent(text, (mark, f"{style}.mark"), (" " * len(mark), "text"), visible=True))
    return lines


def todo_row(item: TodoItem, width: int, glyphs: Glyphs) -> Line:
    """Return one of the list in a single row; what it has no room for is marked."""
    mark, style = _todo_mark(item, glyphs), _TODO_STYLES[item.status]
    return Line(((mark, f"{style}.mark"), (truncate(sanitize_line(item.text), max(width - len(mark), 4)), style)))


def _todo_mark(item: TodoItem, glyphs: Glyphs) -> str:
    marks = {
        "pending": glyphs.unchecked,
        "in_progress": glyphs.active,
        "done": glyphs.checked,
        "cancelled": glyphs.cancelled,
    }
    return f"{marks[item.status]} "


def _todo_views(item: ToolItem) -> list[TodoView]:
    return [view for view in item.result.ui if isinstance(view, TodoView)] if item.result else []


def _todo_body(item: ToolItem, frame: Frame) -> list[Line]:
    lines = [line for view in _todo_views(item) for line in todo_lines(view.items, frame.body, frame.glyphs)]
    return lines or first_lines(item, frame)


def _todo_facts(item: ToolItem, _frame: Frame) -> Sequence[Span]:
    todos = [todo for view in _todo_views(item) for todo in view.items]
    done = sum(todo.status == "done" for todo in todos)
    return [(f"{done} of {len(todos)} done", "dim")] if todos else []


LOOKS: dict[str, Look] = {
    "read": Look("Read", _range, _lines_fact, only_unfolded, quiet=True),
    "write": Look("Write", _path, _diff_facts, _diff_body),
    "edit": Look("Edit", _path, _diff_facts, _diff_body),
    "bash": Look(
        "Bash",
        lambda arguments: argument(arguments, "command"),
        _shell_facts,
        _shell_body,
        lambda item, frame: live_tail(item.output, frame),
    ),
    "grep": Look("Grep", lambda arguments: argument(arguments, "pattern"), grep_facts, grep_body),
    "glob": Look("Glob", lambda arguments: argument(arguments, "pattern"), glob_facts, first_lines),
    "todo": Look("Todo", facts=_todo_facts, body=_todo_body),
    "plan": Look("Plan", plan_subject, plan_facts, plan_body),
    "fetch": Look("Fetch", lambda arguments: argument(arguments, "url"), _page_facts, only_unfolded, quiet=True),
    "recall": Look(
        "Recall", lambda arguments: argument(arguments, "query", "seq"), _lines_fact, only_unfolded, quiet=True
    ),
    "agent": Look(
        "Agent",
        lambda arguments: argument(arguments, "description", "prompt", "task"),
        body=first_lines,
        live=lambda item, frame: live_tail(item.output, frame),
    ),
}
