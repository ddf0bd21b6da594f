"""The renderers of the built-in tools."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tenuto.guard.sanitize import sanitize_line
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import DiffView, ShellView, TodoView
from tenuto.protocol.part import ImagePart
from tenuto.text.figures import plural
from tenuto.tui.machine.item import ToolItem
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.diff import FOLDED_ROWS, diff_lines, diff_summary
from tenuto.tui.render.frame import Frame, rows_of
from tenuto.tui.render.line import Line, Span, indent
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.tools.look import (
    Arguments,
    Look,
    argument,
    count_lines,
    first_lines,
    is_cut,
    only_unfolded,
    result_text,
)
from tenuto.tui.render.tools.plan import plan_body, plan_facts, plan_subject
from tenuto.tui.render.tools.search import glob_facts, grep_body, grep_facts
from tenuto.tui.render.width import truncate
from tenuto.tui.render.wrap import wrap

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
