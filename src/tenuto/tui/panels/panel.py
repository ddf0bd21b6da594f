"""What all panels share, and the rows that are always there: the status line above the editor, the draft's images.

A panel is lines and what a click on them chooses. Pure: the same state and time give the same lines.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec import Struct, field

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.render.frame import image_words
from tenuto.tui.render.line import Line, Span, fit, fit_lines
from tenuto.tui.render.width import cell_width, pad, truncate
from tenuto.tui.state.state import TaskKind, UiState

LABEL_SHARE = 0.6
PAD = "  "
POINTER = "❯ "
ENTRY_MARGINS = 8
"""Cells of a list's row around its label and its detail."""


class Panel(Struct, frozen=True):
    """`choices` maps a row to the place of what a click on it chooses. `scrolled` says how far it really went.

    `has_all` says that there is nothing more of the list that it shows.
    """

    lines: Sequence[Line] = ()
    choices: dict[int, int] = field(default_factory=dict[int, int])
    scrolled: int = 0
    has_all: bool = False


NOTHING = Panel()


def typed_spans(editor: LineEditor, width: int, placeholder: str) -> list[Span]:
    """Return a one-line text as `editor_spans` does, or what may be typed there where that has room."""
    if editor.text:
        return editor_spans(editor, width)
    return [(" ", "reverse"), (placeholder if cell_width(placeholder) < width else "", "placeholder")]


def hidden_rows(above: int, below: int) -> str:
    """Return how many rows there are beside those that show."""
    return ", ".join(f"{count} {where}" for count, where in ((above, "above"), (below, "below")) if count > 0)


def editor_spans(editor: LineEditor, width: int) -> list[Span]:
    """Return a one-line text with its cursor, its end in view."""
    text = sanitize_line(editor.text) if not editor.text.isprintable() else editor.text
    before, at, after = text[: editor.cursor], text[editor.cursor : editor.cursor + 1], text[editor.cursor + 1 :]
    while before and cell_width(before) > width - 2:
        before = before[max(1, (cell_width(before) - width + 2) // 2) :]
    room = max(0, width - cell_width(before) - 1)
    return [(before, "text"), (at or " ", "reverse"), (truncate(after, room), "text")]


def entry_line(label: str, detail: str, label_width: int, width: int, *, selected: bool) -> Line:
    """Return a row of a list: what can be taken, and a dim remark beside it."""
    shown = pad(truncate(label, label_width), label_width)
    rest = truncate(sanitize_line(detail), width - label_width - ENTRY_MARGINS)
    style = "choice.selected" if selected else "text"
    return Line(
        ((PAD, "text"), (POINTER if selected else PAD, "accent"), (shown, style), ("  ", "text"), (rest, "dim"))
    )


def label_width(labels: Sequence[str], details: Sequence[str], width: int) -> int:
    """Return how many cells the labels of a list get."""
    widest = max(map(cell_width, labels), default=0)
    limit = int(width * LABEL_SHARE) if any(details) else width - 6
    return max(1, min(widest, limit))


def first_shown(selected: int, count: int, rows: int) -> int:
    """Return the first of `count` entries to show, so that the selected one is among `rows`."""
    return max(0, min(selected - rows // 2, count - rows))


def padded(line: Line) -> Line:
    """Return the line further in."""
    return Line(((PAD * 2, "text"), *line.spans))


LONG_DRAFT = 60
"""Characters on one line from which on somebody may look for the key that begins another."""
SEPARATOR: Span = (" · ", "faint")
FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
STILL_FRAME = "●"


BACKGROUND_HINT_SECONDS = 3
"""A turn that takes so long, and waits for a command, says how the command can go on by itself."""


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
    elif state.hooks:
        label = f"Waiting for the {state.hooks[0]}"
        facts += [f"and {len(state.hooks) - 1} more"] if state.hooks[1:] else []
    elif top.detail:
        facts.append(sanitize_line(top.detail))
    seconds = int(now - top.since)
    if seconds >= 1 and not state.is_asking:
        facts.append(f"{seconds}s" if seconds < 60 else f"{seconds // 60}m {seconds % 60}s")
    begin = f"{glyph} {sanitize_line(label)}"
    escape = _escape(state, top.kind)
    if seconds >= BACKGROUND_HINT_SECONDS and "command" in state.contexts:
        escape = [*escape, state.keys.phrase("background", "to the background")]
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


CHIP_ROWS = 4


def image_chips(state: UiState, width: int) -> Panel:
    """Return the chips; a click on one takes its image out."""
    images = state.draft.images
    first = max(0, len(images) - CHIP_ROWS)
    lines: list[Line] = []
    for number, image in enumerate(images[first:], first + 1):
        spans: list[Span] = [(PAD, "text"), (image_words(image, number), "user.image")]
        if number == len(images):
            remark = _remark(state)
            spans += [(remark, "faint")] if spans_width(spans) + cell_width(remark) <= width else []
        lines.append(Line(tuple(spans)))
    if lines and not state.status.sees_images:
        words = f"{PAD}{sanitize_line(state.status.model)} cannot see images; /model chooses another one"
        lines.append(Line(((words, "warning"),)))
    return Panel(fit_lines(lines, width), {row: first + row for row in range(len(images) - first)})


def _remark(state: UiState) -> str:
    key = state.keys.label("image.detach")
    more = len(state.draft.images) - CHIP_ROWS
    parts = ([f"+{more} above"] if more > 0 else []) + ([f"{key} at the start removes it"] if key else [])
    return f"  {' · '.join(parts)}" if parts else ""
