"""The table of keys. Pure."""

from __future__ import annotations

from tenuto.tui.bindings import Bindings
from tenuto.tui.keys import help_rows
from tenuto.tui.panels.panel import PAD, Panel
from tenuto.tui.render.fit import fit_lines
from tenuto.tui.render.line import EMPTY, Line, plain
from tenuto.tui.render.width import cell_width, pad, truncate


def help_panel(bindings: Bindings, width: int, rows: int, scroll: int) -> Panel:
    """Return the table of keys."""
    sections = help_rows(bindings)
    key_width = min(max(cell_width(keys) for _, entries in sections for keys, _ in entries), width // 2)
    lines: list[Line] = []
    for title, entries in sections:
        lines += [EMPTY] if lines else []
        lines.append(Line(((PAD, "text"), (title, "panel.title"))))
        for keys, text in entries:
            shown = pad(truncate(keys, key_width), key_width)
            meaning = truncate(text, width - key_width - 8)
            lines.append(Line((("    ", "text"), (shown, "accent"), ("  ", "text"), (meaning, "text"))))
    room = max(3, rows - 1)
    first = max(0, min(scroll, len(lines) - room))
    hint = f"{PAD}Esc closes" + (" · PageUp/PageDown" if len(lines) > room else "")
    return Panel(fit_lines([*lines[first : first + room], plain(hint, "faint")], width), scrolled=first)
