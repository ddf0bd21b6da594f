"""What both screens do alike: carry out what the machine or a command asks of a screen, and the keys of the screen.

`Screen` decides what is done, `Surface` is how one screen does it. A command that asks a screen for something new has
its case in `Screen.carry_out`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, assert_never

from tenuto.command import outcome as outcomes
from tenuto.config.settings import UiSettings
from tenuto.protocol.entry import Mode
from tenuto.tui.alerts import Alerts
from tenuto.tui.chrome import TOAST_STYLES
from tenuto.tui.keys.keyboard import Editor, Keyboard
from tenuto.tui.launch import first_state
from tenuto.tui.paint import Paint
from tenuto.tui.programs import Draft, OwnEditor, Page, page_of, show_page
from tenuto.tui.render.line import Span
from tenuto.tui.render.options import Detail, RenderOptions, motion_of
from tenuto.tui.runner import LateRuntime, Runner
from tenuto.tui.state import effects, intents
from tenuto.tui.state.effects import ScreenEffect, TranscriptEffect
from tenuto.tui.state.item import whole_item
from tenuto.tui.terminal.terminal import NO_SHELL, has_shell
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.tui.first_paint.reader import Handover
    from tenuto.tui.keys.vim import Vim

Action = Callable[[], bool]
"""What a key does on the screen alone; `False` leaves the key to its intent, or to editing."""


class Prompt(Editor, Draft, Protocol):
    """The editor that the prompt is written in."""


class ScreenChrome(Protocol):
    """Status, panels and toasts of a screen: `Chrome`, or the widgets that show it."""

    def show_toast(self, text: str, style: str) -> None:
        """Show a line for a few seconds."""
        ...

    def show_command(self, spans: Sequence[Span]) -> None:
        """Show what the user's status command printed."""
        ...

    def expire_toast(self) -> None:
        """Remove a toast whose time is over."""
        ...

    def scroll_help(self, rows: int) -> bool:
        """Scroll the help by rows."""
        ...

    def put_todo_away(self) -> bool:
        """Hide the todo list; `False` where more of it can be shown, or none is."""
        ...

    def show_whole_approval(self) -> bool:
        """Show all of the command or change, or its head again."""
        ...

    def set_focus(self, has_focus: bool) -> None:
        """Note whether the terminal has the focus."""
        ...


class Surface(Protocol):
    """How one screen does what both do. `chrome` is there when the first effect or key comes."""

    @property
    def chrome(self) -> ScreenChrome:
        """Status, panels, toasts."""
        ...

    @property
    def editor(self) -> Prompt:
        """The prompt."""
        ...

    @property
    def is_ready(self) -> bool:
        """Whether there is a screen to paint on."""
        ...

    @property
    def columns(self) -> int:
        """Cells of the terminal's width."""
        ...

    @property
    def page_paint(self) -> Paint:
        """The colours of a page for the pager."""
        ...

    def write(self, sequence: str) -> None:
        """Write a control sequence, in order with what is painted."""
        ...

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run work beside everything else; the end of the screen cancels it."""
        ...

    def lend(self) -> AbstractAsyncContextManager[None]:
        """Give the terminal to another program; nothing is painted meanwhile."""
        ...

    def stop_job(self) -> None:
        """Give the terminal to the shell, as Ctrl+Z asks."""
        ...

    def change_transcript(self, effect: TranscriptEffect) -> None:
        """Show a change of the transcript, or another place of it."""
        ...

    def set_draft(self, text: str, cursor: int) -> None:
        """Put a text into the prompt."""
        ...

    def show_status(self) -> None:
        """Show the line above the prompt, and the footer."""
        ...

    def show_panels(self) -> None:
        """Show what is open around the prompt, and its line of status."""
        ...

    def use_mouse(self, mode: outcomes.MouseMode) -> str:
        """Use the mouse so from now on; return what the user is told of it."""
        ...

    def repaint(self) -> None:
        """Paint the whole screen again."""
        ...

    def show(self) -> None:
        """Paint what has changed, or all of it behind another program; tick while something moves."""
        ...

    def quit(self) -> None:
        """End the screen."""
        ...


class Screen:
    """The runner, the keyboard and the alerts of one screen, and what both screens make of effects and keys.

    `clock` is seconds. `actions` are the keys that both have; a screen adds its own.
    """

    def __init__(
        self,
        surface: Surface,
        runtime: LateRuntime,
        *,
        themes: ThemeChooser,
        ui: UiSettings,
        mode: Mode | None,
        environ: Mapping[str, str],
        clock: Callable[[], float],
        columns: int = 80,
    ) -> None:
        self._surface = surface
        self._themes = themes
        self._ui = ui
        self._clock = clock
        self.motion = motion_of(ui)
        self._shown_at = float("-inf")
        self._next_show: asyncio.TimerHandle | None = None
        self._panels_changed = self._status_changed = False
        self.runner = Runner(
            runtime,
            self.apply,
            clock,
            columns=columns,
            flush_interval=self.motion.flush,
            state=first_state(ui, themes.wanted, mode),
            mask_secrets=ui.mask_secrets,
        )
        self.actions: dict[str, Action] = {
            "newline": self._insert_newline,
            "paste.image": self._paste_clipboard,
            "todo": self._put_todo_away,
            "approval.full": self._show_whole_approval,
            "help.up": lambda: surface.chrome.scroll_help(-1),
            "help.down": lambda: surface.chrome.scroll_help(1),
            "child.up": lambda: surface.chrome.scroll_help(-1),
            "child.down": lambda: surface.chrome.scroll_help(1),
            "suspend": self._suspend,
        }
        self.keyboard = Keyboard(self.runner, lambda: surface.editor, self.actions, clock, _vim_for(ui))
        self.keyboard.begin()
        self.alerts = Alerts(
            lambda: self.runner.state,
            surface.write,
            surface.spawn,
            self.toast,
            self._show_command,
            ui=ui,
            environ=environ,
            clock=clock,
        )

    # --- life ---

    async def open(self, opening: Callable[[], Awaitable[None]], fail: Callable[[BaseException], None]) -> None:
        """Open the session behind the first frame. An error goes to `fail`, which ends the screen."""
        try:
            await opening()
            self.runner.warn(self._themes.problems)
        except Exception as error:  # noqa: BLE001 - it ends the screen, and the caller says it
            fail(error)

    def take_over(self, typed: Handover, take_texts: Callable[[], list[str]]) -> None:
        """Go on with what was typed before this screen was there: texts to send, the draft, the background."""
        self._themes.set_background_colour(typed.background)
        if typed.sent:
            for text in (*take_texts(), *typed.sent):  # before what Enter sends from now on
                self.runner.handle(intents.SendText(text))
        if typed.text:
            editor = self._surface.editor
            editor.set_draft(typed.text, typed.cursor)
            editor.tell()

    def set_focus(self, has_focus: bool) -> None:
        """Note whether the user looks at the terminal."""
        self.alerts.set_focus(has_focus)
        self._surface.chrome.set_focus(has_focus)
        if not has_focus:
            self.runner.keep_draft()

    def tick(self) -> None:
        """Show what only time has changed."""
        self.runner.handle(intents.Tick())
        self._surface.chrome.expire_toast()
        self.alerts.follow()

    def render_options(self, detail: Detail = "folded") -> RenderOptions:
        """Return how items are drawn at this moment."""
        return RenderOptions(
            detail=detail,
            now=self.motion.shown_time(self._clock()),
            show_thinking=self._ui.show_thinking,
            diff=self._ui.diff,
            expand_key=self.runner.state.keys.label("detail"),
        )

    # --- effects ---

    def apply(self, asked: list[ScreenEffect]) -> None:
        """Carry out what the machine asks for, and show it: what the user does at once, of what happens many at a time.

        A step of the agent's brings a dozen events, and five hundred steps come in a few seconds: painted one by one
        they were 3 MB, and half of the time went into that.
        """
        if not self._surface.is_ready:
            return
        for effect in asked:
            self.carry_out(effect)
        self.alerts.follow()
        wait = self._shown_at + self.motion.flush - self._clock() if self.runner.can_wait else 0.0
        if wait <= 0:
            self.show()
        elif self._next_show is None:
            self._next_show = asyncio.get_running_loop().call_later(wait, self.show)

    @property
    def is_behind(self) -> bool:
        """Whether something has happened that the next frame, which is on its way, will show."""
        return self._next_show is not None

    def show(self) -> None:
        """Show everything that has changed."""
        if self._next_show is not None:
            self._next_show.cancel()
            self._next_show = None
        if not self._surface.is_ready:
            return
        self._shown_at = self._clock()
        if self._panels_changed:
            self._surface.show_panels()
        elif self._status_changed:
            self._surface.show_status()
        self._panels_changed = self._status_changed = False
        self._surface.show()

    def carry_out(self, effect: ScreenEffect) -> None:  # noqa: PLR0912 - a case for each effect
        """Carry out one effect."""
        surface = self._surface
        match effect:
            case effects.StatusChanged():
                self._status_changed = True
            case effects.PanelChanged():
                self._panels_changed = True
            case effects.DraftSet(text=text, cursor=cursor):
                surface.set_draft(text, cursor)
            case effects.Toast(text=text, level=level):
                self.toast(text, TOAST_STYLES[level])
            case effects.Bell():
                self.alerts.call(effect)
            case effects.Title(text=text):
                self.alerts.set_title(text)
            case effects.OpenEditor(text=text, plan=plan):
                surface.spawn(self._own_editor.edit(text, plan))
            case effects.OpenBlock(id=item_id):
                self._open_block(item_id)
            case effects.ThemeChanged(name=name):
                self._themes.choose(name)
            case effects.ChoicePreviewed(command=command, value=value):
                if command == "theme":
                    self._themes.preview(value)
            case effects.Repaint():
                surface.repaint()
            case effects.Quit():
                surface.quit()
            case outcomes.Copy(text=text):
                self.alerts.copy(text)
            case outcomes.EditFile(path=path):
                surface.spawn(self._own_editor.edit_file(path))
            case outcomes.Page(path=path):
                surface.spawn(self._show_page(Page(Path(path), passing=True)))
            case outcomes.SetMouse(mode=mode):
                self.toast(surface.use_mouse(mode), "dim")
            case (
                effects.ItemAdded()
                | effects.ItemChanged()
                | effects.ItemRemoved()
                | effects.EndWanted()
                | effects.TranscriptReset()
                | effects.OlderAdded()
                | effects.PlaceKept()
                | effects.PlaceRestored()
                | effects.MatchShown()
                | effects.BlockShown()
            ):
                surface.change_transcript(effect)
            case _:
                assert_never(effect)

    def toast(self, text: str, style: str) -> None:
        """Show a line for a few seconds."""
        self._surface.chrome.show_toast(text, style)
        self.show()

    def _show_command(self, spans: Sequence[Span]) -> None:
        self._surface.chrome.show_command(spans)
        self.show()

    # --- other programs ---

    @property
    def _own_editor(self) -> OwnEditor:
        surface = self._surface
        return OwnEditor(self.runner, surface.editor, lend=self._lend, toast=self.toast, show=surface.repaint)

    @contextlib.asynccontextmanager
    async def _lend(self) -> AsyncGenerator[None]:
        """Give the terminal, its title included, to a program of the user's until it has ended."""
        with self.alerts.withheld():
            async with self._surface.lend():
                yield

    def _open_block(self, item_id: int) -> None:
        item = self.runner.state.transcript.get(item_id)
        if item is not None:
            item = whole_item(self.runner.state.transcript.ordered(), item)
            self._surface.spawn(self._show_page(page_of(item, self._surface.page_paint, self._surface.columns)))

    async def _show_page(self, page: Page) -> None:
        """Show a page in the pager; the screen goes on behind it."""
        async with self._lend():
            problem = await show_page(page, os.environ)
        if problem:
            self.toast(problem, "error")
        self._surface.repaint()

    # --- keys ---

    def _insert_newline(self) -> bool:
        self._surface.editor.insert_text("\n")
        return True

    def _paste_clipboard(self) -> bool:
        self.keyboard.paste_clipboard(self.alerts.copied)
        return True

    def _put_todo_away(self) -> bool:
        return self._surface.chrome.put_todo_away()

    def _show_whole_approval(self) -> bool:
        return self._surface.chrome.show_whole_approval()

    def _suspend(self) -> bool:
        if has_shell():
            self._surface.stop_job()
        else:
            self.toast(NO_SHELL, "warning")
        return True


def _vim_for(ui: UiSettings) -> Vim | None:
    """Return vi's keys for a user who wants them."""
    if ui.editing != "vim":
        return None
    from tenuto.tui.keys.vim import Vim  # not for the others

    return Vim()
