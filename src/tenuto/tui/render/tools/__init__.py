"""Tool calls as lines: one head for all, and below it what the tool's own renderer shows."""

from tenuto.tui.render.tools.call import render_tool

__all__ = ["render_tool"]
