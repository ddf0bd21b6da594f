"""The inline front-end: the machine's state as blocks above and a few rows below, and what the user does to it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tenuto.command.outcome import MouseMode
from tenuto.config.settings import Settings, UiSettings
from tenuto.config.sources import load_settings
from tenuto.exit_codes import SIGNAL
from tenuto.guard.terminal import sanitize_line
from tenuto.protocol.entry import Mode
from tenuto.tui.chrome import Chrome, ReadingPanels
from tenuto.tui.first_paint.reader import Handover
from tenuto.tui.inline.application import InlineApplication, Keyboard
from tenuto.tui.inline.bottom import INDENT, Bottom, arrange
from tenuto.tui.inline.keys import Press
from tenuto.tui.inline.output import NOT_PAINTED_AGAIN, InlineOutput, habit_in, synchronises, terminal_size
from tenuto.tui.inline.printer import Printer
from tenuto.tui.inline.prompt import PromptEditor
from tenuto.tui.keys.line_editor import LineEditor
from tenuto.tui.launch import Ended, Opening, first_mode, learn_keyboard, noise_file, opening_texts
from tenuto.tui.paint import Paint, colour_depth
from tenuto.tui.panels.panel import PAD, Panel, first_shown
from tenuto.tui.panels.reading import FIELD_ROWS, block_preview, places_panel, search_field, search_keys
from tenuto.tui.render.line import EMPTY, Line, fit_lines
from tenuto.tui.render.marks import Marks, draw_marks, present_match
from tenuto.tui.render.options import glyphs_for
from tenuto.tui.render.theme import Theme
from tenuto.tui.render.width import cell_width, truncate
from tenuto.tui.runner import LateRuntime
from tenuto.tui.screen import Action, Screen
from tenuto.tui.state import effects, intents
from tenuto.tui.state.effects import TranscriptEffect
from tenuto.tui.state.item import Item, meant_action, whole_item
from tenuto.tui.state.state import UiState
from tenuto.tui.state.texts import item_name
from tenuto.tui.terminal.emulator import Hyperlinks
from tenuto.tui.terminal.input import BACKGROUND_REPORTS, NO_BACKGROUND_REPORTS
from tenuto.tui.terminal.modified_keys import (
    CLEAN_KEYBOARD,
    KEYS_TOLD_APART,
    NO_MORE_FLAGS,
    NO_MORE_KEYS,
    more_keys,
    no_more_keys,
)
from tenuto.tui.terminal.terminal import (
    NO_MOUSE_NO_SIZES,
    WRITE_SECONDS,
    Terminal,
    borrow_terminal,
    give_back,
    leave_on_signals,
)
from tenuto.tui.terminal.writer import open_again
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.core.start import Start
    from tenuto.tui.first_paint.reader import EarlyReader


CONTEXT_ROWS = 9
"""Rows of a block that are shown around a match, its own among them."""


class MatchPanel:
    """Gives the panel of the open search. `whole` renders all of an item on a screen of that width."""

    def __init__(self, whole: Callable[[Item, int], list[Line]]) -> None:
        self._whole = whole
        self._marks = Marks()
        self._known: tuple[object, list[Line]] = (None, [])

    def __call__(self, state: UiState, width: int, rows: int, line: LineEditor) -> Panel:
        """Return the matches as a list, or the present one as it stands in its block, in at most `rows` rows."""
        context = self._context(state, width, max(1, min(CONTEXT_ROWS, rows - FIELD_ROWS - 1)))
        search = state.search
        if search is None or not context:
            return places_panel(state, width, rows, line)
        keys = search_keys(search, state.keys, width, prints="print all")
        return Panel(fit_lines([search_field(search, width, line), *context, keys], width))

    def _context(self, state: UiState, width: int, rows: int) -> list[Line]:
        """Return the name of the block and the rows around the match; nothing while one types, or for no such row."""
        search = state.search
        hit = search.current if search is not None and not search.typing else None
        item = state.transcript.get(hit.id) if hit is not None else None
        if search is None or hit is None or item is None:
            self._known = (None, [])
            self._marks.forget()
            return []
        lines = self._lines_of(item, width)
        found = self._marks.matches(item, lines, search.query)
        present = present_match(found, hit, search.ordinal)
        if present is None:
            return []
        first = max(0, first_shown(found[present][0].row, len(lines), rows))
        shown = lines[first : first + rows]
        marks = self._marks.of_item(item, lines, state, 0)
        return [
            _head(item, width, first, len(shown), len(lines)),
            *(draw_marks(each, marks(number)) for number, each in enumerate(shown, first)),
        ]

    def _lines_of(self, item: Item, width: int) -> list[Line]:
        """Return all rows of the item: the same list for as long as it is the same item."""
        key = (item.id, item.version, width)
        if self._known[0] != key:
            self._known = (key, self._whole(item, width))
        return self._known[1]


def _head(item: Item, width: int, first: int, count: int, total: int) -> Line:
    """Return which block it is, and which of its rows are shown."""
    place = f"  rows {first + 1:,}–{first + count:,} of {total:,}" if count < total else ""
    name = truncate(item_name(item), max(1, width - len(PAD) - cell_width(place)))
    return Line(((PAD, "text"), (name, "bold"), (place, "dim")))


LEAKED = f"{NO_MOUSE_NO_SIZES}{CLEAN_KEYBOARD}\x1b[?47l"
"""Ends what a program that was killed may have left: the mouse, the other screen with its keyboard; moves no cursor."""
BEGIN_MODES = f"{LEAKED}{CLEAN_KEYBOARD}\x1b[>{KEYS_TOLD_APART}u\x1b[?1004h{BACKGROUND_REPORTS}"
END_MODES = f"{NO_MORE_KEYS}{NO_MORE_FLAGS}{CLEAN_KEYBOARD}\x1b[?1004l{NO_BACKGROUND_REPORTS}"
"""Keys told apart (kitty's protocol), word of being looked at, and of another background."""


class InlineApp:
    """One session on the normal screen. `opening` opens it after the first paint; its error is kept in `failure`.

    `take_texts` gives what is to be sent first; `paint` has the theme that `themes` shows; `clock` is seconds.
    """

    def __init__(
        self,
        runtime: LateRuntime,
        opening: Callable[[], Awaitable[None]],
        keyboard: Keyboard,
        output: InlineOutput,
        *,
        paint: Paint,
        themes: ThemeChooser,
        ui: UiSettings,
        mode: Mode | None = None,
        environ: Mapping[str, str],
        found: list[int | list[bytes]] | None = None,
        take_texts: Callable[[], list[str]] = list,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.failure: BaseException | None = None
        self._ends = False
        self._opening = opening
        self._take_texts = take_texts
        self._stop_early: Callable[[], Handover] = Handover
        self._environ = environ
        self._clock = clock
        self._output = output
        self.paint = paint
        self.themes = themes
        themes.watch(self._recolour)
        self._ticker: asyncio.TimerHandle | None = None
        self._work: set[asyncio.Task[None]] = set()
        self.common = Screen(
            self, runtime, themes=themes, ui=ui, mode=mode, environ=environ, clock=clock, columns=self.columns
        )
        self.runner, self.keyboard, self.alerts = self.common.runner, self.common.keyboard, self.common.alerts
        self.printer = Printer(self.common.render_options)
        self.editor = PromptEditor(self._draft_changed, lambda: output.get_size().columns - len(INDENT))
        glyphs = glyphs_for(self.common.render_options())
        reading = ReadingPanels(MatchPanel(self.printer.whole), block_preview)
        self.chrome = Chrome(
            self.runner, self.keyboard, ui, str(Path.home()), glyphs=glyphs, clock=clock, reading=reading
        )
        self.bottom = Bottom(self.editor, paint, lambda: self.runner.state)
        self.application = self._lay_out(keyboard, found)
        self.common.actions.update(self._own_actions())

    def _own_actions(self) -> dict[str, Action]:
        """Return the keys that this screen alone has: it cannot change what is printed, and prints it again."""
        return {
            "escape": self.chrome.leave_whole_approval,
            "detail": self._unfold,
            "scroll.page_up": lambda: self.chrome.scroll_page(-1),
            "scroll.page_down": lambda: self.chrome.scroll_page(1),
            "block.enter": self._enter_block,
            "block.fold": self._print_block,
        }

    def _lay_out(self, keyboard: Keyboard, found: list[int | list[bytes]] | None) -> InlineApplication:
        """Return what paints and reads; `found` is how the terminal was found."""
        on_console = self._environ.get("TERM") == "linux"
        modes = BEGIN_MODES + more_keys(self._environ), no_more_keys(self._environ) + END_MODES
        return InlineApplication(
            self.bottom,
            keyboard,
            self._output,
            paint=self._paint_frame,
            press=self._press,
            paste=self.keyboard.paste,
            look=self.common.set_focus,
            background=self.themes.set_background,
            habit=habit_in(self._environ),
            modes=("", "") if on_console else modes,
            found=found,
        )

    # --- life ---

    async def run(self) -> None:
        """Show the empty prompt, open the session, and return when the user leaves or something ends it."""
        self.runner.start()
        self.alerts.begin()
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(self._fail)
        loop.add_signal_handler(signal.SIGTSTP, self.application.suspend)
        loop.add_signal_handler(signal.SIGCONT, self.application.go_on)
        opening = loop.create_task(self.common.open(self._opening, self._fail_to_open), name="open")
        try:
            await self.application.run(self._begin)
        except EOFError:
            self.leave()
        finally:
            loop.remove_signal_handler(signal.SIGTSTP)
            loop.remove_signal_handler(signal.SIGCONT)
            opening.cancel()
            for task in self._work:
                task.cancel()
            await asyncio.gather(opening, *self._work, return_exceptions=True)
            if self._ticker is not None:
                self._ticker.cancel()
            self._print_rest()
            self.alerts.end()
            await self.runner.close()

    def _fail_to_open(self, error: BaseException) -> None:
        self.failure = error
        self._exit()

    def take_over(self, stop: Callable[[], Handover]) -> None:
        """Right before the first paint, end the early phase with `stop`, and take over what was typed in it."""
        self._stop_early = stop

    def _begin(self) -> None:
        """Take over what was typed already: nothing of it is missing in the first paint."""
        typed = self._stop_early()
        self.common.take_over(typed, self._take_texts)
        if typed.rest:
            self.application.feed(typed.rest)
        self.application.read_now()
        if self._ends:
            self.application.exit()

    def leave(self) -> None:
        """Quit now, in order (a signal, a terminal that went away)."""
        self.runner.handle(intents.Leave())

    def _fail(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """End on a fault of our own in painting or in a key; the caller says it."""
        error = context.get("exception")
        if "handle" not in context or not isinstance(error, BaseException):
            loop.default_exception_handler(context)
            return
        self.failure = self.failure or error
        self._exit()

    def _exit(self) -> None:
        """End the screen, also one that has not begun."""
        self._ends = True
        self.application.exit()

    def _print_rest(self) -> None:
        lines = self.printer.take_rest(self.columns) if self.failure is None else []
        if lines:
            self.application.write(self.paint.rows(lines))

    # --- painting ---

    def _paint_frame(self, redraw: Callable[[], None]) -> None:
        """Print what is final above, paint the rest below: one frame."""
        begun = self._clock()
        size = self._output.get_size()
        self.runner.resize(size.columns)
        lines = self.printer.take(size.columns)
        with self._output.frame():
            if lines:
                self.application.erase()
                self._output.write(self.paint.rows(lines))
            self.bottom.rows = arrange(self.runner.state, self.printer, self.chrome, size, len(self.editor.rows()))
            redraw()
        if self.printer.is_behind:
            self.application.invalidate()
        self.runner.painted(self._clock() - begun)

    @property
    def columns(self) -> int:
        """How many cells wide the terminal is."""
        return self._output.get_size().columns

    def _recolour(self, theme: Theme) -> None:
        """Paint in another theme; what is printed keeps its colours."""
        self.paint.choose(theme)
        self.show()

    def show(self) -> None:
        """Paint soon."""
        if self.application.is_running:
            self.application.invalidate()
            self._watch_time()

    # --- effects: what both screens do stands in `tui/screen.py` ---

    @property
    def is_ready(self) -> bool:
        """Whether effects can be shown: always, printing waits for the first paint."""
        return True

    @property
    def page_paint(self) -> Paint:
        """The colours of a page for the pager."""
        return self.paint

    def change_transcript(self, effect: TranscriptEffect) -> None:
        """Print a change of the transcript. The scrollback is the terminal's: no place of it is looked for."""
        state = self.runner.state
        match effect:
            case effects.ItemAdded(id=item_id):
                item = state.transcript.get(item_id)
                if item is not None:
                    self.printer.add(item)
            case effects.ItemRemoved(id=item_id):
                self.printer.remove(item_id)
            case effects.TranscriptReset():
                if self.paint.links is not None:
                    self.paint.links.directory = state.status.cwd
                title = sanitize_line(state.status.title) or state.session_id
                self.printer.reset(state.transcript.ordered(), title, self.columns)
            case _:
                pass  # everything else that changed is read when it is painted

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text into the prompt."""
        self.editor.set_draft(text, cursor)

    def show_status(self) -> None:
        """Nothing: the rows below are worked out when they are painted."""

    def show_panels(self) -> None:
        """Nothing: the rows below are worked out when they are painted."""

    def use_mouse(self, mode: MouseMode) -> str:
        """Return what the user is told: there is nothing to change."""
        del mode
        return "The mouse is the terminal's own here"

    def write(self, sequence: str) -> None:
        """Write a control sequence, in order with what is painted."""
        self.application.write(sequence)

    def lend(self) -> AbstractAsyncContextManager[None]:
        """Give the terminal to another program; nothing is painted meanwhile."""
        return self.application.lend()

    def stop_job(self) -> None:
        """Give the terminal to the shell."""
        self.application.suspend()

    def repaint(self) -> None:
        """Paint the rows below again; what is printed above stays."""
        self.application.erase()
        self.show()

    def quit(self) -> None:
        """End the screen; the rest is printed and the alerts are ended on the way out."""
        self._exit()

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else; the end cancels it."""
        task = asyncio.ensure_future(work)
        self._work.add(task)
        task.add_done_callback(self._work.discard)

    # --- time ---

    def _watch_time(self) -> None:
        """Tick while something moves with time, and once when a line is to go away; sleep otherwise."""
        wait = self.common.motion.tick if self.runner.state.animating else self.chrome.moves_in
        loop = asyncio.get_running_loop()
        if wait == float("inf") or (self._ticker is not None and self._ticker.when() <= loop.time() + wait):
            return
        if self._ticker is not None:
            self._ticker.cancel()
        self._ticker = loop.call_later(wait, self._tick)

    def _tick(self) -> None:
        self._ticker = None
        self.common.tick()
        self.show()

    # --- keys ---

    def _press(self, key: Press) -> None:
        editing = self.keyboard.press(key.name, key.character)
        if editing is not None:
            self.editor.press(editing, key.character)

    def _draft_changed(self, text: str, cursor: int) -> None:
        self.runner.handle(intents.DraftChanged(text, cursor))

    def _unfold(self) -> bool:
        """Print the block that is looked at, else the last one that has more to show: what is printed cannot change."""
        state, columns = self.runner.state, self.columns
        item = state.transcript.get(state.looked_at)
        lines = [EMPTY, *self.printer.whole(item, columns)] if item is not None else self.printer.unfold(columns)
        self.printer.say(lines)
        if not lines:
            key = state.keys.label("detail")
            self.chrome.show_toast(f"Nothing more to unfold; the next {key} begins at the end", "dim")
        self.show()
        return True

    def _enter_block(self) -> bool:
        """Print the block under the cursor again; `False` for a sub-agent's, which is read along with."""
        state = self.runner.state
        if meant_action(state.transcript.get(state.block), "enter") == "watch":
            return False
        return self._print_block()

    def _print_block(self) -> bool:
        """Print the block under the cursor again."""
        state = self.runner.state
        item = state.transcript.get(state.block)
        if item is None:
            return False
        self.printer.say([EMPTY, *self.printer.whole(whole_item(state.transcript.ordered(), item), self.columns)])
        self.runner.handle(intents.LeaveTranscript())
        self.show()
        return True


RESTORE = f"\x1b[?2026l\x1b[?2004l{END_MODES}\x1b[?7h\x1b[?25h\x1b[0m"
"""Ends every mode that may have begun; the screen is the user's own and stays as it is."""


def run_inline(start: Start, prompt: str = "", *, choose: bool = False, early: EarlyReader | None = None) -> int:
    """Run the inline front-end and return the exit code.

    `prompt` is sent as soon as the session is open; `choose` offers the earlier sessions first. `early` has the
    terminal until the app can paint its first frame.
    """
    settings, _ = load_settings(start.home, start.cwd, start.environ)
    noise = noise_file(start.home)
    found = early.found if early else None
    restore = RESTORE + (NOT_PAINTED_AGAIN if habit_in(os.environ) == "clears" else "")
    with borrow_terminal(str(noise), found, restore=restore) as terminal, contextlib.ExitStack() as stack:
        if early is not None:
            stack.callback(early.close)
        texts = opening_texts(prompt, choose=choose)
        keyboard = _open_keyboard()
        # Raw at once: what is typed, and what the terminal answers, is not to be echoed before there is a prompt.
        stack.enter_context(keyboard.raw())
        themes = ThemeChooser(settings.ui.theme, os.environ, start.home)
        themes.begin(terminal.write, asked=early is not None and early.asked)
        run = _run(start, texts, settings, terminal, early=early, keyboard=keyboard, themes=themes)
        ended, typed = asyncio.run(run)
    give_back(keyboard.descriptor, typed)
    return ended.report(noise)


def _open_keyboard() -> Keyboard:
    """Return the keyboard, read without ever waiting: the shell may have read what was there, after a stop."""
    descriptor = sys.stdin.fileno()
    return Keyboard(descriptor, open_again(descriptor, os.O_RDONLY))


async def _run(
    start: Start,
    texts: list[str],
    settings: Settings,
    terminal: Terminal,
    *,
    early: EarlyReader | None,
    keyboard: Keyboard,
    themes: ThemeChooser,
) -> tuple[Ended, str]:
    """Return how it ended, and what a user has typed since then."""
    late = LateRuntime(start.home, temporary=start.temporary)
    opening = Opening(start, late, texts)

    async def open_session() -> None:
        await opening.open(app.runner.submit_user_input)
        await learn_keyboard(start.home, environ, app.runner.handle)

    environ = os.environ
    depth = colour_depth(environ)
    output = InlineOutput(
        terminal.writer,
        terminal_size(terminal.output.fileno()),
        synchronised=synchronises(environ),
    )
    paint = Paint(themes.theme, depth, links=Hyperlinks(environ))
    app = InlineApp(
        late,
        open_session,
        keyboard,
        output,
        paint=paint,
        themes=themes,
        ui=settings.ui,
        mode=first_mode(start, settings),
        environ=environ,
        found=terminal.found,
        take_texts=opening.take_texts,
    )
    app.take_over(early.stop if early is not None else Handover)
    terminal.owed = lambda: app.alerts.owed
    loop = asyncio.get_running_loop()
    terminal.writer.drained = lambda: loop.call_soon_threadsafe(app.show)
    terminal.writer.gone = lambda: loop.call_soon_threadsafe(app.leave)
    with leave_on_signals(loop, app.leave) as signals:
        await app.run()
        hint = await opening.close(app.runner.state)
        typed = app.application.end_reports()
        terminal.writer.close(WRITE_SECONDS)
    code = SIGNAL + signals[0] if signals else 1 if app.failure else 0
    return Ended(code, hint, app.failure), typed
