"""The `recall` tool: everything that was ever said and done in the session (DESIGN section 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenuto.guard.subject import ApprovalSubject
from tenuto.text.bounding import shorten
from tenuto.tool.output import ToolOutput, clean_text
from tenuto.tool.run.base import BuiltinTool
from tenuto.tool.run.context import ToolContext
from tenuto.tool.search.recalling import Question, Span, recall
from tenuto.tool.search.search import run_stoppable

if TYPE_CHECKING:
    from tenuto.tool.run.arguments import RecallArguments


class RecallTool(BuiltinTool):
    """Looks into the history, also at what a summary stands for."""

    name = "recall"

    def subject(self, arguments: RecallArguments, context: ToolContext) -> ApprovalSubject:
        """Nothing to judge: the model has seen all of it before."""
        what = " in ".join(part for part in (shorten(arguments.query, 80), arguments.seq) if part)
        return ApprovalSubject(kind="none", tool=self.name, summary=what)

    async def run(self, arguments: RecallArguments, context: ToolContext) -> ToolOutput:
        """Look off the loop, at the history as it is now."""
        question = Question(
            query=arguments.query,
            regex=arguments.regex,
            span=Span.parse(arguments.seq) if arguments.seq.strip() else None,
            limit=arguments.limit,
        )
        history = context.history
        entries = history.everything() if arguments.branches else history.path()
        text = await run_stoppable(lambda stop: recall(question, entries, context.outputs, stop))
        return ToolOutput.of_text(clean_text(text))
