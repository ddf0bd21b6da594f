"""The full-screen front-end: Textual, with one Line-API widget for the whole transcript.

Textual reads its environment when it is first imported, so this package must be the first to import it.
"""

from __future__ import annotations

import os

os.environ.setdefault("TEXTUAL_FPS", "240")
"""At 60 a key waits for the next tick while frames flow: up to 16.7 ms (anchors: typing while streaming)."""
os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")
"""No mouse in pixels and no in-band resize: fewer modes to give back at the end."""
os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
