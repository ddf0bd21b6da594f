"""The full-screen front-end: Textual, with one Line-API widget for the whole transcript.

Textual reads its environment when it is first imported, so this package must be the first to import it.
"""

from __future__ import annotations

import os
from importlib import import_module

from tenuto.import_tricks import late_modules, replace_module

os.environ.setdefault("TEXTUAL_FPS", "240")
"""At 60 a key waits for the next tick while frames flow: up to 16.7 ms (anchors: typing while streaming)."""
os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
"""No mouse in pixels and no in-band resize: fewer modes to give back at the end."""
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")

# Textual's command palette, which is off here: 9 ms.
replace_module(
    "textual.command",
    ("CommandListItem", "CommandPalette", "DiscoveryHit", "Hit", "Hits", "Provider", "SimpleProvider"),
)

with late_modules({"platformdirs": ("user_downloads_path",), "rich.table": ("Table",)}):
    # For files that are delivered and for pictures of themes: with what they bring along, 3.5 ms.
    import_module("textual.app")
