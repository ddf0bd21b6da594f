"""The full-screen front-end: Textual, with one Line-API widget for the whole transcript.

Textual reads its environment when it is first imported, so this package must be the first to import it.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from types import ModuleType

from tenuto.tui.late_modules import late_modules

os.environ.setdefault("TEXTUAL_FPS", "240")
"""At 60 a key waits for the next tick while frames flow: up to 16.7 ms (anchors: typing while streaming)."""
os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
"""No mouse in pixels and no in-band resize: fewer modes to give back at the end."""
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")


def _leave_out_the_palette() -> None:
    """Stand in for Textual's command palette, which is off here: its widgets would cost every start 20 ms."""
    palette = ModuleType("textual.command")
    for name in ("CommandListItem", "CommandPalette", "DiscoveryHit", "Hit", "Hits", "Provider", "SimpleProvider"):
        setattr(palette, name, type(name, (), {}))
    sys.modules.setdefault(palette.__name__, palette)


_leave_out_the_palette()

with late_modules({"platformdirs": ("user_downloads_path",), "rich.table": ("Table",)}):
    # For files that are delivered and for pictures of themes: with what they bring along, 5 ms.
    import_module("textual.app")
