"""A tool call, drawn completely here: its head, what stands below it, how high that is, and what search and copy see.

A body is made of parts. Each draws itself, knows about how many rows that gives, and has its text: so no tool is drawn
and not found, or has a height that is not its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct

from tenuto.guard.foreign import SERVER_TAG
from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import AgentView, DenialView, DiffView, OwnView, PlanView, ResultView, ShellView, TodoView
from tenuto.protocol.part import text_of
from tenuto.session.results import Tone, changed_path, result_facts, shown_text
from tenuto.session.view.pairing import output_before
from tenuto.text.call_summary import Arguments, argument, count_edits, describe_patch, first_heading, read_arguments
from tenuto.text.figures import format_count, format_seconds, format_spending, plural
from tenuto.tui.render.diff import FOLDED_ROWS, diff_head, diff_height, diff_lines
from tenuto.tui.render.frame import Frame, Output, Part, Words, below, head, last_lines, more_row, wrapped_rows
from tenuto.tui.render.line import Line, Span, ansi_lines, file_link, fit, indent, wrap
from tenuto.tui.render.markdown import render_blocks
from tenuto.tui.render.options import UNICODE, Glyphs
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.state.item import ToolItem

PLAN_ROWS = 24
DRAWN_ROWS = 12
"""Of what an extension draws, shown while it is folded."""
OWN_STYLES = frozenset({"text", "dim", "faint", "muted", "accent", "success", "warning", "error", "path", "code"})
"""What the rows of extensions may be styled with."""
FOLDED_FILES = 3
"""Of so many files a folded call shows what changed in them; of the others their names."""
LIVE_TAIL = 5
SHELL_HEAD = 2
SHELL_TAIL = 5
ELAPSED_AFTER = 2.0
"""Seconds that a call runs before the screen counts them."""
LONG_AFTER = 1.0
"""Seconds that a finished call must have taken to be worth a word."""
FILE_TOOLS = frozenset({"read", "write", "edit"})
"""Whose subject is a file."""

View = TypeVar("View", bound=ResultView)


@lru_cache(maxsize=256)
def _arguments(text: str) -> Arguments:
    return read_arguments(text) or {}


def _result_text(item: ToolItem) -> str:
    return text_of(item.result.parts) if item.result is not None else ""


def _views(item: ToolItem, kind: type[View]) -> list[View]:
    return [view for view in item.result.ui if isinstance(view, kind)] if item.result is not None else []


# --- parts of a body ---


_NO_HIT = ("[", "(", "--", "No ")
_NUMBER = re.compile(r"\d+[:-]")
_PLACE = re.compile(r"([^:]+)([:-]\d+[:-])")


class Matches(Output, frozen=True):
    """What a search found: the places are told from the text."""

    def spans(self) -> Sequence[Sequence[Span]]:
        """Return its lines."""
        return [_with_place(line) for line in ansi_lines(self.content, self.style)]


def _with_place(line: Sequence[Span]) -> Sequence[Span]:
    if len(line) != 1 or line[0][0].startswith(_NO_HIT):
        return line
    text, style = line[0]
    if number := _NUMBER.match(text):
        return [(number[0], "faint"), (text[number.end() :], style)]
    if place := _PLACE.match(text):
        return [(place[1], "path"), (place[2], "faint"), (text[place.end() :], style)]
    return [(text, "path")]


class Change(Struct, frozen=True):
    """A change to a file."""

    view: DiffView

    @property
    def text(self) -> str:
        """The diff."""
        return self.view.diff

    def lines(self, frame: Frame) -> list[Line]:
        """Return its rows."""
        limit, layout = (None if frame.unfolded else FOLDED_ROWS), frame.diff_layout
        return diff_lines(self.view, frame.body, frame.glyphs, limit, layout, expand_key=frame.expand_key)

    def height(self, frame: Frame) -> int:
        """Return about how many rows it has."""
        return diff_height(self.view, frame.body, None if frame.unfolded else FOLDED_ROWS, frame.diff_layout)


class ChangedFile(Struct, frozen=True):
    """One of several files that a call changed: its name above its change."""

    view: DiffView

    @property
    def text(self) -> str:
        """The file's path, and what became of it."""
        return "".join(text for text, _ in diff_head(self.view, UNICODE))

    def lines(self, frame: Frame) -> list[Line]:
        """Return its row."""
        return [fit(diff_head(self.view, frame.glyphs), frame.body)]

    def height(self, frame: Frame) -> int:
        """Return how many rows it has."""
        del frame
        return 1


class Todos(Struct, frozen=True):
    """A todo list."""

    items: tuple[TodoItem, ...]

    @property
    def text(self) -> str:
        """What is to be done, a line each."""
        return "\n".join(sanitize_line(item.text) for item in self.items)

    def lines(self, frame: Frame) -> list[Line]:
        """Return its rows."""
        return todo_lines(self.items, frame.body, frame.glyphs)

    def height(self, frame: Frame) -> int:
        """Return about how many rows it has."""
        return wrapped_rows(self.text, frame.body - 2) if self.items else 0


class Plan(Struct, frozen=True):
    """A plan, folded its beginning."""

    content: str

    @property
    def text(self) -> str:
        """The plan's source."""
        return sanitize_for_terminal(self.content)

    def lines(self, frame: Frame) -> list[Line]:
        """Return its rows."""
        lines = render_blocks(self.content, frame.body, frame.glyphs)
        if frame.unfolded or len(lines) <= PLAN_ROWS + 1:
            return lines
        return [*lines[:PLAN_ROWS], more_row(f"{len(lines) - PLAN_ROWS} rows", frame)]

    def height(self, frame: Frame) -> int:
        """Return about how many rows it has."""
        rows = wrapped_rows(self.content.strip("\n"), frame.body)
        return rows if frame.unfolded else min(rows, PLAN_ROWS + 1)


# --- the tools ---


class ToolRenderer(Struct, frozen=True, kw_only=True):
    """How calls of one tool are shown.

    `subject` is what a call is about (`None`: its title says that); for an empty one the summary of the call stands.
    `body` is what stands below the head of a call that ran: all of it when unfolded, else what shows folded, which is
    nothing for a quiet tool. The facts in the head are those of the result (`session/results.py`), and with `lines` how
    many there are where nothing else is counted.
    """

    title: str
    subject: Callable[[Arguments], str] | None
    lines: bool
    body: Callable[[ToolItem, bool], Sequence[Part]]


def _output(item: ToolItem, _unfolded: bool = True) -> Sequence[Part]:
    return [Output(_result_text(item), is_cut=item.result is not None and item.result.truncated)]


def _only_unfolded(item: ToolItem, unfolded: bool) -> Sequence[Part]:
    return _output(item) if unfolded else ()


def _path(arguments: Arguments) -> str:
    return argument(arguments, "path", "file_path", "file")


def _edited(arguments: Arguments) -> str:
    path = _path(arguments)
    return f"{path}{count_edits(arguments)}" if path else ""


def _range(arguments: Arguments) -> str:
    path, offset, limit = _path(arguments), arguments.get("offset"), arguments.get("limit")
    begin = offset if isinstance(offset, int) and offset > 0 else 1
    if isinstance(limit, int):
        return f"{path}:{begin}-{begin + limit - 1}"
    return f"{path}:{begin}-" if begin > 1 else path


def _agent_subject(arguments: Arguments) -> str:
    name, words = (
        argument(arguments, "agent", "subagent_type") or "general",
        argument(arguments, "description", "prompt"),
    )
    return f"{name}: {words}"


def _diff_body(item: ToolItem, unfolded: bool) -> Sequence[Part]:
    views = _views(item, DiffView)
    if len(views) < 2:
        return [Change(view) for view in views if view.diff] or _only_unfolded(item, unfolded)
    parts: list[Part] = []
    for place, view in enumerate(views):
        parts.append(ChangedFile(view))
        if view.diff and (unfolded or place < FOLDED_FILES):
            parts.append(Change(view))
    return parts


def _shell_body(item: ToolItem, _unfolded: bool) -> Sequence[Part]:
    return [_command_output(item, shown_text(item.result) if item.result is not None else "")]


def _command_output(item: ToolItem, text: str) -> Part:
    return Output(text, SHELL_HEAD, SHELL_TAIL, is_cut=item.result is not None and item.result.truncated)


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


def _todo_body(item: ToolItem, _unfolded: bool) -> Sequence[Part]:
    return [Todos(view.items) for view in _views(item, TodoView) if view.items] or _output(item)


def _plan_body(item: ToolItem, _unfolded: bool) -> Sequence[Part]:
    """Return the plan itself, then what the user said to it."""
    parts: list[Part] = []
    for view in _views(item, PlanView)[:1]:
        parts += [Plan(view.text), Words(view.feedback, "You: ")] if view.feedback else [Plan(view.text)]
    return parts or _output(item)


TOOL_RENDERERS: dict[str, ToolRenderer] = {
    "read": ToolRenderer(title="Read", subject=_range, lines=True, body=_only_unfolded),
    "write": ToolRenderer(title="Write", subject=_path, lines=False, body=_diff_body),
    "edit": ToolRenderer(title="Edit", subject=_edited, lines=False, body=_diff_body),
    "apply_patch": ToolRenderer(title="Patch", subject=describe_patch, lines=False, body=_diff_body),
    "bash": ToolRenderer(title="Bash", subject=lambda given: argument(given, "command"), lines=False, body=_shell_body),
    "grep": ToolRenderer(
        title="Grep",
        subject=lambda given: argument(given, "pattern"),
        lines=True,
        body=lambda item, _unfolded: [Matches(_result_text(item))],
    ),
    "glob": ToolRenderer(title="Glob", subject=lambda given: argument(given, "pattern"), lines=True, body=_output),
    "todo": ToolRenderer(title="Todo", subject=None, lines=False, body=_todo_body),
    "plan": ToolRenderer(
        title="Plan",
        subject=lambda given: first_heading(argument(given, "plan")),
        lines=False,
        body=_plan_body,
    ),
    "fetch": ToolRenderer(
        title="Fetch", subject=lambda given: argument(given, "url"), lines=False, body=_only_unfolded
    ),
    "jobs": ToolRenderer(
        title="Jobs",
        subject=lambda given: " ".join(filter(None, (argument(given, "action"), argument(given, "job")))),
        lines=False,
        body=_shell_body,
    ),
    "recall": ToolRenderer(
        title="Recall", subject=lambda given: argument(given, "query", "seq"), lines=True, body=_only_unfolded
    ),
    "skill": ToolRenderer(
        title="Skill", subject=lambda given: argument(given, "name", "skill"), lines=False, body=_only_unfolded
    ),
    "agent": ToolRenderer(title="Agent", subject=_agent_subject, lines=False, body=_output),
    "compact": ToolRenderer(
        title="Compact", subject=lambda given: argument(given, "focus"), lines=False, body=_only_unfolded
    ),
}
"""Every built-in tool has its own; all others are shown by `_unknown`."""


class Drawn(Struct, frozen=True):
    """What an extension's renderer made of a result."""

    rows: tuple[tuple[tuple[str, str], ...], ...]

    @property
    def text(self) -> str:
        """Its rows without their styles."""
        return "\n".join(sanitize_line("".join(text for text, _ in row)) for row in self.rows)

    def lines(self, frame: Frame) -> list[Line]:
        """Return its rows, wrapped; folded, the first of them."""
        lines = [line for row in self.rows for line in _own_row([_own_span(*span) for span in row], frame.body)]
        if frame.unfolded or len(lines) <= DRAWN_ROWS + 1:
            return lines
        return [*lines[:DRAWN_ROWS], more_row(f"{len(lines) - DRAWN_ROWS} rows", frame)]

    def height(self, frame: Frame) -> int:
        """Return about how many rows it has."""
        rows = wrapped_rows(self.text, frame.body)
        return rows if frame.unfolded else min(rows, DRAWN_ROWS + 1)


def _own_row(spans: list[Span], width: int) -> list[Line]:
    """Return a row as it is where it fits, so that its columns stay; else wrapped."""
    if sum(cell_width(text) for text, _ in spans) <= width:
        return [Line(tuple(spans))]
    return wrap(spans, width)


def _own_span(text: str, style: str) -> Span:
    """Return a span of an extension; a style that extensions do not have is plain."""
    return sanitize_for_terminal(text).replace("\n", " "), style if style in OWN_STYLES else "text"


def _own_body(item: ToolItem, unfolded: bool) -> Sequence[Part]:
    drawn = [Drawn(view.lines) for view in _views(item, OwnView) if view.lines]
    return drawn or _output(item, unfolded)


def _unknown(name: str) -> ToolRenderer:
    body = _framed if name.startswith("mcp") else _own_body
    return ToolRenderer(title=sanitize_line(name) or "tool", subject=_pairs, lines=False, body=body)


def _framed(item: ToolItem, _unfolded: bool = True) -> Sequence[Part]:
    """Return what a server answered, without the tags that tell the model that it is data."""
    text = _result_text(item).removeprefix(f"<{SERVER_TAG}>\n").removesuffix(f"\n</{SERVER_TAG}>")
    return [Output(text, is_cut=item.result is not None and item.result.truncated)]


def _pairs(arguments: Arguments) -> str:
    pairs = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"({pairs})" if pairs else ""


# --- a call in whatever state it is ---


def render_tool(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the lines of a tool call in whatever state it is."""
    whole = frame.unfolded or item.state == "waiting"
    mark = "error" if item.unresolved else f"tool.{item.state}"
    return [
        *head(_mark(item, frame), mark, _head(item, frame, whole=whole), frame, whole=whole),
        *below([line for part in _body(item, unfolded=frame.unfolded) for line in part.lines(frame)]),
    ]


def tool_height(item: ToolItem, frame: Frame) -> int:
    """Return about how many rows `render_tool` would give, at the cost of counting line ends."""
    rows = sum(part.height(frame) for part in _body(item, unfolded=frame.unfolded))
    if not (frame.unfolded or item.state == "waiting"):
        return rows + 1
    return rows + wrapped_rows(f"{_renderer(item).title} {_subject(item, whole=True)}", frame.width)


def has_body(item: ToolItem) -> bool:
    """Return whether something stands below a call's head, judged without drawing it."""
    return any(part.text.strip("\n") for part in _body(item, unfolded=not item.folded))


def tool_name(item: ToolItem) -> str:
    """Return what a call is called: its tool, and what it is about."""
    return f"{_renderer(item).title} {_subject(item, whole=True)}".rstrip()


def tool_text(item: ToolItem, head_line: str = "") -> str:
    """Return what search and copy see of a call: its head as `tool_name` gives it, and everything below."""
    return "\n".join((head_line or tool_name(item), *(part.text for part in _body(item, unfolded=True))))


def copied_tool(item: ToolItem) -> str:
    """Return what copying the whole call gives: a command as one types it, everything else as it is searched."""
    return tool_text(item, f"$ {_subject(item, whole=True)}" if item.name == "bash" else "")


def _renderer(item: ToolItem) -> ToolRenderer:
    return TOOL_RENDERERS.get(item.name) or _unknown(item.name)


def _mark(item: ToolItem, frame: Frame) -> str:
    glyphs = frame.glyphs
    return {
        "writing": glyphs.ring,
        "ready": glyphs.ring,
        "waiting": glyphs.question,
        "running": glyphs.dot,
        "done": glyphs.dot,
        "failed": glyphs.failed,
        "interrupted": glyphs.stopped,
        "denied": glyphs.denied,
    }[item.state]


def _head(item: ToolItem, frame: Frame, *, whole: bool) -> list[Span]:
    facts: list[Span] = []
    for fact in _facts(item, frame):
        facts.extend(((f" {frame.glyphs.middle} ", "dim"), *fact))
    spans: list[Span] = [(_renderer(item).title, "tool.name")]
    subject = _subject(item, whole=whole)
    if subject:
        # A long command is cut, never what became of it.
        taken = sum(cell_width(text) for text, _style in (*spans, *facts)) + 1
        room = max(frame.width - taken, frame.width // 3)
        text = subject if whole else truncate(subject, room, frame.glyphs.ellipsis)
        path = _arguments(item.arguments).get("path") if item.name in FILE_TOOLS else None
        link = f" {file_link(path)}" if isinstance(path, str) and path else ""
        spans.extend(((" ", "text"), (text, f"tool.subject{link}")))
    return [*spans, *facts]


def _subject(item: ToolItem, *, whole: bool) -> str:
    """Return what a call is about; a command keeps its own lines where there is room for them."""
    make = _renderer(item).subject
    if make is None:
        return ""
    arguments = _arguments(item.arguments)
    path = changed_path(item.result) if item.name in FILE_TOOLS else ""
    own = make(arguments | {"path": path} if path else arguments)
    text = own or item.summary if item.name in TOOL_RENDERERS else item.summary or own
    return sanitize_for_terminal(text).strip() if whole else sanitize_line(text)


def _facts(item: ToolItem, frame: Frame) -> list[Sequence[Span]]:
    """Return what stands behind the subject: the state in words where it is not plain success, counts, time."""
    facts: list[Sequence[Span]]
    match item.state:
        case "writing":
            return [[(f"writing {format_count(item.characters)} characters", "dim")]] if item.characters else []
        case "ready":
            return []
        case "waiting":
            return [[("waiting for your answer", "warning")]]
        case "running":
            elapsed = frame.now - item.started if item.started else 0.0
            facts = _progress(item)
            if elapsed >= ELAPSED_AFTER:
                facts.append([(format_seconds(float(int(elapsed))).replace(".0s", "s"), "dim")])
            return facts
        case "done":
            facts = _own_facts(item, frame)
        case "failed":
            failed = "error" if item.unresolved else "muted"
            told = _own_facts(item, frame) if _views(item, ShellView) or _views(item, AgentView) else []
            shows_why = bool(told) and not _views(item, AgentView)
            facts = told if shows_why else [[("failed", failed)], *told]
        case "interrupted":
            facts = [[("interrupted", "warning")], *_own_facts(item, frame)]
        case "denied":
            facts = [[("denied", "warning")]]
    if item.seconds >= LONG_AFTER:
        facts.append([(format_seconds(item.seconds), "dim")])
    return facts


def _progress(item: ToolItem) -> list[Sequence[Span]]:
    """Return how far the sub-agent is that a running call has."""
    progress = item.progress
    if progress is None:
        return []
    facts: list[Sequence[Span]] = [[(plural(progress.steps, "step"), "dim")]]
    if progress.tokens:
        facts.append([(format_spending(progress.tokens, progress.cost), "dim")])
    return facts


_TONES: dict[Tone, str] = {
    "plain": "dim",
    "good": "success",
    "warning": "warning",
    "added": "diff.plus",
    "removed": "diff.minus",
}


def _own_facts(item: ToolItem, frame: Frame) -> list[Sequence[Span]]:
    if item.result is None:
        return []
    facts: list[Sequence[Span]] = []
    for fact in result_facts(item.result, lines=_renderer(item).lines):
        spans: list[Span] = []
        for words, tone in fact:
            shown = words.replace("−", frame.glyphs.minus).replace("×", frame.glyphs.times)
            spans += [(" ", "dim"), (shown, _TONES[tone])] if spans else [(shown, _TONES[tone])]
        facts.append(spans)
    return facts


def _body(item: ToolItem, *, unfolded: bool) -> list[Part]:
    """Return what stands below a call's head."""
    match item.state:
        case "writing" | "ready" | "waiting":
            return []
        case "running":
            return [last_lines(item.output, LIVE_TAIL, unfolded=unfolded)]
        case "done":
            parts = _renderer(item).body(item, unfolded)
        case "failed":
            # The model often recovers by itself: told quietly, in full on demand.
            has_run = bool(_views(item, ShellView) or _views(item, AgentView))
            parts = _renderer(item).body(item, unfolded) if has_run else [Words(_result_text(item), style="muted")]
        case "interrupted":
            # The head says that it was; what there was of it is shown as if it had ended.
            parts = [_command_output(item, output_before(_result_text(item)))]
        case "denied" if unfolded:
            parts = [Output(_result_text(item), style="muted")]
        case "denied":
            parts = [Words(view.feedback, "your reason: ") for view in _views(item, DenialView)]
    if unfolded and item.result is not None and item.result.output_path:
        path = item.result.output_path
        parts = [*parts, Words(path, "whole output: ", f"path {file_link(sanitize_line(path))}")]
    return list(parts)
