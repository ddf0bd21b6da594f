"""From the command line to the full screen and back: the terminal is borrowed, the app runs, everything is closed."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.config.settings import UiSettings, load_settings
from tenuto.tui.full.app import TenutoApp
from tenuto.tui.full.late_runtime import LateRuntime
from tenuto.tui.full.terminal import Terminal, borrow_terminal, leave_on_signals
from tenuto.tui.render.theme import THEME_NAMES, Theme, find_theme

if TYPE_CHECKING:
    from tenuto.command.runtime import CommandRuntime
    from tenuto.core.runtime import Start
    from tenuto.tool.registry import ToolRegistry
    from tenuto.tui.early.reader import EarlyReader

GC_THRESHOLDS = (20_000, 20, 50)
"""The collector runs rarely, and never over what the start made: it would be felt while typing."""
NOISE_FILE = "stderr.log"
BAD_USAGE = 2
SIGNAL_CODE = 128
"""Plus the signal's number: the exit code of a program that a signal ended."""


def run_full(start: Start, prompt: str = "", *, choose: bool = False, early: EarlyReader | None = None) -> int:
    """Run the full-screen front-end and return the exit code.

    `prompt` is sent as soon as the session is open; `choose` offers the earlier sessions first. `early` has the
    terminal until the app can show its first frame.
    """
    opening = [*(["/resume"] if choose else []), *([prompt] if prompt.strip() else [])]
    settings, _ = load_settings(start.home, start.cwd, start.environ)
    noise = noise_file(start.home)
    with borrow_terminal(str(noise), early.found if early else None) as terminal, contextlib.ExitStack() as stack:
        if early is not None:
            stack.callback(early.close)
        ended = asyncio.run(_run(start, opening, settings.ui, terminal, early))
    code = ended.code if ended.failure is None else _explain(ended.failure, noise)
    if ended.hint:
        print(ended.hint)  # noqa: T201 - on the normal screen, after the app
    return code


class Ended:
    """How it ended: the exit code, what to print afterwards, and the error that ended it."""

    def __init__(self, code: int, hint: str, failure: BaseException | None) -> None:
        self.code = code
        self.hint = hint
        self.failure = failure


async def _run(
    start: Start, opening: list[str], ui: UiSettings, terminal: Terminal, early: EarlyReader | None
) -> Ended:
    late = LateRuntime(start.home)
    holder: list[CommandRuntime] = []

    async def open_runtime() -> None:
        # The core is imported beside the loop: keys are echoed meanwhile.
        runtime_class = await asyncio.to_thread(_import_runtime)
        runtime = runtime_class(start)
        holder.append(runtime)
        late.attach(runtime)
        await runtime.open()
        late.ready()
        for text in app.take_opening_texts():
            await app.runner.submit_user_input(text)
        await asyncio.to_thread(warm_up, runtime.live.tools)
        freeze_heap()

    app = TenutoApp(late, open_runtime, theme=choose_theme(ui.theme, start.environ), ui=ui, early=early, texts=opening)
    with leave_on_signals(asyncio.get_running_loop(), app.leave, terminal) as signals:
        await app.run_async(mouse=ui.mouse == "full")
        await app.finish()
    state = app.runner.state
    hint = resume_hint(state.session_id, spoken=bool(len(state.transcript)), temporary=start.temporary)
    for runtime in holder:
        await runtime.close()
        hint = runtime.opener.parting or hint  # no hint for a session that is not there
    code = SIGNAL_CODE + signals[0] if signals else app.return_code or 0
    return Ended(code, hint, app.failure)


def _import_runtime() -> type[CommandRuntime]:
    from tenuto.command.runtime import CommandRuntime

    return CommandRuntime


def _explain(failure: BaseException, noise: Path) -> int:
    """Say what ended the program. A fault of ours leaves its traceback, without the values in it, in the file."""
    from tenuto.core.errors import EXPECTED_FAILURES, describe_failure

    print(f"tenuto: {describe_failure(failure)}", file=sys.stderr)  # noqa: T201
    if not isinstance(failure, EXPECTED_FAILURES):
        import traceback

        if noise == Path(os.devnull):
            traceback.print_exception(failure)
            return 1
        with contextlib.suppress(OSError), noise.open("a", encoding="utf-8", errors="replace") as file:
            traceback.print_exception(failure, file=file)
            print(f"tenuto: the details are in {noise}", file=sys.stderr)  # noqa: T201
    return BAD_USAGE if isinstance(failure, EXPECTED_FAILURES) else 1


def noise_file(home: Path) -> Path:
    """Return where standard error goes while the app runs; a home that cannot be written to stops nothing."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(home / NOISE_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    except OSError:
        return Path(os.devnull)
    return home / NOISE_FILE


def warm_up(tools: ToolRegistry) -> None:
    """Import what the first answer and the first tool call will need, before they come: it would be felt then."""
    from tenuto.tui.render.live import warm_up as warm_up_rendering

    warm_up_rendering()
    tools.warm_up()


def freeze_heap() -> None:
    """Take what the start made out of the collector's sight."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)


def choose_theme(name: str, environ: Mapping[str, str]) -> Theme:
    """Return the theme of that name; `auto` goes by what the terminal says of its background (COLORFGBG), else dark."""
    if name not in THEME_NAMES:
        background = environ.get("COLORFGBG", "").rpartition(";")[2]
        light = background.isdigit() and int(background) in (7, *range(9, 16))
        truecolour = environ.get("COLORTERM", "") in ("truecolor", "24bit") or "256color" in environ.get("TERM", "")
        name = ("light" if light else "dark") if truecolour else "ansi"
    theme = find_theme(name)
    return theme.without_colour() if environ.get("NO_COLOR") else theme


def resume_hint(session_id: str, *, spoken: bool, temporary: bool) -> str:
    """Return the line that says how to come back, empty where there is nothing to come back to."""
    return (
        f"To go on with this session: tenuto --resume {session_id}" if session_id and spoken and not temporary else ""
    )
