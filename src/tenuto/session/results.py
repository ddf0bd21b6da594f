"""What the result of a tool says in few words, for the screens and the exports alike. Pure.

It comes from the views that a tool gives with its result and never from the text that the model reads: that text may
change its words. A result without a view (an old log, a tool of somebody else) has its counted lines at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.message import (
    AgentView,
    DenialView,
    DiffView,
    FoundView,
    LinesView,
    NotNowView,
    OwnView,
    PageView,
    PlanView,
    ResultView,
    ShellView,
    TodoView,
    ToolResultMessage,
)
from tenuto.protocol.part import ImagePart, text_of
from tenuto.text.figures import count_lines, format_bytes, format_spending, plural

Tone = Literal["plain", "good", "warning", "added", "removed"]
Fact = tuple[tuple[str, Tone], ...]
"""(words, tone) of one fact; a screen puts a space between them and its separator between facts."""
_OUTCOMES: dict[str, Fact] = {
    "approved": (("approved", "good"),),
    "continued": (("planning goes on", "warning"),),
    "unasked": (("nobody to approve it", "warning"),),
}


def result_facts(result: ToolResultMessage, *, lines: bool) -> list[Fact]:
    """Return what the views of a result say, most telling first, then its images.

    With `lines`, a result without another count has the number of its lines, and whether it is cut.
    """
    diffs = [view for view in result.ui if isinstance(view, DiffView)]
    facts = _together(diffs) if len(diffs) > 1 else []
    facts += [fact for view in result.ui if not (facts and isinstance(view, DiffView)) for fact in _view_facts(view)]
    images = [part for part in result.parts if isinstance(part, ImagePart)]
    facts += [_plain(f"{part.width}×{part.height} image" if part.width else "image") for part in images]
    if not lines or images or any(isinstance(view, FoundView | PageView) for view in result.ui):
        return facts
    text = text_of(result.parts)
    if text and not any(isinstance(view, LinesView) for view in result.ui):
        facts.append(_plain(plural(count_lines(text), "line")))
    return [*facts, _plain("not all of it")] if result.truncated else facts


def change_words(view: DiffView) -> str:
    """Return what becomes of a file beside its lines; empty for one that stays."""
    if view.created:
        return "new file"
    if view.deleted:
        return "deleted"
    return f"moved from {sanitize_line(view.moved_from)}" if view.moved_from else ""


def changed_path(result: ToolResultMessage | None) -> str:
    """Return the path of the one file that a call changed, as users read it; empty for every other call."""
    paths = [view.path for view in result.ui if isinstance(view, DiffView)] if result is not None else []
    return paths[0] if len(paths) == 1 else ""


def _counts(added: int, removed: int) -> Fact:
    return ((f"+{added}", "added"), (f"−{removed}", "removed"))


def _together(diffs: Sequence[DiffView]) -> list[Fact]:
    """Return the facts of a change to several files."""
    counts = _counts(sum(view.added for view in diffs), sum(view.removed for view in diffs))
    return [counts, _plain(plural(len(diffs), "file"))]


def _plain(words: str) -> Fact:
    return ((words, "plain"),)


def _view_facts(view: ResultView) -> list[Fact]:
    match view:
        case DiffView() if view.created:
            return [((f"+{view.added}", "added"),), _plain(change_words(view))]
        case DiffView():
            words = change_words(view)
            return [_counts(view.added, view.removed), *([_plain(words)] if words else [])]
        case ShellView() if view.background:
            return [_plain("in the background")]
        case ShellView():
            return [((f"exit {view.exit_code}", "warning"),)] if view.exit_code else []
        case FoundView():
            return [_plain(_found(view))]
        case PageView():
            cut = " and more" if view.partial else ""
            kind = sanitize_line(view.media_type) or "no type"
            return [_plain(str(view.status)), _plain(kind), _plain(f"{format_bytes(view.size)}{cut}")]
        case LinesView():
            return [_plain(plural(view.count, "line"))]
        case PlanView():
            facts = [_OUTCOMES[view.outcome]] if view.outcome in _OUTCOMES else []
            facts += [_plain(f"mode {view.mode}")] if view.outcome == "approved" and view.mode is not None else []
            return [*facts, *([_plain("edited by you")] if view.edited else [])]
        case TodoView():
            done = sum(item.status == "done" for item in view.items)
            return [_plain(f"{done} of {len(view.items)} done")] if view.items else []
        case NotNowView():
            return [_plain(f"not now: {sanitize_line(view.reason)}")]
        case AgentView():
            return _agent_facts(view)
        case DenialView() | OwnView():
            return []


_ENDS: dict[str, str] = {
    "limit_reached": "not done",
    "cut_off": "cut off",
    "declined": "declined",
    "unknown": "the program was killed",
}


def _agent_facts(view: AgentView) -> list[Fact]:
    ended: list[Fact] = [((_ENDS[view.outcome], "warning"),)] if view.outcome in _ENDS else []
    spent = format_spending(view.tokens, view.cost) if view.tokens else ""
    return [*ended, _plain(plural(view.steps, "step")), *([_plain(spent)] if spent else [])]


def _found(view: FoundView) -> str:
    if not view.files:
        return "nothing found"
    if not view.lines:
        return plural(view.files, "file")
    return f"{view.lines:,} matching lines in {view.files:,} files" if view.partial else plural(view.lines, "match")


def shown_text(result: ToolResultMessage) -> str:
    """Return the text of a result without the line that says how a command ended: its facts say that."""
    text = text_of(result.parts)
    for view in result.ui:
        if isinstance(view, ShellView) and view.ending:
            before, found, after = text.rpartition(f"\n{view.ending}")
            text = before + after if found else text
    return text
