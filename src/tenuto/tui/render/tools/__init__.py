"""Tool calls as lines: one head for all, and below it what the tool's own renderer shows."""

from tenuto.tui.render.tools.call import has_body, render_tool

__all__ = ["has_body", "render_tool"]
