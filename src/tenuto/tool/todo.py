"""The `todo` tool: the list that the user sees. The core makes the session's entry from the view."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.entry import TodoItem
from tenuto.protocol.message import TodoView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import replace_surrogates
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import TodoArguments


class TodoTool(BuiltinTool):
    """Replaces the whole list."""

    name = "todo"
    parallel = False

    def subject(self, arguments: TodoArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: the list is the agent's own."""
        return ApprovalSubject(kind="none", tool=self.name, summary=f"{len(arguments.items)} items")

    async def run(self, arguments: TodoArguments, context: ToolContext) -> ToolOutput:
        """Return the list as a view."""
        items = tuple(TodoItem(text=replace_surrogates(item.text), status=item.status) for item in arguments.items)
        counts = Counter(item.status for item in items)
        state = ", ".join(f"{count} {status}" for status, count in counts.items()) or "empty"
        return ToolOutput(parts=(TextPart(text=f"Todo list saved: {state}."),), ui=(TodoView(items=items),))
