"""How many rows an item will take, guessed without rendering it: only what is seen is rendered.

The guess counts characters and line ends. A screen that scrolls to an item replaces it by the real number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tenuto.protocol.message import DiffView, TodoView
from tenuto.protocol.part import TextPart
from tenuto.tui.machine.item import (
    AssistantItem,
    CompactionItem,
    ContextItem,
    Item,
    NoticeItem,
    ShellItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)
from tenuto.tui.render.diff import FOLDED_ROWS
from tenuto.tui.render.items import OWN_HEAD, OWN_TAIL, THINKING_ROWS, USER_ROWS
from tenuto.tui.render.options import DEFAULT, RenderOptions, text_width
from tenuto.tui.render.tools.look import FAILURE_ROWS, FOLDED_LINES
from tenuto.tui.render.tools.looks import LIVE_TAIL, SHELL_HEAD, SHELL_TAIL

_HEAD_ONLY = frozenset({"read", "fetch", "recall"})


def estimate_height(item: Item, width: int, options: RenderOptions = DEFAULT) -> int:
    """Return about how many rows `render_item` would give, at the cost of counting line ends."""
    unfolded = options.detail == "expanded" or not item.folded
    return _ESTIMATES[type(item)](item, text_width(width), unfolded)


def _wrapped(text: str, width: int) -> int:
    return text.count("\n") + len(text) // width + 1


def _assistant(item: AssistantItem, width: int, _unfolded: bool) -> int:
    return _wrapped(item.text, width) + item.interrupted


def _user(item: UserItem, width: int, unfolded: bool) -> int:
    rows = _wrapped(item.text, width) + len(item.images)
    return rows if unfolded else min(rows, USER_ROWS + 1)


def _thinking(item: ThinkingItem, width: int, unfolded: bool) -> int:
    if unfolded:
        return 1 + _wrapped(item.text, width)
    return 1 if item.final else 1 + min(THINKING_ROWS, _wrapped(item.text, width))


def _tool(item: ToolItem, width: int, unfolded: bool) -> int:
    if item.result is None:
        return 1 + min(LIVE_TAIL, item.output.count("\n")) if item.state == "running" else 1
    rows = 0
    for view in item.result.ui:
        if isinstance(view, DiffView):
            changed = view.diff.count("\n") + 1
            rows += changed if unfolded else min(changed, FOLDED_ROWS + 1)
        elif isinstance(view, TodoView):
            rows += len(view.items)
    if rows:
        return 1 + rows
    text = sum([_wrapped(part.text, width) for part in item.result.parts if isinstance(part, TextPart)])
    if unfolded:
        return 1 + text
    if item.state == "failed" and not item.result.ui:
        return 1 + min(text, FAILURE_ROWS + 1)
    if item.name == "bash":
        return 1 + min(text, SHELL_HEAD + SHELL_TAIL + 1)
    if item.name in _HEAD_ONLY and item.state == "done":
        return 1
    return 1 + min(text, FOLDED_LINES + 1)


def _shell(item: ShellItem, width: int, unfolded: bool) -> int:
    rows = _wrapped(item.output, width)
    return 1 + (rows if unfolded else min(rows, OWN_HEAD + OWN_TAIL + 1))


def _notice(item: NoticeItem, width: int, _unfolded: bool) -> int:
    return _wrapped(item.text, width)


def _compaction(item: CompactionItem, width: int, unfolded: bool) -> int:
    return 2 + _wrapped(item.entry.summary, width) if unfolded and item.entry is not None else 1


def _context(item: ContextItem, _width: int, _unfolded: bool) -> int:
    return 12 + len(item.report.parts) + len(item.report.facts) + (7 if item.report.history else 0)


_ESTIMATES: dict[type, Callable[[Any, int, bool], int]] = {
    AssistantItem: _assistant,
    UserItem: _user,
    ThinkingItem: _thinking,
    ToolItem: _tool,
    ShellItem: _shell,
    NoticeItem: _notice,
    CompactionItem: _compaction,
    ContextItem: _context,
}
