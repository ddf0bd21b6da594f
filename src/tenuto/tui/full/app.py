"""The full-screen front-end: a handful of widgets that show the machine's state and hand it what the user does."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
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

from tenuto.command import outcome as outcomes
from tenuto.command.outcome import MouseMode
from tenuto.config.settings import UiSettings
from tenuto.protocol.entry import Mode
from tenuto.tui import effects as screen_effects
from tenuto.tui.alerts import Alerts
from tenuto.tui.chrome import ABOVE_PROMPT, PLACEHOLDER, TOAST_STYLES, parting_lines
from tenuto.tui.effects import ScreenEffect
from tenuto.tui.full.chrome_widgets import ChromeWidgets
from tenuto.tui.full.composer import Composer
from tenuto.tui.full.driver import BackgroundHeard, HeldDriver, HungUp, TerminalDriver, driver_class
from tenuto.tui.full.palette import palette_for, show_all_colours
from tenuto.tui.full.resizing import ResizingScreen
from tenuto.tui.full.startup import Beginning
from tenuto.tui.full.transcript import TranscriptView
from tenuto.tui.keys.keyboard import Keyboard
from tenuto.tui.late_runtime import LateRuntime
from tenuto.tui.launch import first_state
from tenuto.tui.machine import intents
from tenuto.tui.paint import ROW_END, Paint, colour_depth
from tenuto.tui.programs import OwnEditor, Page, page_of, show_page
from tenuto.tui.render.live import ItemRenderer
from tenuto.tui.render.options import RenderOptions, motion_of
from tenuto.tui.render.theme import Theme
from tenuto.tui.runner import Runner
from tenuto.tui.terminal.terminal import NO_SHELL, has_shell
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.tui.first_paint.reader import EarlyReader


Action = Callable[[], bool]
"""`False` leaves the key to its intent, or to editing."""


class ScreenActions:
    """What the app does with a key, by key id (`table`), and with the user's own editor."""

    def __init__(self, app: TenutoApp) -> None:
        self._app = app
        self.own_editor = OwnEditor(
            app.runner, app.composer, lend=self._lend, toast=app.chrome.show_toast, show=app.repaint_everything
        )
        transcript, chrome = app.transcript, app.chrome
        self.table: dict[str, Action] = {
            "newline": self._insert_newline,
            "paste.image": self._paste_clipboard,
            "todo": chrome.put_todo_away,
            "approval.full": chrome.show_whole_approval,
            "help.up": lambda: chrome.scroll_help(-1),
            "help.down": lambda: chrome.scroll_help(1),
            "suspend": self._suspend,
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
        }

    def _insert_newline(self) -> bool:
        self._app.composer.insert_text("\n")
        return True

    def _paste_clipboard(self) -> bool:
        self._app.keyboard.paste_clipboard(self._app.clipboard)
        return True

    def _suspend(self) -> bool:
        if has_shell():
            self._app.action_suspend_process()
        else:
            self._app.chrome.show_toast(NO_SHELL, "warning")
        return True

    def _let_selection_go(self) -> bool:
        """Leave all of an approval, else take the selection away; what is open before it closes as well."""
        if self._app.chrome.leave_whole_approval():
            return True
        had = self._app.transcript.pointer.clear()
        return had and self._app.runner.state.contexts[0] not in ABOVE_PROMPT

    def _copy_selection(self) -> bool:
        text = self._app.transcript.pointer.selected or self._app.composer.selected_text
        if not text:
            return False
        self._app.alerts.copy(text)
        self._app.transcript.pointer.clear()
        self._app.composer.unselect()  # the next press has its usual meaning
        return True

    @contextlib.asynccontextmanager
    async def _lend(self) -> AsyncGenerator[None]:
        with self._app.alerts.withheld(), self._app.suspend():
            yield


MOUSE_WORDS: dict[MouseMode, str] = {
    "full": "The mouse scrolls, selects and folds; with Shift the terminal selects",
    "wheel": "The wheel scrolls; hold Shift to select",
    "off": "The mouse is the terminal's; PageUp and PageDown scroll",
}


class Reading:
    """Carries out the effects of the topic, and its keys where the screen knows more than the machine (`table`)."""

    def __init__(self, app: TenutoApp) -> None:
        self._app = app
        self.table: dict[str, Callable[[], bool]] = {
            "search": lambda: self._begin(intents.OpenSearch(self._read_now())),
            "block.begin_up": lambda: self._begin(intents.MoveBlock(-1, self._read_now())),
            "block.begin_down": lambda: self._begin(intents.MoveBlock(1, self._read_now())),
        }

    def carry_out(self, effect: ScreenEffect) -> bool:
        """Carry out an effect, if it is one of these; say whether it was."""
        transcript = self._app.transcript
        match effect:
            case screen_effects.OlderAdded():
                transcript.add_older()
            case screen_effects.PlaceKept():
                transcript.keep_place()
            case screen_effects.PlaceRestored():
                transcript.restore_place()
            case screen_effects.MatchShown():
                transcript.show_match()
            case screen_effects.BlockShown():
                transcript.show_block()
            case screen_effects.OpenBlock(id=item_id):
                self._open_block(item_id)
            case outcomes.Page(path=path):
                self._app.spawn(self._show(Page(Path(path), passing=True)))
            case outcomes.SetMouse(mode=mode):
                self.use_mouse(mode)
            case _:
                return False
        return True

    def use_mouse(self, mode: MouseMode) -> None:
        """Use the mouse so from now on."""
        self._app.transcript.selects = mode == "full"
        self._app.use_mouse(mode)
        self._app.chrome.show_toast(MOUSE_WORDS[mode], "dim")

    def parting(self, columns: int, rows: int) -> str:
        """Return the end of the conversation as it is written to the terminal when the full screen goes."""
        app = self._app
        items = app.runner.state.transcript.ordered()
        lines = parting_lines(items, app.ui.leave_transcript, columns, rows, app.render_options())
        return self._paint().rows(lines).replace(ROW_END, "\x1b[0m\n")

    def _paint(self) -> Paint:
        return Paint(self._app.palette.theme, colour_depth(os.environ), links=self._app.palette.links)

    def _read_now(self) -> int:
        return self._app.transcript.last_seen()

    def _begin(self, intent: intents.OpenSearch | intents.MoveBlock) -> bool:
        self._app.runner.handle(intent)
        return True

    def _open_block(self, item_id: int) -> None:
        app = self._app
        item = app.runner.state.transcript.get(item_id)
        if item is not None:
            app.spawn(self._show(page_of(item, self._paint(), app.size.width)))

    async def _show(self, page: Page) -> None:
        """Show a page in the pager; the app goes on behind it."""
        app = self._app
        with app.alerts.withheld(), app.suspend():
            problem = await show_page(page, os.environ)
        if problem:
            app.chrome.show_toast(problem, "error")
        app.repaint_everything()


class TenutoApp(App[None], inherit_bindings=False):
    """One screen. `opening` builds the runtime, attaches it and opens its session, after the first paint.

    Its error ends the app and is kept in `failure`. `take_texts` gives what is to be sent first. `themes` says in which
    colours. `early` has the keyboard and the screen until the first frame is there.
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
    ) -> None:
        super().__init__(driver_class=driver_class(early), ansi_color=True)
        show_all_colours(self.console, os.environ)
        self.failure: BaseException | None = None
        self.ui = ui or UiSettings()
        self.themes = themes
        self.palette = palette_for(themes.theme, os.environ)
        themes.watch(self._recolour)
        self._motion = motion_of(self.ui)
        self.runner = Runner(
            runtime,
            self.apply,
            clock,
            flush_interval=self._motion.flush,
            state=first_state(self.ui, themes.wanted, mode),
        )
        self.beginning = Beginning(self, opening, early, take_texts)
        self._leaves = False
        self._clock = clock
        self._ticker: Timer | None = None
        actions: dict[str, Callable[[], bool]] = {}
        self.keyboard = Keyboard(self.runner, lambda: self.composer, actions, clock)
        self.transcript = TranscriptView(
            lambda: self.runner.state,
            ItemRenderer(self.render_options),
            self.palette,
            toggle=lambda item_id: self.runner.handle(intents.ToggleItem(item_id)),
            reached_gap=lambda gap, end: self.runner.handle(intents.ShowEarlier(gap, end)),
            copy=self._copy_selected,
        )
        self.composer = Composer(
            self.keyboard.press,
            self.keyboard.paste,
            lambda text, cursor: self.runner.handle(intents.DraftChanged(text, cursor)),
            PLACEHOLDER,
            paint_now=self._paint_now,
            hint_style=lambda: self.palette.style("placeholder"),
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
        self.alerts = self._make_alerts()
        self._actions = ScreenActions(self)
        self._reading = Reading(self)
        actions.update(self._actions.table)
        actions.update(self._reading.table)

    def _make_alerts(self) -> Alerts:
        return Alerts(
            lambda: self.runner.state,
            self.write,
            self.spawn,
            self.chrome.show_toast,
            self.chrome.show_command,
            ui=self.ui,
            environ=os.environ,
            clock=self._clock,
        )

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
        self.themes.begin(self.write, asked=self.beginning.asked_background)
        self.app_resume_signal.subscribe(self, self._resumed)  # pyright: ignore[reportUnknownMemberType]
        self.show_all()
        if self._leaves:
            self.call_later(self.leave)
        self.call_after_refresh(self.beginning.go_on)

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
        if self.is_mounted_screen:
            self.runner.handle(intents.Leave())
        else:
            self._leaves = True

    def on_background_heard(self, message: BackgroundHeard) -> None:
        """The terminal has said whether it is light, at the beginning or because it has changed."""
        self.themes.set_background(message.light)

    def on_hung_up(self, _message: HungUp) -> None:
        """The terminal is gone."""
        self.leave()

    # --- effects ---

    def apply(self, effects: list[ScreenEffect]) -> None:
        """Carry out what the machine asks for; the transcript is painted once, at the end."""
        if not self.is_mounted_screen:
            return
        for effect in effects:
            self._carry_out(effect)
        self.transcript.repaint()
        self.alerts.follow()
        self._watch_time()

    @property
    def is_mounted_screen(self) -> bool:
        """Whether there is a screen to paint on."""
        return self.is_running and self.composer.is_mounted

    def _change_transcript(self, effect: ScreenEffect) -> None:
        match effect:
            case screen_effects.ItemAdded(id=item_id):
                self.transcript.add_item(item_id)
            case screen_effects.ItemRemoved(id=item_id):
                self.transcript.remove_item(item_id)
            case screen_effects.TranscriptReset():
                self.palette.start_from(self.runner.state.status.cwd)
                self.transcript.reset()
            case screen_effects.EndWanted():
                self.transcript.scroll_to_end()
            case _:
                pass  # a changed item shows with the next repaint

    def _carry_out(self, effect: ScreenEffect) -> None:
        match effect:
            case screen_effects.StatusChanged():
                self.chrome.show_status()
            case screen_effects.PanelChanged():
                self.chrome.show_panels()
            case screen_effects.DraftSet(text=text, cursor=cursor):
                self.composer.set_draft(text, cursor)
                self.chrome.show_prompt(text)
            case screen_effects.Toast(text=text, level=level):
                self.chrome.show_toast(text, TOAST_STYLES[level])
            case screen_effects.OpenEditor(text=text, plan=plan):
                self.spawn(self._actions.own_editor.edit(text, plan))
            case outcomes.EditFile(path=path):
                self.spawn(self._actions.own_editor.edit_file(path))
            case screen_effects.Repaint():
                self.repaint_everything()
            case screen_effects.Quit():
                self.alerts.end()
                self.exit()
            case _ if not any(one.carry_out(effect) for one in (self.alerts, self._reading, self.themes)):
                self._change_transcript(effect)
            case _:
                pass

    def show_all(self) -> None:
        """Show everything anew."""
        self.chrome.show_all()
        self.transcript.repaint()

    def render_options(self) -> RenderOptions:
        """Return how items are drawn at this moment."""
        return RenderOptions(
            detail=self.runner.state.detail,
            now=self._motion.shown_time(self._clock()),
            show_thinking=self.ui.show_thinking,
            diff=self.ui.diff,
            expand_key=self.runner.state.keys.label("detail"),
        )

    def _resumed(self, _app: object) -> None:
        self.repaint_everything()

    def repaint_everything(self) -> None:
        """Paint the whole screen anew, from its items on."""
        self.transcript.rerender()
        self.show_all()
        self.screen.refresh(layout=True)

    def _recolour(self, theme: Theme) -> None:
        """Paint in another theme."""
        self.palette.choose(theme)
        if self.is_mounted_screen:
            self.screen.query("*").refresh()

    # --- time ---

    def _watch_time(self) -> None:
        """Tick while something on the screen moves with time; sleep otherwise."""
        moving = self.runner.state.animating or self.chrome.moving
        if moving and self._ticker is None:
            self._ticker = self.set_interval(self._motion.tick, self._tick)
        elif not moving and self._ticker is not None:
            self._ticker.stop()
            self._ticker = None

    def _tick(self) -> None:
        self.runner.handle(intents.Tick())
        self.chrome.expire_toast()
        self.alerts.follow()
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

    def copy_to_clipboard(self, text: str) -> None:
        """Copy, where Textual itself would: by our own way."""
        self.alerts.copy(text)

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else."""
        self.run_worker(work, exit_on_error=False)

    def parting(self, columns: int, rows: int) -> str:
        """Return what stays on the normal screen, on a terminal of this size; nothing without one, or after a fault."""
        return self._reading.parting(columns, rows) if columns and rows and self.failure is None else ""

    def use_mouse(self, mode: MouseMode) -> None:
        """Take the mouse, its wheel alone, or leave it to the terminal."""
        if isinstance(self._driver, TerminalDriver):
            self._driver.use_mouse(mode)

    def let_paint(self, rest: bytes) -> None:
        """Show what was painted while the early phase had the terminal, and read on from what it read too far."""
        assert isinstance(self._driver, HeldDriver)
        self._driver.let_go(rest)

    def _watch_terminal(self) -> None:
        """Hear when a terminal that took nothing has caught up."""
        if isinstance(self._driver, TerminalDriver):
            loop = asyncio.get_running_loop()
            self._driver.writer.drained = lambda: loop.call_soon_threadsafe(self.repaint_everything)

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
        if self.is_mounted_screen:
            self.screen.set_focus(self.composer if focus else None, scroll_visible=False, from_app_focus=focus)

    def on_app_blur(self) -> None:
        """The terminal is not looked at."""
        self.alerts.set_focus(False)
        self.chrome.set_focus(False)
        self.runner.keep_draft()

    def on_app_focus(self) -> None:
        """It is again."""
        self.alerts.set_focus(True)
        self.chrome.set_focus(True)

    def on_text_area_changed(self) -> None:
        """The text may be another kind of prompt, or of another height; what was selected further up is done with."""
        self.transcript.pointer.clear()
        self.chrome.show_prompt(self.composer.text)
