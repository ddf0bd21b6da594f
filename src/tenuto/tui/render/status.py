"""The line above the editor: what goes on, or a hint. Pure: the same state and time give the same line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.machine.state import TaskKind, UiState
from tenuto.tui.render.line import Line, Span, fit
from tenuto.tui.render.width import cell_width

LONG_DRAFT = 60
"""Characters on one line from which on somebody may look for the key that begins another."""
SEPARATOR: Span = (" · ", "faint")
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STILL_FRAME = "●"


def status_line(state: UiState, now: float, width: int, frame: int | None, toast: Span | None) -> Line:
    """Return the line above the editor: what goes on and since when, or a hint. `frame` is `None` for no motion."""
    left = _activity(state, now, width, frame)
    notice = _notice(state, toast)
    if not notice:
        return fit(left, width)
    if not left:
        return fit([("  ", "status"), notice], width)
    gap = width - spans_width(left) - cell_width(notice[0])
    return Line((*left, (" " * gap, "status"), notice)) if gap >= 2 else fit([("  ", "status"), notice], width)


def _activity(state: UiState, now: float, width: int, frame: int | None) -> list[Span]:
    top = state.spinner.top
    if top is None:
        return []
    glyph = STILL_FRAME if frame is None or state.is_asking else FRAMES[frame % len(FRAMES)]
    facts: list[str] = []
    label = top.label
    if state.retry is not None:
        wait = max(0, math.ceil(state.retry.until - now))
        label = f"Retrying in {wait}s" if wait else "Retrying"
        facts.append(f"attempt {state.retry.attempt} of {state.retry.attempts}")
    elif top.detail:
        facts.append(sanitize_line(top.detail))
    seconds = int(now - top.since)
    if seconds >= 1 and not state.is_asking:
        facts.append(f"{seconds}s" if seconds < 60 else f"{seconds // 60}m {seconds % 60}s")
    begin = f"{glyph} {sanitize_line(label)}"
    escape = _escape(state, top.kind)
    # What can be done has to stay on the screen: where there is no room, other facts go; what may be long comes last.
    while facts and cell_width(begin) + sum(cell_width(fact) + 3 for fact in (*facts, *escape)) > width:
        facts.pop(0)
    last = [sanitize_line(state.retry.reason)] if state.retry is not None else []
    return join_spans([(begin, "accent"), *((fact, "dim") for fact in (*facts, *escape, *last))])


def _notice(state: UiState, toast: Span | None) -> Span | None:
    if state.hint is not None:
        return sanitize_line(state.hint.text), "dim"
    if toast is not None:
        return sanitize_line(toast[0]), toast[1]
    if state.approvals.held_back:
        return "Approval needed: it opens when you stop typing", "warning"
    if state.contexts[0] == "shell":
        kept = state.draft.text.startswith("!!")
        return "Runs in your shell" + (
            ", the model does not see it" if kept else " · !! hides it from the model"
        ), "dim"
    if state.waiting and state.queue and not state.running:
        return f"Queue paused · {state.keys.phrase('send', 'to send')}", "dim"
    if len(state.draft.text) >= LONG_DRAFT and "\n" not in state.draft.text and state.newline_key:
        return f"{state.newline_key} begins a new line", "faint"
    return None


def _escape(state: UiState, task: TaskKind) -> list[str]:
    """Return what Esc does to the task; nothing while a question is open, whose own line says what it does there."""
    if state.approvals.current is not None:
        return []
    return [f"{_interrupt_key(state)} to {'interrupt' if task != 'compaction' else 'cancel'}"]


def _interrupt_key(state: UiState) -> str:
    return " ".join([state.keys.label("escape").lower()] * state.interrupt_presses)


def join_spans(parts: Sequence[Span]) -> list[Span]:
    """Return the parts with a separator between each two."""
    spans: list[Span] = []
    for part in parts:
        if spans:
            spans.append(SEPARATOR)
        spans.append(part)
    return spans


def spans_width(spans: Sequence[Span]) -> int:
    """Return the cells of all spans together."""
    return sum(cell_width(text) for text, _ in spans)
