"""How a plan is shown that the model handed over: as the Markdown that it is, with what became of it."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.guard.sanitize import sanitize_line
from tenuto.protocol.message import PlanView
from tenuto.text.call_summary import first_heading
from tenuto.tui.machine.item import ToolItem
from tenuto.tui.render.frame import Frame, more_row
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.markdown import render_blocks
from tenuto.tui.render.tools.look import Arguments, argument, first_lines

FOLDED_ROWS = 24


def _plan(item: ToolItem) -> PlanView | None:
    views = item.result.ui if item.result is not None else ()
    return next((view for view in views if isinstance(view, PlanView)), None)


def plan_subject(arguments: Arguments) -> str:
    """Return what the plan is called."""
    return first_heading(argument(arguments, "plan"))


def plan_facts(item: ToolItem, frame: Frame) -> Sequence[Span]:
    """Return what the user made of it."""
    view = _plan(item)
    if view is None:
        return ()
    facts: list[Span] = []
    match view.outcome:
        case "approved":
            facts.append(("approved", "success"))
            if view.mode is not None:
                facts.append((f" {frame.glyphs.middle} mode {view.mode}", "dim"))
        case "continued":
            facts.append(("planning goes on", "warning"))
        case "unasked":
            facts.append(("nobody to approve it", "warning"))
        case "aside":
            pass
    if view.edited:
        facts.append((f" {frame.glyphs.middle} edited by you" if facts else "edited by you", "dim"))
    return facts


def plan_body(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the plan itself, folded its beginning; then what the user said to it."""
    view = _plan(item)
    if view is None:
        return first_lines(item, frame)
    lines = render_blocks(view.text, frame.body, frame.glyphs)
    if not frame.unfolded and len(lines) > FOLDED_ROWS + 1:
        hidden = len(lines) - FOLDED_ROWS
        lines = [*lines[:FOLDED_ROWS], more_row(f"{hidden} rows", frame)]
    if view.feedback:
        lines.append(Line((("You: ", "dim"), (sanitize_line(view.feedback), "text"))))
    return lines
