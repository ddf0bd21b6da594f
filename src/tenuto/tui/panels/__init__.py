"""What opens around the editor, as lines: approvals, lists to pick from, completions, queue, todo, help. Pure.

Each panel is a function that returns a `Panel`: its lines, and which of them a click chooses.
"""

from tenuto.tui.panels.approval import DETAIL_ROWS, approval_detail, approval_panel
from tenuto.tui.panels.lists import completion_panel, help_panel, picker_panel, side_panel
from tenuto.tui.panels.panel import NOTHING, Panel, editor_spans
from tenuto.tui.panels.reading import block_panel, block_preview, places_panel, search_panel

__all__ = [
    "DETAIL_ROWS",
    "NOTHING",
    "Panel",
    "approval_detail",
    "approval_panel",
    "block_panel",
    "block_preview",
    "completion_panel",
    "editor_spans",
    "help_panel",
    "picker_panel",
    "places_panel",
    "search_panel",
    "side_panel",
]
