"""The completions of the word at the cursor. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.keys.bindings import fit_phrases, join_phrases
from tenuto.tui.keys.keys import help_rows
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.panel import NOTHING, PAD, Panel, entry_line, first_shown, hidden_rows, label_width, typed_spans
from tenuto.tui.render.line import EMPTY, Line, Span, fit_lines, plain
from tenuto.tui.render.width import cell_width
from tenuto.tui.render.wrap import wrap

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
