"""The footer and the line above the editor, as lines. Pure: the same state and time give the same line."""

from __future__ import annotations

import math
from collections.abc import Sequence

from tenuto.guard.sanitize import sanitize_line
from tenuto.text.figures import format_cost, format_count
from tenuto.tui.machine.state import StatusLine, UiState
from tenuto.tui.render.fit import fit
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.width import cell_width, truncate_middle

SEPARATOR: Span = (" · ", "faint")
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STILL_FRAME = "●"
BAR_CELLS = 10
MIDDLE_SHARE, HIGH_SHARE = 0.7, 0.9
MIN_DIRECTORY = 12
MODE_STYLES = {"ask": "status.mode", "edits": "success", "auto": "warning", "plan": "compaction"}


def footer_line(state: UiState, width: int, home: str) -> Line:
    """Return the footer: what and where on the left, how full and how much on the right.

    What does not fit goes in the order of its worth: the bar, the cost, the branch, the directory, the effort.
    """
    left, right = _footer_parts(state, home, 0)
    for dropped in range(6):
        left, right = _footer_parts(state, home, dropped)
        room = width - _width(right) - 2
        left = _shorten_directory(left, room)
        if _width(left) <= room:
            break
    gap = max(1, width - _width(left) - _width(right))
    return fit((*left, (" " * gap, "status"), *right), width)


def _footer_parts(state: UiState, home: str, dropped: int) -> tuple[list[Span], list[Span]]:
    left = _left(state.status, home, branch=dropped < 3, directory=dropped < 4, effort=dropped < 5)
    return left, _right(state, bar=dropped < 1, cost=dropped < 2)


def _left(status: StatusLine, home: str, *, branch: bool, directory: bool, effort: bool) -> list[Span]:
    parts: list[Span] = [(status.mode, MODE_STYLES[status.mode])]
    if status.model:
        model = sanitize_line(status.model)
        parts.append((f"{model}:{status.effort}" if effort and status.effort else model, "status"))
    if directory and status.cwd:
        parts.append((home_relative(sanitize_line(status.cwd), home), "directory"))
    if branch and status.branch:
        parts.append((sanitize_line(status.branch), "status"))
    return _join(parts)


def _right(state: UiState, *, bar: bool, cost: bool) -> list[Span]:
    parts: list[Span] = []
    if state.queue:
        parts.append((f"{len(state.queue)} queued", "accent"))
    if cost and state.status.cost:
        parts.append((format_cost(state.status.cost), "status"))
    meter = _meter(state.status, bar=bar)
    return _join(parts) + ([SEPARATOR] if parts and meter else []) + meter


def _meter(status: StatusLine, *, bar: bool) -> list[Span]:
    if not status.tokens:
        return []
    mark = "~" if status.estimated else ""
    count = f"{mark}{format_count(status.tokens)}"
    share = status.share
    if share is None or status.window is None:
        return [(f"{count} tokens", "status")]
    style = "meter.low" if share < MIDDLE_SHARE else "meter.middle" if share < HIGH_SHARE else "meter.high"
    over = " over" if share > 1 else ""
    spans: list[Span] = [(f"{count}/{format_count(status.window)} {math.ceil(share * 100)}%{over}", "status")]
    if bar:
        filled = min(BAR_CELLS, max(1, round(share * BAR_CELLS)))
        spans = [("━" * filled, style), ("━" * (BAR_CELLS - filled), "faint"), (" ", "status"), *spans]
    elif share >= MIDDLE_SHARE:
        spans = [(spans[0][0], style)]
    return spans


def _shorten_directory(spans: list[Span], room: int) -> list[Span]:
    excess = _width(spans) - room
    if excess <= 0:
        return spans
    return [
        (truncate_middle(text, max(MIN_DIRECTORY, cell_width(text) - excess)), style) if style == "directory" else one
        for one in spans
        for text, style in [one]
    ]


def status_line(state: UiState, now: float, width: int, frame: int | None, toast: Span | None) -> Line:
    """Return the line above the editor: what goes on and since when, or a hint. `frame` is `None` for no motion."""
    left = _activity(state, now, frame)
    notice = _notice(state, toast)
    if not notice:
        return fit(left, width)
    if not left:
        return fit([("  ", "status"), notice], width)
    gap = width - _width(left) - cell_width(notice[0])
    return Line((*left, (" " * gap, "status"), notice)) if gap >= 2 else fit([("  ", "status"), notice], width)


def _activity(state: UiState, now: float, frame: int | None) -> list[Span]:
    top = state.spinner.top
    if top is None:
        return []
    glyph = STILL_FRAME if frame is None else FRAMES[frame % len(FRAMES)]
    facts: list[str] = []
    label = top.label
    if state.retry is not None:
        wait = max(0, math.ceil(state.retry.until - now))
        label = f"Retrying in {wait}s" if wait else "Retrying"
        facts.append(f"attempt {state.retry.attempt} of {state.retry.attempts}")
    elif top.detail:
        facts.append(sanitize_line(top.detail))
    seconds = int(now - top.since)
    if seconds >= 1:
        facts.append(f"{seconds}s" if seconds < 60 else f"{seconds // 60}m {seconds % 60}s")
    facts.append("esc to interrupt" if top.kind != "compaction" else "esc to cancel")
    if state.retry is not None:
        # Last, for it may be long: what can be done has to stay on the screen.
        facts.append(sanitize_line(state.retry.reason))
    return _join([(f"{glyph} {sanitize_line(label)}", "accent"), *((fact, "dim") for fact in facts)])


def _notice(state: UiState, toast: Span | None) -> Span | None:
    if state.hint is not None:
        return sanitize_line(state.hint.text), "dim"
    if toast is not None:
        return sanitize_line(toast[0]), toast[1]
    if state.approvals.held_back:
        return "approval needed: opens when you stop typing", "warning"
    if state.contexts[0] == "shell":
        kept = state.draft.text.startswith("!!")
        return "runs in your shell" + (
            ", the model does not see it" if kept else " · !! hides it from the model"
        ), "dim"
    if state.waiting and state.queue and not state.running:
        return "the queue waits: Enter sends it", "dim"
    return None


def home_relative(path: str, home: str) -> str:
    """Return the path with the home directory as `~`."""
    return "~" + path[len(home) :] if home and (path == home or path.startswith(home.rstrip("/") + "/")) else path


def _join(parts: Sequence[Span]) -> list[Span]:
    spans: list[Span] = []
    for part in parts:
        if spans:
            spans.append(SEPARATOR)
        spans.append(part)
    return spans


def _width(spans: Sequence[Span]) -> int:
    return sum(cell_width(text) for text, _ in spans)
