"""What an item says, as plain text: what a search looks through, what a block is called, what copying it gives. Pure.

Nothing is drawn for it, so that ten thousand items can be looked through between two keys.
"""

from __future__ import annotations

from tenuto.guard.terminal import sanitize_for_terminal, sanitize_line, sanitize_output
from tenuto.protocol.message import DiffView, TodoView
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

NAME_CHARACTERS = 400
"""A block's name is made of no more of its text."""
KINDS: dict[type, str] = {
    UserItem: "You",
    AssistantItem: "Answer",
    ThinkingItem: "Thinking",
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
        case ToolItem():
            return "\n".join((tool_title(item), tool_subject(item), *tool_body(item)))
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
            subject = tool_subject(item)
            head = f"$ {subject}" if item.name == "bash" else f"{tool_title(item)} {subject}".strip()
            return _clean("\n".join((head, *tool_body(item))))
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
        return sanitize_line(f"{tool_title(item)} {tool_subject(item)[:NAME_CHARACTERS]}")
    text = item.command if isinstance(item, ShellItem) else searched_text(item)
    return sanitize_line(f"{KINDS[type(item)]} · {text.lstrip()[:NAME_CHARACTERS]}").removesuffix(" ·")


def tool_title(item: ToolItem) -> str:
    """Return the name that the screen gives a tool."""
    from tenuto.tui.render.renderers import LOOKS

    look = LOOKS.get(item.name)
    return look.title if look is not None else item.name


def tool_subject(item: ToolItem) -> str:
    """Return what a call is about: its command, its path."""
    from tenuto.tui.render.renderers import LOOKS, read_arguments

    look = LOOKS.get(item.name)
    return (look.subject(read_arguments(item.arguments)) if look is not None else "") or item.summary


def tool_body(item: ToolItem) -> list[str]:
    """Return what stands below the head of a call: its change, its list, or its output."""
    if item.result is None:
        return [sanitize_output(item.output)] if item.output else []
    shown: list[str] = []
    for view in item.result.ui:
        if isinstance(view, DiffView):
            shown.append(view.diff)
        elif isinstance(view, TodoView):
            shown.extend(todo.text for todo in view.items)
    if shown:
        return shown
    from tenuto.tui.render.renderers import result_text

    text = result_text(item)
    return [sanitize_output(text)] if text else []


def _clean(text: str) -> str:
    return sanitize_for_terminal(text).strip("\n")
