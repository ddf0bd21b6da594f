"""The images that go along with the draft, one row each. Pure."""

from __future__ import annotations

from tenuto.guard.terminal import sanitize_line
from tenuto.tui.machine.state import UiState
from tenuto.tui.panels.panel import PAD, Panel
from tenuto.tui.render.frame import image_words
from tenuto.tui.render.line import Line, Span, fit_lines
from tenuto.tui.render.status import spans_width
from tenuto.tui.render.width import cell_width

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
