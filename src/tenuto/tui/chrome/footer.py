"""The last line of the screen: where one is, with what, and how full the window is, by priorities. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from tenuto.guard.terminal import sanitize_line
from tenuto.text.figures import format_cost, format_count
from tenuto.tui.machine.state import StatusLine, UiState
from tenuto.tui.render.line import Line, Span, fit
from tenuto.tui.render.status import SEPARATOR, spans_width
from tenuto.tui.render.width import cell_width, truncate_middle

BAR_CELLS = 10
FILLED, MARK = "━", "┿"
MIDDLE_SHARE, HIGH_SHARE = 0.7, 0.9
MIN_DIRECTORY = 12
MODE_STYLES = {"ask": "status.mode", "edits": "success", "auto": "warning", "plan": "compaction"}

GAP = "gap"
"""Not an item: what comes after it stands at the right edge."""
COMMAND = "command"
ITEMS = ("mode", "model", "directory", "branch", GAP, "queue", "jobs", "tokens", "cost", "context")
"""What shows where nobody has said anything; the user's own command comes behind the branch."""
DROPPED = ("bar", "tokens", "cost", "branch", "jobs", COMMAND, "directory", "effort", "queue", "context", "model")
"""What goes where there is no room, first to last; the mode stays."""


class FooterFacts(Struct, frozen=True):
    """What the items are made of. `gone` are those that have no room; `command` is what the user's own printed."""

    state: UiState
    home: str
    command: Sequence[Span] = ()
    gone: frozenset[str] = frozenset()

    @property
    def status(self) -> StatusLine:
        """The machine's facts."""
        return self.state.status


def footer_line(state: UiState, width: int, home: str, items: Sequence[str] = (), command: Sequence[Span] = ()) -> Line:
    """Return the line, never wider than `width` cells: what does not fit goes in the order of its worth.

    `items` are the names of what to show, in order; empty: all. `command` is what the user's own command printed.
    """
    shown = choose_items(items, has_command=bool(command))
    left: list[Span] = []
    right: list[Span] = []
    for dropped in range(len(DROPPED) + 1):
        facts = FooterFacts(state, home, command, frozenset(DROPPED[:dropped]))
        left, right = (_side(names, facts) for names in _sides(shown))
        room = width - spans_width(right) - (2 if right else 0)
        left = _shorten(left, room)
        if spans_width(left) <= room:
            break
    gap = max(1, width - spans_width(left) - spans_width(right)) if right else 0
    return fit((*left, (" " * gap, "status"), *right) if gap else left, width)


def choose_items(items: Sequence[str], *, has_command: bool) -> tuple[str, ...]:
    """Return the items that are to show: the known ones of `items`, or all; the command is always among them."""
    shown = tuple(name for name in items if name in RENDERERS or name == GAP) or ITEMS
    if has_command and COMMAND not in shown:
        place = shown.index(GAP) if GAP in shown else len(shown)
        shown = (*shown[:place], COMMAND, *shown[place:])
    return shown


def unknown_items(items: Sequence[str]) -> list[str]:
    """Return the names that mean nothing."""
    return [name for name in items if name not in RENDERERS and name != GAP]


def describe_unknown(names: Sequence[str]) -> str:
    """Return what to say of names that mean nothing: what there is, and the nearest."""
    from tenuto.text.matching import did_you_mean

    known = (*RENDERERS, GAP)
    return (
        f"ui.status_items: there is no {', '.join(names)}: there are {', '.join(known)}{did_you_mean(names[0], known)}"
    )


def _sides(shown: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    place = shown.index(GAP) if GAP in shown else len(shown)
    return shown[:place], [name for name in shown[place:] if name != GAP]


def _side(names: Sequence[str], facts: FooterFacts) -> list[Span]:
    spans: list[Span] = []
    for name in names:
        piece = [] if name in facts.gone else RENDERERS[name](facts)
        if piece:
            spans += [SEPARATOR, *piece] if spans else piece
    return spans


def _shorten(spans: list[Span], room: int) -> list[Span]:
    """Return the spans with a directory, and then a command's line, that take less, if that is needed."""
    excess = spans_width(spans) - room
    if excess <= 0:
        return spans
    shortened: list[Span] = []
    for text, style in spans:
        if style == "directory" and excess > 0:
            cut = truncate_middle(text, max(MIN_DIRECTORY, cell_width(text) - excess))
            excess -= cell_width(text) - cell_width(cut)
            text = cut
        shortened.append((text, style))
    return shortened


# --- the items ---


def _mode(facts: FooterFacts) -> list[Span]:
    mode = facts.status.mode
    return [(mode, MODE_STYLES[mode])] if mode is not None else []


def _model(facts: FooterFacts) -> list[Span]:
    model, effort = sanitize_line(facts.status.model), facts.status.effort
    if not model:
        return []
    return [(f"{model}:{effort}" if effort and "effort" not in facts.gone else model, "status")]


def _directory(facts: FooterFacts) -> list[Span]:
    cwd = facts.status.cwd
    return [(home_relative(sanitize_line(cwd), facts.home), "directory")] if cwd else []


def _branch(facts: FooterFacts) -> list[Span]:
    branch = sanitize_line(facts.status.branch)
    return [(branch + ("*" if facts.status.dirty else ""), "status")] if branch else []


def _queue(facts: FooterFacts) -> list[Span]:
    return [(f"{len(facts.state.queue)} queued", "accent")] if facts.state.queue else []


def _jobs(facts: FooterFacts) -> list[Span]:
    jobs = facts.status.jobs
    return [(f"{jobs} job{'s' if jobs > 1 else ''}", "accent")] if jobs else []


def _tokens(facts: FooterFacts) -> list[Span]:
    total = facts.status.total
    if not total.sent and not total.output:
        return []
    text = f"↑{format_count(total.sent)} ↓{format_count(total.output)}"
    if total.cache_read:
        text += f" {total.cache_read * 100 // total.sent}% cached"
    return [(text, "status")]


def _cost(facts: FooterFacts) -> list[Span]:
    return [(format_cost(facts.status.cost), "status")] if facts.status.cost else []


def _command(facts: FooterFacts) -> list[Span]:
    return list(facts.command)


def _context(facts: FooterFacts) -> list[Span]:
    status = facts.status
    if not status.tokens:
        return []
    count = f"{'~' if status.estimated else ''}{format_count(status.tokens)}"
    share = status.share
    if share is None or status.window is None:
        return [(f"{count} tokens", "status")]
    style = "meter.low" if share < MIDDLE_SHARE else "meter.middle" if share < HIGH_SHARE else "meter.high"
    over = " over" if share > 1 else ""
    text = f"{count}/{format_count(status.window)} {math.ceil(share * 100)}%{over}"
    if "bar" in facts.gone:
        return [(text, style if share >= MIDDLE_SHARE else "status")]
    return [*_bar(status, share, style), (f" {text}", "status")]


def _bar(status: StatusLine, share: float, style: str) -> list[Span]:
    """Return how full the window is, with a mark where compaction will begin."""
    filled = min(BAR_CELLS, max(1, round(share * BAR_CELLS)))
    cells = [(FILLED, style if place < filled else "faint") for place in range(BAR_CELLS)]
    if status.trigger is not None and status.window:
        place = min(BAR_CELLS - 1, int(status.trigger / status.window * BAR_CELLS))
        cells[place] = (MARK, cells[place][1])
    spans: list[Span] = []
    for text, each in cells:
        if spans and spans[-1][1] == each:
            spans[-1] = (spans[-1][0] + text, each)
        else:
            spans.append((text, each))
    return spans


RENDERERS: Mapping[str, Callable[[FooterFacts], list[Span]]] = {
    "mode": _mode,
    "model": _model,
    "directory": _directory,
    "branch": _branch,
    "queue": _queue,
    "jobs": _jobs,
    "tokens": _tokens,
    "cost": _cost,
    COMMAND: _command,
    "context": _context,
}


def home_relative(path: str, home: str) -> str:
    """Return the path with the home directory as `~`."""
    return "~" + path[len(home) :] if home and (path == home or path.startswith(home.rstrip("/") + "/")) else path
