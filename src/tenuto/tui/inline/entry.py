"""From the command line to the inline front-end and back: the terminal is borrowed, the app runs, all is closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from typing import TYPE_CHECKING

from tenuto.config.settings import Settings, load_settings
from tenuto.exit_codes import SIGNAL
from tenuto.tui.first_paint.reader import Handover
from tenuto.tui.inline.app import END_MODES, InlineApp
from tenuto.tui.inline.application import Keyboard
from tenuto.tui.inline.output import NOT_PAINTED_AGAIN, InlineOutput, habit_in, synchronises, terminal_size
from tenuto.tui.late_runtime import LateRuntime
from tenuto.tui.launch import Ended, Opening, first_mode, learn_keyboard, noise_file, opening_texts
from tenuto.tui.paint import Paint, colour_depth
from tenuto.tui.terminal.emulator import Hyperlinks
from tenuto.tui.terminal.terminal import WRITE_SECONDS, Terminal, borrow_terminal, give_back, leave_on_signals
from tenuto.tui.terminal.writer import open_again
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.core.start import Start
    from tenuto.tui.first_paint.reader import EarlyReader

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
