"""The open transcript of a sub-agent: its end, or what the user has scrolled to. Pure."""

from __future__ import annotations

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.keys.bindings import fit_phrases, join_phrases
from tenuto.tui.panels.panel import PAD, Panel, hidden_rows
from tenuto.tui.render.items import gap_before, render_item
from tenuto.tui.render.line import EMPTY, Line, fit_lines, plain
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.render.width import truncate
from tenuto.tui.state.state import Reader, UiState

FRAME_ROWS = 2
"""Who it is, and what the keys do."""


def child_panel(state: UiState, width: int, rows: int, scroll: int, options: RenderOptions) -> Panel:
    """Return the transcript in at most `rows` rows, `scroll` rows above its end; the panel says how far that went."""
    reader = state.reader
    if reader is None:
        return Panel()
    room = max(1, rows - FRAME_ROWS)
    lines, is_whole = _last_lines(reader, width, room + scroll + 1, options)
    scroll = max(0, min(scroll, len(lines) - room))
    end = len(lines) - scroll
    shown = lines[max(0, end - room) : end]
    above = max(0, end - room) if is_whole else 0
    word = "works" if reader.working else "has ended"
    name = truncate(sanitize_line(reader.name), max(8, width - 20))
    title = Line(((PAD, "text"), (name, "panel.title"), (f"  {word}", "accent" if reader.working else "dim")))
    keys = state.keys
    out = keys.phrase("escape", "back")
    older = f"{reader.older:,} older entries in the pager" if reader.older and is_whole else ""
    more = "more above" if not is_whole and not above else hidden_rows(above, scroll)
    hint = join_phrases(
        more, f"↑ ↓ {keys.label('scroll.page_up')}", keys.phrase("child.open", "pager"),
        keys.phrase("child.stop", "end it") if reader.working else "", out, older,
    )  # fmt: skip
    return Panel(
        fit_lines([title, *shown, plain(f"{PAD}{fit_phrases(hint, out, width - 2)}", "faint")], width), scrolled=scroll
    )


def _last_lines(reader: Reader, width: int, wanted: int, options: RenderOptions) -> tuple[list[Line], bool]:
    """Return the last `wanted` rows of the transcript, or a few more, and whether that is all of it."""
    if reader.shown is None:
        return [plain(f"{PAD}reading …", "dim")], True
    items = reader.shown.transcript.ordered()
    parts: list[list[Line]] = []
    count = 0
    for place in range(len(items) - 1, -1, -1):
        lines = render_item(items[place], width, options)
        if lines:
            previous = items[place - 1] if place else None
            lines = [*[EMPTY] * gap_before(previous, items[place]), *lines]
        parts.append(lines)
        count += len(lines)
        if count >= wanted and place:
            return [line for part in reversed(parts) for line in part], False
    return [line for part in reversed(parts) for line in part] or [plain(f"{PAD}nothing yet", "dim")], True
