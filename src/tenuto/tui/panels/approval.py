"""The open approval: exactly what would happen, why it is asked, and the answers; or a plan and what becomes of it.

Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from msgspec import Struct

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.protocol.approval import NO, ApprovalOption, approval_options
from tenuto.protocol.event import THIS_COMMAND, ApprovalRequestedEvent
from tenuto.protocol.message import DiffView
from tenuto.tui.keys.bindings import Bindings, fit_phrases, join_phrases
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.panel import NOTHING, PAD, POINTER, Panel, editor_spans, hidden_rows, padded, spans_width
from tenuto.tui.render.diff import diff_head, diff_lines, diff_summary
from tenuto.tui.render.line import EMPTY, Line, Span, filled, fit, fit_lines, plain, wrap, wrap_code
from tenuto.tui.render.markdown import render_markdown
from tenuto.tui.render.options import SPOKEN, UNICODE, Glyphs, RenderOptions
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.state.state import UiState

ROOMY_ROWS = 12
"""With fewer, what would happen has the rows of why it is asked, and the empty ones."""
DETAIL_ROWS = 12
"""Rows of a command or change that an approval shows at least, where it has them, before Ctrl+E shows all."""
PLAN_ROWS = 18
"""The same of a plan."""
ABOVE_SHARE = 5
"""Where there are more rows than that, one of so many is left to what stands above: why it is asked is said there."""
REASON_ROWS = 3
LABEL_ROWS = 4
"""Rows of one answer, where there is room for them."""
MIN_DETAIL_ROWS = 3
FEEDBACK_MARGIN = 7
"""Cells before a feedback: it stands below the words of its answer."""
WAYS_OUT = {"call": "deny", "plan": "keep planning", "question": "cancel"}
"""What Esc does, for each kind of question."""
BARE_ROWS = 4
"""With fewer, what would happen and the answer alone."""


class Room(Struct, frozen=True):
    """What there is to draw in: cells, rows at most, glyphs; and how much of a long text the user wants to see.

    With `full` all of it can be scrolled through, `scroll` is how many of its rows are above.
    """

    width: int
    rows: int
    glyphs: Glyphs
    full: bool = False
    scroll: int = 0

    @property
    def is_tight(self) -> bool:
        """Whether only the question, its answers and the keys have room beside a row or two of what would happen."""
        return self.rows < ROOMY_ROWS


def approval_panel(
    state: UiState, width: int, rows: int, glyphs: Glyphs, feedback: LineEditor, *, full: bool, scroll: int
) -> Panel:
    """Return the open approval: exactly what would happen, why it is asked, and the answers.

    `rows` is how many rows there are at most; with `full` the whole command, change or plan can be scrolled through.
    """
    request = state.approvals.current
    if request is None:
        return NOTHING
    room = Room(width, rows, glyphs, full, scroll)
    if request.kind == "plan":
        head = [Line(((PAD, "text"), ("Go ahead with this plan?", "tool.waiting"), *_count(state), *_edited(state)))]
        detail, most = list(plan_lines(state.approvals.plan, width, glyphs)), PLAN_ROWS
    elif request.kind == "question":
        head = _question_head(state, request, room)
        detail, most = _question_detail(state, request, room), DETAIL_ROWS
    else:
        head = _head(state, request, room)
        detail, most = approval_detail(request, width - 4, glyphs), DETAIL_ROWS
        if len(request.diffs) == 1 and _names_file(head[0], request.diffs[0]):
            detail = detail[1:]
    gap = [] if room.is_tight else [EMPTY]
    answers, choices = _answers(state, request, room, feedback, LABEL_ROWS)
    if len(head) + len(answers) + 2 * len(gap) + MIN_DETAIL_ROWS > rows:
        answers, choices = _answers(state, request, room, feedback, 1)
        detail = [*detail, *_covered(state, request, width)]
        if len(head) + len(answers) + 2 * len(gap) + MIN_DETAIL_ROWS > rows:
            gap = []
    if full and rows > BARE_ROWS and len(head) + len(answers) + 2 * len(gap) + len(detail) > rows:
        head, gap, detail = head[:1], [], [*head[1:], *detail]  # why it is asked scrolls along
        answers, choices = _answers(state, request, room, feedback, 1)
        answers, choices = _selected_alone(answers, choices, state.approvals.selected or 0)  # every key still answers
    question, with_keys = head[0], answers
    if len(head) + len(answers) + min(2, len(detail)) > rows:
        answers = answers[:-1]  # rather few words on keys than none on what would happen
        way_out = _way_out(state, request, full=full)
        denies = state.approvals.feedback is None and request.kind != "question"
        key = state.keys.label("escape") if denies else ""
        head[0], answers = _with_way_out(head[0], answers, _denial_row(request, choices), way_out, key=key, width=width)
    if (full and rows <= BARE_ROWS) or len(head) + len(answers) >= rows:
        if rows > BARE_ROWS:  # one answer leaves room for them
            head[0], answers = question, with_keys
        answers, choices = _selected_alone(answers, choices, state.approvals.selected or 0)  # every key still answers
    if rows < BARE_ROWS:
        head = []
    free = max(1, rows - len(head) - len(answers) - 2 * len(gap))
    scrolls = full or request.kind == "plan"
    begin = scroll if scrolls else _first_change(detail)
    limit = free if full else min(free, max(most, free - rows // ABOVE_SHARE))
    shown, scrolled = _bounded(detail, limit, begin, width, state.keys, scrolls=scrolls, full=full)
    above = [*head, *gap, *shown, *gap]
    return Panel(
        fit_lines([*above, *answers], width), {len(above) + row: place for row, place in choices.items()}, scrolled
    )


def _selected_alone(answers: list[Line], choices: dict[int, int], selected: int) -> tuple[list[Line], dict[int, int]]:
    """Return of the answers the one that is selected, and what stands below all of them."""
    kept = [row for row in range(len(answers)) if choices.get(row, selected) == selected]
    return [answers[row] for row in kept], {place: selected for place, row in enumerate(kept) if row in choices}


def _first_change(lines: Sequence[Line]) -> int:
    """Return the first row that a change adds or takes away, 0 where there is none: what is around it can wait.

    A single row above it, which names the file, is worth its place.
    """
    changes = ("diff.added", "diff.removed")
    places = (place for place, line in enumerate(lines) if any(style.endswith(changes) for _, style in line.spans))
    first = next(places, 0)
    return 0 if first == 1 else first


def _count(state: UiState) -> list[Span]:
    position, total = state.approvals.position
    return [(f"  {position} of {total}", "dim")] if total > 1 else []


def _edited(state: UiState) -> list[Span]:
    return [("  as you changed it", "dim")] if state.approvals.edited else []


def _head(state: UiState, request: ApprovalRequestedEvent, room: Room) -> list[Line]:
    """Return the question and, where there is room for it, why it is asked."""
    said_below = " ".join(request.detail.split()).startswith(" ".join(request.summary.rstrip("…").split()))
    summary = "" if said_below and not request.diffs else sanitize_line(request.summary)
    is_of_server = request.tool.partition("_")[0] == "mcp"  # its summary names server and tool
    tool = "MCP" if is_of_server else sanitize_line(request.tool).replace("_", " ").capitalize()
    changes = diff_summary(request.diffs, room.glyphs) if request.diffs else ()
    agent = sanitize_line(request.agent)
    asked_by: list[Span] = [(f"  {truncate(agent, room.width // 3)}", "warning")] if agent and room.is_tight else []
    facts: list[Span] = [*((" ", "text") for _ in changes[:1]), *changes, *_count(state), *asked_by]
    asks = "Allow? "
    title = truncate(f"{tool} {summary}".strip(), max(8, room.width - len(PAD) - len(asks) - spans_width(facts)))
    head = [Line(((PAD, "text"), (asks, "tool.waiting"), (title, "bold"), *facts))]
    said = reason_of(request)
    if (said or agent) and not room.is_tight:
        who: list[Span] = [(f"Sub-agent {agent}", "warning"), (" asks: ", "dim")] if agent else []
        reason = wrap([*who, (sanitize_line(said), "dim")], room.width - 4)
        if len(reason) > REASON_ROWS and not room.full:
            reason = [
                *reason[: REASON_ROWS - 1],
                plain(f"{room.glyphs.ellipsis} {state.keys.phrase('approval.full', 'show all')}", "dim"),
            ]
        head += [padded(line) for line in reason]
    return head


def _question_head(state: UiState, request: ApprovalRequestedEvent, room: Room) -> list[Line]:
    """Return who asks; what is asked stands below it."""
    agent = sanitize_line(request.agent)
    count = _count(state)
    most = 1 if room.is_tight else REASON_ROWS
    rows = _title_rows(state, request, room)
    if len(rows) > most:
        title = truncate(sanitize_line(request.summary), max(8, room.width - len(PAD) - spans_width(count)))
        rows = [Line(((title, "tool.waiting"),))]
    head = [Line(((PAD, "text"), *row.spans)) for row in rows]
    head[0] = Line((*head[0].spans, *count))
    if agent and not room.is_tight:
        head.append(padded(Line((("Sub-agent ", "dim"), (truncate(agent, room.width // 2), "warning")))))
    return head


def _title_rows(state: UiState, request: ApprovalRequestedEvent, room: Room) -> list[Line]:
    """Return a question's title, all of it."""
    width = room.width - len(PAD) - spans_width(_count(state))
    return wrap([(sanitize_line(request.summary), "tool.waiting")], max(8, width))


def _question_detail(state: UiState, request: ApprovalRequestedEvent, room: Room) -> list[Line]:
    """Return what is asked; before it the title where that has no room above."""
    detail = approval_detail(request, room.width - 4, room.glyphs)
    if len(_title_rows(state, request, room)) <= (1 if room.is_tight else REASON_ROWS):
        return detail
    return [*map(padded, wrap([(sanitize_line(request.summary), "text")], room.width - 4)), *detail]


def reason_of(request: ApprovalRequestedEvent) -> str:
    """Return why it is asked, and what has to be known of an answer for longer."""
    note = next((kind.note for kind in request.kinds if kind.note), "")
    return "; ".join(part for part in (request.reason, note) if part)


def _names_file(question: Line, diff: DiffView) -> bool:
    """Whether the question says which file changes and by how much, so that the change need not."""
    name = question.spans[2][0].partition(" ")[2]
    return bool(name) and (diff.path == name or diff.path.endswith(f"/{name}"))


def _denial_row(request: ApprovalRequestedEvent, choices: dict[int, int]) -> int:
    """Return the row of the answer that Esc gives."""
    options = approval_options(request)  # whatever kind they cover
    denial = options.index(NO) if NO in options else len(options) - 1
    return min(row for row, place in choices.items() if place == denial)


def _with_way_out(
    question: Line, answers: list[Line], denial: int, way_out: str, *, key: str, width: int
) -> tuple[Line, list[Line]]:
    """Return question and answers with what Esc does behind the one, or its key behind the answer that it gives.

    That one is in row `denial`; an empty `key` gives none.
    """
    if question.width + 2 + cell_width(way_out) <= width:
        return Line((*question.spans, (f"  {way_out}", "faint"))), answers
    if key and answers[denial].width + 2 + cell_width(key) <= width:
        answers = [*answers[:denial], Line((*answers[denial].spans, (f"  {key}", "faint"))), *answers[denial + 1 :]]
    return question, answers


def approval_detail(request: ApprovalRequestedEvent, width: int, glyphs: Glyphs) -> list[Line]:
    """Return exactly what would happen, all of it: the command, or the change."""
    if request.diffs:
        return [line for diff in request.diffs for line in _change_rows(diff, width, glyphs)]
    text = sanitize_for_terminal(request.detail or request.summary).expandtabs(4).strip("\n")
    return [
        padded(line)
        for part in text.split("\n")
        for line in (
            wrap([(part, "text")], width) if request.kind == "question" else wrap_code([(part, "shell.command")], width)
        )
        or [EMPTY]
    ]


def _change_rows(diff: DiffView, width: int, glyphs: Glyphs) -> list[Line]:
    head = Line(((PAD, "text"), *diff_head(diff, glyphs)))
    return [head, *(padded(filled(line, width)) for line in diff_lines(diff, width, glyphs))]


@lru_cache(maxsize=4)
def plan_lines(plan: str, width: int, glyphs: Glyphs) -> Sequence[Line]:
    """Return a plan as the Markdown that it is, all of it."""
    return tuple(render_markdown(plan, width, RenderOptions(ascii=glyphs is not UNICODE, spoken=glyphs is SPOKEN)))


def _bounded(
    lines: list[Line], rows: int, scroll: int, width: int, names: Bindings, *, scrolls: bool, full: bool
) -> tuple[list[Line], int]:
    """Return the lines that fit, with a line that says how many do not: nothing is cut silently."""
    if len(lines) <= rows:
        return lines, 0
    if rows == 1:
        first = min(scroll, len(lines) - 1)
        more = f"  +{len(lines) - 1}"
        with_key = f"{more} · {names.label('approval.full')}"
        more = with_key if 2 * width >= 5 * cell_width(with_key) else more
        if width < 2 * len(more):
            return [fit(lines[first].spans, width)], first
        return [Line((*fit(lines[first].spans, width - len(more)).spans, (more, "dim")))], first
    room = max(1, rows - 1)
    first = max(0, min(scroll, len(lines) - room))
    below = len(lines) - first - room
    hidden = hidden_rows(first, below) if first else f"{below} more rows"
    pages = f"{names.label('scroll.page_up')}/{names.label('scroll.page_down')}"
    key = names.phrase("approval.full", "collapse" if full else "show all")
    hint = fit_phrases(join_phrases(hidden, pages if scrolls else "", key), key, width - 4)
    return [*lines[first : first + room], plain(f"{PAD}… {hint}", "dim")], first


def option_label(option: ApprovalOption) -> str:
    """Return what an answer says, with exactly what would not be asked about again."""
    return f"{option.label} for {sanitize_line(option.covers)}" if option.covers else sanitize_line(option.label)


def _short_label(option: ApprovalOption, width: int) -> str:
    """Return an answer for one row of so many cells: what it allows is worth more of it than how that is said."""
    label = option_label(option)
    if not option.short or cell_width(label) <= width:
        return label
    covers = sanitize_line(option.covers)
    return f"{option.short}: {'this' if covers == THIS_COMMAND else covers}" if covers else option.short


def _covered(state: UiState, request: ApprovalRequestedEvent, width: int) -> list[Line]:
    """Return what a standing answer would allow, where the answers have no room to say it; all of it can be read."""
    if not request.kinds:
        return []
    kind = request.kinds[state.approvals.kind]
    covers = sanitize_line(f"{kind.covers} ({kind.note})" if kind.note else kind.covers)
    return [
        EMPTY,
        *(padded(line) for line in wrap([("“Don't ask again” covers: ", "dim"), (covers, "text")], width - 4)),
    ]


def other_kind(state: UiState, request: ApprovalRequestedEvent) -> str:
    """Return what the answers for longer can cover instead; empty where there is one kind."""
    if len(request.kinds) < 2:
        return ""
    return sanitize_line(request.kinds[(state.approvals.kind + 1) % len(request.kinds)].covers)


def _answers(
    state: UiState, request: ApprovalRequestedEvent, room: Room, feedback: LineEditor, label_rows: int
) -> tuple[list[Line], dict[int, int]]:
    """Return the answers, each in at most so many rows, and the line on what keys there are."""
    lines: list[Line] = []
    choices: dict[int, int] = {}
    writing = state.approvals.feedback is not None
    lettered = not state.draft.begun
    for place, option in enumerate(approval_options(request, state.approvals.kind)):
        is_selected = place == state.approvals.selected
        style, pointer = ("choice.selected", POINTER) if is_selected else ("text", PAD)
        label = f"{place + 1}. {option_label(option)}"
        rows = wrap([(label, style)], room.width - 8, 3)
        if len(rows) > label_rows:
            label = f"{place + 1}. {_short_label(option, room.width - 8 - 3)}"
            rows = [Line(((truncate(label, room.width - 8), style),))]
        for row, line in enumerate(rows):
            choices[len(lines)] = place
            letter: list[Span] = [(f"  {option.letter}", "faint")] if lettered and option.letter and not row else []
            lines.append(Line(((PAD, "text"), (PAD if row else pointer, "accent"), *line.spans, *letter)))
        if writing and option.feedback:
            lines.append(
                Line(((" " * FEEDBACK_MARGIN, "text"), *editor_spans(feedback, room.width - FEEDBACK_MARGIN - 1)))
            )
    return [*lines, plain(f"{PAD}  {_hint(state, request, room.width - 4, full=room.full)}", "faint")], choices


def _way_out(state: UiState, request: ApprovalRequestedEvent, *, full: bool) -> str:
    if state.approvals.feedback is not None:
        return state.keys.phrase("escape", "back")
    if full:
        return state.keys.phrase("escape", "collapse")
    return state.keys.phrase("escape", WAYS_OUT[request.kind])


def _hint(state: UiState, request: ApprovalRequestedEvent, width: int, *, full: bool) -> str:
    names = state.keys
    confirm, out = names.label("approval.confirm"), _way_out(state, request, full=full)
    if state.approvals.feedback is not None:
        return join_phrases(names.phrase("feedback.confirm", "send"), out)
    keys = f"↑ ↓ and {confirm}" if state.draft.begun else f"{confirm}, number or letter"
    if request.kind == "plan":
        return fit_phrases(join_phrases(keys, names.phrase("approval.edit", "edit the plan"), out), out, width)
    other = other_kind(state, request)
    kind = names.phrase("approval.kind", f"for {other}") if other else ""
    if cell_width(join_phrases(keys, kind, out)) > width:  # what the key does is said by what it changes
        kind = names.phrase("approval.kind", "other kinds") if kind else ""
    return fit_phrases(join_phrases(keys, kind, out), out, width)
