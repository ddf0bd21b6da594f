"""A list to pick from, with its filter and the selected row's preview. Pure."""

from __future__ import annotations

from tenuto.command.outcome import Choice, RowAct
from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.tui.keys.bindings import PHRASE_MARK, fit_phrases, join_phrases
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.machine.state import Picker, RowQuestion, UiState
from tenuto.tui.panels.panel import (
    ENTRY_MARGINS,
    NOTHING,
    PAD,
    POINTER,
    Panel,
    editor_spans,
    entry_line,
    first_shown,
    hidden_rows,
    label_width,
    padded,
    typed_spans,
)
from tenuto.tui.render.line import EMPTY, Line, Span, fit_lines, plain
from tenuto.tui.render.status import spans_width
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.render.wrap import wrap

ROOMY_ROWS = 11
"""With fewer, nothing of the selected row is shown beside the list."""
PICKER_ROWS = 12
FILTER_CELLS = 12
"""Cells for what is typed to filter, before the key of the other filters is named."""
ACTS: dict[RowAct, str] = {"rename": "rename", "delete": "delete", "fork": "fork", "end": "end"}
"""What the keys of the acts on a row are said to do."""
ACT_KEYS: dict[RowAct, str] = {"end": "picker.delete"}
"""The acts that have another one's key."""
QUESTION_HINTS: dict[str, tuple[str, str]] = {
    "rename": ("save", "cancel"),
    "delete": ("yes", "no"),
    "end": ("ends it", "lets it run"),
}
"""What confirms and what leaves a question about a row."""
MAX_INDENT = 8
"""Steps by which a row of a tree is moved in at most."""


def picker_panel(state: UiState, width: int, rows: int, filter_line: LineEditor) -> Panel:
    """Return the list to pick from, with its filter."""
    picker = state.picker
    if picker is None:
        return NOTHING
    preview = _preview(picker, width)
    room, preview_rows = _share(rows - 3, len(preview))
    first = first_shown(picker.selected, len(picker.shown), room)
    lines = [_head(state, picker, filter_line, width)]
    choices: dict[int, int] = {}
    shown = [picker.choices[place] for place in picker.shown[first : first + room]]
    labels = [_indented(choice) for choice in shown]
    widest, details = _columns(labels, [choice.detail for choice in shown], width)
    for row, (label, detail) in enumerate(zip(labels, details, strict=True), first):
        choices[len(lines)] = row
        if picker.question is not None and row == picker.selected:
            lines.append(_question_line(state, picker.question, label, filter_line, width))
        else:
            lines.append(entry_line(label, detail, widest, width, selected=row == picker.selected))
    if not shown:
        lines.append(plain(f"{PAD}  nothing matches", "dim"))
    lines += _scrolled(preview, preview_rows, picker.scrolled, width, _scroll_keys(state))
    more = f"{picker.selected + 1} of {len(picker.shown)}" if len(picker.shown) > room else ""
    lines.append(plain(f"{PAD}  {_hint(state, picker, more, width - 4)}", "faint"))
    return Panel(fit_lines(lines, width), choices)


def _columns(labels: list[str], facts: list[str], width: int) -> tuple[int, list[str]]:
    """Return the cells for the labels, and of each row's facts those that have room: a half one says nothing."""
    widest = label_width(labels, facts, width)
    safe = [sanitize_line(row) for row in facts]
    details = [fit_phrases(row, row.partition(PHRASE_MARK)[0], width - widest - ENTRY_MARGINS) for row in safe]
    free = width - ENTRY_MARGINS - max(map(cell_width, details), default=0)
    return max(widest, min(free, max(map(cell_width, labels), default=0))), details


def _head(state: UiState, picker: Picker, filter_line: LineEditor, width: int) -> Line:
    """Return the title, which rows show, and the filter; while a row is asked about, the text's cursor is there."""
    spans: list[Span] = [(PAD, "text"), (sanitize_line(picker.title), "panel.title"), ("  ", "text")]
    if picker.filters:
        name = picker.filters[picker.row_filter].name
        labelled = f"Filter: {name} ({state.keys.label('picker.filter')})"
        is_wide = spans_width(spans) + cell_width(labelled) + FILTER_CELLS <= width
        spans += [(labelled if is_wide else name, "accent"), ("  ", "text")]
    if picker.question is not None:
        return Line((*spans, (sanitize_line(picker.filter), "dim")))
    return Line((*spans, *typed_spans(filter_line, max(8, width - spans_width(spans)), "type to filter")))


def _question_line(state: UiState, question: RowQuestion, label: str, answer: LineEditor, width: int) -> Line:
    """Return the selected row while something is asked about it: its new title, or whether it is to go."""
    pointer: tuple[Span, ...] = ((PAD, "text"), (POINTER, "accent"))
    if question.act == "rename":
        return Line((*pointer, ("title: ", "dim"), *editor_spans(answer, width - 14)))
    asks = f"{question.act}? {state.keys.label('row.answer')} / {state.keys.label('escape')}"
    room = max(1, width - cell_width(asks) - 8)
    return Line((*pointer, (truncate(label, room), "choice.selected"), ("  ", "text"), (asks, "warning")))


def _hint(state: UiState, picker: Picker, more: str, width: int) -> str:
    """Return what the keys do here, the way out always."""
    keys = state.keys
    if picker.question is not None:
        does, leaves = QUESTION_HINTS[picker.question.act]
        way_out = keys.phrase("escape", leaves)
        return fit_phrases(join_phrases(keys.phrase("row.answer", does), way_out), way_out, width)
    acts = [keys.phrase(ACT_KEYS.get(act, f"picker.{act}"), does) for act, does in ACTS.items() if act in picker.acts]
    way_out = keys.phrase("escape", "close")
    takes = keys.phrase("picker.pick", "select")
    phrases = (takes, *acts, way_out, more) if acts else (more, takes, way_out)
    return fit_phrases(join_phrases(*phrases), way_out, width)


def _scroll_keys(state: UiState) -> str:
    """Return the keys that scroll the preview, to be put behind the figures."""
    labels = [state.keys.label("picker.preview_up"), state.keys.label("picker.preview_down")]
    return f" · {' '.join(labels)}" if all(labels) else ""


def _indented(choice: Choice) -> str:
    """Return a row's label behind its mark and as far in as it stands; the indent is bounded, the label is not."""
    mark = f"{sanitize_for_terminal(choice.mark):<2}" if choice.mark else ""
    return f"{mark}{'  ' * min(choice.indent, MAX_INDENT)}{sanitize_line(choice.label)}"


def _share(rows: int, preview: int) -> tuple[int, int]:
    """Return how many rows the list gets and how many the preview; a short preview leaves its part to the list."""
    if not preview or rows < ROOMY_ROWS:
        return max(1, min(PICKER_ROWS, rows)), 0
    taken = min(preview + 1, rows // 2)
    return max(3, min(PICKER_ROWS, rows - taken)), taken


def _preview(picker: Picker, width: int) -> list[Line]:
    """Return the selected row's text, wrapped."""
    text = picker.current.preview if picker.current is not None else ""
    safe = sanitize_for_terminal(text).expandtabs(4).strip("\n")
    return [padded(line) for part in safe.split("\n") for line in wrap([(part, "dim")], width - 6) or [EMPTY] if safe]


def _scrolled(preview: list[Line], rows: int, scrolled: int, width: int, keys: str) -> list[Line]:
    """Return a rule and as much of the preview as there is room for, with how much there is beside."""
    if rows < 2:
        return []
    room = rows - 1
    first = max(0, min(scrolled, len(preview) - room))
    below = len(preview) - first - room
    more = f" {hidden_rows(first, below)}{keys} " if first or below > 0 else ""
    rule = f"{'─' * max(0, width - 4 - len(more) - 2)}{more}──"
    return [plain(f"{PAD}{rule}", "rule"), *preview[first : first + room]]
