"""A tool call as lines: mark, title, subject and facts in the head; the body by the tool and the call's state."""

from __future__ import annotations

from collections.abc import Sequence

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line
from tenuto.protocol.message import DenialView, ShellView
from tenuto.session.view.pairing import output_before
from tenuto.text.figures import format_count, format_seconds
from tenuto.tui.machine.item import Item, ThinkingItem, ToolItem
from tenuto.tui.render.ansi import ansi_lines
from tenuto.tui.render.frame import Frame, below, folded_rows, head, rows_of
from tenuto.tui.render.line import Line, Span
from tenuto.tui.render.links import file_link
from tenuto.tui.render.renderers import (
    FAILURE_ROWS,
    FOLDED_LINES,
    LOOKS,
    Look,
    is_cut,
    live_tail,
    no_subject,
    read_arguments,
    result_text,
    shell_output,
)
from tenuto.tui.render.width import cell_width, truncate

FILE_TOOLS = frozenset({"read", "write", "edit"})
"""Whose subject is a file."""
ELAPSED_AFTER = 2.0
"""Seconds that a call runs before the screen counts them."""
LONG_AFTER = 1.0
"""Seconds that a finished call must have taken to be worth a word."""


def render_tool(item: ToolItem, frame: Frame) -> list[Line]:
    """Return the lines of a tool call in whatever state it is."""
    look = LOOKS.get(item.name) or _unknown(item.name)
    whole = frame.unfolded or item.state == "waiting"
    mark = "error" if item.unresolved else f"tool.{item.state}"
    return [
        *head(_mark(item, frame), mark, _head(item, look, frame, whole=whole), frame, whole=whole),
        *_below(item, look, frame),
    ]


def has_body(item: Item) -> bool:
    """Return whether something stands below an item's head, judged without drawing it."""
    if isinstance(item, ThinkingItem):
        return not item.final or not item.folded
    if not isinstance(item, ToolItem):
        return True
    if item.state == "running":
        return bool(item.output)
    if item.result is None:
        return False
    if item.state == "interrupted":
        return bool(output_before(result_text(item)))
    if item.folded and item.state == "denied":
        return bool(_feedback(item))
    look = LOOKS.get(item.name)
    quiet = look is not None and look.quiet and item.state == "done" and item.folded
    return not quiet and bool(item.result.ui or result_text(item))


def _unknown(name: str) -> Look:
    return Look(sanitize_line(name) or "tool", live=lambda item, frame: live_tail(item.output, frame))


def _mark(item: ToolItem, frame: Frame) -> str:
    glyphs = frame.glyphs
    return {
        "writing": glyphs.ring,
        "ready": glyphs.ring,
        "waiting": glyphs.question,
        "running": glyphs.dot,
        "done": glyphs.dot,
        "failed": glyphs.failed,
        "interrupted": glyphs.stopped,
        "denied": glyphs.denied,
    }[item.state]


def _head(item: ToolItem, look: Look, frame: Frame, *, whole: bool) -> list[Span]:
    facts: list[Span] = []
    for fact in _facts(item, look, frame):
        facts.extend(((f" {frame.glyphs.middle} ", "dim"), *fact))
    spans: list[Span] = [(look.title, "tool.name")]
    subject = _subject(item, look, whole=whole)
    if subject:
        # A long command is cut, never what became of it.
        taken = sum(cell_width(text) for text, _style in (*spans, *facts)) + 1
        room = max(frame.width - taken, frame.width // 3)
        text = subject if whole else truncate(subject, room, frame.glyphs.ellipsis)
        path = read_arguments(item.arguments).get("path") if item.name in FILE_TOOLS else None
        link = f" {file_link(path)}" if isinstance(path, str) and path else ""
        spans.extend(((" ", "text"), (text, f"tool.subject{link}")))
    return [*spans, *facts]


def _subject(item: ToolItem, look: Look, *, whole: bool) -> str:
    arguments = read_arguments(item.arguments)
    if item.name in LOOKS:
        text = look.subject(arguments) or (item.summary if look.subject is not no_subject else "")
        # A command keeps its own lines where there is room for them.
        return sanitize_for_terminal(text).strip() if whole else sanitize_line(text)
    if item.summary:
        return sanitize_line(item.summary)
    pairs = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return sanitize_line(f"({pairs})") if pairs else ""


def _facts(item: ToolItem, look: Look, frame: Frame) -> list[Sequence[Span]]:
    """Return what stands behind the subject: the state in words where it is not plain success, counts, time."""
    match item.state:
        case "writing":
            return [[(f"writing {format_count(item.characters)} characters", "dim")]] if item.characters else []
        case "ready":
            return []
        case "waiting":
            return [[("waiting for your answer", "warning")]]
        case "running":
            elapsed = frame.now - item.started if item.started else 0.0
            return (
                [[(format_seconds(float(int(elapsed))).replace(".0s", "s"), "dim")]] if elapsed >= ELAPSED_AFTER else []
            )
        case "done":
            facts = [look.facts(item, frame)]
        case "failed":
            failed = "error" if item.unresolved else "muted"
            facts = [(look.facts(item, frame) if item.name == "bash" else ()) or [("failed", failed)]]
        case "interrupted":
            facts: list[Sequence[Span]] = [[("interrupted", "warning")]]
        case "denied":
            facts = [[("denied", "warning")]]
    if item.seconds >= LONG_AFTER:
        facts.append([(format_seconds(item.seconds), "dim")])
    return [fact for fact in facts if fact]


def _below(item: ToolItem, look: Look, frame: Frame) -> list[Line]:
    match item.state:
        case "writing" | "ready" | "waiting":
            return []
        case "running":
            return below(look.live(item, frame))
        case "done":
            lines = look.body(item, frame)
        case "failed":
            # The model often recovers by itself: told quietly, in full on demand.
            has_run = item.result is not None and any(isinstance(view, ShellView) for view in item.result.ui)
            lines = look.body(item, frame) if has_run else _failure(item, frame)
        case "interrupted":
            # The head says that it was; what there was of it is shown as if it had ended.
            lines = shell_output(output_before(result_text(item)), frame, is_cut=is_cut(item))
        case "denied":
            lines = _muted(item, frame) if frame.unfolded else folded_rows(_feedback(item), frame, FAILURE_ROWS)
    return below([*lines, *_whole_output(item, frame)])


def _feedback(item: ToolItem) -> list[list[Span]]:
    """Return what the user said when they denied the call."""
    views = item.result.ui if item.result is not None else ()
    denials = [view for view in views if isinstance(view, DenialView)]
    return [[("your reason: ", "dim"), (sanitize_line(view.feedback), "text")] for view in denials]


def _failure(item: ToolItem, frame: Frame) -> list[Line]:
    """Return why a call failed, in words that are not cut at the edge; folded, its beginning."""
    return folded_rows(ansi_lines(result_text(item), "muted"), frame, FAILURE_ROWS)


def _muted(item: ToolItem, frame: Frame) -> list[Line]:
    return rows_of(ansi_lines(result_text(item), "muted"), frame, FOLDED_LINES, 0)


def _whole_output(item: ToolItem, frame: Frame) -> list[Line]:
    if item.result is None or not item.result.output_path or not frame.unfolded:
        return []
    path = sanitize_line(item.result.output_path)
    return rows_of([[("whole output: ", "dim"), (path, f"path {file_link(path)}")]], frame, 1, 0)
