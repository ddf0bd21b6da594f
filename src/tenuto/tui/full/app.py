"""The full-screen front-end: a handful of widgets that show the machine's state and hand it what the user does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rich.console import RenderableType
from textual import events
from textual.app import App, ComposeResult
from textual.containers import Horizontal
from textual.reactive import Reactive
from textual.screen import Screen
from textual.timer import Timer
from textual.widget import Widget

from tenuto.command.outcome import MouseMode
from tenuto.config.settings import Settings, UiSettings
from tenuto.config.sources import load_settings
from tenuto.exit_codes import SIGNAL
from tenuto.protocol.entry import Mode
from tenuto.tui.chrome import ABOVE_PROMPT, PLACEHOLDER, parting_lines
from tenuto.tui.full.chrome_widgets import ChromeWidgets
from tenuto.tui.full.composer import Composer
from tenuto.tui.full.driver import BackgroundHeard, HeldDriver, HungUp, TerminalDriver, driver_class
from tenuto.tui.full.palette import palette_for, show_all_colours
from tenuto.tui.full.resizing import ResizingScreen
from tenuto.tui.full.transcript import TranscriptView
from tenuto.tui.launch import Ended, Opening, first_mode, learn_keyboard, noise_file, opening_texts
from tenuto.tui.paint import ROW_END, Paint, colour_depth
from tenuto.tui.render.line import Line
from tenuto.tui.render.live import ItemRenderer
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.render.theme import Theme
from tenuto.tui.runner import LateRuntime
from tenuto.tui.screen import Action
from tenuto.tui.screen import Screen as CommonScreen
from tenuto.tui.state import effects, intents
from tenuto.tui.state.effects import TranscriptEffect
from tenuto.tui.terminal.terminal import Terminal, borrow_terminal, leave_on_signals
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.core.start import Start
    from tenuto.tui.first_paint.reader import EarlyReader


MOUSE_WORDS: dict[MouseMode, str] = {
    "full": "The mouse scrolls, selects and folds; with Shift the terminal selects",
    "wheel": "The wheel scrolls; hold Shift to select",
    "off": "The mouse is the terminal's; PageUp and PageDown scroll",
}


class TenutoApp(App[None], inherit_bindings=False):
    """One screen. `opening` makes the agent, attaches its runtime and opens its session, after the first paint.

    Its error ends the app and is kept in `failure`. `take_texts` gives what is to be sent first. `themes` says in which
    colours. `early` has the keyboard and the screen until the first frame is there.
    `preview` is shown while the session is being opened.
    """

    CSS_PATH = "app.tcss"
    ENABLE_COMMAND_PALETTE = False
    ALLOW_SELECT = False
    AUTO_FOCUS: ClassVar[str | None] = "#composer"
    app_focus = Reactive(True, repaint=False, compute=False)

    def __init__(
        self,
        runtime: LateRuntime,
        opening: Callable[[], Awaitable[None]],
        *,
        themes: ThemeChooser,
        ui: UiSettings | None = None,
        mode: Mode | None = None,
        home: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        early: EarlyReader | None = None,
        take_texts: Callable[[], list[str]] = list,
        preview: Sequence[Line] = (),
    ) -> None:
        super().__init__(driver_class=driver_class(early), ansi_color=True)
        show_all_colours(self.console, os.environ)
        self.failure: BaseException | None = None
        self.ui = ui or UiSettings()
        self.themes = themes
        self.palette = palette_for(themes.theme, os.environ)
        themes.watch(self._recolour)
        self._opening = opening
        self._early = early
        self._take_texts = take_texts
        self._leaves = False
        self._ticker: Timer | None = None
        self.common = CommonScreen(self, runtime, themes=themes, ui=self.ui, mode=mode, environ=os.environ, clock=clock)
        self.runner, self.keyboard, self.alerts = self.common.runner, self.common.keyboard, self.common.alerts
        self.transcript = TranscriptView(
            lambda: self.runner.state,
            ItemRenderer(self.render_options),
            self.palette,
            toggle=lambda item_id: self.runner.handle(intents.ToggleItem(item_id)),
            reached_gap=lambda gap, end: self.runner.handle(intents.ShowEarlier(gap, end)),
            copy=self._copy_selected,
            preview=preview,
        )
        self.composer = Composer(
            self.keyboard.press,
            self.keyboard.paste,
            lambda text, cursor: self.runner.handle(intents.DraftChanged(text, cursor)),
            PLACEHOLDER,
            paint_now=self._paint_now,
            hint_style=lambda: self.palette.style("placeholder"),
            own_commands=lambda: self.runner.state.own_commands,
        )
        self.chrome = ChromeWidgets(
            self.runner,
            self.keyboard,
            self.palette,
            self.ui,
            str(home or Path.home()),
            screen=lambda: (self.size, max(1, self.composer.size.height)),
            invite=self.composer.invite,
            clock=clock,
        )
        self.common.actions.update(self._own_actions())

    def _own_actions(self) -> dict[str, Action]:
        """Return the keys that this screen alone has: it scrolls, and it selects."""
        transcript, chrome = self.transcript, self.chrome
        return {
            "escape": self._let_selection_go,
            "cancel": self._copy_selection,
            "scroll.top": transcript.scroll_to_start,
            "scroll.begin": transcript.scroll_to_start,
            "scroll.bottom": transcript.scroll_to_end,
            "scroll.follow": transcript.scroll_to_end,
            "scroll.page_up": lambda: chrome.scroll_page(-1) or transcript.scroll_page(-1),
            "scroll.page_down": lambda: chrome.scroll_page(1) or transcript.scroll_page(1),
            "scroll.line_up": lambda: transcript.scroll_rows(-1),
            "scroll.line_down": lambda: transcript.scroll_rows(1),
            "search": lambda: self._read_on(intents.OpenSearch(transcript.last_seen())),
            "block.begin_up": lambda: self._read_on(intents.MoveBlock(-1, transcript.last_seen())),
            "block.begin_down": lambda: self._read_on(intents.MoveBlock(1, transcript.last_seen())),
        }

    def get_default_screen(self) -> Screen[None]:
        """Return the one screen there is."""
        return ResizingScreen(self.show_all)

    def compose(self) -> ComposeResult:
        """Build the column."""
        yield self.transcript
        yield self.chrome.status
        yield self.chrome.side
        yield self.chrome.rule
        yield self.chrome.panel
        with Horizontal(id="input"):
            yield self.chrome.glyph
            yield self.composer
        yield self.chrome.footer

    # --- life ---

    def on_mount(self) -> None:
        """Show the empty screen; everything else comes after it is painted."""
        self.runner.start()
        self._watch_terminal()
        self.alerts.begin()
        self.transcript.selects = self.ui.mouse == "full"
        if self.ui.mouse == "wheel":
            self.use_mouse("wheel")
        self.themes.begin(self.write, asked=self._early is not None and self._early.asked)
        self.app_resume_signal.subscribe(self, self._resumed)  # pyright: ignore[reportUnknownMemberType]
        self.show_all()
        if self._leaves:
            self.call_later(self.leave)
        self.call_after_refresh(self._take_over)

    def _take_over(self) -> None:
        """Behind the empty screen, once it is laid out: take over the early phase's draft, and paint it at once."""
        if self._early is None:
            self._begin()
            return
        given = self._early.stop()
        self.common.take_over(given, self._take_texts)
        self.call_after_refresh(self._show_first_frame, given.rest)

    def _show_first_frame(self, rest: bytes) -> None:
        """Show what was painted while the early phase had the terminal, and read on from what it read too far."""
        assert isinstance(self._driver, HeldDriver)
        self._driver.let_go(rest)
        self._begin()

    def _begin(self) -> None:
        if isinstance(self.screen, ResizingScreen):
            self.screen.may_hold = True
        self.run_worker(self.common.open(self._opening, self._fail_to_open), name="open", exit_on_error=False)

    def _fail_to_open(self, error: BaseException) -> None:
        self.fail(error)
        self.exit(return_code=1)

    def fail(self, error: BaseException | None) -> None:
        """Put the terminal's surroundings as they were; the error is for whoever ran the app to say."""
        self.failure = error
        self.alerts.end()

    def _fatal_error(self) -> None:
        """End on a fault of our own."""
        self.fail(self._exception)
        self._close_messages_no_wait()

    async def finish(self) -> None:
        """Let go of what the runner holds; to be awaited when the app has ended."""
        await self.runner.close()

    def leave(self) -> None:
        """Quit now, in order (a signal, a terminal that went away): as soon as there is a screen to leave."""
        if self.is_ready:
            self.runner.handle(intents.Leave())
        else:
            self._leaves = True

    def on_background_heard(self, message: BackgroundHeard) -> None:
        """The terminal has said whether it is light, at the beginning or because it has changed."""
        self.themes.set_background(message.light)

    def on_hung_up(self, _message: HungUp) -> None:
        """The terminal is gone."""
        self.leave()

    # --- effects: what both screens do stands in `tui/screen.py` ---

    @property
    def is_ready(self) -> bool:
        """Whether there is a screen to paint on."""
        return self.is_running and self.composer.is_mounted

    @property
    def editor(self) -> Composer:
        """The prompt."""
        return self.composer

    @property
    def columns(self) -> int:
        """Cells of the terminal's width."""
        return self.size.width

    @property
    def page_paint(self) -> Paint:
        """The colours of a page for the pager, and of what stays on the normal screen."""
        return Paint(self.palette.theme, colour_depth(os.environ), links=self.palette.links)

    def change_transcript(self, effect: TranscriptEffect) -> None:
        """Show a change of the transcript, or another place of it."""
        transcript = self.transcript
        match effect:
            case effects.ItemAdded(id=item_id):
                transcript.add_item(item_id)
            case effects.ItemRemoved(id=item_id):
                transcript.remove_item(item_id)
            case effects.TranscriptReset():
                self.palette.start_from(self.runner.state.status.cwd)
                transcript.reset()
            case effects.EndWanted():
                transcript.scroll_to_end()
            case effects.OlderAdded():
                transcript.add_older()
            case effects.PlaceKept():
                transcript.keep_place()
            case effects.PlaceRestored():
                transcript.restore_place()
            case effects.MatchShown():
                transcript.show_match()
            case effects.BlockShown():
                transcript.show_block()
            case effects.ItemChanged():
                pass  # it shows with the next repaint

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text into the prompt."""
        self.composer.set_draft(text, cursor)
        self.chrome.show_prompt(text)

    def show_status(self) -> None:
        """Show the line above the prompt, and the footer."""
        self.chrome.show_status()

    def show_panels(self) -> None:
        """Show what is open around the prompt."""
        self.chrome.show_panels()

    def show(self) -> None:
        """Paint what has changed in the transcript; tick while something moves."""
        self.transcript.repaint()
        self._watch_time()

    def use_mouse(self, mode: MouseMode) -> str:
        """Take the mouse, its wheel alone, or leave it to the terminal; return what the user is told of it."""
        self.transcript.selects = mode == "full"
        if isinstance(self._driver, TerminalDriver):
            self._driver.use_mouse(mode)
        return MOUSE_WORDS[mode]

    @contextlib.asynccontextmanager
    async def lend(self) -> AsyncGenerator[None]:
        """Give the terminal to another program; nothing is painted meanwhile."""
        with self.suspend():
            yield

    def stop_job(self) -> None:
        """Give the terminal to the shell."""
        self.action_suspend_process()

    def quit(self) -> None:
        """End the screen."""
        self.alerts.end()
        self.exit()

    def show_all(self) -> None:
        """Show everything anew."""
        self.chrome.show_all()
        self.transcript.repaint()

    def render_options(self) -> RenderOptions:
        """Return how items are drawn at this moment."""
        return self.common.render_options(self.runner.state.detail)

    def _resumed(self, _app: object) -> None:
        self.repaint()

    def repaint(self) -> None:
        """Paint the whole screen again, from its items on."""
        self.transcript.rerender()
        self.show_all()
        self.screen.refresh(layout=True)

    def _recolour(self, theme: Theme) -> None:
        """Paint in another theme."""
        self.palette.choose(theme)
        if self.is_ready:
            self.screen.query("*").refresh()

    # --- time ---

    def _watch_time(self) -> None:
        """Tick while something on the screen moves with time; sleep otherwise."""
        moving = self.runner.state.animating or self.chrome.moving
        if moving and self._ticker is None:
            self._ticker = self.set_interval(self.common.motion.tick, self._tick)
        elif not moving and self._ticker is not None:
            self._ticker.stop()
            self._ticker = None

    def _tick(self) -> None:
        self.common.tick()
        self._watch_time()

    def _paint_now(self, widget: Widget) -> None:
        if isinstance(self.screen, ResizingScreen):
            self.screen.paint_now(widget)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        """Paint, with the terminal's cursor at the caret wherever the layout has put it by now (R-100).

        Not while the terminal is far behind: once it has caught up, everything is painted anew.
        """
        if isinstance(self._driver, TerminalDriver) and self._driver.writer.stalled:
            return
        if self.composer.is_attached:
            self.cursor_position = self.composer.cursor_screen_offset
        super()._display(screen, renderable)  # pyright: ignore[reportUnknownMemberType]

    # --- the terminal ---

    def _copy_selected(self, text: str) -> None:
        if self.ui.copy_on_select:
            self.alerts.copy(text)

    @property
    def clipboard(self) -> str:
        """The last text that was copied here."""
        return self.alerts.copied

    def clear_selection(self) -> None:
        """Nothing is selected in Textual's own way; the editor asks for this at every key."""

    def copy_to_clipboard(self, text: str) -> None:
        """Copy, where Textual itself would: by our own way."""
        self.alerts.copy(text)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else."""
        self.run_worker(work, exit_on_error=False)

    def parting(self, columns: int, rows: int) -> str:
        """Return what stays on the normal screen, on a terminal of this size; nothing without one, or after a fault."""
        if not (columns and rows) or self.failure is not None:
            return ""
        items = self.runner.state.transcript.ordered()
        render = ItemRenderer(self.render_options)
        lines = parting_lines(items, self.ui.leave_transcript, columns, rows, render)
        return self.page_paint.rows(lines).replace(ROW_END, "\x1b[0m\n")

    def _watch_terminal(self) -> None:
        """Hear when a terminal that took nothing has caught up."""
        if isinstance(self._driver, TerminalDriver):
            loop = asyncio.get_running_loop()
            self._driver.writer.drained = lambda: loop.call_soon_threadsafe(self.repaint)

    def write(self, sequence: str) -> None:
        """Write a control sequence to the terminal, in order with what is painted."""
        if sequence and self._driver is not None and not self._driver.is_headless:
            self._driver.write(sequence)

    # --- events ---

    async def on_event(self, event: events.Event) -> None:
        """Hand a paste to the editor though the terminal is not looked at: what is dropped on it comes so.

        A key goes there as straight, since no binding of Textual's is before it, and all of them do: one by another way
        would come after those behind it. Whoever types looks.
        """
        typed = isinstance(event, events.Key)
        if typed and not self.app_focus:
            self.app_focus = True
        if typed or (isinstance(event, events.Paste) and not event.is_forwarded):
            await self.composer.take(event, paints=not isinstance(self._peek_message(), events.Key))
        else:
            await super().on_event(event)

    def on_resize(self, event: events.Resize) -> None:
        """Another width: everything that is cut to it. What would be painted before the screen hears of it is wrong."""
        if isinstance(self.screen, ResizingScreen):
            self.screen.hold()
        self.runner.resize(event.size.width)

    def _watch_app_focus(self, focus: bool) -> None:
        """Show or hide the caret. No other style depends on the focus here; Textual would paint the whole screen."""
        if self.is_ready:
            self.screen.set_focus(self.composer if focus else None, scroll_visible=False, from_app_focus=focus)

    def on_app_blur(self) -> None:
        """The user looks elsewhere."""
        self.common.set_focus(False)

    def on_app_focus(self) -> None:
        """The user looks at the terminal."""
        self.common.set_focus(True)

    # --- keys of this screen ---

    def _read_on(self, intent: intents.OpenSearch | intents.MoveBlock) -> bool:
        self.runner.handle(intent)
        return True

    def _let_selection_go(self) -> bool:
        """Leave all of an approval, else take the selection away; what is open before it closes as well."""
        if self.chrome.leave_whole_approval():
            return True
        had = self.transcript.pointer.clear()
        return had and self.runner.state.contexts[0] not in ABOVE_PROMPT

    def _copy_selection(self) -> bool:
        text = self.transcript.pointer.selected or self.composer.chosen
        if not text:
            return False
        self.alerts.copy(text)
        self.transcript.pointer.clear()
        self.composer.unselect()  # the next press has its usual meaning
        return True

    def on_text_area_changed(self) -> None:
        """The text may be another kind of prompt, or of another height; what was selected further up is done with."""
        self.transcript.pointer.clear()
        self.chrome.show_prompt(self.composer.text)


def run_full(
    start: Start,
    prompt: str = "",
    *,
    choose: bool = False,
    early: EarlyReader | None = None,
    preview: Sequence[Line] = (),
) -> int:
    """Run the full-screen front-end and return the exit code.

    `prompt` is sent as soon as the session is open; `choose` offers the earlier sessions first. `early` has the
    terminal until the app can show its first frame. `preview` is the end of the session, shown until it is open.
    """
    settings, _ = load_settings(start.home, start.cwd, start.environ)
    noise = noise_file(start.home)
    texts = opening_texts(prompt, choose=choose)
    with borrow_terminal(str(noise), early.found if early else None) as terminal, contextlib.ExitStack() as stack:
        if early is not None:
            stack.callback(early.close)
        ended = asyncio.run(_run(start, texts, settings, terminal, early=early, preview=preview))
    return ended.report(noise)


async def _run(
    start: Start,
    texts: list[str],
    settings: Settings,
    terminal: Terminal,
    *,
    early: EarlyReader | None,
    preview: Sequence[Line],
) -> Ended:
    ui = settings.ui
    late = LateRuntime(start.home, temporary=start.temporary)
    opening = Opening(start, late, texts)

    async def open_session() -> None:
        await opening.open(app.runner.submit_user_input)
        await learn_keyboard(start.home, os.environ, app.runner.handle)

    themes = ThemeChooser(ui.theme, start.environ, start.home)
    app = TenutoApp(
        late,
        open_session,
        themes=themes,
        ui=ui,
        mode=first_mode(start, settings),
        early=early,
        take_texts=opening.take_texts,
        preview=preview,
    )
    terminal.owed = lambda: app.alerts.owed
    with leave_on_signals(asyncio.get_running_loop(), app.leave) as signals:
        await app.run_async(mouse=ui.mouse != "off")
        await app.finish()
        hint = await opening.close(app.runner.state)
    code = SIGNAL + signals[0] if signals else app.return_code or 0
    return Ended(code, hint, app.failure, app.parting(*_size(terminal)))


def _size(terminal: Terminal) -> tuple[int, int]:
    try:
        size = os.get_terminal_size(terminal.output.fileno())
    except OSError:  # it is gone
        return 0, 0
    return size.columns, size.lines
