"""The `agent` tool: a task for a sub-agent. Running it is the core's business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.text.bounding import shorten
from tenuto.tool.output import ToolOutput, clean_text
from tenuto.tool.run.context import AgentTask, BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import AgentArguments

_SUMMARY_CHARS = 120


class AgentTool(BuiltinTool):
    """Runs a sub-agent, beside others."""

    name = "agent"

    def subject(self, arguments: AgentArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: each call that the sub-agent makes is judged for itself."""
        words = arguments.description or arguments.prompt
        return ApprovalSubject(
            kind="none", tool=self.name, summary=f"{arguments.agent} {shorten(words, _SUMMARY_CHARS)}"
        )

    async def run(self, arguments: AgentArguments, context: ToolContext) -> ToolOutput:
        """Run it and return its answer. Raises `ToolError` where there can be no sub-agent, or none of that name."""
        if context.run_agent is None:
            raise ToolError("There are no sub-agents here; do the work yourself.")
        task = AgentTask(
            prompt=clean_text(arguments.prompt),
            agent=clean_text(arguments.agent.strip()) or "general",
            description=clean_text(" ".join((arguments.description or "").split())),
        )
        return await context.run_agent(task, context)
