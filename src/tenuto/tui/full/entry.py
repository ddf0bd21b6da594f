"""From the command line to the full screen and back: the terminal is borrowed, the app runs, everything is closed."""

from __future__ import annotations

import asyncio
import contextlib
import os
from typing import TYPE_CHECKING

from tenuto.config.settings import Settings, load_settings
from tenuto.exit_codes import SIGNAL
from tenuto.tui.full.app import TenutoApp
from tenuto.tui.late_runtime import LateRuntime
from tenuto.tui.launch import Ended, Opening, first_mode, learn_keyboard, noise_file, opening_texts
from tenuto.tui.terminal.terminal import Terminal, borrow_terminal, leave_on_signals
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.core.start import Start
    from tenuto.tui.first_paint.reader import EarlyReader


def run_full(start: Start, prompt: str = "", *, choose: bool = False, early: EarlyReader | None = None) -> int:
    """Run the full-screen front-end and return the exit code.

    `prompt` is sent as soon as the session is open; `choose` offers the earlier sessions first. `early` has the
    terminal until the app can show its first frame.
    """
    settings, _ = load_settings(start.home, start.cwd, start.environ)
    noise = noise_file(start.home)
    texts = opening_texts(prompt, choose=choose)
    with borrow_terminal(str(noise), early.found if early else None) as terminal, contextlib.ExitStack() as stack:
        if early is not None:
            stack.callback(early.close)
        ended = asyncio.run(_run(start, texts, settings, terminal, early))
    return ended.report(noise)


async def _run(
    start: Start, texts: list[str], settings: Settings, terminal: Terminal, early: EarlyReader | None
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
