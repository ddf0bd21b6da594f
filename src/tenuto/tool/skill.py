"""The `skill` tool: loads a skill of the list. Finding it, and keeping it in the view, is the core's business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.part import TextPart
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import SkillArguments


class SkillTool(BuiltinTool):
    """Loads a skill; its text follows in a note behind the results."""

    name = "skill"
    parallel = True

    def subject(self, arguments: SkillArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: a text is told that was found beforehand; what it asks for is judged call by call."""
        return ApprovalSubject(kind="none", tool=self.name, summary=arguments.name)

    async def run(self, arguments: SkillArguments, context: ToolContext) -> ToolOutput:
        """Load it when the result is stored. Raises `ToolError` with why it cannot be."""
        if context.load_skill is None:
            raise ToolError("there are no skills here; go on with the work")
        loading = context.load_skill(arguments.name.strip())
        context.when_stored[context.call_id] = loading.load
        return ToolOutput(parts=(TextPart(text=loading.text),))
