"""A list to pick from, with its filter and the selected row's preview. Pure."""

from __future__ import annotations

from tenuto.command.outcome import Choice
from tenuto.guard.sanitize import sanitize_for_terminal, sanitize_line
from tenuto.tui.bindings import fit_phrases, join_phrases
from tenuto.tui.line_editor import LineEditor
from tenuto.tui.machine.state import Picker, UiState
from tenuto.tui.panels.panel import (
    NOTHING,
    PAD,
    ROOMY_ROWS,
    Panel,
    editor_spans,
    entry_line,
    first_shown,
    label_width,
    padded,
)
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import EMPTY, Line, Span, plain
from tenuto.tui.render.wrap import wrap

PICKER_ROWS = 12
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
    title: list[Span] = [(PAD, "text"), (sanitize_line(picker.title), "panel.title"), ("  ", "text")]
    if picker.filters:
        title += [
            (f"{picker.filters[picker.row_filter].name} ({state.keys.label('picker.filter')})", "accent"),
            ("  ", "text"),
        ]
    typed = editor_spans(filter_line, width // 2) if filter_line.text else [("type to filter", "placeholder")]
    lines = [Line((*title, *typed))]
    choices: dict[int, int] = {}
    shown = [picker.choices[place] for place in picker.shown[first : first + room]]
    labels = [_indented(choice) for choice in shown]
    widest = label_width(labels, [choice.detail for choice in shown], width)
    for row, (label, choice) in enumerate(zip(labels, shown, strict=True), first):
        choices[len(lines)] = row
        lines.append(entry_line(label, choice.detail, widest, width, selected=row == picker.selected))
    if not shown:
        lines.append(plain(f"{PAD}  nothing matches", "dim"))
    lines += _scrolled(preview, preview_rows, picker.scrolled, width, _scroll_keys(state))
    more = f"{picker.selected + 1} of {len(picker.shown)}" if len(picker.shown) > room else ""
    hint = join_phrases(more, state.keys.phrase("picker.pick", "takes"), state.keys.phrase("escape", "closes"))
    hint = fit_phrases(hint, state.keys.phrase("escape", "closes"), width - 4)
    lines.append(plain(f"{PAD}  {hint}", "faint"))
    return Panel(fit_lines(lines, width), choices)


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
        return max(3, min(PICKER_ROWS, rows)), 0
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
    more = f" {first} above, {below} below{keys} " if first or below > 0 else ""
    rule = f"{'─' * max(0, width - 4 - len(more) - 2)}{more}──"
    return [plain(f"{PAD}{rule}", "rule"), *preview[first : first + room]]
