"""The open approval: exactly what would happen, why it is asked, and the answers. Pure."""

from __future__ import annotations

from tenuto.guard.sanitize import sanitize_for_terminal, sanitize_line
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.line_editor import LineEditor
from tenuto.tui.machine.state import UiState, approval_options
from tenuto.tui.panels.panel import NOTHING, PAD, POINTER, ROOMY_ROWS, Panel, editor_spans, padded
from tenuto.tui.render.diff import diff_lines, diff_summary
from tenuto.tui.render.fit import filled, fit_lines
from tenuto.tui.render.line import EMPTY, Line, Span, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.width import truncate
from tenuto.tui.render.wrap import wrap, wrap_code

DETAIL_ROWS = 12
"""Rows of a command or change that an approval shows before Ctrl+E shows all."""


def approval_panel(
    state: UiState, width: int, rows: int, glyphs: Glyphs, feedback: LineEditor, *, full: bool, scroll: int
) -> Panel:
    """Return the open approval: exactly what would happen, why it is asked, and the answers.

    `rows` is how many rows there are at most; with `full` the whole command or change can be scrolled through.
    """
    request = state.approvals.current
    if request is None:
        return NOTHING
    position, total = state.approvals.position
    count: list[Span] = [(f"  {position} of {total}", "dim")] if total > 1 else []
    summary = "" if request.detail.strip() == request.summary.strip() else sanitize_line(request.summary)
    tool = sanitize_line(request.tool).capitalize()
    title = truncate(f"{tool} {summary}".strip(), width - 24)
    head: list[Line] = [Line(((PAD, "text"), ("Allow? ", "tool.waiting"), (title, "bold"), *count))]
    tight = rows < ROOMY_ROWS
    gap = [] if tight else [EMPTY]
    if request.reason and not tight:
        head += [padded(line) for line in wrap([(sanitize_line(request.reason), "dim")], width - 4)[:3]]
    answers, choices = _answers(state, request, width, feedback)
    if tight:
        answers = answers[:-1]
    room = max(2, rows - len(head) - len(answers) - 2 * len(gap))
    detail = approval_detail(request, width - 4, glyphs)
    shown, scrolled = _bounded(detail, room if full else min(room, DETAIL_ROWS), scroll if full else 0)
    above = [*head, *gap, *shown, *gap]
    return Panel(
        fit_lines([*above, *answers], width), {len(above) + row: place for row, place in choices.items()}, scrolled
    )


def approval_detail(request: ApprovalRequestedEvent, width: int, glyphs: Glyphs) -> list[Line]:
    """Return exactly what would happen, all of it: the command, or the change."""
    if request.diff is not None:
        head = Line(
            ((PAD, "text"), (sanitize_line(request.diff.path), "path"), (" ", ""), *diff_summary(request.diff, glyphs))
        )
        return [head, *(padded(filled(line, width)) for line in diff_lines(request.diff, width, glyphs))]
    text = sanitize_for_terminal(request.detail or request.summary).expandtabs(4).strip("\n")
    return [
        padded(line) for part in text.split("\n") for line in wrap_code([(part, "shell.command")], width) or [EMPTY]
    ]


def _bounded(lines: list[Line], rows: int, scroll: int) -> tuple[list[Line], int]:
    """Return the lines that fit, with a line that says how many do not: nothing is cut silently."""
    if len(lines) <= rows:
        return lines, 0
    room = max(1, rows - 1)
    first = max(0, min(scroll, len(lines) - room))
    below = len(lines) - first - room
    hint = (
        f"{PAD}… {first} above, {below} below · PageUp/PageDown"
        if first or scroll
        else f"{PAD}… +{below} lines · Ctrl+E shows all"
    )
    return [*lines[first : first + room], plain(hint, "dim")], first


def _answers(
    state: UiState, request: ApprovalRequestedEvent, width: int, feedback: LineEditor
) -> tuple[list[Line], dict[int, int]]:
    lines: list[Line] = []
    choices: dict[int, int] = {}
    writing = state.approvals.feedback is not None
    for place, option in enumerate(approval_options(request)):
        selected = place == state.approvals.selected
        text = truncate(f"{place + 1}. {sanitize_line(option.label)}", width - 10)
        choices[len(lines)] = place
        lines.append(_choice(text, option.letter, selected=selected))
        if writing and option.feedback:
            lines.append(Line((("     ", "text"), *editor_spans(feedback, width - 6))))
    hint = "Enter sends · Esc back" if writing else "Enter · number or letter · Esc denies"
    lines.append(plain(f"{PAD}  {hint}", "faint"))
    return lines, choices


def _choice(text: str, letter: str, *, selected: bool) -> Line:
    style = "choice.selected" if selected else "text"
    return Line(((PAD, "text"), (POINTER if selected else PAD, "accent"), (text, style), (f"  {letter}", "faint")))
