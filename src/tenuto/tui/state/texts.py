"""What an item says, as plain text: what a search looks through, what a block is called, what copying it gives. Pure.

Nothing is drawn for it, so that ten thousand items can be looked through between two keys.
"""

from __future__ import annotations

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line, sanitize_output
from tenuto.session.describe import search_line, sources_text
from tenuto.tui.state.item import (
    AssistantItem,
    CompactionItem,
    ContextItem,
    Item,
    NoticeItem,
    SearchItem,
    ShellItem,
    SourcesItem,
    ThinkingItem,
    ToolItem,
    UserItem,
)

NAME_CHARACTERS = 400
"""A block's name is made of no more of its text."""
KINDS: dict[type, str] = {
    UserItem: "You",
    AssistantItem: "Answer",
    ThinkingItem: "Thinking",
    SearchItem: "Web search",
    SourcesItem: "Sources",
    ShellItem: "Shell",
    NoticeItem: "Notice",
    CompactionItem: "Compaction",
    ContextItem: "Context",
}


def searched_text(item: Item) -> str:
    """Return everything that an unfolded item shows, near enough, as its source has it."""
    match item:
        case UserItem() | AssistantItem() | ThinkingItem() | NoticeItem():
            return item.text
        case SearchItem(search=search):
            return f"{search_line(search)}\n{sources_text(search.sources)}".rstrip()
        case SourcesItem():
            return sources_text(item.sources)
        case ToolItem():
            from tenuto.tui.render.tools import tool_text

            return tool_text(item)
        case ShellItem():
            return f"{item.command}\n{sanitize_output(item.output)}"
        case CompactionItem():
            return "\n".join((item.entry.summary if item.entry is not None else "", item.error))
        case ContextItem():
            return ""


def item_text(item: Item) -> str:
    """Return what copying the whole block gives: Markdown as it was written, commands above their output."""
    match item:
        case ToolItem():
            from tenuto.tui.render.tools import copied_tool

            return _clean(copied_tool(item))
        case ShellItem():
            return _clean(f"$ {item.command}\n{sanitize_output(item.output)}")
        case ContextItem():
            from tenuto.command.outcome import ShowContext

            return ShowContext(item.report).text
        case _:
            return _clean(searched_text(item))


def item_name(item: Item) -> str:
    """Return one line that tells a block from others: what it is, and how it begins."""
    if isinstance(item, ToolItem):
        from tenuto.tui.render.tools import tool_name

        return sanitize_line(tool_name(item)[:NAME_CHARACTERS])
    text = item.command if isinstance(item, ShellItem) else searched_text(item)
    return sanitize_line(f"{KINDS[type(item)]} · {text.lstrip()[:NAME_CHARACTERS]}").removesuffix(" ·")


def _clean(text: str) -> str:
    return sanitize_for_terminal(text).strip("\n")
