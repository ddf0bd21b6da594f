"""What opens around the editor, as lines: approvals, lists to pick from, completions, queue, todo, help. Pure.

Each function returns a `Panel`: its lines, and which of them a click chooses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tenuto.command.outcome import Choice
from tenuto.guard.sanitize import sanitize_for_terminal, sanitize_line
from tenuto.protocol.event import ApprovalRequestedEvent
from tenuto.tui.keys import help_rows
from tenuto.tui.line_editor import LineEditor
from tenuto.tui.machine.state import Picker, UiState, approval_options
from tenuto.tui.render.diff import diff_lines, diff_summary
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import EMPTY, Line, Span, plain
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.tools.looks import todo_lines
from tenuto.tui.render.width import cell_width, pad, truncate
from tenuto.tui.render.wrap import wrap, wrap_code

COMPLETION_ROWS = 8
PICKER_ROWS = 12
TODO_ROWS = 5
QUEUE_ROWS = 4
DETAIL_ROWS = 12
"""Rows of a command or change that an approval shows before Ctrl+E shows all."""
ROOMY_ROWS = 11
"""With fewer, an approval leaves out what is not the question or an answer."""
LABEL_SHARE = 0.6
MAX_INDENT = 8
"""Steps by which a row of a tree is moved in at most."""
PAD = "  "
POINTER = "❯ "


@dataclass(frozen=True, slots=True)
class Panel:
    """`choices` maps a row to the place of what a click on it chooses. `scrolled` says how far it really went."""

    lines: Sequence[Line] = ()
    choices: dict[int, int] = field(default_factory=dict[int, int])
    scrolled: int = 0


NOTHING = Panel()


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
        head += [_padded(line) for line in wrap([(sanitize_line(request.reason), "dim")], width - 4)[:3]]
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
        return [head, *(_padded(line) for line in diff_lines(request.diff, width, glyphs))]
    text = sanitize_for_terminal(request.detail or request.summary).expandtabs(4).strip("\n")
    return [
        _padded(line) for part in text.split("\n") for line in wrap_code([(part, "shell.command")], width) or [EMPTY]
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


def picker_panel(state: UiState, width: int, rows: int, filter_line: LineEditor) -> Panel:
    """Return the list to pick from, with its filter."""
    picker = state.picker
    if picker is None:
        return NOTHING
    preview = _preview(picker, width)
    room, preview_rows = _share(rows - 3, len(preview))
    first = _window(picker.selected, len(picker.shown), room)
    title: list[Span] = [(PAD, "text"), (sanitize_line(picker.title), "panel.title"), ("  ", "text")]
    if picker.filters:
        title += [(f"{picker.filters[picker.row_filter].name} (Tab)", "accent"), ("  ", "text")]
    typed = editor_spans(filter_line, width // 2) if filter_line.text else [("type to filter", "placeholder")]
    lines = [Line((*title, *typed))]
    choices: dict[int, int] = {}
    shown = [picker.choices[place] for place in picker.shown[first : first + room]]
    labels = [_indented(choice) for choice in shown]
    label_width = _label_width(labels, [choice.detail for choice in shown], width)
    for row, (label, choice) in enumerate(zip(labels, shown, strict=True), first):
        choices[len(lines)] = row
        lines.append(_entry(label, choice.detail, label_width, width, selected=row == picker.selected))
    if not shown:
        lines.append(plain(f"{PAD}  nothing matches", "dim"))
    lines += _scrolled(preview, preview_rows, picker.scrolled, width)
    more = f"{picker.selected + 1} of {len(picker.shown)} · " if len(picker.shown) > room else ""
    lines.append(plain(f"{PAD}  {more}Enter takes · Esc closes", "faint"))
    return Panel(fit_lines(lines, width), choices)


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
    return [_padded(line) for part in safe.split("\n") for line in wrap([(part, "dim")], width - 6) or [EMPTY] if safe]


def _scrolled(preview: list[Line], rows: int, scrolled: int, width: int) -> list[Line]:
    """Return a rule and as much of the preview as there is room for, with how much there is beside."""
    if rows < 2:
        return []
    room = rows - 1
    first = max(0, min(scrolled, len(preview) - room))
    below = len(preview) - first - room
    more = f" {first} above, {below} below · Shift+↑↓ " if first or below > 0 else ""
    rule = f"{'─' * max(0, width - 4 - len(more) - 2)}{more}──"
    return [plain(f"{PAD}{rule}", "rule"), *preview[first : first + room]]


def completion_panel(state: UiState, width: int, rows: int) -> Panel:
    """Return the completions of the word at the cursor."""
    popup = state.completion
    if popup is None:
        return NOTHING
    room = max(1, min(COMPLETION_ROWS, rows))
    first = _window(popup.selected, len(popup.items), room)
    shown = popup.items[first : first + room]
    labels = [sanitize_line(item.label) for item in shown]
    label_width = _label_width(labels, [item.detail for item in shown], width)
    lines = [
        _entry(label, item.detail, label_width, width, selected=place == popup.selected)
        for place, (label, item) in enumerate(zip(labels, shown, strict=True), first)
    ]
    return Panel(fit_lines(lines, width), {row: first + row for row in range(len(shown))})


def help_panel(width: int, rows: int, scroll: int) -> Panel:
    """Return the table of keys."""
    sections = help_rows()
    key_width = min(max(cell_width(keys) for _, entries in sections for keys, _ in entries), width // 2)
    lines: list[Line] = []
    for title, entries in sections:
        lines += [EMPTY] if lines else []
        lines.append(Line(((PAD, "text"), (title, "panel.title"))))
        for keys, text in entries:
            shown = pad(truncate(keys, key_width), key_width)
            meaning = truncate(text, width - key_width - 8)
            lines.append(Line((("    ", "text"), (shown, "accent"), ("  ", "text"), (meaning, "text"))))
    room = max(3, rows - 1)
    first = max(0, min(scroll, len(lines) - room))
    hint = f"{PAD}Esc closes" + (" · PageUp/PageDown" if len(lines) > room else "")
    return Panel(fit_lines([*lines[first : first + room], plain(hint, "faint")], width), scrolled=first)


def side_panel(state: UiState, width: int, glyphs: Glyphs) -> Panel:
    """Return the todo list while something of it is open, the queued texts, the images of the draft."""
    lines = _todo(state, width, glyphs)
    rows = state.queue if len(state.queue) <= QUEUE_ROWS else state.queue[: QUEUE_ROWS - 1]
    for queued in rows:
        mark = "steer" if queued.steer else "queued"
        text = truncate(sanitize_line(queued.text), width - 14) or "(image)"
        lines.append(Line(((PAD, "text"), (f"{mark:<7} ", "accent"), (text, "dim"))))
    if len(rows) < len(state.queue):
        lines.append(plain(f"{PAD}… +{len(state.queue) - len(rows)} queued", "dim"))
    for number, image in enumerate(state.draft.images, 1):
        size = f" {image.width}×{image.height}" if image.width else ""
        lines.append(plain(f"{PAD}[image {number} {sanitize_line(image.name)}{size}]", "user.image"))
    return Panel(fit_lines(lines, width))


def _todo(state: UiState, width: int, glyphs: Glyphs) -> list[Line]:
    items = state.todo
    open_items = [item for item in items if item.status in ("pending", "in_progress")]
    if not items or not (open_items or state.todo_open):
        return []
    if state.todo_open or len(items) <= TODO_ROWS:
        return [_padded(line) for line in todo_lines(items, width - 4, glyphs)]
    room = TODO_ROWS - 1
    first = min(items.index(open_items[0]), len(items) - room)
    shown = [todo_lines([item], width - 4, glyphs)[0] for item in items[first : first + room]]
    done = len(items) - len(open_items)
    return [*map(_padded, shown), plain(f"{PAD * 2}{done} of {len(items)} done · Ctrl+T shows all", "faint")]


def editor_spans(editor: LineEditor, width: int) -> list[Span]:
    """Return a one-line text with its cursor, its end in view."""
    text = sanitize_line(editor.text) if not editor.text.isprintable() else editor.text
    before, at, after = text[: editor.cursor], text[editor.cursor : editor.cursor + 1], text[editor.cursor + 1 :]
    while before and cell_width(before) > width - 2:
        before = before[max(1, (cell_width(before) - width + 2) // 2) :]
    room = max(0, width - cell_width(before) - 1)
    return [(before, "text"), (at or " ", "reverse"), (truncate(after, room), "text")]


def _choice(text: str, letter: str, *, selected: bool) -> Line:
    style = "choice.selected" if selected else "text"
    return Line(((PAD, "text"), (POINTER if selected else PAD, "accent"), (text, style), (f"  {letter}", "faint")))


def _entry(label: str, detail: str, label_width: int, width: int, *, selected: bool) -> Line:
    shown = pad(truncate(label, label_width), label_width)
    rest = truncate(sanitize_line(detail), width - label_width - 8)
    style = "choice.selected" if selected else "text"
    return Line(
        ((PAD, "text"), (POINTER if selected else PAD, "accent"), (shown, style), ("  ", "text"), (rest, "dim"))
    )


def _label_width(labels: Sequence[str], details: Sequence[str], width: int) -> int:
    widest = max(map(cell_width, labels), default=0)
    limit = int(width * LABEL_SHARE) if any(details) else width - 6
    return max(1, min(widest, limit))


def _window(selected: int, count: int, rows: int) -> int:
    """Return the first of `count` entries to show, so that the selected one is among `rows`."""
    return max(0, min(selected - rows // 2, count - rows))


def _padded(line: Line) -> Line:
    return Line(((PAD * 2, "text"), *line.spans))
