"""Lists around the editor: pickers with filter and preview, completions, the todo list, the queue. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from tenuto.command.outcome import Choice, RowAct
from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.part import ImagePart
from tenuto.tui.keys.bindings import PHRASE_MARK, fit_phrases, join_phrases
from tenuto.tui.keys.keys import help_rows
from tenuto.tui.keys.line_editor import LineEditor
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
    spans_width,
    typed_spans,
)
from tenuto.tui.render.line import EMPTY, Line, Span, fit_lines, plain, wrap
from tenuto.tui.render.options import Glyphs
from tenuto.tui.render.tools import todo_lines, todo_row
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.state.state import OPEN_STATES, Picker, QueueRow, RowQuestion, UiState

ROOMY_ROWS = 11
"""With fewer, nothing of the selected row is shown beside the list."""
PICKER_ROWS = 12
FILTER_CELLS = 12
"""Cells for what is typed to filter, before the key of the other filters is named."""
ACTS: dict[RowAct, str] = {"rename": "rename", "delete": "delete", "fork": "fork", "end": "end", "refuse": "refuse"}
"""What the keys of the acts on a row are said to do."""
ACT_KEYS: dict[RowAct, str] = {"end": "picker.delete", "refuse": "picker.delete"}
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
    lines.append(plain(f"{PAD}  {_picker_hint(state, picker, more, width - 4)}", "faint"))
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
    if picker.gives_way:
        return Line(tuple(spans))
    return Line((*spans, *typed_spans(filter_line, max(8, width - spans_width(spans)), "type to filter")))


def _question_line(state: UiState, question: RowQuestion, label: str, answer: LineEditor, width: int) -> Line:
    """Return the selected row while something is asked about it: its new title, or whether it is to go."""
    pointer: tuple[Span, ...] = ((PAD, "text"), (POINTER, "accent"))
    if question.act == "rename":
        return Line((*pointer, ("title: ", "dim"), *editor_spans(answer, width - 14)))
    asks = f"{question.act}? {state.keys.label('row.answer')} / {state.keys.label('escape')}"
    room = max(1, width - cell_width(asks) - 8)
    return Line((*pointer, (truncate(label, room), "choice.selected"), ("  ", "text"), (asks, "warning")))


def _picker_hint(state: UiState, picker: Picker, more: str, width: int) -> str:
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


QUEUE_ROWS = 4
FOCUSED_ROWS = 8
HINT_COLUMNS = 60
"""A narrower screen shows a text in the place of the key that leads to the queue."""
MARKS = {False: "queued ", True: "steer  "}


def queue_panel(state: UiState, width: int, most_rows: int = FOCUSED_ROWS + 1) -> Panel:
    """Return the queued prompts, in at most so many rows.

    A click on a row takes it into the editor; `choices` has seqs.
    """
    rows = state.queue
    if not rows:
        return Panel()
    focused = "queue" in state.contexts
    most = max(1, min(FOCUSED_ROWS, most_rows - 1) if focused else min(QUEUE_ROWS, most_rows))
    room = len(rows) if len(rows) <= most else max(1, most - 1)
    selected = next((place for place, row in enumerate(rows) if focused and row.seq == state.queue_selected), 0)
    first = first_shown(selected, len(rows), room)
    key = state.keys.label("queue")
    way_there = f"  {key}" if key and not focused and width >= HINT_COLUMNS else ""
    lines: list[Line] = []
    choices: dict[int, int] = {}
    for place, row in enumerate(rows[first : first + room], first):
        if row.seq:
            choices[len(lines)] = row.seq
        lines.append(_row(row, width, selected=focused and place == selected, way_there="" if lines else way_there))
    beyond = [f"{first} before"] if first else []
    beyond += [f"+{len(rows) - first - room} queued"] if len(rows) - first - room else []
    if beyond and most > 1:
        lines.append(plain(f"{PAD}… {', '.join(beyond)}", "dim"))
    if focused and len(lines) < most_rows:
        lines.append(
            plain(f"{PAD}{fit_phrases(_hint(state), state.keys.phrase('escape', 'leaves'), width - 2)}", "faint")
        )
    return Panel(lines, choices)


def _row(row: QueueRow, width: int, *, selected: bool, way_there: str) -> Line:
    chips = "".join(f" {_chip(image)}" for image in row.images)
    first, *more = row.text.strip().split("\n")
    count = f" … +{len(more)} lines" if len(more) > 1 else " … +1 line" if more else ""
    room = max(8, width - cell_width(chips) - cell_width(count) - cell_width(way_there) - 12)
    text = truncate(sanitize_line(first), room)
    style = "choice.selected" if selected else "dim"
    spans: list[Span] = [
        (POINTER if selected else PAD, "accent"),
        (f"{MARKS[row.steer]} ", "accent"),
        (f"{text}{count}", style),
        (chips.lstrip() if not text else chips, "user.image"),
        (way_there, "faint"),
    ]
    return Line(tuple(span for span in spans if span[0]))


def _chip(image: ImagePart) -> str:
    size = f" {image.width}x{image.height}" if image.width else ""
    return f"[image {truncate(sanitize_line(image.name), 20)}{size}]".replace("[image ]", "[image]")


def _hint(state: UiState) -> str:
    keys = state.keys
    moves = " ".join(label for label in (keys.label("queue.move_up"), keys.label("queue.move_down")) if label)
    return join_phrases(
        keys.phrase("queue.edit", "edit"),
        keys.phrase("queue.delete", "delete"),
        keys.phrase("queue.steer", "steer"),
        f"{moves} move" if moves else "",
        keys.phrase("escape", "close"),
    )


TODO_ROWS = 5
LARGE_SCREEN = 100
"""Rows for whoever does not say how many there are."""


def side_panel(
    state: UiState, width: int, glyphs: Glyphs, rows: int = LARGE_SCREEN, todo: Sequence[TodoItem] | None = None
) -> Panel:
    """Return the todo list while something of it is open, the queued texts, in at most `rows` rows.

    `todo` is what of the list is to show, `None` for all of it.
    """
    if rows < 1:
        return Panel()
    items = state.todo if todo is None else todo
    shown = items if state.shows_todo else ()
    queue = queue_panel(state, width, max(1, rows - 1) if shown else rows)
    todo_rows = rows - len(queue.lines)
    whole = [padded(line) for line in todo_lines(shown, width - 4, glyphs)]
    fits = len(whole) <= todo_rows
    if fits and (state.todo_open or len(shown) <= TODO_ROWS):
        lines, has_all = whole, bool(whole)
    else:
        lines = _todo_head(state, shown, width, glyphs, todo_rows)
        room, most = (_room_for_items(len(shown), todo_rows, is_open=one) for one in (state.todo_open, True))
        has_all = not fits and room == most
    choices = {len(lines) + row: seq for row, seq in queue.choices.items()}
    return Panel(fit_lines([*lines, *queue.lines], width), choices, has_all=has_all)


def _room_for_items(count: int, rows: int, *, is_open: bool) -> int:
    """Return how many items of a list that does not show as a whole show in `rows` rows."""
    return max(1, min(count, rows - 1 if is_open else min(rows, TODO_ROWS) - 1))


def _todo_head(state: UiState, items: Sequence[TodoItem], width: int, glyphs: Glyphs, rows: int) -> list[Line]:
    """Return from what is open on as much of the list as there is room for, and how much of it is done."""
    if rows < 1 or not items:
        return []
    finished = sum(item.status == "done" for item in items)
    done = f"{finished} of {len(items)} done"
    room = _room_for_items(len(items), rows, is_open=state.todo_open)
    begin = next((place for place, item in enumerate(items) if item.status in OPEN_STATES), len(items))
    first = max(0, min(begin, len(items) - room))
    remark: tuple[Span, ...] = ((f"  {done}", "faint"),) if rows == 1 else ()
    shown = [todo_row(item, width - 4 - spans_width(remark), glyphs) for item in items[first : first + room]]
    if rows == 1:
        return [padded(Line((*shown[0].spans, *remark)))]
    more = state.keys.phrase("todo", "hide" if state.todo_open else "show all")
    return [*map(padded, shown), plain(f"{PAD * 2}{fit_phrases(join_phrases(done, more), done, width - 4)}", "faint")]


COMPLETION_ROWS = 8


def completion_panel(state: UiState, width: int, rows: int) -> Panel:
    """Return the completions of the word at the cursor."""
    popup = state.completion
    if popup is None:
        return NOTHING
    count, room = len(popup.items), max(1, min(COMPLETION_ROWS, rows))
    if count > room > 1:
        room -= 1
    first = first_shown(popup.selected, count, room)
    shown = popup.items[first : first + room]
    labels = [sanitize_line(item.label) for item in shown]
    widest = label_width(labels, [item.detail for item in shown], width)
    lines = [
        entry_line(label, item.detail, widest, width, selected=place == popup.selected)
        for place, (label, item) in enumerate(zip(labels, shown, strict=True), first)
    ]
    if count > room:
        lines.append(plain(f"{PAD * 2}{popup.selected + 1} of {count}", "dim"))
    return Panel(fit_lines(lines, width), {row: first + row for row in range(len(shown))})


KEY_SHARE = 0.38
Section = tuple[str, list[tuple[str, str]]]


def help_panel(state: UiState, width: int, rows: int, scroll: int, looked_for: LineEditor) -> Panel:
    """Return the keys that hold now, with the user's own among them."""
    sections = find_help(help_rows(state.keys), state.help_filter)
    lines = _section_lines(sections, width) or [plain(f"{PAD}nothing matches", "dim")]
    typed = typed_spans(looked_for, width - 8, "type to search")
    title: list[Span] = [(PAD, "text"), ("Keys", "panel.title"), ("  ", "text"), *typed]
    room = max(1, rows - 2)
    first = max(0, min(scroll, len(lines) - room))
    below = max(0, len(lines) - first - room)
    pages = f"{state.keys.label('scroll.page_up')}/{state.keys.label('scroll.page_down')}"
    hint = join_phrases(
        hidden_rows(first, below),
        f"↑ ↓ {pages}" if len(lines) > room else "",
        state.keys.phrase("escape", "close"),
        "/keys edit changes them",
    )
    hint = fit_phrases(hint, state.keys.phrase("escape", "close"), width - 2)
    shown = [Line(tuple(title)), *lines[first : first + room], plain(f"{PAD}{hint}", "faint")]
    return Panel(fit_lines(shown, width), scrolled=first)


def find_help(sections: Sequence[Section], words: str) -> list[Section]:
    """Return the sections with the rows that hold all of the words; a section whose title does is there whole."""
    wanted = words.lower().split()
    found: list[Section] = []
    for title, rows in sections:
        fitting = [row for row in rows if all(word in f"{title} {row[0]} {row[1]}".lower() for word in wanted)]
        found += [(title, fitting)] if fitting else []
    return found


def _section_lines(sections: Sequence[Section], width: int) -> list[Line]:
    widest = max((cell_width(keys) for _, rows in sections for keys, _ in rows), default=0)
    key_width = min(widest, int(width * KEY_SHARE))
    lines: list[Line] = []
    for title, rows in sections:
        lines += [EMPTY] if lines else []
        lines.append(Line(((PAD, "text"), (title, "panel.title"))))
        for keys, text in rows:
            lines += _key_lines(keys, text, key_width, max(8, width - key_width - 8))
    return lines


def _key_lines(keys: str, text: str, key_width: int, text_width: int) -> list[Line]:
    """Return a row of two columns, each wrapped: what is cut nobody can read anywhere else."""
    shown, meaning = wrap([(keys, "accent")], key_width), wrap([(text, "text")], text_width)
    lines: list[Line] = []
    for left, right in zip_longest(shown, meaning, fillvalue=EMPTY):
        space = " " * (key_width - left.width + 2)
        lines.append(Line((("    ", "text"), *left.spans, (space, "text"), *right.spans)))
    return lines
