"""What all panels share: lines and what a click on them chooses, rows with a pointer, one-line texts. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct, field

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.width import cell_width, pad, truncate

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
