"""The `compact` tool: the agent asks for a compaction at a good moment. Making it is the core's business."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.protocol.message import NotNowView
from tenuto.protocol.part import TextPart
from tenuto.text.bounding import replace_surrogates
from tenuto.tool.output import ToolOutput
from tenuto.tool.run.context import BuiltinTool, NotNowError, ToolContext, ToolError

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import CompactArguments


class CompactTool(BuiltinTool):
    """Asks for a compaction at the end of the step."""

    name = "compact"
    parallel = False

    def subject(self, arguments: CompactArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: nothing outside the conversation changes, and the user can undo it."""
        return ApprovalSubject(kind="none", tool=self.name, summary=arguments.focus or "")

    async def run(self, arguments: CompactArguments, context: ToolContext) -> ToolOutput:
        """Ask for it. Raises `ToolError` where there never is one."""
        if context.ask_compaction is None:
            raise ToolError("nobody can compact this conversation; go on with the work")
        try:
            text = await context.ask_compaction(replace_surrogates((arguments.focus or "").strip()))
        except NotNowError as error:
            # For the model it stays an error: so a call that is made again and again is found.
            return ToolOutput(parts=(TextPart(text=str(error)),), ui=(NotNowView(reason=error.reason),), is_error=True)
        return ToolOutput(parts=(TextPart(text=text),))
