"""The end of a session that is gone on with, shown before its front-end and its core are imported: read from its log.

Textual takes longer to be imported than all that is needed to draw a screenful. It is the same machine and the same
rendering that show the session afterwards, of fewer entries; so what is shown stays where it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tenuto.config.settings import UiSettings
from tenuto.config.sources import load_settings
from tenuto.core.transcript import newest_events
from tenuto.guard.secrets import KNOWN, mask_likely, masked_copy
from tenuto.protocol.event import ReplayFinishedEvent
from tenuto.session.library.catalog import find_session, latest_session
from tenuto.session.library.meta import META_NAME
from tenuto.session.log.log import LOG_NAME
from tenuto.session.session import Session
from tenuto.tui.machine.step import FOREIGN, step
from tenuto.tui.paint import Paint, colour_depth
from tenuto.tui.render.items import gap_before
from tenuto.tui.render.line import EMPTY, Line
from tenuto.tui.render.live import ItemRenderer
from tenuto.tui.render.options import RenderOptions
from tenuto.tui.state.state import UiState
from tenuto.tui.terminal.emulator import Hyperlinks
from tenuto.tui.themes import ThemeChooser

if TYPE_CHECKING:
    from tenuto.core.start import Start
    from tenuto.tui.first_paint.reader import EarlyReader

ENTRIES = 80
"""Entries that are read at most: as good as always more than a screenful."""
UNREAD_BYTES = 2_000_000
"""A log of which nothing is known yet is read from its beginning; of a longer one that is done once, with the core."""
SCROLLBAR_CELLS = 1
ROWS_AROUND, ROOMY_ROWS = 4, 20
"""Rows of the screen that are not the transcript's, and from how many on there is one more."""


def preview_session(start: Start, early: EarlyReader | None) -> Sequence[Line]:
    """Show the end of the session that the start asks for, above the prompt of the early frame; return its lines.

    None where there is no early frame, where the session takes a search or a long reading, and after any fault: the
    session is going to be opened in order, and whatever is wrong with it is said then.
    """
    if early is None or not (start.resume or start.resume_latest):
        return ()
    try:
        columns, rows = early.size
        settings, _ = load_settings(start.home, start.cwd, start.environ)
        room = rows - ROWS_AROUND - (rows >= ROOMY_ROWS)
        directory = _find(start) if room > 0 else None
        if directory is None:
            return ()
        KNOWN.learn_environment(start.environ)
        lines = _last_lines(directory, settings.ui, columns, room)
        early.show_transcript(*_painted(start, lines, settings.ui.theme))
    except Exception:  # noqa: BLE001 - what comes in its place is the session itself
        return ()
    return lines


def _find(start: Start) -> Path | None:
    home = start.home
    directory = find_session(home, start.resume) if start.resume else latest_session(home, start.cwd).directory
    if directory is None:
        return None
    is_known = (directory / META_NAME).is_file() or (directory / LOG_NAME).stat().st_size < UNREAD_BYTES
    return directory if is_known else None


def _last_lines(directory: Path, ui: UiSettings, columns: int, room: int) -> list[Line]:
    session = Session.open(directory, read_only=True)
    state = UiState(session_id=session.id, replaying=True)
    for event in newest_events(session.id, session.path(), ENTRIES):
        masked = masked_copy(event, mask_likely) if ui.mask_secrets and isinstance(event, FOREIGN) else event
        step(state, masked, 0.0, columns)
    step(state, ReplayFinishedEvent(session_id=session.id), 0.0, columns)
    options = RenderOptions(show_thinking=ui.show_thinking, diff=ui.diff, expand_key=state.keys.label("detail"))
    render = ItemRenderer(lambda: options)
    items = state.transcript.ordered()
    lines: list[Line] = []
    for place in range(len(items) - 1, -1, -1):
        drawn = render(items[place], max(1, columns - SCROLLBAR_CELLS))
        if drawn:
            gap = gap_before(items[place - 1] if place else None, items[place])
            lines = [*[EMPTY] * gap, *drawn[-room:], *lines]
        if len(lines) >= room:
            break
    return lines[-room:]


def _painted(start: Start, lines: Sequence[Line], theme: str) -> tuple[list[str], list[str]]:
    """Return the lines as they are painted on a dark ground, and on a light one."""
    themes, links = ThemeChooser(theme, start.environ, start.home), Hyperlinks(start.environ)
    links.directory = os.fspath(start.cwd)
    depth = colour_depth(start.environ)
    themes.set_background(light=False)
    dark = Paint(themes.theme, depth, links=links).standing(lines)
    themes.set_background(light=True)
    return dark, Paint(themes.theme, depth, links=links).standing(lines)
