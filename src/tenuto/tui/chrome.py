"""What stands around transcript and editor, as lines: status, panels, popups, footer. Shared by both screens."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

from msgspec import Struct

from tenuto.config.settings import UiSettings
from tenuto.guard.terminal import sanitize_line
from tenuto.text.figures import format_cost, format_count, whole_percent
from tenuto.tui.keys.bindings import fit_phrases
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.panels.approval import approval_panel
from tenuto.tui.panels.children import child_panel
from tenuto.tui.panels.lists import completion_panel, help_panel, picker_panel, side_panel
from tenuto.tui.panels.panel import NOTHING, SEPARATOR, Panel, image_chips, spans_width, status_line
from tenuto.tui.panels.reading import block_panel, search_panel
from tenuto.tui.render.items import gap_before
from tenuto.tui.render.line import EMPTY, Line, Span, fit
from tenuto.tui.render.options import UNICODE, Glyphs, RenderOptions, motion_of
from tenuto.tui.render.width import cell_width, truncate_middle
from tenuto.tui.state import intents
from tenuto.tui.state.intents import Intent
from tenuto.tui.state.item import AssistantItem, Item, whole_item
from tenuto.tui.state.state import StatusLine, UiState

PLACEHOLDER = "Ask for something · / commands · @ files · ! shell · ? keys"
KEYS_HINT = "? keys"
TOAST_SECONDS = 4.0
FOCUS_SECONDS = 0.3
"""Seconds after the terminal got the focus in which a click is not taken for an answer."""
TOAST_STYLES = {"info": "dim", "warning": "warning", "error": "error"}
DIALOGS = frozenset({"approval", "feedback", "picker", "row", "help", "child"})
SCROLLED = ("help", "child")
"""What needs the room that the queue and the todo list take otherwise."""
WHOLE_FRAME = 4
"""Rows around what is read on the whole screen: the question, the selected answer, the keys, what is not shown."""
ABOVE_PROMPT = DIALOGS | {"search", "found", "block"}
"""What stands above the prompt; completions stand below it where the screen has room there."""


class ReadingPanels(NamedTuple):
    """What opens for somebody who reads: where the transcript is on the screen, hints alone; else what there is."""

    search: Callable[[UiState, int, int, LineEditor], Panel]
    block: Callable[[UiState, int], Panel]


def _search_hints(state: UiState, width: int, _rows: int, line: LineEditor) -> Panel:
    return search_panel(state, width, line)


MARKED = ReadingPanels(_search_hints, block_panel)
"""For a screen that marks matches and blocks where they stand."""


class Machine(Protocol):
    """The state that is shown, and who takes the user's intents."""

    state: UiState

    def handle(self, intent: Intent) -> None:
        """Apply an intent."""
        ...


class Chrome:
    """Remembers what belongs to the screen alone: a toast, how far a panel is scrolled, whether it shows all.

    `command` is what the user's own status command printed.
    """

    def __init__(
        self,
        machine: Machine,
        keyboard: Keyboard,
        ui: UiSettings,
        home: str,
        *,
        glyphs: Glyphs,
        clock: Callable[[], float],
        reading: ReadingPanels = MARKED,
    ) -> None:
        self._reading = reading
        self._machine = machine
        self._keyboard = keyboard
        self._ui = ui
        self._motion = motion_of(ui)
        self._home = home
        self._glyphs = glyphs
        self._clock = clock
        self._toast: tuple[Span, float] | None = None
        self._shown = ""
        self.command: Sequence[Span] = ()
        self._full = False
        self._scroll = 0
        self._focused_since = float("-inf")
        self._panel = NOTHING
        self._side = NOTHING
        self._chips = NOTHING
        self._chips_from = 0

    # --- what is shown ---

    def status(self, width: int) -> Line:
        """Return the line above the editor."""
        now = self._clock()
        frame = self._motion.frame(now)
        toast = self._toast[0] if self._toast is not None else None
        return status_line(self._machine.state, self._motion.shown_time(now), width, frame, toast)

    def footer(self, width: int) -> Line:
        """Return the last line of the screen."""
        return footer_line(self._machine.state, width, self._home, self._ui.status_items, self.command)

    def placeholder(self, width: int) -> str:
        """Return what the empty prompt says in `width` cells: nothing while what is typed goes elsewhere."""
        return fit_phrases(PLACEHOLDER, KEYS_HINT, width) if self.takes_typing else ""

    @property
    def takes_typing(self) -> bool:
        """Whether the prompt has the caret: not while a dialog, or the text of one, has the keyboard."""
        state = self._machine.state
        return state.contexts[0] not in ABOVE_PROMPT or (state.contexts[0] == "approval" and state.draft.begun)

    def side_share(self, height: int) -> int:
        """Return how many rows of the screen's the side may have: fewer while something is open above the prompt."""
        state = self._machine.state
        asked_for = state.todo_open or "queue" in state.contexts
        return height // (2 if asked_for else 6 if state.contexts[0] in ABOVE_PROMPT else 3)

    def side(self, width: int, rows: int, *, has_list: bool = False) -> Sequence[Line]:
        """Return the todo list, the queue, the images of the draft in at most `rows` rows; a dialog needs them all.

        `has_list`: the transcript has that list right above.
        """
        state = self._machine.state
        if state.contexts[0] in DIALOGS:
            self._side = self._chips = NOTHING
            return ()
        self._chips = image_chips(state, width)
        todo = () if has_list else state.todo
        self._side = side_panel(state, width, self._glyphs, rows - len(self._chips.lines), todo)
        self._chips_from = len(self._side.lines)
        return [*self._side.lines, *self._chips.lines]

    def choose_side_row(self, row: int) -> None:
        """Take back the queued prompt, or take out the image, that a row beside the editor shows."""
        queued = self._side.choices.get(row)
        if queued is not None:
            self._machine.handle(intents.ActOnQueued("edit", queued))
        place = self._chips.choices.get(row - self._chips_from)
        if place is not None:
            self._machine.handle(intents.ImageDetached(place))

    def panel(self, width: int, rows: int) -> Sequence[Line]:
        """Return what is open, in at most `rows` rows. The draft stays where it is."""
        state = self._machine.state
        self._keyboard.follow_state()
        request = state.approvals.current
        shown = request.request_id if request is not None else f"{state.contexts[0]}{state.help_filter}"
        if shown != self._shown:
            self._shown, self._full, self._scroll = shown, False, 0
        self._panel = self._open_panel(width, rows)
        self._scroll = self._panel.scrolled
        return self._panel.lines

    def _open_panel(self, width: int, rows: int) -> Panel:
        state, line = self._machine.state, self._keyboard.line
        match state.contexts[0]:
            case "approval" | "feedback":
                return approval_panel(state, width, rows, self._glyphs, line, full=self._full, scroll=self._scroll)
            case "picker" | "row":
                return picker_panel(state, width, rows, line)
            case "help":
                return help_panel(state, width, rows, self._scroll, line)
            case "child":
                return child_panel(state, width, rows, self._scroll, self._item_options())
            case "completion":
                return completion_panel(state, width, rows)
            case "search" | "found":
                return self._reading.search(state, width, rows, line)
            case "block":
                return self._reading.block(state, width)
            case _:
                return NOTHING

    def _item_options(self) -> RenderOptions:
        """Return how items are drawn in a panel at this moment."""
        state = self._machine.state
        return RenderOptions(
            detail=state.detail,
            now=self._motion.shown_time(self._clock()),
            ascii=self._glyphs != UNICODE,
            show_thinking=self._ui.show_thinking,
            expand_key=state.keys.label("detail"),
        )

    @property
    def whole(self) -> bool:
        """Whether all of an approval is read, on the whole screen."""
        request = self._machine.state.approvals.current
        return self._full and request is not None and request.request_id == self._shown

    # --- toasts ---

    @property
    def moving(self) -> bool:
        """Whether something here goes away with time."""
        return self._toast is not None

    @property
    def moves_in(self) -> float:
        """Seconds until the toast is to go away."""
        return max(0.0, self._toast[1] - self._clock()) if self._toast is not None else float("inf")

    def show_toast(self, text: str, style: str) -> None:
        """Show a line for a few seconds, from the next time that the status is asked for."""
        self._toast = ((text, style), self._clock() + TOAST_SECONDS)

    def expire_toast(self) -> None:
        """Remove a toast whose time is over."""
        if self._toast is not None and self._clock() >= self._toast[1]:
            self._toast = None

    # --- what the user does here; the lines have to be asked for again afterwards ---

    def scroll_page(self, direction: int) -> bool:
        """Scroll the open panel by a page; `False` when it is not one that scrolls."""
        state = self._machine.state
        if not self._full and state.contexts[0] not in SCROLLED and not state.approvals.plan:
            return False
        kept = 3 if state.contexts[0] in SCROLLED else WHOLE_FRAME if self.whole else 8
        self.scroll(direction * max(1, len(self._panel.lines) - kept))
        return True

    def scroll_help(self, rows: int) -> bool:
        """Scroll the help by rows."""
        self.scroll(rows)
        return True

    def put_todo_away(self) -> bool:
        """Put the todo list away; `False` where more of it can be shown, or none is."""
        if not self._side.has_all:
            return False
        self._machine.handle(intents.ToggleTodo(has_all=True))
        return True

    def show_whole_approval(self) -> bool:
        """Show all of the command or change, or its head again."""
        self._full = not self._full
        self._scroll = 0
        return True

    def show_command(self, spans: Sequence[Span]) -> None:
        """Show what the user's own status command printed, from the next time that the footer is asked for."""
        self.command = spans

    def leave_whole_approval(self) -> bool:
        """Show the head of the command or change again; `False` when that is what shows."""
        if not self.whole or self._machine.state.contexts[0] != "approval":
            return False
        return self.show_whole_approval()

    def scroll(self, rows: int) -> None:
        """Scroll the open panel, or select another of its rows."""
        state = self._machine.state
        if state.contexts[0] == "picker":
            self._machine.handle(intents.MovePicker(rows))
        elif state.contexts[0] == "completion":
            self._machine.handle(intents.MoveCompletion(rows))
        else:
            self._full = state.approvals.current is not None
            down = rows if state.contexts[0] != "child" else -rows  # that one is seen from its end
            self._scroll = max(0, self._scroll + down)

    def set_focus(self, has_focus: bool) -> None:
        """Note when the terminal got the focus, or that it lost it."""
        self._focused_since = self._clock() if has_focus else float("inf")

    @property
    def _has_just_got_focus(self) -> bool:
        """Whether a click may have been the one that turned to this terminal; it answers nothing then."""
        return self._clock() - self._focused_since < FOCUS_SECONDS

    def choose_row(self, row: int) -> None:
        """Choose what stands in a row of the panel, if it is something to choose."""
        place = self._panel.choices.get(row)
        if place is None:
            return
        match self._machine.state.contexts[0]:
            case "approval" if not self._has_just_got_focus:
                self._machine.handle(intents.AnswerApproval(place))
            case "picker":
                self._machine.handle(intents.PickChoice(place))
            case "completion":
                self._machine.handle(intents.AcceptCompletion(index=place))
            case _:
                pass


# --- the footer: where one is, with what, and how full the window is, by priorities. Pure ---


BAR_CELLS = 10
FILLED, MARK = "━", "┿"
MIDDLE_SHARE, HIGH_SHARE = 0.7, 0.9
MIN_DIRECTORY = 12
MODE_STYLES = {"ask": "status.mode", "edits": "success", "auto": "warning", "plan": "compaction"}

GAP = "gap"
"""Not an item: what comes after it stands at the right edge."""
COMMAND = "command"
ITEMS = (
    "editing",
    "mode",
    "model",
    "directory",
    "branch",
    "extensions",
    GAP,
    "queue",
    "jobs",
    "tokens",
    "cost",
    "context",
)
"""What shows where nobody has said anything; the user's own command comes behind the branch."""
DROPPED = (
    "bar",
    "tokens",
    "cost",
    "extensions",
    "branch",
    "jobs",
    COMMAND,
    "directory",
    "effort",
    "queue",
    "context",
    "model",
)
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
    shown = choose_items(items, has_command=bool(command), no_sandbox=not state.status.sandboxed)
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


def choose_items(items: Sequence[str], *, has_command: bool, no_sandbox: bool = False) -> tuple[str, ...]:
    """Return the items that are to show: the known ones of `items`, or all; the command is always among them.

    The mode is as well where there is no sandbox: it says so.
    """
    shown = tuple(name for name in items if name in RENDERERS or name == GAP) or ITEMS
    if no_sandbox and "mode" not in shown:
        shown = ("mode", *shown)
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


def _editing(facts: FooterFacts) -> list[Span]:
    return [(facts.state.editing, "bold")] if facts.state.editing else []


def _mode(facts: FooterFacts) -> list[Span]:
    mode = facts.status.mode
    spans = [(mode, MODE_STYLES[mode])] if mode is not None else []
    return spans if facts.status.sandboxed else [*spans, (" no sandbox" if spans else "no sandbox", "warning")]


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


def _extensions(facts: FooterFacts) -> list[Span]:
    shown = facts.status.extensions
    return [(sanitize_line(" · ".join(shown[name] for name in sorted(shown))), "status")] if shown else []


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
    text = f"{count}/{format_count(status.window)} {whole_percent(status.tokens, status.window)}%{over}"
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
    "editing": _editing,
    "mode": _mode,
    "model": _model,
    "directory": _directory,
    "branch": _branch,
    "extensions": _extensions,
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


# --- what stays on the normal screen when the full screen goes: the end of the conversation. Pure ---


Parting = Literal["screen", "answer", "off"]
"""The last screenful, the last answer, or nothing."""
OTHER_ROWS = 4
"""Of the screen: for the hint and the shell's prompt."""


def parting_lines(
    items: Sequence[Item], what: Parting, columns: int, rows: int, render: Callable[[Item, int], Sequence[Line]]
) -> Sequence[Line]:
    """Return what is to be printed when the screen goes: the whole last answer, or as much as fits on a screen."""
    if what == "off":
        return []
    if what == "answer":
        answers = (item for item in reversed(items) if isinstance(item, AssistantItem) and item.text.strip())
        answer = next(answers, None)
        return [] if answer is None else render(whole_item(items, answer), columns)
    room = max(1, rows - OTHER_ROWS)
    lines: list[Line] = []
    for place in range(len(items) - 1, -1, -1):
        shown = render(items[place], columns)
        gap = gap_before(items[place - 1] if place else None, items[place]) if shown else 0
        lines = [*(EMPTY,) * gap, *shown[-room:], *lines]
        if len(lines) >= room:
            break
    lines = lines[-room:]
    while lines and not lines[0].spans:
        del lines[0]
    return lines
