"""The `plan` tool: a finished plan for the user to approve. Asking is the core's business and is passed in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.text.bounding import replace_surrogates
from tenuto.text.call_summary import first_heading
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import PlanArguments


class PlanTool(BuiltinTool):
    """Hands a plan over and returns what the user made of it."""

    name = "plan"
    parallel = False

    def subject(self, arguments: PlanArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: a plan changes nothing."""
        return ApprovalSubject(kind="none", tool=self.name, summary=first_heading(arguments.plan))

    async def run(self, arguments: PlanArguments, context: ToolContext) -> ToolOutput:
        """Have it asked about. Raises `ToolError` where a plan has nobody to go to."""
        if context.present_plan is None:
            raise ToolError("there is nobody to hand a plan to; go on with the work")
        return await context.present_plan(replace_surrogates(arguments.plan.strip()))
